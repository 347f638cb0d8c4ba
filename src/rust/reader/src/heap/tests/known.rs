//! The objects that R has when it starts.

use super::FakeHeap;
use profile_runtime::objects::{
    ATTRIBUTES, CDR, ENVSXP, FIRST, FRAME, HASHTAB, NILSXP, SECOND, SYMSXP, THIRD,
};

impl FakeHeap {
    pub(super) fn make_known(&mut self) {
        let nil = self.object(NILSXP, 0);
        self.known.nil = nil;
        for offset in [ATTRIBUTES, FIRST, SECOND, THIRD] {
            self.set(nil, offset, nil);
        }
        self.known.unbound = self.cell(SYMSXP, [nil; 3]);
        self.known.missing = self.cell(SYMSXP, [nil; 3]);
        self.known.names_symbol = self.symbol("names");
        self.known.class_symbol = self.symbol("class");
        self.known.name_symbol = self.symbol("name");
        self.known.empty = self.cell(ENVSXP, [nil, nil, nil]);
        self.known.base = self.environment(self.known.empty);
        self.known.global = self.environment(self.known.base);
        self.known.namespaces = self.environment(self.known.empty);
        for object in [
            nil,
            self.known.global,
            self.known.base,
            self.known.namespaces,
        ] {
            self.add_variable(object);
        }
        let (frame, table) = (self.word(nil, FRAME), self.word(nil, HASHTAB));
        assert_eq!([frame, table, self.word(nil, CDR)], [nil; 3]);
    }
}
