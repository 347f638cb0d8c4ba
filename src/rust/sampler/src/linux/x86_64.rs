//! The registers of x86-64 that unwinding needs.

/// The numbers of registers in DWARF.
const STACK_POINTER: usize = 7;
const RETURN_ADDRESS: usize = 16;
/// The number of registers that unwind tables of C code refer to.
const REGISTERS: usize = 17;

/// The registers that a called function preserves: rbx, rbp, r12 to r15.
pub const SAVED: [u16; 6] = [3, 6, 12, 13, 14, 15];
/// The return address, as a register of the tables.
pub const RETURN: u16 = RETURN_ADDRESS as u16;

/// The registers of a frame.
#[derive(Debug, Clone)]
pub struct Registers([u64; REGISTERS]);

impl Registers {
    /// The registers of the code that a signal interrupted.
    pub fn of(context: &libc::ucontext_t) -> Registers {
        let saved = &context.uc_mcontext.gregs;
        // In the order of DWARF's numbers.
        let order = [
            libc::REG_RAX,
            libc::REG_RDX,
            libc::REG_RCX,
            libc::REG_RBX,
            libc::REG_RSI,
            libc::REG_RDI,
            libc::REG_RBP,
            libc::REG_RSP,
            libc::REG_R8,
            libc::REG_R9,
            libc::REG_R10,
            libc::REG_R11,
            libc::REG_R12,
            libc::REG_R13,
            libc::REG_R14,
            libc::REG_R15,
            libc::REG_RIP,
        ];
        Registers(order.map(|register| saved[register as usize] as u64))
    }

    /// The registers of the calling function, into which this one is inlined.
    #[inline(always)]
    pub fn here() -> Registers {
        let mut values = [0; REGISTERS];
        // SAFETY: only reads registers.
        unsafe {
            std::arch::asm!(
                "mov [{values} + 8 * 3], rbx",
                "mov [{values} + 8 * 6], rbp",
                "mov [{values} + 8 * 7], rsp",
                "mov [{values} + 8 * 12], r12",
                "mov [{values} + 8 * 13], r13",
                "mov [{values} + 8 * 14], r14",
                "mov [{values} + 8 * 15], r15",
                "lea {counter}, [rip]",
                "mov [{values} + 8 * 16], {counter}",
                values = in(reg) values.as_mut_ptr(),
                counter = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
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

    /// Sets the registers as they are after the function returned. On this processor a call pushes
    /// only the return address on the stack.
    pub fn return_to(&mut self, counter: u64, stack_pointer: u64) {
        self.0[RETURN_ADDRESS] = counter;
        self.0[STACK_POINTER] = stack_pointer;
    }
}
