//! Unwinds the stack, frame by frame, from the interrupted instruction to the start of the program.

use crate::registers::{LINK, Registers, SAVED};
use crate::stack::Stack;
use crate::tables::{Plain, Rule, Scratch, UnwindTables};
use profile_core::error::Result;
use profile_core::joint::recording::{EXACT, NO_MODULE, PAIR};
use std::cmp::Ordering;
use std::ops::Range;

/// The number of rules that are cached, by address. Stacks have many frames in common with earlier
/// ones, and recursion repeats frames.
const CACHED: usize = 4096;

/// The modules whose code may be on a stack.
pub trait Modules {
    /// The number of the module that currently contains an address.
    fn at(&mut self, address: u64) -> Option<usize>;

    fn tables(&self, module: usize) -> Option<&UnwindTables<'_>>;

    /// The eight bytes of code at an address inside a module.
    fn code(&mut self, module: usize, address: u64) -> Option<u64>;
}

pub struct Unwinder<M> {
    pub modules: M,
    pub(crate) scratch: Box<Scratch>,
    cache: Vec<CachedRule>,
}

#[derive(Clone, Copy)]
struct CachedRule {
    address: u64,
    module: usize,
    rule: Plain,
}

/// A frame whose caller is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub module: usize,
    /// The address of the next instruction, and an address inside the current one, which may be a call.
    pub counter: u64,
    pub address: u64,
    pub stack_pointer: u64,
    /// Whether it was interrupted, so that it may be at any instruction.
    pub exact: bool,
}

/// The result of a step outwards.
pub(crate) enum Step {
    Caller {
        exact: bool,
    },
    End,
    /// The tables have no rule.
    Unknown,
    Lost,
}

/// The result of a walk: the number of frames, and whether the last is the outermost one.
#[derive(Debug, Default)]
pub struct Walked {
    pub frames: usize,
    pub whole: bool,
}

impl<M: Modules> Unwinder<M> {
    pub fn new(modules: M) -> Result<Unwinder<M>> {
        let mut cache = Vec::new();
        cache.try_reserve_exact(CACHED)?;
        cache.resize(
            CACHED,
            CachedRule {
                address: 0,
                module: usize::MAX,
                rule: Plain {
                    register: 0,
                    offset: 0,
                    saved: [None; SAVED.len()],
                    counter: None,
                    signal: false,
                },
            },
        );
        Ok(Unwinder {
            modules,
            scratch: Box::new(Scratch::new_in()),
            cache,
        })
    }

    /// The code of the function that contains an address; if it consists of several parts, only the one
    /// with the address.
    pub fn function(&mut self, address: u64) -> Option<Range<u64>> {
        let module = self.modules.at(address)?;
        self.modules.tables(module)?.function(address)
    }

    /// Writes the frames, innermost first; `None` if they do not fit.
    pub fn walk(
        &mut self,
        mut registers: Registers,
        stack: impl Stack,
        room: &mut [u64],
    ) -> Option<Walked> {
        let mut frames = 0;
        let mut exact = true;
        loop {
            let counter = registers.counter();
            let pointer = registers.stack_pointer();
            let address = if exact {
                counter
            } else {
                counter.wrapping_sub(1)
            };
            let module = self.modules.at(address);
            let pair = room.get_mut(frames * PAIR..(frames + 1) * PAIR)?;
            let number = module.map_or(NO_MODULE, |module| module as u64);
            pair[0] = counter | number << 48;
            pair[1] = pointer & !EXACT | if exact { EXACT } else { 0 };
            frames += 1;
            let step = match module {
                Some(module) => {
                    let frame = Frame {
                        module,
                        counter,
                        address,
                        stack_pointer: pointer,
                        exact,
                    };
                    self.step(frame, &mut registers, stack)
                }
                None => Step::Lost,
            };
            let is_outwards = |next: bool| match registers.stack_pointer().cmp(&pointer) {
                Ordering::Greater => true,
                // A function that was interrupted before it has saved the return address.
                Ordering::Equal => LINK.is_some() && exact && !next,
                Ordering::Less => false,
            };
            let whole = match step {
                // Each return moves the stack pointer upwards; if not, the stack is damaged.
                Step::Caller { exact: next } if is_outwards(next) => {
                    exact = next;
                    continue;
                }
                Step::End => true,
                _ => false,
            };
            return Some(Walked { frames, whole });
        }
    }

    fn step(&mut self, frame: Frame, registers: &mut Registers, stack: impl Stack) -> Step {
        match self.by_tables(frame, registers, stack) {
            step @ Step::Caller { exact: false } => step,
            step => self.without_tables(step, frame, registers, stack),
        }
    }

    fn by_tables(&mut self, frame: Frame, registers: &mut Registers, stack: impl Stack) -> Step {
        let Frame {
            module,
            address,
            exact,
            ..
        } = frame;
        let slot = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        if let Some(cached) = self.cache.get(slot) {
            if cached.address == address && cached.module == module {
                return follow(&cached.rule, registers, exact, stack);
            }
        }
        let Some(tables) = self.modules.tables(module) else {
            return Step::Unknown;
        };
        match tables.rule(address, &mut self.scratch) {
            Some(Rule::Plain(rule)) => {
                if let Some(cached) = self.cache.get_mut(slot) {
                    *cached = CachedRule {
                        address,
                        module,
                        rule,
                    };
                }
                follow(&rule, registers, exact, stack)
            }
            Some(Rule::Complex(entry)) => {
                let signal = entry.is_signal_trampoline();
                let scratch = &mut self.scratch;
                match tables.apply(&entry, address, scratch, registers, exact, stack) {
                    Some((caller, Some(counter))) if counter != 0 => {
                        *registers = caller;
                        Step::Caller { exact: signal }
                    }
                    Some(_) => Step::End,
                    None => Step::Lost,
                }
            }
            None => Step::Unknown,
        }
    }
}

fn follow(rule: &Plain, registers: &mut Registers, exact: bool, stack: impl Stack) -> Step {
    // A function that was interrupted may not have saved the return address.
    let link = registers.link().filter(|_| exact);
    if rule.counter.is_none() && link.is_none() {
        return Step::End;
    }
    let Some(base) = registers.get(rule.register) else {
        return Step::Lost;
    };
    let frame = base.wrapping_add_signed(rule.offset);
    let read = |offset: i32| stack.read(frame.wrapping_add_signed(offset.into()));
    let Some(counter) = rule.counter.map_or(link, read) else {
        return Step::Lost;
    };
    if counter == 0 {
        return Step::End;
    }
    for (register, place) in SAVED.into_iter().zip(rule.saved) {
        if let Some(place) = place {
            let Some(value) = read(place) else {
                return Step::Lost;
            };
            registers.set(register, value);
        }
    }
    registers.return_to(counter, frame);
    Step::Caller { exact: rule.signal }
}
