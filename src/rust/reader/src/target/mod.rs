//! R in a process: the addresses of its variables, and the layout of its records.
//! [`exports`] are the variables of R's library or program.

pub mod exports;

use exports::{Exports, modules};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_runtime::contexts::{Layout, Walk};
use profile_runtime::fit::Fit;
use profile_runtime::memory::{self, Mapping, Memory, Piece, at};
use profile_runtime::variables::{
    GLOBAL_CONTEXT, IN_BYTE_CODE, NIL, NODE_STACK_END, OF_CALLS, SRCFILE_SYMBOL, SRCREF,
    STACK_START,
};
use std::ops::Range;

/// What this crate knows about R in a process.
#[derive(Debug)]
pub struct Target {
    pub addresses: Addresses,
    pub values: Constants,
    pub layout: Layout,
    /// R's outermost record, which belongs to no call.
    pub toplevel: u64,
    /// The C stack of R's thread.
    pub stack: Range<u64>,
    pub node_stack: Range<u64>,
    /// The modules that export R's variables, by the addresses where they start: R's library, and perhaps a program with
    /// variables of its own.
    pub modules: Vec<u64>,
    /// The address ranges of R's variables.
    pub variables: Vec<Range<u64>>,
}

/// The addresses of variables of R.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// `R_GlobalContext`: the innermost record.
    pub head: u64,
    /// `R_Srcref`: the position of the innermost function.
    pub srcref: u64,
    /// The variables of the constants [`Constants::nil`], `in_byte_code` and `srcfile`.
    pub(crate) constants: [u64; 3],
}

/// The values of variables that do not change while R runs.
#[derive(Debug, Clone, Copy)]
pub struct Constants {
    /// `R_NilValue`.
    pub nil: u64,
    /// `R_InBCInterpreter`, the marker for a position in byte code.
    pub in_byte_code: u64,
    /// `R_SrcfileSymbol`.
    pub srcfile: u64,
    /// `R_BCNodeStackEnd`.
    pub(crate) node_stack_end: u64,
}

/// The maximum number of attempts to read the records until all of them are valid.
const TRIES: usize = 200;

impl Target {
    /// Finds R. `mappings` are in the order of their addresses. If several libraries of R are loaded,
    /// it is the one that runs: the other one may be a copy that a package or another language has loaded.
    pub fn open(memory: &mut impl Memory, mappings: &[Mapping]) -> Result<Target> {
        let mut idle = Vec::new();
        let mut first = None;
        loop {
            let others = modules(mappings).filter(|module| !idle.contains(module));
            let found = Exports::find(memory, others, OF_CALLS)?;
            let library = found.modules.last().copied();
            let (Some(library), Some(_)) = (library, found.get(GLOBAL_CONTEXT)) else {
                return Err(first.unwrap_or_else(|| {
                    Error::Process(message!(
                        "It does not run R: no part of it has R's variables."
                    ))
                }));
            };
            match Target::at(memory, mappings, found)? {
                Some(target) => return Ok(target),
                None => idle.try_push(library)?,
            }
            first.get_or_insert(Error::Process(message!("R is only starting there.")));
        }
    }

    /// R with these variables; `None` if it does not run.
    fn at(
        memory: &mut impl Memory,
        mappings: &[Mapping],
        found: Exports<{ OF_CALLS.len() }>,
    ) -> Result<Option<Target>> {
        let address = |name| {
            let found = found.get(name);
            found.ok_or_else(|| unknown(&message!("it has no variable `{name}`")))
        };
        let addresses = Addresses {
            head: address(GLOBAL_CONTEXT)?,
            srcref: address(SRCREF)?,
            constants: [
                address(NIL)?,
                address(IN_BYTE_CODE)?,
                address(SRCFILE_SYMBOL)?,
            ],
        };
        let [nil, in_byte_code, srcfile] = addresses.constants;
        let places = [
            nil,
            in_byte_code,
            srcfile,
            address(NODE_STACK_END)?,
            address(STACK_START)?,
            addresses.head,
        ];
        let mut words = [0; 48];
        let pieces = places.map(|address| Piece { address, size: 8 });
        let read = memory.read_pieces(&pieces, &mut words);
        if read < places.len() {
            let names = [
                NIL,
                IN_BYTE_CODE,
                SRCFILE_SYMBOL,
                NODE_STACK_END,
                STACK_START,
            ];
            let name = names.get(read).unwrap_or(&GLOBAL_CONTEXT);
            return Err(unreadable(&message!("R's variable `{name}`")));
        }
        let [
            nil,
            in_byte_code,
            srcfile,
            node_stack_end,
            stack_start,
            record,
        ] = [0, 8, 16, 24, 32, 40].map(|offset| at(&words, offset));
        if [nil, in_byte_code, srcfile, record].contains(&0) {
            return Ok(None);
        }
        let values = Constants {
            nil,
            in_byte_code,
            srcfile,
            node_stack_end,
        };
        let mut target = Target {
            addresses,
            values,
            layout: Layout::ALL[0],
            toplevel: 0,
            stack: c_stack(mappings, stack_start)?,
            node_stack: 0..node_stack_end,
            modules: found.modules,
            variables: found.variables,
        };
        target.settle(memory)?;
        Ok(Some(target))
    }

