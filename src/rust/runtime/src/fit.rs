//! Finds the layout of the records of a process by its records. It depends on the version of R, which a process does not
//! have to name.

use crate::contexts::{Layout, NODE_STACK_BYTES, Record};
use crate::memory::{self, Memory};
use crate::objects::{INTSXP, Type};

/// Whether the records fit a layout: the node stack was lower when outer calls were made, and each record contains
/// the place of its call, or a null pointer if the call was made by native code.
#[derive(Debug)]
pub struct Fit {
    pub layout: Layout,
    pub fits: bool,
    /// The number of records with the place of the call, and of those with a null pointer.
    places: usize,
    pub nulls: usize,
    /// The last record, and the top of the node stack in it.
    pub record: u64,
    pub height: u64,
}

impl Fit {
    pub fn new(layout: Layout, node_stack_end: u64) -> Fit {
        Fit {
            layout,
            fits: true,
            places: 0,
            nulls: 0,
            record: 0,
            height: node_stack_end,
        }
    }

    /// Adds the next outer record. `markers` are the objects that stand for no `srcref` and for byte code.
    pub fn add(
        &mut self,
        memory: &mut impl Memory,
        markers: [u64; 2],
        address: u64,
        record: &Record,
    ) {
        let height = record.node_stack(self.layout);
        let srcref = record.srcref(self.layout);
        let is_srcref = |word| Type::of(word) == INTSXP;
        let knows = markers.contains(&srcref)
            || srcref != 0 && memory::word(memory, srcref).is_some_and(is_srcref);
        self.fits = height <= self.height && (knows || srcref == 0);
        self.places += usize::from(knows);
        self.nulls += usize::from(srcref == 0);
        self.record = address;
        self.height = height;
    }

    /// Checks that the outermost record was made when the node stack was empty.
    pub fn finish(&mut self, node_stack_end: u64) {
        let size = node_stack_end.saturating_sub(self.height);
        self.fits &= self.places > self.nulls && NODE_STACK_BYTES.contains(&size);
    }
}
