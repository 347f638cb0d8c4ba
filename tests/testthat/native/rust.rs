//! Rust: called through `.C()`. A function of a module, with a closure that is inlined.

mod kernel {
    extern "C" {
        static unit_steps: i32;
    }

    /// As `GIVE_TICK()` in native.h.
    #[inline(always)]
    fn give_tick() {
        unsafe {
            std::arch::asm!(
                "mov eax, 39", "syscall", "mov edi, eax",
                "mov eax, 186", "syscall", "mov esi, eax",
                "mov edx, 27", "mov eax, 234", "syscall", "nop",
                out("rax") _, out("rdi") _, out("rsi") _, out("rdx") _, out("rcx") _, out("r11") _,
            );
        }
    }

    #[inline(never)]
    pub fn turn(n: i32) -> f64 {
        (0..n).fold(1.0, |x, _| {
            let steps = unsafe { unit_steps };
            if steps == 0 {
                give_tick();
            }
            (0..steps).fold(x, |x, i| x * 0.999 + f64::from(i % 5))
        })
    }
}

/// # Safety
/// `n` and `out` point to one value each.
#[no_mangle]
pub unsafe extern "C" fn rust_inner(n: *const i32, out: *mut f64) {
    *out = kernel::turn(*n) + 1.0;
}
