//! R's contexts: the list of active calls that R maintains, see [`profile_runtime::contexts`].
//!
//! Most contexts are on the C stack, in the frame of the C function that makes the call, which determines their
//! position among the native frames. `Rprof()` prints the same list, so both can be compared.
//!
//! Three fields are read: the address of the next record, the flags with the kind of call and, from R 4.4 on, the
//! pending promises; for [`positions`], also those that say where the function was called, and for
//! [`titles`](super::titles), which function it is. The first three are compared with what R reports through its
//! functions, by [`Contexts::new`], before they are used.

use super::memory::Stack;
use super::positions;
use crate::{PositionVariables, Settings};
use profile_core::error::{Error, Result};
use profile_core::joint::Position;
use profile_core::joint::positions::ADDRESS;
use profile_core::joint::recording::PAIR;
use profile_runtime::contexts::{
    CALLFUN, CLOENV, Head, Layout, MOST_PROMISES, NEXT_PROMISE, NODE_STACK_BYTES, Walk,
};
use profile_runtime::memory::{self, Memory};
use profile_runtime::variables::{EVAL, GLOBAL_CONTEXT, NODE_STACK_END, NODE_STACK_TOP};
use std::ffi::CString;
use std::ops::Range;

pub struct Contexts {
    /// The address of `R_GlobalContext`.
    innermost_at: u64,
    /// The address of the outermost record, which is a variable and not on a stack.
    toplevel: u64,
    /// R's node stack.
    nodes: Range<u64>,
    layout: Layout,
}

/// The result of a walk: the number of records, and whether the last is the outermost one.
pub struct Walked {
    pub contexts: usize,
    pub whole: bool,
}

impl Contexts {
    pub fn new(settings: &Settings) -> Result<Contexts> {
        let layout = Layout::for_version(settings.version);
        let mut contexts = Contexts {
            innermost_at: symbol(GLOBAL_CONTEXT)?,
            toplevel: 0,
            nodes: 0..0,
            layout,
        };
        let mut closures = 0;
        let mut height = variable(NODE_STACK_TOP)?;
        let mut walk = contexts.records();
        while let Some((address, head)) = walk.next_head(&mut Own) {
            closures += usize::from(head.is_call_of_closure());
            contexts.toplevel = address;
            // Each record contains the top of the node stack at the start of its call; in the outermost record this is
            // the start of the node stack.
            let outer = memory::word(&mut Own, address + layout.node_stack);
            match outer.filter(|&outer| outer <= height) {
                Some(outer) => height = outer,
                None => return Err(changed()),
            }
        }
        let end = variable(NODE_STACK_END)?;
        let is_stack = end > height && NODE_STACK_BYTES.contains(&(end - height));
        if closures != settings.closures || !walk.is_whole() || !is_stack {
            return Err(changed());
        }
        contexts.nodes = height..end;
        Ok(contexts)
    }

    /// The list of records. Only R's variable is read here, which always exists.
    fn records(&self) -> Walk {
        Walk::new(memory::word(&mut Own, self.innermost_at).unwrap_or(0))
    }

    /// The addresses of the records of closures. Must not be called in the handler.
    pub fn closures(&self) -> impl Iterator<Item = u64> + use<> {
        let mut walk = self.records();
        let records = std::iter::from_fn(move || walk.next_head(&mut Own));
        let closures = records.filter(|(_, head)| head.is_call_of_closure());
        closures.map(|(address, _)| address)
    }

    /// Writes the records that `Rprof()` prints, innermost first; `None` if they do not fit.
    pub fn walk(&self, stack: Stack, room: &mut [u64]) -> Option<Walked> {
        let mut memory = self.stacks(stack);
        let mut walked = Walked {
            contexts: 0,
            whole: false,
        };
        let mut outer = 0;
        let mut promise = Promise::default();
        let mut walk = self.records();
        while let Some((address, head)) = walk.next_head(&mut memory) {
            // Records of outer calls have higher addresses on the C stack.
            if stack.has(address) {
                if address <= outer {
                    return Some(walked);
                }
                outer = address;
            }
            if head.is_call() {
                let at = walked.contexts * PAIR;
                let pair = room.get_mut(at..at + PAIR)?;
                pair[0] = address | u64::from(head.flags & 0xffff) << 48;
                pair[1] = 0;
                if self.layout.calls_on_node_stack && self.nodes.contains(&address) {
                    let first = memory::word(&mut memory, address + self.layout.promises);
                    pair[1] = promise.on_stack(first.unwrap_or(0), &mut memory);
                }
                walked.contexts += 1;
            }
        }
        walked.whole = walk.is_whole();
        Some(walked)
    }
}

impl Contexts {
    /// Writes where the function of each of these records runs, which [`Contexts::walk()`] has written; `None` if this does
    /// not fit.
    pub fn positions(
        &self,
        variables: &PositionVariables,
        stack: Stack,
        (records, room): (&[u64], &mut [u64]),
    ) -> Option<()> {
        let mut memory = self.stacks(stack);
        let records = records.chunks_exact(PAIR);
        let room = room.get_mut(..records.len() * PAIR)?;
        let mut inner = None;
        for (record, pair) in records.zip(room.chunks_exact_mut(PAIR)) {
            // The function of a record is where the next inner one was called.
            let position = match inner {
                None => positions::innermost(variables, &mut memory),
                Some(inner) => positions::of_record(variables, &mut memory, inner, self.layout),
            };
            pair.copy_from_slice(&position.map_or(Position::NONE, Position::to_words));
            inner = Some(record[0] & ADDRESS);
        }
        Some(())
    }

