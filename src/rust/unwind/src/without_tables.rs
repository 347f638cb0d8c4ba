//! Finds the callers of frames where unwind tables are missing or incomplete: code in assembly language, such as the
//! kernels of BLAS, and the code to which handlers of signals return. Where the processor puts return addresses on the
//! stack, such code cannot be left without tables.

use crate::registers::{FRAME_POINTER, Registers, SAVED, STACK_POINTER, TRAMPOLINE};
use crate::stack::Stack;
use crate::tables::{Plain, Rule};
use crate::walk::{Frame, Modules, Step, Unwinder};

impl<M: Modules> Unwinder<M> {
    /// The step from a frame, given the one by its tables.
    pub(crate) fn without_tables(
        &mut self,
        step: Step,
        frame: Frame,
        registers: &mut Registers,
        stack: impl Stack,
    ) -> Step {
        if let Some(trampoline) = TRAMPOLINE {
            if self.modules.code(frame.module, frame.counter) == Some(trampoline.code) {
                let place = frame.stack_pointer.wrapping_add(trampoline.registers);
                return match Registers::read(place, stack) {
                    Some(interrupted) => {
                        *registers = interrupted;
                        Step::Caller { exact: true }
                    }
                    None => Step::Lost,
                };
            }
        }
        match step {
            Step::Unknown if frame.exact => self.leave(registers).unwrap_or(Step::Lost),
            Step::Unknown => Step::Lost,
            step => step,
        }
    }

    /// Leaves a function without tables that was interrupted. Such a function usually calls no other one, so the return
    /// address is still in its register. It may have moved the stack pointer, but has kept the frame pointer. So this
    /// leads to the caller if it has a frame pointer, or uses no stack pointer to find its own caller.
    fn leave(&mut self, registers: &mut Registers) -> Option<Step> {
        let counter = registers.link()?;
        let mut caller = registers.clone();
        caller.return_to(counter, registers.stack_pointer());
        // Inside the call.
        let address = caller.counter().checked_sub(1)?;
        let module = self.modules.at(address)?;
        let tables = self.modules.tables(module)?;
        let Some(Rule::Plain(rule)) = tables.rule(address, &mut self.scratch) else {
            return None;
        };
        if usize::from(rule.register) == STACK_POINTER {
            let end = end_of_frame(&rule, registers.get(FRAME_POINTER)?)?;
            caller.return_to(counter, end.wrapping_add_signed(-rule.offset));
        }
        *registers = caller;
        Some(Step::Caller { exact: false })
    }
}

/// The end of a frame, given its frame pointer: the address at which the frame pointer of the next outer frame is saved,
/// followed by the return address. `None` if the function does not save both like this.
fn end_of_frame(rule: &Plain, frame_pointer: u64) -> Option<u64> {
    let saved = SAVED.into_iter().zip(rule.saved);
    let mut of_frame_pointer = saved.filter(|(register, _)| *register == FRAME_POINTER);
    let offset = of_frame_pointer.next()?.1?;
    let is_record = rule.counter == Some(offset + 8);
    is_record.then(|| frame_pointer.wrapping_add_signed(-i64::from(offset)))
}
