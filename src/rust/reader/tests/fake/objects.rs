//! R's objects in the memory of a simulated process.

use super::process::FakeR;
use profile_runtime::environments::{NAMESPACE, SPEC, hash};
use profile_runtime::objects::{
    ATTRIBUTES, BCODESXP, BUILTINSXP, CDR, CELL, CHARSXP, CLOSXP, DATA, ENVSXP, FIRST, INTSXP,
    LANGSXP, LENGTH, LISTSXP, REALSXP, STRSXP, SYMSXP, Type, VALUE, VECSXP,
};

/// The bits above the type, which `Rf_isObject()` and others use. They are set so that tests show that nothing
/// depends on them.
const OTHER_BITS: u64 = 0x0001_0040;

/// The number of lists of a hash table.
pub const HASH_TABLE: u64 = 7;

/// The byte code of a function.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// The `BCODESXP`.
    pub object: u64,
    /// Its instructions, an integer vector.
    pub instructions: u64,
    pub constants: u64,
    /// The table of places.
    pub table: u64,
    /// The table of expressions.
    pub expressions: u64,
    /// A function with this byte code.
    pub closure: u64,
}

impl FakeR {
    /// An object of three words.
    pub fn cell(&mut self, kind: Type, words: [u64; 3]) -> u64 {
        let address = self.allocate(CELL as u64);
        self.space.set(address, u64::from(kind.0) | OTHER_BITS);
        self.space.set(address + ATTRIBUTES as u64, self.nil);
        for (number, word) in words.into_iter().enumerate() {
            self.space
                .set(address + FIRST as u64 + 8 * number as u64, word);
        }
        address
    }

    /// A vector of this length and with these data.
    pub fn vector(&mut self, kind: Type, length: u64, data: &[u8]) -> u64 {
        let size = DATA as u64 + data.len() as u64;
        let address = self.allocate(size.next_multiple_of(8).max(CELL as u64));
        self.space.set(address, u64::from(kind.0) | OTHER_BITS);
        self.space.set(address + ATTRIBUTES as u64, self.nil);
        self.space.set(address + LENGTH as u64, length);
        self.space.set(address + LENGTH as u64 + 8, length);
        self.space.write(address + DATA as u64, data);
        address
    }

    pub fn text(&mut self, text: &[u8]) -> u64 {
        self.vector(CHARSXP, text.len() as u64, text)
    }

    pub fn string(&mut self, text: &str) -> u64 {
        let text = self.text(text.as_bytes());
        self.vector(STRSXP, 1, &text.to_le_bytes())
    }

    pub fn integers(&mut self, values: &[i32]) -> u64 {
        let data: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.vector(INTSXP, values.len() as u64, &data)
    }

    pub fn real(&mut self, value: f64) -> u64 {
        self.vector(REALSXP, 1, &value.to_le_bytes())
    }

    pub fn list(&mut self, elements: &[u64]) -> u64 {
        let data: Vec<u8> = elements
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.vector(VECSXP, elements.len() as u64, &data)
    }

    /// The symbol with this name. There is only one.
    pub fn symbol(&mut self, name: &str) -> u64 {
        if let Some(&symbol) = self.symbols.get(name) {
            return symbol;
        }
        let text = self.text(name.as_bytes());
        let symbol = self.cell(SYMSXP, [text, self.nil, self.nil]);
        self.symbols.insert(name.to_owned(), symbol);
        symbol
    }

    /// A pairlist of values and their names.
    pub fn pairlist(&mut self, elements: &[(u64, u64)]) -> u64 {
        let elements = elements.iter().rev();
        elements.fold(self.nil, |rest, &(tag, value)| {
            self.cell(LISTSXP, [value, rest, tag])
        })
    }

    /// A call: the function, and arguments without names.
    pub fn call(&mut self, elements: &[u64]) -> u64 {
        let nil = self.nil;
        let arguments: Vec<_> = elements[1..].iter().map(|&value| (nil, value)).collect();
        let rest = self.pairlist(&arguments);
        self.cell(LANGSXP, [elements[0], rest, nil])
    }

    /// The call of a builtin function `name()`.
    pub fn call_of_builtin(&mut self, name: &str) -> u64 {
        let nil = self.nil;
        let symbol = self.symbol(name);
        let function = self.cell(BUILTINSXP, [nil; 3]);
        self.space.set(symbol + VALUE as u64, function);
        self.call(&[symbol])
    }

    /// The call `name()`.
    pub fn call_of(&mut self, name: &str) -> u64 {
        let symbol = self.symbol(name);
        self.call(&[symbol])
    }

    /// The call of `object operator member`, such as `stats::lm()`.
    pub fn call_of_member(&mut self, operator: &str, object: u64, member: u64) -> u64 {
        let operator = self.symbol(operator);
        let head = self.call(&[operator, object, member]);
        self.call(&[head])
    }

    pub fn attribute(&mut self, object: u64, attributes: &[(u64, u64)]) {
        let list = self.pairlist(attributes);
        self.space.set(object + ATTRIBUTES as u64, list);
    }

