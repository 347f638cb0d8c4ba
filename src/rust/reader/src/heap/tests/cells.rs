//! Builds objects of R.

use super::FakeHeap;
use profile_runtime::objects::{
    ALTREP, ATTRIBUTES, CHARSXP, CLOSXP, DATA, ENVSXP, EXTPTRSXP, FRAME, GROWABLE, HAS_CLASS,
    HASHTAB, LANGSXP, LENGTH, LISTSXP, PROMSXP, REALSXP, STRSXP, SYMSXP, TRUE_LENGTH, Type, VECSXP,
    WEAKREFSXP,
};

impl FakeHeap {
    pub fn vector(&mut self, type_: Type, length: u64, units: usize) -> u64 {
        let vector = self.object(type_, units);
        self.set(vector, LENGTH, length);
        vector
    }

    pub fn pointers(&mut self, type_: Type, elements: &[u64]) -> u64 {
        let vector = self.vector(type_, elements.len() as u64, elements.len());
        for (element, offset) in elements.iter().zip((DATA..).step_by(8)) {
            self.set(vector, offset, *element);
        }
        vector
    }

    pub fn list(&mut self, elements: &[u64]) -> u64 {
        self.pointers(VECSXP, elements)
    }

    pub fn real(&mut self, length: usize) -> u64 {
        self.vector(REALSXP, length as u64, length)
    }

    pub fn growable(&mut self, length: u64, room: usize) -> u64 {
        let vector = self.vector(REALSXP, length, room);
        self.set(vector, TRUE_LENGTH, room as u64);
        self.set_flag(vector, GROWABLE);
        vector
    }

    pub fn text(&mut self, text: &str) -> u64 {
        let units = (text.len() + 1).div_ceil(8);
        let string = self.vector(CHARSXP, text.len() as u64, units);
        self.space.write(string + DATA as u64, text.as_bytes());
        string
    }

    pub fn strings(&mut self, texts: &[&str]) -> u64 {
        let texts: Vec<u64> = texts.iter().map(|text| self.text(text)).collect();
        self.pointers(STRSXP, &texts)
    }

    pub fn symbol(&mut self, name: &str) -> u64 {
        if let Some(symbol) = self.symbols.get(name) {
            return *symbol;
        }
        let text = self.text(name);
        let (nil, unbound) = (self.known.nil, self.known.unbound);
        let symbol = self.cell(SYMSXP, [text, unbound, nil]);
        self.symbols.insert(name.to_owned(), symbol);
        symbol
    }

    /// A pairlist; elements without name have the name "".
    pub fn pairlist(&mut self, elements: &[(&str, u64)]) -> u64 {
        let mut list = self.known.nil;
        for (name, value) in elements.iter().rev() {
            let tag = match *name {
                "" => self.known.nil,
                name => self.symbol(name),
            };
            list = self.cell(LISTSXP, [*value, list, tag]);
        }
        list
    }

    pub fn set_attributes(&mut self, object: u64, attributes: &[(&str, u64)]) {
        let list = self.pairlist(attributes);
        self.set(object, ATTRIBUTES, list);
        if attributes.iter().any(|(name, _)| *name == "class") {
            self.set_flag(object, HAS_CLASS);
        }
    }

    pub fn named_list(&mut self, elements: &[(&str, u64)]) -> u64 {
        let (names, values): (Vec<&str>, Vec<u64>) = elements.iter().copied().unzip();
        let list = self.list(&values);
        let names = self.strings(&names);
        self.set_attributes(list, &[("names", names)]);
        list
    }

    pub fn environment(&mut self, parent: u64) -> u64 {
        let nil = self.known.nil;
        self.cell(ENVSXP, [nil, parent, nil])
    }

    pub fn define(&mut self, environment: u64, name: &str, value: u64) {
        let (tag, rest) = (self.symbol(name), self.word(environment, FRAME));
        let frame = self.cell(LISTSXP, [value, rest, tag]);
        self.set(environment, FRAME, frame);
    }

    pub fn define_global(&mut self, name: &str, value: u64) {
        self.define(self.known.global, name, value);
    }

    /// An environment with a hash table that has a chain for each of these lists.
    pub fn hashed(&mut self, parent: u64, chains: &[&[(&str, u64)]]) -> u64 {
        let chains: Vec<u64> = chains.iter().map(|chain| self.pairlist(chain)).collect();
        let table = self.list(&chains);
        let environment = self.environment(parent);
        self.set(environment, HASHTAB, table);
        environment
    }

    pub fn namespace(&mut self, name: &str) -> u64 {
        let imports = self.environment(self.known.base);
        let namespace = self.environment(imports);
        self.define(self.known.namespaces, name, namespace);
        namespace
    }

    pub fn closure(&mut self, body: u64, environment: u64) -> u64 {
        let nil = self.known.nil;
        self.cell(CLOSXP, [nil, body, environment])
    }

    pub fn call(&mut self, function: &str, rest: u64) -> u64 {
        let (name, nil) = (self.symbol(function), self.known.nil);
        self.cell(LANGSXP, [name, rest, nil])
    }

    pub fn promise(&mut self, value: u64, code: u64, environment: u64) -> u64 {
        self.cell(PROMSXP, [value, code, environment])
    }

    pub fn external_pointer(&mut self, protected: u64, tag: u64) -> u64 {
        self.cell(EXTPTRSXP, [0x1234_5678, protected, tag])
    }

    /// Its elements are the key, the value, the finalizer, and the next weak reference.
    pub fn weak_reference(&mut self, key: u64, value: u64, finalizer: u64) -> u64 {
        let next = self.known.nil;
        self.pointers(WEAKREFSXP, &[key, value, finalizer, next])
    }

    pub fn altrep(&mut self, type_: Type, data: [u64; 2]) -> u64 {
        let nil = self.known.nil;
        let class = self.pairlist(&[("", nil)]);
        let object = self.cell(type_, [data[0], data[1], class]);
        self.set_flag(object, ALTREP);
        object
    }
}
