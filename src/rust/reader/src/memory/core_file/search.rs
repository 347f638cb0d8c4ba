//! Finds R's variables in a core file without symbols, by their values. Since nothing in a core file changes, the
//! values are all that is needed.
//!
//! The writable part of the module with R's variables is searched for
//!
//! - `R_GlobalContext`: of all lists of records that end with a variable, it is the start of the longest one, since all
//!   other variables point to outer records;
//! - `R_NilValue`: an object of its own type, whose pointers all point to itself;
//! - `R_InBCInterpreter` and `R_SrcfileSymbol`: symbols with known names;
//! - `R_Srcref`: the only source reference. If there is none, and two variables contain the marker
//!   `R_InBCInterpreter`, one of them is `R_Srcref`;
//! - `R_BCNodeStackEnd`: the outermost record contains the start of the node stack, whose size is known.
//!
//! Afterwards, [`crate::target::Target::open`] checks the records as usual.

use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::{Layout, NODE_STACK_SIZES, Record, Walk};
use profile_runtime::memory::{self, Limited, MEMORY_PAGE, Memory, at};
use profile_runtime::objects::{
    ATTRIBUTES, CAR, CDR, CELL, ENVSXP, INTSXP, LISTSXP, NILSXP, PRINTNAME, SYMSXP, TAG, Type,
    has_text,
};
use profile_runtime::variables::{IN_BYTE_CODE_NAME, SRCFILE_NAME};
use std::ops::Range;

/// The limits on what is read, in units of about a microsecond, and on the size of the variables.
const MOST_TO_READ: u64 = 4 << 20;
const MOST_BYTES: u64 = 16 << 20;
/// More attributes than a source reference has.
const MOST_ATTRIBUTES: usize = 8;

/// The values of R's variables.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    pub head: u64,
    pub srcref: u64,
    pub nil: u64,
    pub in_byte_code: u64,
    pub srcfile: u64,
    pub node_stack_end: u64,
}

/// Searches the variables in these ranges.
pub fn find(memory: impl Memory, variables: &[Range<u64>]) -> Result<Option<Values>> {
    let mut memory = Limited::new(memory, MOST_TO_READ);
    let mut words = words(&mut memory, variables)?;
    words.sort_unstable();
    let mut search = Search {
        memory,
        words: &words,
        variables,
        longest: None,
        values: Values::default(),
        integers: Vec::new(),
    };
    let mut last = 0;
    for &word in &words {
        if word != last {
            search.look_at(word)?;
        }
        last = word;
    }
    search.finish()
}

/// The values of all variables that may be addresses of objects.
fn words(memory: &mut impl Memory, variables: &[Range<u64>]) -> Result<Vec<u64>> {
    let mut words = Vec::new();
    let mut left = MOST_BYTES;
    let mut page = [0; MEMORY_PAGE as usize];
    for range in variables {
        let mut address = range.start & !7;
        while address < range.end && left > 0 {
            let size = (MEMORY_PAGE - address % MEMORY_PAGE).min(range.end - address);
            let part = page.get_mut(..size as usize).unwrap_or_default();
            if memory.read(address, part) {
                for word in part.chunks_exact(8).map(|word| at(word, 0)) {
                    if word != 0 && word % 8 == 0 {
                        words.try_push(word)?;
                    }
                }
            }
            left = left.saturating_sub(size);
            address = address.saturating_add(size);
        }
    }
    Ok(words)
}

struct Search<'s, M> {
    memory: Limited<M>,
    /// The values of all variables, sorted.
    words: &'s [u64],
    variables: &'s [Range<u64>],
    longest: Option<List>,
    values: Values,
    /// Integer vectors, which may be source references.
    integers: Vec<u64>,
}

/// A list of records.
struct List {
    first: u64,
    length: usize,
    /// The end of the node stack, according to the outermost record.
    node_stack_end: u64,
    /// Whether there are several lists of this length.
    is_ambiguous: bool,
}

