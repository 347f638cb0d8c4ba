//! From the interrupted instruction to the start of the program, frame by frame.

use super::memory::Stack;
use super::modules::Modules;
use super::tables::{Plain, Rule, Scratch};
use super::x86_64::{Registers, SAVED};
use profile_core::error::{Error, Result};
use profile_core::joint::recording::{EXACT, NO_MODULE, PAIR};

/// Rules that are kept, by address. Stacks repeat, recursion above all.
const KEPT: usize = 4096;

pub struct Unwinder {
    pub modules: Modules,
    scratch: Box<Scratch>,
    kept: Vec<Kept>,
}

#[derive(Clone, Copy)]
struct Kept {
    address: u64,
    module: usize,
    rule: Plain,
}

/// What is known after a step outwards.
enum Step {
    Caller { exact: bool },
    End,
    Lost,
}

/// What the walk came to: how many frames, and whether the last is the outermost.
pub struct Walked {
    pub frames: usize,
    pub whole: bool,
}

impl Unwinder {
    pub fn new() -> Result<Unwinder> {
        let mut kept = Vec::new();
        kept.try_reserve_exact(KEPT)
            .map_err(|_| Error::Memory("the unwinding"))?;
        kept.resize(
            KEPT,
            Kept {
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
            modules: Modules::new()?,
            scratch: Box::new(Scratch::new_in()),
            kept,
        })
    }

    /// Writes the frames, innermost first; `None` when they do not fit.
    pub fn walk(
        &mut self,
        mut registers: Registers,
        stack: Stack,
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
                Some(module) => self.step(&mut registers, address, module, stack),
                None => Step::Lost,
            };
            let whole = match step {
                // The stack shrinks with each return; if not, it is damaged.
                Step::Caller { exact: next } if registers.stack_pointer() > pointer => {
                    exact = next;
                    continue;
                }
                Step::End => true,
                _ => false,
            };
            return Some(Walked { frames, whole });
        }
    }

    fn step(
        &mut self,
        registers: &mut Registers,
        address: u64,
        module: usize,
        stack: Stack,
    ) -> Step {
        let slot = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        if let Some(kept) = self.kept.get(slot) {
            if kept.address == address && kept.module == module {
                return follow(&kept.rule, registers, stack);
            }
        }
        let Some(tables) = self.modules.tables(module) else {
            return Step::Lost;
        };
        match tables.rule(address, &mut self.scratch) {
            Some(Rule::Plain(rule)) => {
                if let Some(kept) = self.kept.get_mut(slot) {
                    *kept = Kept {
                        address,
                        module,
                        rule,
                    };
                }
                follow(&rule, registers, stack)
            }
            Some(Rule::Complex(entry)) => {
                let signal = entry.is_signal_trampoline();
                let scratch = &mut self.scratch;
                match tables.apply(&entry, address, scratch, registers, stack) {
                    Some((caller, Some(counter))) if counter != 0 => {
                        *registers = caller;
                        Step::Caller { exact: signal }
                    }
                    Some(_) => Step::End,
                    None => Step::Lost,
                }
            }
            None => Step::Lost,
        }
    }
}

fn follow(rule: &Plain, registers: &mut Registers, stack: Stack) -> Step {
    let Some(place) = rule.counter else {
        return Step::End;
    };
    let Some(base) = registers.get(rule.register) else {
        return Step::Lost;
    };
    let frame = base.wrapping_add_signed(rule.offset);
    let read = |offset: i32| stack.read(frame.wrapping_add_signed(offset.into()));
    let Some(counter) = read(place) else {
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
