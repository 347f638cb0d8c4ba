//! Tests of reading R in the memory of a simulated process. They need neither R nor a second process, and control
//! what changes while the memory is read. Each file of the crate that reads memory has its own file of tests.

mod fake;
mod fuzz;
mod image;

mod reader {
    mod byte_code;
    mod calls;
    mod codes;
    #[cfg(unix)]
    mod core_file;
    #[cfg(unix)]
    mod core_search;
    #[cfg(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    mod cpu_time;
    mod damage;
    mod deep;
    mod hidden;
    mod identity;
    mod images;
    mod innermost;
    mod names;
    mod packages;
    mod places;
    mod running_r;
    #[cfg(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    mod session;
    mod snapshot;
    mod spans;
    mod stack;
    mod symbols;
    #[cfg(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    mod threads;
    #[cfg(not(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    mod unsupported;
    #[cfg(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    mod waiting;
}
