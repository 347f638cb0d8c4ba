//! R in a process: its variables, and the layout of its records.
//!
//! - [`variables`]: R's variables by their names, which its library or program [`exports`], or which [`search`] finds by their
//!   values; [`constants`]: those that do not change; [`head`]: the one that points to the innermost
//!   record;
//! - [`c_stack`]: the stack on which R runs.

pub mod c_stack;
mod constants;
pub mod exports;
pub mod head;
mod search;
mod variables;

pub use constants::{Constants, Environments};

use c_stack::{Whereabouts, stack_at};
use exports::{Exports, modules};
use head::Head;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_runtime::contexts::{Layout, NODE_STACK_SIZES, Walk};
use profile_runtime::fit::Fit;
use profile_runtime::memory::{Mapping, Memory, Piece, at};
use profile_runtime::variables::{
    GLOBAL_CONTEXT, IN_BYTE_CODE, NIL, NODE_STACK_END, OF_CALLS, SRCFILE_SYMBOL, STACK_START,
};
use search::Hidden;
use std::ops::Range;
use variables::{Variables, unreadable};

/// What this crate knows about R in a process.
#[derive(Debug, Clone)]
pub struct RunningR {
    /// `R_GlobalContext`, which points to the innermost record.
    pub head: Head,
    /// `R_Srcref`, the position of the innermost function: the address of this variable, of two variables, one of which always
    /// has the marker [`Constants::in_byte_code`], or nothing if it is not known.
    pub srcrefs: Vec<u64>,
    /// The address of `R_InBCInterpreter`, if R exports it.
    pub(crate) marker: Option<u64>,
    pub values: Constants,
    /// `None` if they are unknown: then the packages of functions are, too.
    pub environments: Option<Environments>,
    /// Addresses of words that do not change while this R runs.
    pub(crate) landmarks: [(u64, u64); 3],
    /// The layout of its records; `None` if it is unknown. Then only the fields are read that have not changed since R 3.
    pub layout: Option<Layout>,
    /// The version of R, if it is known.
    pub version: Option<String>,
    /// R's outermost record, which belongs to no call.
    pub toplevel: u64,
    /// The C stack on which R was last seen. It may run on another one, see [`c_stack`].
    pub stack: Range<u64>,
    pub node_stack: Range<u64>,
    /// The modules with R's variables, by the addresses where they start: R's library, and perhaps a program with variables
    /// of its own.
    pub modules: Vec<u64>,
    /// The address ranges of R's variables.
    pub variables: Vec<Range<u64>>,
}

/// What the files of a process say about its R.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// The modules with the name of R's library or program, by the addresses where they start. Their symbols may be missing.
    pub modules: Vec<u64>,
    /// The version of R.
    pub version: Option<String>,
}

impl Named {
    /// An error: a part of this R is unknown.
    pub fn unknown(&self, what: &str, why: &str) -> Error {
        let r = match &self.version {
            Some(version) => message!("R {version}, which"),
            None => "a version of R that".into(),
        };
        Error::Process(message!(
            "It runs {r} stores its {what} in an unknown way: {why}."
        ))
    }

    fn unknown_calls(&self, why: &str) -> Error {
        self.unknown("calls", why)
    }

    /// No variable has this name, and it was not found by its value either.
    fn hidden_variable(&self, name: &str) -> Error {
        self.unknown_calls(&message!(
            "it exports no variable `{name}`, and none has such a value"
        ))
    }
}

/// The limit on what is read of the memory to find R, in units of about a microsecond.
pub const MOST_TO_OPEN: u64 = 2 << 20;
/// The maximum number of attempts to read the records until all of them are valid.
const TRIES: usize = 200;