impl<M: Memory> Search<'_, M> {
    /// Checks whether a value is that of a variable.
    fn look_at(&mut self, word: u64) -> Result<()> {
        let Some(cell) = memory::array::<CELL>(&mut self.memory, word) else {
            return Ok(());
        };
        let pointers = [ATTRIBUTES, CAR, CDR, TAG].map(|offset| at(&cell, offset));
        match Type::of(at(&cell, 0)) {
            NILSXP if pointers == [word; 4] => self.values.nil = word,
            SYMSXP => {
                let name = at(&cell, PRINTNAME);
                if has_text(&mut self.memory, name, IN_BYTE_CODE_NAME.as_bytes()) {
                    self.values.in_byte_code = word;
                } else if has_text(&mut self.memory, name, SRCFILE_NAME.as_bytes()) {
                    self.values.srcfile = word;
                }
            }
            INTSXP => self.integers.try_push(word)?,
            _ => {}
        }
        if let Some(list) = self.list(word) {
            match &mut self.longest {
                Some(longest) if longest.length > list.length => {}
                Some(longest) if longest.length == list.length => longest.is_ambiguous = true,
                longest => *longest = Some(list),
            }
        }
        Ok(())
    }

    /// The list of records that starts at an address, if it ends with a variable.
    fn list(&mut self, first: u64) -> Option<List> {
        let mut walk = Walk::new(first);
        let mut last = None;
        let mut length = 0;
        while let Some((address, record)) = walk.next(&mut self.memory) {
            if !record.head().is_possible() {
                return None;
            }
            length += 1;
            last = Some((address, record));
        }
        let (outermost, record) = last.filter(|_| walk.is_whole())?;
        let is_variable = |part: &Range<u64>| part.contains(&outermost);
        if !self.variables.iter().any(is_variable) {
            return None;
        }
        let node_stack_end = self.node_stack_end(&record)?;
        Some(List {
            first,
            length,
            node_stack_end,
            is_ambiguous: false,
        })
    }

    /// The end of the node stack, if this is the outermost record.
    fn node_stack_end(&self, record: &Record) -> Option<u64> {
        let starts = Layout::ALL.map(|layout| record.node_stack(layout));
        let starts = starts.iter().filter(|&&start| start != 0);
        let mut ends =
            starts.flat_map(|start| NODE_STACK_SIZES.map(|size| start.saturating_add(size)));
        ends.find(|end| self.words.binary_search(end).is_ok())
    }

    /// Whether this is a source reference: it has an attribute `srcfile`, which is an environment.
    fn is_srcref(&mut self, integers: u64) -> Option<bool> {
        let cell = memory::array::<CELL>(&mut self.memory, integers)?;
        let mut attributes = at(&cell, ATTRIBUTES);
        for _ in 0..MOST_ATTRIBUTES {
            let cell = memory::array::<CELL>(&mut self.memory, attributes)?;
            if Type::of(at(&cell, 0)) != LISTSXP {
                break;
            }
            if at(&cell, TAG) == self.values.srcfile {
                let value = memory::word(&mut self.memory, at(&cell, CAR))?;
                return Some(Type::of(value) == ENVSXP);
            }
            attributes = at(&cell, CDR);
        }
        Some(false)
    }

    /// The values, if all were found.
    fn finish(mut self) -> Result<Option<Values>> {
        let Some(list) = self.longest.take().filter(|list| !list.is_ambiguous) else {
            return Ok(None);
        };
        let mut values = Values {
            head: list.first,
            node_stack_end: list.node_stack_end,
            ..self.values
        };
        if [values.nil, values.in_byte_code, values.srcfile].contains(&0) {
            return Ok(None);
        }
        let mut srcrefs = Vec::new();
        for integers in std::mem::take(&mut self.integers) {
            if self.is_srcref(integers).unwrap_or(false) {
                srcrefs.try_push(integers)?;
            }
        }
        let mut markers = self
            .words
            .iter()
            .filter(|&&word| word == values.in_byte_code);
        values.srcref = match (srcrefs.as_slice(), markers.nth(1)) {
            (&[srcref], None) => srcref,
            (&[], Some(_)) => values.in_byte_code,
            _ => values.nil,
        };
        // If the limit was reached, something else may fit better.
        Ok((!self.memory.is_exhausted()).then_some(values))
    }
}