    fn class(&mut self, object: u64, class: &str, others: &[(u64, u64)]) {
        let name = self.symbol("class");
        let class = self.string(class);
        let mut attributes = others.to_vec();
        attributes.push((name, class));
        self.attribute(object, &attributes);
    }

    /// The environment of a source file, with its variables in a pairlist.
    pub fn srcfile(&mut self, filename: &str) -> u64 {
        let variables = self.srcfile_variables(filename);
        let variables = variables.map(|(name, value)| (self.symbol(name), value));
        let frame = self.pairlist(&variables);
        self.cell(ENVSXP, [frame, self.nil, self.nil])
    }

    /// The same with a hash table: a list of pairlists.
    pub fn hashed_srcfile(&mut self, filename: &str) -> u64 {
        let variables = self.srcfile_variables(filename);
        self.hashed_environment(self.nil, &variables)
    }

    fn srcfile_variables(&mut self, filename: &str) -> [(&'static str, u64); 3] {
        [("Enc", "unknown"), ("filename", filename), ("wd", "/home")]
            .map(|(name, value)| (name, self.string(value)))
    }

    /// An environment as that of a call, without variables.
    pub fn environment(&mut self, enclosing: u64) -> u64 {
        self.cell(ENVSXP, [self.nil, enclosing, self.nil])
    }

    /// An environment with these variables in a hash table.
    pub fn hashed_environment(&mut self, enclosing: u64, variables: &[(&str, u64)]) -> u64 {
        let mut chains = vec![self.nil; HASH_TABLE as usize];
        for &(name, value) in variables {
            let chain = &mut chains[(hash(name) % HASH_TABLE) as usize];
            let symbol = self.symbol(name);
            *chain = self.cell(LISTSXP, [value, *chain, symbol]);
        }
        let table = self.list(&chains);
        self.cell(ENVSXP, [self.nil, enclosing, table])
    }

    /// The namespace of a package, which its imports enclose, which base encloses.
    pub fn namespace(&mut self, name: &str) -> u64 {
        let spec = ["1.2.3", name].map(|text| self.text(text.as_bytes()));
        let spec: Vec<u8> = spec.into_iter().rev().flat_map(u64::to_le_bytes).collect();
        let spec = self.vector(STRSXP, 2, &spec);
        let description = self.hashed_environment(self.base, &[(SPEC, spec)]);
        let imports = self.hashed_environment(self.base_namespace, &[("x", self.nil)]);
        let other = (".packageName", self.nil);
        self.hashed_environment(imports, &[other, (NAMESPACE, description), ("x", self.nil)])
    }

    /// A function that was defined in an environment.
    pub fn closure(&mut self, environment: u64) -> u64 {
        self.cell(CLOSXP, [self.nil, self.nil, environment])
    }

    /// A place in a source file.
    pub fn srcref(&mut self, line: i32, srcfile: u64) -> u64 {
        let srcref = self.integers(&[line, 1, line, 20, 1, 20, line, line]);
        let name = self.srcfile;
        self.class(srcref, "srcref", &[(name, srcfile)]);
        srcref
    }

    /// Byte code with a place for each instruction.
    pub fn byte_code(&mut self, srcrefs: &[u64]) -> Code {
        let body = self.call_of("{");
        self.byte_code_of(srcrefs, &vec![body; srcrefs.len()])
    }

    /// Byte code with a place and an expression for each instruction. The operand of each is the number of its
    /// expression.
    pub fn byte_code_of(&mut self, srcrefs: &[u64], expressions: &[u64]) -> Code {
        assert_eq!(srcrefs.len(), expressions.len());
        let body = self.call_of("{");
        let mut constants = vec![body];
        constants.extend(srcrefs);
        constants.extend(expressions);
        let count = srcrefs.len() as i32;
        let numbers: Vec<i32> = (1..=count).collect();
        let of_expressions: Vec<i32> = (count + 1..=2 * count).collect();
        // A word of the instructions takes 8 bytes, which are two integers. The word of the next instruction is also
        // the operand of this one.
        let mut instructions = vec![0, 7];
        instructions.extend(of_expressions.iter().flat_map(|&number| [number, 7]));
        let instructions = self.integers(&instructions);
        let expressions = self.integers(&of_expressions);
        self.class(expressions, "expressionsIndex", &[]);
        let table = self.integers(&numbers);
        self.class(table, "srcrefsIndex", &[]);
        constants.extend([expressions, table]);
        let constants = self.list(&constants);
        let object = self.cell(BCODESXP, [instructions, constants, self.nil]);
        let closure = self.cell(CLOSXP, [self.nil, object, self.nil]);
        Code {
            object,
            instructions,
            constants,
            table,
            expressions,
            closure,
        }
    }

    /// The address of an element of a call. Number 0 is the function, the others are its arguments.
    pub fn element(&self, call: u64, number: usize) -> u64 {
        (0..number).fold(call, |cell, _| self.space.word(cell + CDR as u64))
    }
}