impl RunningR {
    /// Finds R. `mappings` are in the order of their addresses. If several libraries of R are loaded,
    /// it is the one that runs: the other one may be a copy that a package or another language has loaded.
    pub fn open(memory: &mut impl Memory, mappings: &[Mapping], named: &Named) -> Result<RunningR> {
        let mut idle = Vec::new();
        let mut first = None;
        loop {
            let others = modules(mappings).filter(|module| !idle.contains(module));
            let mut found = Exports::find(memory, others, OF_CALLS)?;
            if found.get(NIL).is_none() {
                for module in named.modules.iter().filter(|module| !idle.contains(module)) {
                    found.add_module(memory, *module)?;
                }
            }
            let Some(library) = found.modules.last().copied() else {
                return Err(first.unwrap_or_else(|| {
                    Error::Process(message!(
                        "It does not run R: no part of it has R's variables."
                    ))
                }));
            };
            match RunningR::at(memory, mappings, found, named)? {
                Some(r) => return Ok(r),
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
        named: &Named,
    ) -> Result<Option<RunningR>> {
        let Some(variables) = Variables::find(memory, mappings, &found)? else {
            return Ok(None);
        };
        let constant = |name| {
            let value = variables.get(name);
            value.ok_or_else(|| named.hidden_variable(name))
        };
        let values = Constants {
            nil: constant(NIL)?,
            in_byte_code: constant(IN_BYTE_CODE)?,
            srcfile: constant(SRCFILE_SYMBOL)?,
            node_stack_end: constant(NODE_STACK_END)?,
        };
        let stack_of = |address| {
            let mapped = mappings.iter().map(|mapping| mapping.addresses.clone());
            stack_at(mapped, address)
        };
        // R determines this address for the first thread. It may be outside of the mapping by the size of the arguments. A
        // program that runs R in another thread may have changed it. Then the stack is known as soon as R runs a function.
        let start = variables.get(STACK_START).unwrap_or(0).wrapping_sub(8);
        let stack = stack_of(start).unwrap_or_default();
        let end = values.node_stack_end;
        let nodes = end.saturating_sub(MOST_NODES)..end;
        let head = variables.head(memory, &[stack.clone(), nodes], mappings)?;
        if head.addresses().is_empty() {
            return Err(named.hidden_variable(GLOBAL_CONTEXT));
        }
        let mut r = RunningR {
            head,
            srcrefs: variables.srcrefs(memory, &values)?,
            marker: found.get(IN_BYTE_CODE),
            values,
            environments: variables.environments(memory, values.nil)?,
            landmarks: values.landmarks(memory, &found),
            layout: None,
            version: named.version.clone(),
            toplevel: 0,
            stack,
            node_stack: 0..values.node_stack_end,
            modules: found.modules,
            variables: found.variables,
        };
        r.settle(memory, named)?;
        let place = r.whereabouts(memory).map(Whereabouts::address);
        if let Some(stack) = place.and_then(stack_of) {
            r.stack = stack;
        }
        Ok(Some(r))
    }

    /// Where R runs; `None` if it runs no function, or has changed its records meanwhile.
    pub fn whereabouts(&self, memory: &mut impl Memory) -> Option<Whereabouts> {
        let innermost = self.head.read(memory)?.1;
        c_stack::whereabouts(memory, innermost, self.toplevel, &self.node_stack)
    }

    /// Whether this R is still in the process, which may have executed another program.
    pub fn is_there(&self, memory: &mut impl Memory) -> bool {
        let mut words = [0; 24];
        let pieces = self
            .landmarks
            .map(|(address, _)| Piece { address, size: 8 });
        memory.read_pieces(&pieces, &mut words) == pieces.len()
            && [0, 8, 16].map(|offset| at(&words, offset)) == self.landmarks.map(|(_, word)| word)
    }

    /// This R, if the layout of its contexts is unknown, so that only the innermost function may have a line.
    pub fn unknown(&self) -> Option<String> {
        let version = self.version.as_deref().unwrap_or("of an unknown version");
        let is_unknown = self.layout.is_none();
        is_unknown.then(|| message!("R {version}"))
    }

    /// Searches `R_Srcref` once more, if it is not known: while R runs no function, nothing distinguishes it.
    pub fn find_srcref(&mut self, memory: &mut impl Memory) -> Result<()> {
        if self.srcrefs.is_empty() {
            let hidden = Hidden::read(memory, &self.variables)?;
            self.srcrefs = hidden.srcrefs(memory, &self.values, self.marker)?;
        }
        Ok(())
    }

    /// Chooses the layout that fits the records, and finds the outermost record.
    fn settle(&mut self, memory: &mut impl Memory, named: &Named) -> Result<()> {
        let (mut is_readable, mut outermost) = (false, None);
        for number in 0..TRIES {
            let Some((fits, last)) = self.follow(memory, &mut is_readable) else {
                continue;
            };
            outermost = Some(last);
            // Null pointers do not distinguish versions, so records with null pointers are accepted only if they
            // persist.
            let most_nulls = if number < TRIES / 2 { 0 } else { usize::MAX };
            let is_candidate = |fit: &&Fit| fit.fits && fit.nulls <= most_nulls;
            let mut fitting = fits.iter().filter(is_candidate);
            let (Some(fit), None) = (fitting.next(), fitting.next()) else {
                continue;
            };
            self.layout = Some(fit.layout);
            self.node_stack.start = fit.height;
            self.toplevel = fit.record;
            return Ok(());
        }
        let Some(outermost) = outermost else {
            return Err(match is_readable {
                true => {
                    named.unknown_calls("its list of contexts does not end with a variable of R")
                }
                false => unreadable("R's contexts"),
            });
        };
        self.toplevel = outermost;
        self.node_stack.start = self.node_stack.end.saturating_sub(MOST_NODES);
        Ok(())
    }

    /// Follows the list of records to its end, which is a variable of R. Returns `None` if the end is not reached,
    /// since records may be removed meanwhile. It does not matter if inner records are removed or added: in a busy
    /// process, it never happens that all records stay the same for the time that it takes to read them.
    fn follow(
        &self,
        memory: &mut impl Memory,
        is_readable: &mut bool,
    ) -> Option<([Fit; Layout::ALL.len()], u64)> {
        let end = self.values.node_stack_end;
        let markers = [self.values.nil, self.values.in_byte_code];
        let mut fits = Layout::ALL.map(|layout| Fit::new(layout, end));
        let mut walk = Walk::new(self.head.read(memory)?.1);
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
        (walk.is_whole() && is_variable).then_some((fits, outermost))
    }
}

/// The size of the largest node stack.
const MOST_NODES: u64 = NODE_STACK_SIZES[1];
