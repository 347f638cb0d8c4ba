//! The names of system calls, and which of them wait.

use super::processor;
use crate::computing::Call;

/// A system call in which a program may spend time.
pub struct SystemCall {
    number: i64,
    name: &'static str,
    /// Whether its time is the time until something happens elsewhere. Calls that return data which is usually there
    /// already, such as those that write, do not count as waiting.
    waits: bool,
}

pub const fn waits(number: i64, name: &'static str) -> SystemCall {
    SystemCall {
        number,
        name,
        waits: true,
    }
}

const fn works(number: i64, name: &'static str) -> SystemCall {
    SystemCall {
        number,
        name,
        waits: false,
    }
}

fn find(number: i64) -> Option<&'static SystemCall> {
    let mut all = SYSTEM_CALLS.iter().chain(processor::SYSTEM_CALLS);
    all.find(|known| known.number == number)
}

/// The name of a system call in which a program may spend time.
pub fn system_call_name(number: i64) -> Option<&'static str> {
    find(number).map(|known| known.name)
}

/// What a thread does that is in this system call.
pub fn call(number: i64) -> Call {
    match find(number) {
        Some(SystemCall { waits: true, .. }) => Call::Waits,
        _ => Call::Works,
    }
}

/// Those of all processors.
const SYSTEM_CALLS: [SystemCall; 39] = [
    waits(libc::SYS_accept, "accept"),
    waits(libc::SYS_accept4, "accept4"),
    waits(libc::SYS_clock_nanosleep, "clock_nanosleep"),
    waits(libc::SYS_connect, "connect"),
    waits(libc::SYS_epoll_pwait, "epoll_pwait"),
    waits(libc::SYS_epoll_pwait2, "epoll_pwait2"),
    waits(libc::SYS_fcntl, "fcntl"),
    waits(libc::SYS_fdatasync, "fdatasync"),
    waits(libc::SYS_flock, "flock"),
    waits(libc::SYS_fsync, "fsync"),
    waits(libc::SYS_futex, "futex"),
    waits(libc::SYS_futex_waitv, "futex_waitv"),
    works(libc::SYS_getrandom, "getrandom"),
    waits(libc::SYS_io_getevents, "io_getevents"),
    works(libc::SYS_ioctl, "ioctl"),
    waits(libc::SYS_mq_timedreceive, "mq_timedreceive"),
    waits(libc::SYS_msgrcv, "msgrcv"),
    waits(libc::SYS_nanosleep, "nanosleep"),
    works(libc::SYS_openat, "openat"),
    waits(libc::SYS_ppoll, "ppoll"),
    works(libc::SYS_pread64, "pread64"),
    waits(libc::SYS_pselect6, "pselect6"),
    works(libc::SYS_pwrite64, "pwrite64"),
    waits(libc::SYS_read, "read"),
    waits(libc::SYS_readv, "readv"),
    waits(libc::SYS_recvfrom, "recvfrom"),
    waits(libc::SYS_recvmmsg, "recvmmsg"),
    waits(libc::SYS_recvmsg, "recvmsg"),
    waits(libc::SYS_restart_syscall, "restart_syscall"),
    waits(libc::SYS_rt_sigsuspend, "rt_sigsuspend"),
    waits(libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    waits(libc::SYS_semop, "semop"),
    waits(libc::SYS_semtimedop, "semtimedop"),
    works(libc::SYS_sendmsg, "sendmsg"),
    works(libc::SYS_sendto, "sendto"),
    waits(libc::SYS_wait4, "wait4"),
    waits(libc::SYS_waitid, "waitid"),
    works(libc::SYS_write, "write"),
    works(libc::SYS_writev, "writev"),
];