    /// The function that a record calls, and the environment of the call.
    pub fn function(&self, stack: Stack, address: u64) -> Option<[u64; 2]> {
        let mut memory = self.stacks(stack);
        let mut word = |field| memory::word(&mut memory, address.checked_add(field)?);
        Some([word(CALLFUN)?, word(CLOENV)?])
    }

    fn stacks(&self, stack: Stack) -> Stacks<'_> {
        Stacks {
            stack,
            nodes: &self.nodes,
            toplevel: self.toplevel,
        }
    }
}

/// The memory of this process. Only R's own list of records is read from it, between two of R's calls, and R's variables.
struct Own;

impl Memory for Own {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        // SAFETY: R's own records and variables, which exist as long as no call of R begins or ends. A field of a layout
        // that R does not have is behind the record, inside R's stack or its variables.
        unsafe { copy(address, into) };
        true
    }
}

/// What the handler may read: R's stacks, as far as they are in use, and the outermost record.
struct Stacks<'a> {
    stack: Stack,
    nodes: &'a Range<u64>,
    toplevel: u64,
}

impl Memory for Stacks<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let size = into.len() as u64;
        let Some(end) = address.checked_add(size) else {
            return false;
        };
        let is_node = address >= self.nodes.start && end <= self.nodes.end;
        let is_toplevel = address == self.toplevel && into.len() <= Head::SIZE;
        if !(self.stack.has_all(address..end) || is_node || is_toplevel) {
            return false;
        }
        // SAFETY: all of these bytes are on a stack that is in use, or in R's outermost record.
        unsafe { copy(address, into) };
        true
    }
}

/// # Safety
/// There is memory of this size at the address.
unsafe fn copy(address: u64, into: &mut [u8]) {
    // SAFETY: by the contract of this function.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
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
    fn on_stack(&mut self, first: u64, memory: &mut Stacks) -> u64 {
        if first == self.first {
            return self.found;
        }
        let mut at = first;
        for _ in 0..MOST_PROMISES {
            if memory.stack.has(at) || !memory.nodes.contains(&at) {
                break;
            }
            at = memory::word(memory, at + NEXT_PROMISE).unwrap_or(0);
        }
        self.first = first;
        self.found = if memory.stack.has(at) { at } else { 0 };
        self.found
    }
}

/// The value of a variable of R.
fn variable(name: &str) -> Result<u64> {
    let address = symbol(name)?;
    memory::word(&mut Own, address).ok_or_else(changed)
}

/// The address of a variable or function of R.
pub fn symbol(name: &str) -> Result<u64> {
    let name = CString::new(name).map_err(|_| changed())?;
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
    symbol(EVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::memory::Limits;
    use profile_runtime::contexts::{BUILTIN, CLOSURE};

    /// Memory that represents a C stack, whose first half is unused, and memory that represents R's node stack.
    struct Stand {
        stack: Vec<u64>,
        nodes: Vec<u64>,
        innermost: u64,
    }

    /// A record on the C stack or on the node stack, at this word.
    #[derive(Clone, Copy)]
    enum At {
        Stack(usize),
        Nodes(usize),
    }

    impl Stand {
        /// Records with these flags, innermost first, and the outermost one behind them.
        fn new(records: &[(At, u32)]) -> Stand {
            let mut memory = Stand {
                stack: vec![0; 1000],
                nodes: vec![0; 1000],
                innermost: 0,
            };
            let mut next = memory.toplevel_address();
            for &(at, flag) in records.iter().rev() {
                let address = memory.address(at);
                let words = match at {
                    At::Stack(word) => &mut memory.stack[word..],
                    At::Nodes(word) => &mut memory.nodes[word..],
                };
                words[0] = next;
                // Only the first word of a record at the end of a stack is inside.
                if let Some(word) = words.get_mut(1) {
                    *word = flag.into();
                }
                next = address;
            }
            memory.innermost = next;
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
                innermost_at: &raw const self.innermost as u64,
                toplevel: self.toplevel_address(),
                nodes: self.address(At::Nodes(0))..self.address(At::Nodes(900)),
                layout: if has_calls {
                    Layout::R_4_4
                } else {
                    Layout::R_4_2
                },
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
        let memory = Stand::new(&[(inner, BUILTIN), (between, LOOP), (outer, CLOSURE | LOOP)]);
        let found = vec![
            memory.pair(inner, BUILTIN),
            memory.pair(outer, CLOSURE | LOOP),
        ];
        assert_eq!(memory.walk(false, 10), Some((found.clone(), true)));
        assert_eq!(memory.walk(false, 2), Some((found, true)));
        assert_eq!(memory.walk(false, 1), None);
        assert_eq!(Stand::new(&[]).walk(false, 1), Some((vec![], true)));
    }

    #[test]
    fn a_damaged_list_ends_and_is_not_whole() {
        let found = |records: &[(At, u32)]| {
            let (pairs, whole) = Stand::new(records).walk(false, 10).unwrap();
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
        // Records of which a part is behind the end of a stack.
        assert_eq!(found(&[inner, (At::Stack(999), CLOSURE)]), (1, false));
        assert_eq!(found(&[inner, (At::Nodes(899), CLOSURE)]), (1, false));
        // The list is circular.
        let mut memory = Stand::new(&[(At::Nodes(10), LOOP)]);
        memory.nodes[10] = memory.address(At::Nodes(10));
        assert_eq!(memory.walk(false, 10), Some((vec![], false)));
    }

    #[test]
    fn a_call_on_the_node_stack_has_the_promise_that_c_code_evaluates() {
        let (call, other) = (At::Nodes(100), At::Nodes(300));
        let mut memory = Stand::new(&[(call, CLOSURE), (other, CLOSURE)]);
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
