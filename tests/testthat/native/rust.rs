//! Rust: called through `.C()`. A function of a module, with a closure that is inlined.

mod kernel {
    extern "C" {
        static unit_steps: i32;
    }

    /// As `GIVE_TICK()` in native.h.
    #[inline(always)]
    fn give_tick() {
        unsafe {
            #[cfg(target_arch = "aarch64")]
            std::arch::asm!(
                "mov x8, #172", "svc #0", "mov x9, x0",
                "mov x8, #178", "svc #0", "mov x1, x0", "mov x0, x9",
                "mov x2, #27", "mov x8, #131", "svc #0", "nop",
                out("x0") _, out("x1") _, out("x2") _, out("x8") _, out("x9") _,
            );
            #[cfg(target_arch = "x86_64")]
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
