//! The native stack of a process, and what is needed to find its frames.
//!
//! While the process is stopped, its C stack and the used part of R's node stack are copied. When it goes on, the copy
//! is unwound, and the result is stored as words, in the format of the sampler inside the process
//! ([`profile_core::joint::recording`]). So the names of functions are looked up only once, at the end.
//! The [`modules`] have the tables for unwinding, and [`evaluator`] finds R's evaluator among the frames.

mod evaluator;
mod modules;

use super::memory::ProcessMemory;
use super::proc::Process;
use super::thread::pause::Pause;
use crate::running_r::RunningR;
use crate::running_r::exports::Exports;
use crate::stack::frames::Stack;
use modules::RemoteModules;
use profile_core::error::{Error, Result};
use profile_core::joint::recording::{HEADER, NO_CONTEXT, PAIR, WHOLE_CONTEXTS, WHOLE_STACK};
use profile_core::joint::{Files, Recording};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::message;
use profile_runtime::contexts::{MOST_PROMISES, NEXT_PROMISE, RECORD};
use profile_runtime::memory::{Memory, at};
use profile_runtime::variables;
use profile_unwind::{Registers, Unwinder};
use std::collections::HashMap;
use std::ops::Range;

/// The maximum number of frames. Further ones are left out.
const MOST_FRAMES: usize = 100_000;
/// The maximum sizes of what is copied of the C stack, whose outer part is left out then, and of the node stack.
const MOST_STACK: u64 = 64 << 20;
const MOST_NODES: u64 = 8 << 20;
/// The number of bytes below the stack pointer that a function may use, by the ABI.
const RED_ZONE: u64 = 128;

/// Finds native stacks of a process.
pub struct NativeReader<'f> {
    process: Process,
    memory: ProcessMemory,
    unwinder: Unwinder<RemoteModules<'f, ProcessMemory>>,
    /// The address of `Rf_eval()`, and those of all functions of R that are needed.
    eval: u64,
    exports: Exports<{ evaluator::FUNCTIONS.len() }>,
    stack_top: u64,
    /// The registers, the C stack and the node stack when the process was stopped.
    registers: Option<Registers>,
    stack: StackCopy,
    nodes: StackCopy,
    room: Vec<u64>,
    words: Vec<u64>,
    /// The first word of the last tick.
    last: usize,
}

/// A copy of a part of memory.
#[derive(Debug, Default)]
struct StackCopy {
    addresses: Range<u64>,
    bytes: Vec<u8>,
}

impl StackCopy {
    /// Copies a range. Returns whether it could be read.
    fn take(&mut self, memory: &mut impl Memory, addresses: Range<u64>) -> Result<bool> {
        self.addresses = 0..0;
        let size = addresses.end.saturating_sub(addresses.start) as usize;
        if self.bytes.len() < size {
            self.bytes.clear();
            self.bytes.try_fill(size, 0)?;
        }
        let is_read = memory.read(addresses.start, &mut self.bytes[..size]);
        if is_read {
            self.addresses = addresses;
        }
        Ok(is_read)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let end = address.checked_add(size_of::<u64>() as u64)?;
        let is_inside = address >= self.addresses.start && end <= self.addresses.end;
        is_inside.then(|| at(&self.bytes, (address - self.addresses.start) as usize))
    }
}

impl profile_unwind::Stack for &StackCopy {
    fn read(self, address: u64) -> Option<u64> {
        self.word(address)
    }
}

