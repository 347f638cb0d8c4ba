//! The names of system calls in which a program may spend time, and which of them wait.

use super::processor;
use crate::process::computing::SystemCall;

fn name_in(table: &[(i64, &'static str)], number: i64) -> Option<&'static str> {
    let known = table.iter().find(|known| known.0 == number);
    known.map(|known| known.1)
}

fn waiting(number: i64) -> Option<&'static str> {
    name_in(&WAITING, number).or_else(|| name_in(processor::WAITING, number))
}

pub fn system_call_name(number: i64) -> Option<&'static str> {
    waiting(number).or_else(|| name_in(&WORKING, number))
}

/// What a thread does that is in this system call.
pub fn call(number: i64) -> SystemCall {
    match waiting(number) {
        Some(_) => SystemCall::Waits,
        None => SystemCall::Works,
    }
}

/// Calls of all processors whose time is the time until something happens elsewhere.
const WAITING: [(i64, &str); 30] = [
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_epoll_pwait2, "epoll_pwait2"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_futex_waitv, "futex_waitv"),
    (libc::SYS_io_getevents, "io_getevents"),
    (libc::SYS_mq_timedreceive, "mq_timedreceive"),
    (libc::SYS_msgrcv, "msgrcv"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_read, "read"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmmsg, "recvmmsg"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_restart_syscall, "restart_syscall"),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (libc::SYS_semop, "semop"),
    (libc::SYS_semtimedop, "semtimedop"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
];

/// Calls that usually need not wait: files are in memory, and what is sent is buffered.
const WORKING: [(i64, &str); 9] = [
    (libc::SYS_getrandom, "getrandom"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
];
