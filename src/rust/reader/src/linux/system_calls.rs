//! The names of system calls.

use super::processor;

/// The names of system calls in which a program may spend time.
pub fn system_call_name(number: i64) -> Option<&'static str> {
    let all = SYSTEM_CALLS.iter().chain(processor::SYSTEM_CALLS);
    let known = all.into_iter().find(|known| known.0 == number);
    known.map(|known| known.1)
}

/// Those of all processors.
const SYSTEM_CALLS: [(i64, &str); 30] = [
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_getrandom, "getrandom"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_msgrcv, "msgrcv"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_read, "read"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_restart_syscall, "restart_syscall"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_write, "write"),
];
