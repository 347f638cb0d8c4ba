//! R's contexts: the list of active calls that R maintains, see [`profile_runtime::contexts`].
//!
//! Most contexts are on the C stack, in the frame of the C function that makes the call, which determines their
//! position among the native frames. `Rprof()` prints the same list, so both can be compared.
//!
//! Three fields are read: the address of the next record, the flags with the kind of call and, from R 4.4 on, the
//! pending promises. Before they are used, [`Contexts::new`] compares them with what R reports through its functions.

use super::memory::Stack;
use crate::Settings;
use profile_core::error::{Error, Result};
use profile_core::joint::recording::PAIR;
use profile_runtime::contexts::{
    BUILTIN, CLOSURE, Layout, MOST_RECORDS, NEXT_PROMISE, NODE_STACK_BYTES,
};
use std::ffi::CStr;
use std::ops::Range;

/// The start of `RCNTXT`.
#[repr(C)]
struct Record {
    next: *const Record,
    callflag: u32,
}

/// More pending promises than there can be: a longer list is damaged.
const MOST_PROMISES: usize = 10_000;

pub struct Contexts {
    head: *const *const Record,
    /// The address of the outermost record, which is a variable and not on a stack.
    toplevel: u64,
    /// R's node stack.
    nodes: Range<u64>,
    /// Whether records of calls may be on the node stack.
    has_calls: bool,
}

/// The result of a walk: the number of records, and whether the last is the outermost one.
pub struct Walked {
    pub contexts: usize,
    pub whole: bool,
}

impl Contexts {
    pub fn new(settings: &Settings) -> Result<Contexts> {
        let head = symbol(c"R_GlobalContext")? as *const *const Record;
        let mut contexts = Contexts {
            head,
            toplevel: 0,
            nodes: 0..0,
            has_calls: settings.node_stack,
        };
        let mut closures = 0;
        // SAFETY: R's own list, between two of its calls.
        let mut record = unsafe { *head };
        // SAFETY: as above.
        while let Some(found) = unsafe { record.as_ref() } {
            closures += usize::from(found.callflag & CLOSURE != 0);
            contexts.toplevel = record as u64;
            record = found.next;
        }
        if closures != settings.closures {
            return Err(changed());
        }
        let nodes = match settings.node_stack {
            true => node_stack(head, Layout::R_4_4)?,
            false => node_stack(head, Layout::R_4_2)?.or(node_stack(head, Layout::R_4_4)?),
        };
        contexts.nodes = nodes.ok_or_else(changed)?;
        Ok(contexts)
    }

    /// The addresses of the records of closures. Must not be called in the handler.
    pub fn closures(&self) -> impl Iterator<Item = u64> + use<> {
        // SAFETY: R's own list, between two of its calls.
        let mut record = unsafe { *self.head };
        std::iter::from_fn(move || {
            // SAFETY: as above.
            while let Some(found) = unsafe { record.as_ref() } {
                let address = record as u64;
                record = found.next;
                if found.callflag & CLOSURE != 0 {
                    return Some(address);
                }
            }
            None
        })
    }

    /// Writes the records that `Rprof()` prints, innermost first; `None` if they do not fit.
    pub fn walk(&self, stack: Stack, room: &mut [u64]) -> Option<Walked> {
        let mut count = 0;
        let mut outer = 0;
        let mut promise = Promise::default();
        // SAFETY: R's own variable, which always exists.
        let mut record = unsafe { *self.head };
        for _ in 0..MOST_RECORDS {
            let address = record as u64;
            let on_stack = stack.has(address);
            // Records of outer calls have higher addresses on the C stack.
            if !(on_stack && address > outer
                || self.nodes.contains(&address)
                || address == self.toplevel)
            {
                return Some(Walked {
                    contexts: count,
                    whole: false,
                });
            }
            if on_stack {
                outer = address;
            }
            // SAFETY: on a stack that is in use, or R's own outermost record.
            let found = unsafe { record.read_unaligned() };
            if found.callflag & (CLOSURE | BUILTIN) != 0 {
                let pair = room.get_mut(count * PAIR..(count + 1) * PAIR)?;
                pair[0] = address | ((found.callflag & 0xffff) as u64) << 48;
                pair[1] = if self.has_calls && self.nodes.contains(&address) {
                    // SAFETY: inside R's node stack, which has whole records.
                    let first = unsafe { field(address, Layout::R_4_4.promises) };
                    promise.on_stack(first, stack, &self.nodes)
                } else {
                    0
                };
                count += 1;
            }
            if found.next.is_null() {
                return Some(Walked {
                    contexts: count,
                    whole: true,
                });
            }
            record = found.next;
        }
        Some(Walked {
            contexts: count,
            whole: false,
        })
    }
}