impl<'f> NativeReader<'f> {
    /// Fails with the reason if the process lacks what is needed.
    pub fn open(process: &Process, r: &RunningR, files: &'f Files) -> Result<NativeReader<'f>> {
        let mut memory = ProcessMemory::new(process.pid);
        let modules = r.modules.iter().copied();
        let exports = Exports::find(&mut memory, modules, evaluator::FUNCTIONS)?;
        let eval = exports.get(variables::EVAL);
        let eval =
            eval.ok_or_else(|| Error::Process(message!("It has no function `Rf_eval()`.")))?;
        let mut modules = RemoteModules::new(memory.clone(), process.pid, files);
        modules.update(&process.file_mappings()?)?;
        let mut room = Vec::new();
        room.try_fill(MOST_FRAMES * PAIR, 0)?;
        Ok(NativeReader {
            process: process.clone(),
            memory,
            unwinder: Unwinder::new(modules)?,
            eval,
            exports,
            stack_top: r.stack.end,
            registers: None,
            stack: StackCopy::default(),
            nodes: StackCopy::default(),
            room,
            words: Vec::new(),
            last: usize::MAX,
        })
    }

    /// Copies the C stack of R's thread while it is stopped.
    pub fn copy(&mut self, pause: &Pause, r: &RunningR) -> Result<()> {
        self.registers = None;
        // All ticks are on the same stack, by which records on the C stack are known. If R has run in several threads, those
        // on others have no native frames.
        if self.words.is_empty() {
            self.stack_top = r.stack.end;
        } else if self.stack_top != r.stack.end {
            return Ok(());
        }
        let Some(registers) = pause.registers() else {
            return Ok(());
        };
        let pointer = registers.stack_pointer();
        if pointer < self.stack_top {
            let end = self.stack_top.min(pointer.saturating_add(MOST_STACK));
            // The memory below the stack pointer may not be mapped yet.
            for low in [pointer.saturating_sub(RED_ZONE), pointer] {
                if self.stack.take(&mut self.memory, low..end)? {
                    self.registers = Some(registers);
                    break;
                }
            }
        }
        self.unwinder.modules.verify()?;
        Ok(())
    }

    /// Discards what was copied.
    pub fn discard(&mut self) {
        self.registers = None;
    }

    /// Copies the used part of R's node stack, given R's stack, while the process is still stopped.
    pub fn copy_nodes(&mut self, r: &RunningR, stack: &Stack) -> Result<()> {
        let records = stack.records.iter().map(|record| record.address);
        let height = records.filter(|address| r.node_stack.contains(address));
        self.nodes.addresses = 0..0;
        let height = height
            .max()
            .filter(|_| r.layout.is_none_or(|layout| layout.calls_on_node_stack));
        if let Some(height) = height {
            let nodes = r.node_stack.start..height.saturating_add(RECORD as u64);
            if nodes.end - nodes.start > MOST_NODES || !self.nodes.take(&mut self.memory, nodes)? {
                self.registers = None;
            }
        }
        Ok(())
    }

    /// Finds the native frames of what was copied. The process may go on. Returns the number of the first word of the
    /// tick; `None` if the frames cannot be found.
    pub fn unwind(&mut self, r: &RunningR, stack: &Stack) -> Result<Option<usize>> {
        let Some(registers) = self.registers.take().filter(|_| stack.cut.is_none()) else {
            return Ok(None);
        };
        let (frames, is_whole) = self.walk(&registers)?;
        let start = self.words.len();
        let contexts = stack.records.len();
        let flags = if is_whole { WHOLE_STACK } else { 0 } | WHOLE_CONTEXTS;
        let header: [u64; HEADER] = [frames as u64 | (contexts as u64) << 32, flags, 0, 0];
        self.words.try_extend(&header)?;
        let frames = self.room.get(..frames * PAIR).unwrap_or_default();
        self.words.try_extend(frames)?;
        let mut promises = Promises::default();
        for record in &stack.records {
            let pair = match record.address {
                0 => NO_CONTEXT,
                address => {
                    let promise = if r.node_stack.contains(&address) {
                        self.promise(record.promises, &registers, &mut promises)?
                    } else {
                        0
                    };
                    [address | u64::from(record.flags) << 48, promise]
                }
            };
            self.words.try_extend(&pair)?;
        }
        // A sleeping process always has the same stack, which is stored only once.
        if let Some(last) = self.words.get(self.last..start) {
            if last == &self.words[start..] {
                self.words.truncate(start);
                return Ok(Some(self.last));
            }
        }
        self.last = start;
        Ok(Some(start))
    }

    /// The number of native frames, and whether the last one is the outermost one.
    fn walk(&mut self, registers: &Registers) -> Result<(usize, bool)> {
        let mut is_first = true;
        loop {
            let stack = &self.stack;
            let walked = self.unwinder.walk(registers.clone(), stack, &mut self.room);
            // There are more frames than there is room for.
            let Some(walked) = walked else {
                return Ok((MOST_FRAMES, false));
            };
            let is_part = self.stack.addresses.end < self.stack_top;
            if walked.whole || is_part || !is_first {
                return Ok((walked.frames, walked.whole));
            }
            // The walk may have ended in a module that was loaded since.
            self.unwinder
                .modules
                .update(&self.process.file_mappings()?)?;
            is_first = false;
        }
    }

    /// The innermost promise of a list that is on the C stack, which means that its evaluation was started by C code;
    /// 0 if there is none.
    fn promise(&self, first: u64, registers: &Registers, known: &mut Promises) -> Result<u64> {
        let pointer = registers.stack_pointer();
        let is_on_stack = |address: u64| address >= pointer && address < self.stack_top;
        known.followed.clear();
        let mut address = first;
        let mut found = 0;
        for _ in 0..MOST_PROMISES {
            if let Some(&outer) = known.found.get(&address) {
                found = outer;
                break;
            }
            if !self.nodes.addresses.contains(&address) {
                found = if is_on_stack(address) { address } else { 0 };
                break;
            }
            known.followed.try_push(address)?;
            address = match self.nodes.word(address.wrapping_add(NEXT_PROMISE)) {
                Some(next) => next,
                None => break,
            };
        }
        for &address in &known.followed {
            known.found.try_put(address, found)?;
        }
        Ok(found)
    }

    /// The memory that ticks take, in bytes.
    pub fn size(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// All ticks. To be called at the end.
    pub fn recording(&mut self) -> Result<Recording<'_>> {
        let evaluator = evaluator::find(
            &mut self.unwinder,
            self.eval,
            &self.exports,
            self.stack_top,
            &self.words,
        )?;
        Ok(Recording {
            is_native: true,
            words: &self.words,
            modules: self.unwinder.modules.seen(self.eval)?,
            evaluator,
            stack_top: self.stack_top,
            lines_written_at_once: false,
            lost: 0,
            start: 0,
            duration: 0,
        })
    }
}

/// The results for lists of promises that were followed: records often share the same list.
#[derive(Default)]
struct Promises {
    found: HashMap<u64, u64, foldhash::fast::RandomState>,
    followed: Vec<u64>,
}

#[cfg(test)]
mod tests;
