//! Rust: called through `.C()`. A function of a module, with a closure that is inlined.

mod kernel {
    #[inline(never)]
    pub fn spin(n: i32) -> f64 {
        (0..n).fold(1.0, |x, i| x * 0.999 + f64::from(i % 5))
    }
}

/// # Safety
/// `n` and `out` point to one value each.
#[no_mangle]
pub unsafe extern "C" fn rust_inner(n: *const i32, out: *mut f64) {
    *out = kernel::spin(*n) + 1.0;
}
