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

/// More pending promises than R can have: a longer list is damaged.
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

/// The extent of R's node stack, if R's records have this layout. Each record contains the top of the node stack at the
/// start of its call; in the outermost record this is the start of the node stack.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::memory::Limits;

    /// Memory that represents a C stack, whose first half is unused, and memory that represents R's node stack.
    struct Memory {
        stack: Vec<u64>,
        nodes: Vec<u64>,
        head: *const Record,
    }

    /// A record on the C stack or on the node stack, at this word.
    #[derive(Clone, Copy)]
    enum At {
        Stack(usize),
        Nodes(usize),
    }

    impl Memory {
        /// Records with these flags, innermost first, and the outermost one behind them.
        fn new(records: &[(At, u32)]) -> Memory {
            let mut memory = Memory {
                stack: vec![0; 1000],
                nodes: vec![0; 1000],
                head: std::ptr::null(),
            };
            let mut next = memory.toplevel_address();
            for &(at, flag) in records.iter().rev() {
                let address = memory.address(at);
                let words = match at {
                    At::Stack(word) => &mut memory.stack[word..],
                    At::Nodes(word) => &mut memory.nodes[word..],
                };
                words[0] = next;
                words[1] = flag.into();
                next = address;
            }
            memory.head = next as *const Record;
            memory
        }

        fn address(&self, at: At) -> u64 {
            match at {
                At::Stack(word) => self.stack.as_ptr() as u64 + 8 * word as u64,
                At::Nodes(word) => self.nodes.as_ptr() as u64 + 8 * word as u64,
            }
        }

        /// The outermost record has a place outside of both stacks.
        fn toplevel_address(&self) -> u64 {
            self.nodes.as_ptr() as u64 + 8 * 990
        }

        /// The first words of the pairs, and whether the list is whole; `None` if they do not fit into `room` pairs.
        fn walk(&self, has_calls: bool, room: usize) -> Option<(Vec<[u64; PAIR]>, bool)> {
            let contexts = Contexts {
                head: &self.head,
                toplevel: self.toplevel_address(),
                nodes: self.address(At::Nodes(0))..self.address(At::Nodes(900)),
                has_calls,
            };
            let limits = Limits {
                low: self.address(At::Stack(0)),
                top: self.address(At::Stack(1000)),
            };
            let stack = Stack::in_use(self.address(At::Stack(500)), limits);
            let mut room = vec![0; room * PAIR];
            let walked = contexts.walk(stack, &mut room)?;
            let pairs = room.chunks(PAIR).take(walked.contexts);
            Some((pairs.map(|pair| [pair[0], pair[1]]).collect(), walked.whole))
        }

        fn pair(&self, at: At, flag: u32) -> [u64; PAIR] {
            [self.address(at) | u64::from(flag) << 48, 0]
        }
    }

    const LOOP: u32 = 1;

    #[test]
    fn calls_are_found_from_the_innermost_outwards() {
        let (inner, between, outer) = (At::Stack(510), At::Stack(600), At::Stack(700));
        let memory = Memory::new(&[(inner, BUILTIN), (between, LOOP), (outer, CLOSURE | LOOP)]);
        let found = vec![
            memory.pair(inner, BUILTIN),
            memory.pair(outer, CLOSURE | LOOP),
        ];
        assert_eq!(memory.walk(false, 10), Some((found.clone(), true)));
        assert_eq!(memory.walk(false, 2), Some((found, true)));
        assert_eq!(memory.walk(false, 1), None);
        assert_eq!(Memory::new(&[]).walk(false, 1), Some((vec![], true)));
    }

    #[test]
    fn a_damaged_list_ends_and_is_not_whole() {
        let found = |records: &[(At, u32)]| {
            let (pairs, whole) = Memory::new(records).walk(false, 10).unwrap();
            (pairs.len(), whole)
        };
        let inner = (At::Stack(600), CLOSURE);
        assert_eq!(found(&[inner, (At::Stack(700), CLOSURE)]), (2, true));
        // An outer call has no lower address than an inner one, and no record is in the unused part of the stack.
        assert_eq!(found(&[inner, (At::Stack(550), CLOSURE)]), (1, false));
        assert_eq!(found(&[inner, inner]), (1, false));
        assert_eq!(found(&[(At::Stack(490), CLOSURE)]), (0, false));
        // Neither on a stack nor the outermost record.
        assert_eq!(found(&[inner, (At::Nodes(950), CLOSURE)]), (1, false));
        // The list is circular.
        let mut memory = Memory::new(&[(At::Nodes(10), LOOP)]);
        memory.nodes[10] = memory.address(At::Nodes(10));
        assert_eq!(memory.walk(false, 10), Some((vec![], false)));
    }

    #[test]
    fn a_call_on_the_node_stack_has_the_promise_that_c_code_evaluates() {
        let (call, other) = (At::Nodes(100), At::Nodes(300));
        let mut memory = Memory::new(&[(call, CLOSURE), (other, CLOSURE)]);
        // Two promises: the first is evaluated by byte code, the second was started by C code.
        let promises = Layout::R_4_4.promises as usize / 8;
        let (first, second) = (At::Nodes(600), At::Stack(800));
        memory.nodes[100 + promises] = memory.address(first);
        memory.nodes[300 + promises] = memory.address(first);
        memory.nodes[600 + NEXT_PROMISE as usize / 8] = memory.address(second);
        let promise = memory.address(second);
        let expected = [call, other].map(|at| [memory.pair(at, CLOSURE)[0], promise]);
        assert_eq!(memory.walk(true, 10), Some((expected.to_vec(), true)));
        // Before R 4.4, such an address is not a record of a call.
        let (pairs, _) = memory.walk(false, 10).unwrap();
        assert_eq!(pairs.iter().map(|pair| pair[1]).collect::<Vec<_>>(), [0, 0]);
        // No promise is on the C stack, or the list is circular.
        memory.nodes[600 + NEXT_PROMISE as usize / 8] = 0;
        assert_eq!(memory.walk(true, 10).unwrap().0[0][1], 0);
        memory.nodes[600 + NEXT_PROMISE as usize / 8] = memory.address(first);
        assert_eq!(memory.walk(true, 10).unwrap().0[0][1], 0);
    }
}
