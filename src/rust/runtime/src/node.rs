//! An object in a copy or a view of memory: its type, its size, and what it refers to.

use crate::memory::at;
use crate::objects::{
    ALTREP, ATTRIBUTES, BCODESXP, BUILTINSXP, CELL, CHARSXP, CLOSXP, CPLXSXP, DATA, DOTSXP, ENVSXP,
    EXPRSXP, EXTPTRSXP, EXTRA, FIRST, GROWABLE, HAS_CLASS, INTSXP, LANGSXP, LENGTH, LGLSXP,
    LISTSXP, MARK, PROMSXP, RAWSXP, REALSXP, SECOND, SPECIALSXP, STRSXP, SYMSXP, THIRD,
    TRUE_LENGTH, Type, VECSXP, WEAKREFSXP,
};

/// The bytes of an object, or their start. Beyond their end, all words are 0.
#[derive(Debug, Clone, Copy)]
pub struct Node<'m> {
    bytes: &'m [u8],
}

impl<'m> Node<'m> {
    #[inline]
    pub fn new(bytes: &'m [u8]) -> Node<'m> {
        Node { bytes }
    }

    #[inline]
    pub fn word(self, offset: usize) -> u64 {
        at(self.bytes, offset)
    }

    #[inline]
    pub fn type_(self) -> Type {
        Type::of(self.word(0))
    }

    #[inline]
    fn has(self, flag: u64) -> bool {
        self.word(0) & flag != 0
    }

    /// Whether it was in use at the last garbage collection.
    pub fn is_marked(self) -> bool {
        self.has(MARK)
    }

    pub fn has_class(self) -> bool {
        self.has(HAS_CLASS)
    }

    #[inline]
    pub fn is_altrep(self) -> bool {
        self.has(ALTREP)
    }

    /// The number of elements of a vector, at most as many pointers as there are bytes, and as references have numbers.
    #[inline]
    pub fn pointers(self) -> u64 {
        let room = self.bytes.len().saturating_sub(DATA) as u64 / 8;
        self.word(LENGTH).min(room).min(u64::from(u32::MAX - 1))
    }

    /// The element of a vector of pointers.
    pub fn element(self, number: u64) -> u64 {
        if number < self.pointers() {
            self.word(DATA + 8 * number as usize)
        } else {
            0
        }
    }

    /// The bytes of a `CHARSXP`, at most as many as there are.
    pub fn text(self) -> &'m [u8] {
        let data = self.bytes.get(DATA..).unwrap_or_default();
        let length = usize::try_from(self.word(LENGTH)).unwrap_or(usize::MAX);
        data.get(..length).unwrap_or(data)
    }

    /// The bytes of a vector's data. If R has made it longer than it says, those that it was made with.
    pub fn data(self) -> u64 {
        if self.has(GROWABLE) {
            self.data_made()
        } else {
            self.data_of(self.word(LENGTH))
        }
    }

    /// The bytes of a vector's data if it was made as long as `TRUELENGTH` says, which may mean anything else.
    pub fn data_made(self) -> u64 {
        let length = self.word(LENGTH);
        // The field of a string is its hash.
        let made = match self.type_() {
            CHARSXP => length,
            _ => length.max(self.word(TRUE_LENGTH)),
        };
        self.data_of(made)
    }

    fn data_of(self, length: u64) -> u64 {
        if self.is_altrep() {
            return 0;
        }
        let units = match self.type_() {
            CHARSXP => length.saturating_add(1).div_ceil(8),
            RAWSXP => length.div_ceil(8),
            LGLSXP | INTSXP => length.div_ceil(2),
            REALSXP | STRSXP | VECSXP | EXPRSXP | WEAKREFSXP => length,
            CPLXSXP => length.saturating_mul(2),
            _ => 0,
        };
        units.saturating_mul(8)
    }

    /// Whether it is a vector, or a string.
    pub fn is_vector(self) -> bool {
        is_data(self.type_()) || matches!(self.type_(), STRSXP | VECSXP | EXPRSXP | WEAKREFSXP)
    }

