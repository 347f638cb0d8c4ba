//! Finds R's variables by their values, for an R that does not export all of them, and for core files, which may lack the
//! symbols of libraries.
//!
//! The writable part of the module with R's variables is searched for
//!
//! - `R_NilValue`: an object of its own type, whose pointers all point to itself;
//! - `R_InBCInterpreter` and `R_SrcfileSymbol`: symbols with known names;
//! - `R_BCNodeStackEnd`: the outermost record, which is a variable of R, contains the start of the node stack, whose size
//!   is known;
//! - `R_CStackStart`: an address near the end of a mapping, the highest one. Nothing that R points to is above the stack;
//! - `R_NamespaceRegistry`, from which R's own environments are found, see [`super::constants::Environments`];
//! - `R_GlobalContext`: the variable with the longest list of records, see [`super::head`];
//! - `R_Srcref`: the only variable with a source reference. If there is none, it may be one of those with the marker
//!   `R_InBCInterpreter`, see [`srcrefs()`].
//!
//! R may go on meanwhile. Only the last two of them change.

use super::constants::{Constants, Environments};
use super::head::Head;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_runtime::contexts::{self, Layout, NODE_STACK_SIZES, Record, list};
use profile_runtime::memory::{self, MEMORY_PAGE, Mapping, Memory, at};
use profile_runtime::objects::{
    ATTRIBUTES, CAR, CDR, CELL, ENVSXP, INTSXP, LISTSXP, NILSXP, PRINTNAME, SYMSXP, TAG, Type,
    has_text,
};
use profile_runtime::variables::{
    IN_BYTE_CODE, IN_BYTE_CODE_NAME, NIL, NODE_STACK_END, SRCFILE_NAME, SRCFILE_SYMBOL, STACK_START,
};
use std::ops::Range;

/// The limit on the size of the variables.
const MOST_BYTES: u64 = 16 << 20;
/// More attributes than a source reference has.
const MOST_ATTRIBUTES: usize = 8;
/// The arguments and the environment of a program are above the start of its stack. Linux limits them to 6 MB.
const MOST_ABOVE_STACK: u64 = 8 << 20;
/// How often to try to read a list of records. In a busy process, most attempts succeed.
const ROUNDS: usize = 20;

/// The values of variables that do not change; 0 if one was not found.
#[derive(Debug, Default)]
pub struct Found {
    pub values: [(&'static str, u64); 5],
    /// The outermost record.
    pub toplevel: u64,
}

/// A variable: its value, and its address.
type Variable = (u64, u64);

/// The variables of R that may be addresses of something, sorted by their values.
#[derive(Debug, Default)]
pub struct Hidden<'v> {
    ranges: &'v [Range<u64>],
    words: Vec<Variable>,
}

impl<'v> Hidden<'v> {
    pub fn read(memory: &mut impl Memory, ranges: &'v [Range<u64>]) -> Result<Hidden<'v>> {
        let mut words = Vec::new();
        let mut left = MOST_BYTES;
        let mut page = [0; MEMORY_PAGE as usize];
        for range in ranges {
            let mut address = range.start.saturating_add(7) & !7;
            while address < range.end && left > 0 {
                let size = (MEMORY_PAGE - address % MEMORY_PAGE).min(range.end - address);
                let part = page.get_mut(..size as usize).unwrap_or_default();
                if memory.read(address, part) {
                    for (row, word) in (0..).zip(part.chunks_exact(8)) {
                        let word = at(word, 0);
                        if word != 0 && word % 8 == 0 {
                            words.try_push((word, address + 8 * row))?;
                        }
                    }
                }
                left = left.saturating_sub(size);
                address = address.saturating_add(size);
            }
        }
        words.sort_unstable();
        Ok(Hidden { ranges, words })
    }

    /// The variables with this value.
    fn with(&self, value: u64) -> &[Variable] {
        let start = self.words.partition_point(|variable| variable.0 < value);
        let end = self.words.partition_point(|variable| variable.0 <= value);
        self.words.get(start..end).unwrap_or_default()
    }

    fn values(&self) -> impl DoubleEndedIterator<Item = u64> {
        let same = self.words.chunk_by(|one, other| one.0 == other.0);
        same.filter_map(|same| Some(same.first()?.0))
    }

    fn contain(&self, address: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(&address))
    }

    pub fn constants(&self, memory: &mut impl Memory, mappings: &[Mapping]) -> Found {
        let (mut nil, mut in_byte_code, mut srcfile) = (0, 0, 0);
        let (mut toplevel, mut node_stack_end) = (0, 0);
        for word in self.values() {
            let Some(cell) = memory::array::<CELL>(memory, word) else {
                continue;
            };
            let pointers = [ATTRIBUTES, CAR, CDR, TAG].map(|offset| at(&cell, offset));
            match Type::of(at(&cell, 0)) {
                NILSXP if pointers == [word; 4] => nil = word,
                SYMSXP => {
                    let name = at(&cell, PRINTNAME);
                    if has_text(memory, name, IN_BYTE_CODE_NAME.as_bytes()) {
                        in_byte_code = word;
                    } else if has_text(memory, name, SRCFILE_NAME.as_bytes()) {
                        srcfile = word;
                    }
                }
                _ => {}
            }
            if toplevel == 0 {
                (toplevel, node_stack_end) = self.outermost(memory, word).unwrap_or_default();
            }
        }
        Found {
            values: [
                (NIL, nil),
                (IN_BYTE_CODE, in_byte_code),
                (SRCFILE_SYMBOL, srcfile),
                (NODE_STACK_END, node_stack_end),
                (STACK_START, self.stack_start(mappings)),
            ],
            toplevel,
        }
    }