/// The result for the last list of promises: consecutive records often share the same list.
#[derive(Default)]
struct Promise {
    first: u64,
    found: u64,
}

impl Promise {
    /// The innermost promise of a list that is on the C stack, which means that its evaluation was started by C code;
    /// 0 if there is none.
    fn on_stack(&mut self, first: u64, stack: Stack, nodes: &Range<u64>) -> u64 {
        if first == self.first {
            return self.found;
        }
        let mut at = first;
        for _ in 0..MOST_PROMISES {
            if stack.has(at) || !nodes.contains(&at) {
                break;
            }
            // SAFETY: inside R's node stack.
            at = unsafe { field(at, NEXT_PROMISE) };
        }
        self.first = first;
        self.found = if stack.has(at) { at } else { 0 };
        self.found
    }
}

/// # Safety
/// `address + offset` is inside R's node stack or one of R's records.
unsafe fn field(address: u64, offset: u64) -> u64 {
    // SAFETY: by the contract of this function.
    unsafe { ((address + offset) as *const u64).read_unaligned() }
}

/// The extent of R's node stack, if R's records have this layout. Each record contains the top of the node stack at
/// the start of its call; that of the outermost record is the start of the node stack.
fn node_stack(head: *const *const Record, layout: Layout) -> Result<Option<Range<u64>>> {
    // SAFETY: R's own variables.
    let (top, end) = unsafe {
        let value = |address: u64| *(address as *const u64);
        (
            value(symbol(c"R_BCNodeStackTop")?),
            value(symbol(c"R_BCNodeStackEnd")?),
        )
    };
    let mut height = top;
    // SAFETY: R's own list, between two of its calls.
    let mut record = unsafe { *head };
    // SAFETY: as above.
    while let Some(found) = unsafe { record.as_ref() } {
        // SAFETY: inside the record or, if R's records are shorter than the known layouts, inside R's stack or its
        // variables.
        let outer = unsafe { field(record as u64, layout.node_stack) };
        if outer > height {
            return Ok(None);
        }
        height = outer;
        record = found.next;
    }
    let is_stack = end > height && NODE_STACK_BYTES.contains(&(end - height));
    Ok(is_stack.then_some(height..end))
}

fn symbol(name: &CStr) -> Result<u64> {
    // SAFETY: looks up a symbol.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return Err(changed());
    }
    Ok(address as u64)
}

/// The error if R's records have an unknown layout.
fn changed() -> Error {
    Error::Unsupported(
        "This version of R stores its calls in an unknown layout, so native code cannot be \
         profiled; use `Rprof()` to profile R code."
            .to_owned(),
    )
}

/// Whether an address is inside R's own code.
pub fn is_r(address: usize) -> Result<bool> {
    let base = |address: u64| {
        // SAFETY: dladdr() fills the struct if it succeeds.
        unsafe {
            let mut about: libc::Dl_info = std::mem::zeroed();
            let found = libc::dladdr(address as *const _, &mut about) != 0;
            found.then_some(about.dli_fbase)
        }
    };
    let here = base(address as u64);
    Ok(here.is_some() && here == base(evaluator()?))
}

/// An address inside the evaluator.
pub fn evaluator() -> Result<u64> {
    symbol(c"Rf_eval")
}
