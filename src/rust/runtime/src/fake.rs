//! R's objects in a simulated memory, for the unit tests of this crate.

use crate::memory::Memory;
use crate::objects::{
    BCODESXP, CHARSXP, CLOSXP, ENVSXP, INTSXP, LGLSXP, LISTSXP, NILSXP, PROMSXP, STRSXP, SYMSXP,
    Type, VECSXP,
};

/// The number of the object `NULL`.
pub const NIL: usize = 0;
/// The bits of addresses inside of an object.
const BITS: u32 = 20;

/// Objects that are numbered from 0, as words; the first one is `NULL`.
pub struct Objects(pub Vec<Vec<u64>>);

pub fn address(number: usize) -> u64 {
    (number as u64 + 1) << BITS
}

impl Memory for Objects {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let Some(object) = self.object(address) else {
            return false;
        };
        let bytes: Vec<u8> = object.iter().flat_map(|word| word.to_le_bytes()).collect();
        let start = (address & ((1 << BITS) - 1)) as usize;
        match bytes.get(start..start + into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}

impl Objects {
    pub fn new() -> Objects {
        let mut objects = Objects(Vec::new());
        objects.add(NILSXP, &[]);
        objects
    }

    /// The words of the object at an address.
    pub fn object(&mut self, address: u64) -> Option<&mut Vec<u64>> {
        let number = ((address >> BITS) as usize).checked_sub(1)?;
        self.0.get_mut(number)
    }

    /// Adds an object with these words after its header of 4 words. Returns its number.
    pub fn add(&mut self, kind: Type, words: &[u64]) -> usize {
        let mut object = vec![u64::from(kind.0), address(NIL), 0, 0];
        object.extend(words);
        object.resize(object.len().max(8), 0);
        self.0.push(object);
        self.0.len() - 1
    }

    pub fn string(&mut self, text: &str) -> usize {
        let mut words = vec![text.len() as u64, 0];
        words.extend(text.as_bytes().chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }));
        self.add(CHARSXP, &words)
    }

    pub fn text(&mut self, text: &str) -> usize {
        let string = address(self.string(text));
        self.add(STRSXP, &[1, 0, string])
    }

    pub fn flag(&mut self, flag: u64) -> usize {
        self.add(LGLSXP, &[1, 0, flag])
    }

    pub fn symbol(&mut self, name: &str) -> usize {
        let name = address(self.string(name));
        self.add(SYMSXP, &[name])
    }

    /// A promise with this value, or one that was not evaluated.
    pub fn promise(&mut self, value: Option<usize>, expression: usize) -> usize {
        let value = value.unwrap_or_else(|| self.symbol(""));
        self.add(
            PROMSXP,
            &[address(value), address(expression), address(NIL)],
        )
    }

    pub fn compiled(&mut self, expression: usize) -> usize {
        let constants = self.add(VECSXP, &[1, 0, address(expression)]);
        self.add(BCODESXP, &[address(NIL), address(constants)])
    }

    /// An environment with these variables.
    pub fn environment(&mut self, variables: &[(&str, usize)]) -> usize {
        let mut rest = NIL;
        for (name, value) in variables.iter().rev() {
            let name = self.symbol(name);
            rest = self.add(LISTSXP, &[address(*value), address(rest), address(name)]);
        }
        self.add(ENVSXP, &[address(rest), address(NIL), address(NIL)])
    }

    /// A list of objects.
    pub fn list(&mut self, elements: &[usize]) -> usize {
        let mut words = vec![elements.len() as u64, 0];
        words.extend(elements.iter().map(|&element| address(element)));
        self.add(VECSXP, &words)
    }

    pub fn integers(&mut self, values: &[i32]) -> usize {
        let mut words = vec![values.len() as u64, 0];
        words.extend(values.chunks(2).map(|pair| {
            let upper = pair.get(1).map_or(0, |&upper| upper as u32);
            u64::from(pair[0] as u32) | u64::from(upper) << 32
        }));
        self.add(INTSXP, &words)
    }

    /// Byte code with these instructions and constants.
    pub fn byte_code(&mut self, instructions: &[u64], constants: &[usize]) -> usize {
        let mut words = vec![2 * instructions.len() as u64, 0];
        words.extend(instructions);
        let instructions = self.add(INTSXP, &words);
        let constants = self.list(constants);
        self.add(BCODESXP, &[address(instructions), address(constants)])
    }

    /// The table `srcrefsIndex` of the compiler.
    pub fn srcrefs(&mut self, numbers: &[i32]) -> usize {
        let table = self.integers(numbers);
        let class = self.text("srcrefsIndex");
        let name = self.symbol("class");
        let attribute = self.add(LISTSXP, &[address(class), address(NIL), address(name)]);
        self.0[table][1] = address(attribute);
        table
    }

    pub fn closure(&mut self, body: usize, environment: usize) -> usize {
        self.add(CLOSXP, &[address(NIL), address(body), address(environment)])
    }
}