    /// The outermost record of the list that starts at an address, if that is a variable, and the end of the node stack.
    fn outermost(&self, memory: &mut impl Memory, first: u64) -> Option<(u64, u64)> {
        let (_, outermost) = list(memory, first)?;
        let record = Record::read(memory, outermost).filter(|_| self.contain(outermost))?;
        Some((outermost, self.node_stack_end(&record)?))
    }

    /// The end of the node stack, if this is the outermost record.
    fn node_stack_end(&self, record: &Record) -> Option<u64> {
        let starts = Layout::ALL.map(|layout| record.node_stack(layout));
        let starts = starts.iter().filter(|&&start| start != 0);
        let mut ends =
            starts.flat_map(|start| NODE_STACK_SIZES.map(|size| start.saturating_add(size)));
        ends.find(|end| !self.with(*end).is_empty())
    }

    /// An address near the start of the stack, or 0.
    fn stack_start(&self, mappings: &[Mapping]) -> u64 {
        let is_start = |word: &u64| {
            let ends = mappings.iter().map(|mapping| &mapping.addresses);
            let mut ends = ends.filter(|addresses| addresses.contains(&(word - 8)));
            ends.any(|addresses| addresses.end.saturating_sub(*word) < MOST_ABOVE_STACK)
        };
        self.values().rev().find(is_start).unwrap_or(0)
    }

    /// The variables that may be `R_GlobalContext`, given the parts of the address space where there may be records: those
    /// in which they usually are, and all others, since R may run in any thread.
    pub fn heads(
        &self,
        memory: &mut impl Memory,
        toplevel: u64,
        records: &[Range<u64>],
        mappings: &[Mapping],
    ) -> Result<Head> {
        let is_usual =
            |value| value == toplevel || records.iter().any(|records| records.contains(&value));
        let is_mapped = |value| {
            let after = mappings.partition_point(|mapping| mapping.addresses.start <= value);
            let last = after.checked_sub(1).and_then(|last| mappings.get(last));
            last.is_some_and(|mapping| mapping.addresses.contains(&value))
        };
        let may_be = |value| is_usual(value) || is_mapped(value);
        let mut candidates = Vec::new();
        for &(value, address) in &self.words {
            // Elsewhere there are many objects, which look different.
            let is_record = |head: contexts::Head| head.is_possible() && may_be(head.next);
            if is_usual(value)
                || is_mapped(value) && contexts::Head::read(memory, value).is_some_and(is_record)
            {
                candidates.try_push((address, false))?;
            }
        }
        for _ in 0..ROUNDS {
            for (address, has_list) in candidates.iter_mut().filter(|candidate| !candidate.1) {
                let record = memory::word(memory, *address).filter(|record| may_be(*record));
                let found = record.and_then(|record| list(memory, record));
                *has_list = found.is_some_and(|(_, outermost)| outermost == toplevel);
            }
        }
        candidates.retain(|candidate| candidate.1);
        let heads = candidates.iter().map(|candidate| candidate.0);
        Ok(Head::one_of(heads.try_vec()?))
    }

    /// R's own environments.
    pub fn environments(&self, memory: &mut impl Memory, nil: u64) -> Option<Environments> {
        self.values()
            .find_map(|value| Environments::find(memory, nil, value))
    }

    /// The variables that may be `R_Srcref`, none if that is not clear now: the one that has a source reference, or one that
    /// has the marker, or two, of which one always has it. `marker` is the address of the variable that always has the
    /// marker, if that is known.
    pub fn srcrefs(
        &self,
        memory: &mut impl Memory,
        values: &Constants,
        marker: Option<u64>,
    ) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        for same in self.words.chunk_by(|one, other| one.0 == other.0) {
            let value = same.first().map_or(0, |variable| variable.0);
            if is_srcref(memory, value, values.srcfile).unwrap_or(false) {
                for &(_, address) in same {
                    found.try_push(address)?;
                }
            }
        }
        let mut expected = 1;
        if found.is_empty() {
            expected += usize::from(marker.is_none());
            for &(_, address) in self.with(values.in_byte_code) {
                if Some(address) != marker {
                    found.try_push(address)?;
                }
            }
        }
        if found.len() != expected {
            found.clear();
        }
        Ok(found)
    }
}

/// Whether this is a source reference: it has an attribute `srcfile`, which is an environment.
fn is_srcref(memory: &mut impl Memory, object: u64, srcfile: u64) -> Option<bool> {
    let cell = memory::array::<CELL>(memory, object)?;
    if Type::of(at(&cell, 0)) != INTSXP {
        return Some(false);
    }
    let mut attributes = at(&cell, ATTRIBUTES);
    for _ in 0..MOST_ATTRIBUTES {
        let cell = memory::array::<CELL>(memory, attributes)?;
        if Type::of(at(&cell, 0)) != LISTSXP {
            break;
        }
        if at(&cell, TAG) == srcfile {
            let value = memory::word(memory, at(&cell, CAR))?;
            return Some(Type::of(value) == ENVSXP);
        }
        attributes = at(&cell, CDR);
    }
    Some(false)
}