    /// Whether this R is still in the process, which may have executed another program.
    pub fn is_there(&self, memory: &mut impl Memory) -> bool {
        let Constants {
            nil,
            in_byte_code,
            srcfile,
            ..
        } = self.values;
        let mut words = [0; 24];
        let pieces = self
            .addresses
            .constants
            .map(|address| Piece { address, size: 8 });
        memory.read_pieces(&pieces, &mut words) == pieces.len()
            && [0, 8, 16].map(|offset| at(&words, offset)) == [nil, in_byte_code, srcfile]
    }

    /// Chooses the layout that fits the records, and finds the outermost record.
    fn settle(&mut self, memory: &mut impl Memory) -> Result<()> {
        let (mut is_readable, mut several) = (false, false);
        for number in 0..TRIES {
            let Some(fits) = self.follow(memory, &mut is_readable) else {
                continue;
            };
            // Null pointers do not distinguish versions, so records with null pointers are accepted only if they
            // persist.
            let most_nulls = if number < TRIES / 2 { 0 } else { usize::MAX };
            let is_candidate = |fit: &&Fit| fit.fits && fit.nulls <= most_nulls;
            let mut fitting = fits.iter().filter(is_candidate);
            let (Some(fit), next) = (fitting.next(), fitting.next()) else {
                continue;
            };
            several |= next.is_some();
            if next.is_none() {
                self.layout = fit.layout;
                self.node_stack.start = fit.height;
                self.toplevel = fit.record;
                return Ok(());
            }
        }
        if several {
            return Err(unknown("its records of calls fit several versions"));
        }
        if !is_readable {
            Err(unreadable("R's contexts"))
        } else {
            Err(unknown("its records of calls have another layout"))
        }
    }

    /// Follows the list of records to its end, which is a variable of R. Returns `None` if the end is not reached,
    /// since records may be removed meanwhile. It does not matter if inner records are removed or added: in a busy
    /// process, it never happens that all records stay the same for the time that it takes to read them.
    fn follow(
        &self,
        memory: &mut impl Memory,
        is_readable: &mut bool,
    ) -> Option<[Fit; Layout::ALL.len()]> {
        let end = self.values.node_stack_end;
        let markers = [self.values.nil, self.values.in_byte_code];
        let mut fits = Layout::ALL.map(|layout| Fit::new(layout, end));
        let mut walk = Walk::new(memory::word(memory, self.addresses.head)?);
        let mut outermost = 0;
        while let Some((address, record)) = walk.next(memory) {
            *is_readable = true;
            if !record.head().is_possible() {
                return None;
            }
            for fit in fits.iter_mut().filter(|fit| fit.fits) {
                fit.add(memory, markers, address, &record);
            }
            outermost = address;
        }
        let is_variable = self.variables.iter().any(|part| part.contains(&outermost));
        fits.iter_mut().for_each(|fit| fit.finish(end));
        (walk.is_whole() && is_variable).then_some(fits)
    }
}

/// The C stack of R's thread. It grows downwards, so its current size does not matter.
fn c_stack(mappings: &[Mapping], start: u64) -> Result<Range<u64>> {
    // R determines this address for the main thread. It may be outside of the mapping by the size of the arguments.
    let has = |mapping: &&Mapping| mapping.addresses.contains(&start.wrapping_sub(8));
    let found = mappings.iter().find(has);
    let end = found.map(|mapping| mapping.addresses.end);
    let end = end.ok_or_else(|| unknown("its stack was not found"))?;
    Ok(end.saturating_sub(MOST_STACK)..end)
}

/// More than a C stack takes, even without a limit on its size.
const MOST_STACK: u64 = 1 << 36;

fn unknown(why: &str) -> Error {
    Error::Process(message!(
        "It runs a version of R that stores its calls in an unknown way: {why}."
    ))
}

fn unreadable(what: &str) -> Error {
    Error::Process(message!("Its memory cannot be read: {what}."))
}
