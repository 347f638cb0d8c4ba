//! Lines of code that runs in another process, by functions of this one with the same code.

use super::owners::{Lines, compare};
use super::positions::Direct;
use crate::WantedLine;
use profile_core::error::Result;
use profile_core::limits::memory::{TryAdd, TryCollect, TryGrow, TryPut, filled};
use profile_runtime::compiled::{self, At, Creators};
use profile_runtime::digest::Digest;
use profile_runtime::memory::Memory;
use std::collections::{HashMap, HashSet};

/// Inner functions within inner functions, and promises within promises.
const MOST_LEVELS: usize = 100;

/// For each digest, the row of the function that has such code: its own, or that of a promise or a function in it. `None` if
/// there is none, or several functions have it. The same function may have several names.
pub fn find_codes(functions: &[u64], base: u64, wanted: &[Digest]) -> Result<Vec<Option<usize>>> {
    let memory = &mut Direct;
    let mut search = Search {
        base,
        rows: HashMap::new(),
        found: filled(wanted.len(), Found::Nowhere)?,
        seen: HashSet::new(),
    };
    for (row, digest) in wanted.iter().enumerate() {
        search.rows.try_put(*digest, row)?;
    }
    for (row, &function) in functions.iter().enumerate() {
        if let Some(code) = compiled::code_of(memory, function)? {
            search.look(memory, code, row, MOST_LEVELS)?;
        }
    }
    let found = search.found.iter().map(|found| match found {
        Found::In(row) => Some(*row),
        Found::Nowhere | Found::InSeveral => None,
    });
    found.try_vec()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nowhere,
    In(usize),
    InSeveral,
}

struct Search {
    base: u64,
    /// The rows of the digests.
    rows: HashMap<Digest, usize>,
    found: Vec<Found>,
    /// The addresses of the codes of functions.
    seen: HashSet<u64>,
}

impl Search {
    fn look(
        &mut self,
        memory: &mut impl Memory,
        (address, code): At,
        function: usize,
        levels: usize,
    ) -> Result<()> {
        if levels == MOST_LEVELS && !self.seen.try_add(address)? || levels == 0 {
            return Ok(());
        }
        let digest = Digest::of(memory, code, self.base)?;
        let row = digest.and_then(|digest| self.rows.get(&digest));
        if let Some(found) = row.and_then(|&row| self.found.get_mut(row)) {
            *found = match *found {
                Found::Nowhere => Found::In(function),
                Found::In(other) if other == function => *found,
                _ => Found::InSeveral,
            };
        }
        for number in 0..code.constants(memory) {
            if let Some(inner) = compiled::inner(memory, code, number)? {
                self.look(memory, inner, function, levels - 1)?;
            }
        }
        Ok(())
    }
}

/// The rows of wanted positions that are in a function, with their lines in a copy of it that has source references; `None` if
/// the instructions of both differ. A position has no line if it is ambiguous.
pub fn code_lines(
    creators: Creators,
    base: u64,
    (original, copy): (u64, u64),
    wanted: &[WantedLine],
) -> Result<Option<Vec<(usize, i32)>>> {
    let memory = &mut Direct;
    let Some(all) = compare(memory, creators, original, copy)? else {
        return Ok(None);
    };
    let mut rows: HashMap<Digest, Vec<usize>> = HashMap::new();
    for (row, wanted) in wanted.iter().enumerate() {
        match rows.get_mut(&wanted.code) {
            Some(rows) => rows.try_push(row)?,
            None => {
                let mut first = Vec::new();
                first.try_push(row)?;
                rows.try_put(wanted.code, first)?;
            }
        }
    }
    let mut lines = Lines::default();
    for both in all {
        let Some(digest) = Digest::of(memory, both.original.1, base)? else {
            continue;
        };
        for &row in rows.get(&digest).map_or(&[][..], Vec::as_slice) {
            if let Some(wanted) = wanted.get(row) {
                lines.add(row as u64, both.line(memory, wanted.position))?;
            }
        }
    }
    let mut found = Vec::new();
    for (row, line) in lines.0 {
        if let Some(line) = line {
            found.try_push((row as usize, line))?;
        }
    }
    Ok(Some(found))
}
