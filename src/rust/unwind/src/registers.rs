//! The registers of x86-64 that unwinding needs.

/// The numbers of registers in DWARF.
const STACK_POINTER: usize = 7;
const RETURN_ADDRESS: usize = 16;
/// The number of registers that unwind tables of C code refer to.
pub const REGISTERS: usize = 17;

/// The registers that a called function preserves: rbx, rbp, r12 to r15.
pub const SAVED: [u16; 6] = [3, 6, 12, 13, 14, 15];
/// The return address, as a register of the tables.
pub const RETURN: u16 = RETURN_ADDRESS as u16;

/// The registers of a frame.
#[derive(Debug, Clone)]
pub struct Registers([u64; REGISTERS]);

impl Registers {
    /// In the order of DWARF's numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and the address of the
    /// next instruction.
    pub fn new(values: [u64; REGISTERS]) -> Registers {
        Registers(values)
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
        self.0[RETURN_ADDRESS]
    }

    /// Sets the registers to their state after the function has returned. On this processor a call pushes only the
    /// return address on the stack.
    pub fn return_to(&mut self, counter: u64, stack_pointer: u64) {
        self.0[RETURN_ADDRESS] = counter;
        self.0[STACK_POINTER] = stack_pointer;
    }
}