    /// Whether it never refers to other objects. `nil` is the address of `NULL`.
    #[inline]
    pub fn is_leaf(self, nil: u64) -> bool {
        match self.type_() {
            CHARSXP => true,
            type_ if is_data(type_) || matches!(type_, SPECIALSXP | BUILTINSXP) => {
                !self.is_altrep() && self.word(ATTRIBUTES) == nil
            }
            _ => false,
        }
    }

    /// A reference to another object, by its number from 0. `None` after the last one, 0 if there is none in between. The
    /// last one is the rest of a list, so that long lists can be walked without a stack.
    #[inline]
    pub fn reference(self, number: u32) -> Option<u64> {
        let field = self.field(number)?;
        Some(if field == 0 { 0 } else { self.word(field) })
    }

    /// The offset of a reference; 0 if there is none.
    #[inline]
    pub fn field(self, number: u32) -> Option<usize> {
        let type_ = self.type_();
        if number == 0 {
            // The attributes of a string are the next string in R's table of all strings.
            return Some(if type_ == CHARSXP { 0 } else { ATTRIBUTES });
        }
        let three = |fields: [usize; 3]| fields.get(number as usize - 1).copied();
        if self.is_altrep() {
            return three([THIRD, FIRST, SECOND]);
        }
        // The value is a number if this is not 0.
        let value = || match self.word(0) >> EXTRA {
            0 => FIRST,
            _ => 0,
        };
        match type_ {
            LISTSXP => three([THIRD, value(), SECOND]),
            PROMSXP => three([value(), SECOND, THIRD]),
            SYMSXP | CLOSXP | LANGSXP | DOTSXP | BCODESXP => three([THIRD, FIRST, SECOND]),
            ENVSXP => three([FIRST, THIRD, SECOND]),
            EXTPTRSXP => match number {
                1 => Some(SECOND),
                2 => Some(THIRD),
                _ => None,
            },
            // The value and the finalizer live as long as the key. The key is not held, and what follows is a list of
            // R's.
            WEAKREFSXP => match number {
                1 | 2 => Some(DATA + 8 * number as usize),
                _ => None,
            },
            STRSXP | VECSXP | EXPRSXP => {
                let is_in = u64::from(number) <= self.pointers();
                is_in.then(|| DATA + 8 * (number as usize - 1))
            }
            _ => None,
        }
    }
}

/// The numbers of references by what they mean, see [`Node::reference()`].
pub mod reference {
    /// Of every object.
    pub const ATTRIBUTES: u32 = 0;
    /// Of an object whose data is computed.
    pub const ALTREP_CLASS: u32 = 1;
    /// Of a cell of a list.
    pub const NAME: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const REST: u32 = 3;
    pub const SYMBOL_VALUE: u32 = 3;
    pub const CLOSURE_ENVIRONMENT: u32 = 1;
    /// Of an environment.
    pub const FRAME: u32 = 1;
    pub const HASH_TABLE: u32 = 2;
    pub const PROMISE_VALUE: u32 = 1;
    pub const PROMISE_ENVIRONMENT: u32 = 3;
    /// Of an external pointer.
    pub const PROTECTED: u32 = 1;
    pub const POINTER_TAG: u32 = 2;
    /// Of a weak reference.
    pub const WEAK_VALUE: u32 = 1;
    pub const FINALIZER: u32 = 2;
    /// Of a list or expression.
    pub const FIRST_ELEMENT: u32 = 1;
}

/// Types of vectors that have data only.
fn is_data(type_: Type) -> bool {
    matches!(
        type_,
        CHARSXP | LGLSXP | INTSXP | REALSXP | CPLXSXP | RAWSXP
    )
}

/// The number of bytes that are needed of an object with memory of its own, given its start.
pub fn needed(start: Node) -> u64 {
    match start.type_() {
        STRSXP | VECSXP | EXPRSXP if !start.is_altrep() => {
            (DATA as u64).saturating_add(start.word(LENGTH).saturating_mul(8))
        }
        CHARSXP => DATA as u64 + start.data().min(LONGEST_TEXT),
        _ => CELL as u64,
    }
}

/// The maximum number of bytes of a name.
pub const LONGEST_TEXT: u64 = 200;
