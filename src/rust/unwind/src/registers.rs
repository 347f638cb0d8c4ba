//! The registers that unwinding needs. What depends on the processor is in one file for each of them.

#[cfg_attr(target_arch = "aarch64", path = "registers/aarch64.rs")]
#[cfg_attr(not(target_arch = "aarch64"), path = "registers/x86_64.rs")]
mod processor;

use crate::stack::Stack;
use processor::{ADDRESS, COUNTER};
pub use processor::{
    FRAME_POINTER, LINK, REGISTERS, RETURN, SAVED, STACK_POINTER, TRAMPOLINE, VENDOR,
};

/// The registers of a frame.
#[derive(Debug, Clone)]
pub struct Registers([u64; REGISTERS]);

impl Registers {
    /// In the order of DWARF's numbers; the last one is the address of the next instruction.
    pub fn new(values: [u64; REGISTERS]) -> Registers {
        Registers(values)
    }

    /// The registers at an address of the stack.
    pub fn read(address: u64, stack: impl Stack) -> Option<Registers> {
        let mut values = [0; REGISTERS];
        for (number, value) in (0..).zip(&mut values) {
            *value = stack.read(address.wrapping_add(8 * number))?;
        }
        Some(Registers(values))
    }

    pub fn get(&self, register: u16) -> Option<u64> {
        self.0.get(usize::from(register)).copied()
    }

    pub fn set(&mut self, register: u16, value: u64) {
        if let Some(slot) = self.0.get_mut(usize::from(register)) {
            *slot = value;
        }
    }

    pub fn stack_pointer(&self) -> u64 {
        self.0[STACK_POINTER]
    }

    pub fn counter(&self) -> u64 {
        self.0[COUNTER]
    }

    /// The register into which a call puts the return address, on processors that have one.
    pub fn link(&self) -> Option<u64> {
        self.get(LINK?)
    }

    /// Sets the registers to their state after the function has returned.
    pub fn return_to(&mut self, counter: u64, stack_pointer: u64) {
        self.0[COUNTER] = counter & ADDRESS;
        self.0[STACK_POINTER] = stack_pointer;
    }
}
