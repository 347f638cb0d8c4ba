//! What the standard library lacks on Linux: clocks, signals and sockets; an [`alarm`] that detects when R resumes;
//! private [`files`] and locks; how to [`start`](mod@start) a program; the [`log`] of R's profiler. `unsafe` is used
//! only for system calls.

mod alarm;
mod files;
mod log;
mod start;

pub use alarm::{Alarm, ring};
pub use files::{
    create_private, is_locked, is_same_file, lock, make_private_folder, open_private, unlock,
};
pub use log::{Log, is_profiled};
pub use start::{has_ended, start};

use std::io::{self, ErrorKind};
use std::mem;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// The time since boot, including the time during which the system was suspended.
pub fn boot_time() -> Duration {
    clock(libc::CLOCK_BOOTTIME)
}

/// The CPU time of this thread, in nanoseconds.
pub fn thread_time() -> u64 {
    let time = clock(libc::CLOCK_THREAD_CPUTIME_ID);
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the struct.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Calls a function that starts a thread, with all signals blocked. The thread, and those that it starts, inherit
/// this, so R's signal handlers never run there.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are initialised before they are used. The signal mask of this thread is restored afterwards.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        result
    }
}

/// A connection to wait for, until it is readable or writable.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    file: RawFd,
    events: libc::c_short,
}

impl Waiting {
    pub fn to_read(stream: &TcpStream) -> Waiting {
        Waiting {
            file: stream.as_raw_fd(),
            events: libc::POLLIN,
        }
    }

    pub fn to_write(stream: &TcpStream) -> Waiting {
        Waiting {
            file: stream.as_raw_fd(),
            events: libc::POLLOUT,
        }
    }
}

/// Waits until a connection is ready or the time has elapsed.
pub fn wait(waiting: Option<Waiting>, longest: Duration) {
    let time = time_of(longest);
    let mut poll = waiting.map(|waiting| libc::pollfd {
        fd: waiting.file,
        events: waiting.events,
        revents: 0,
    });
    let (first, count) = match &mut poll {
        Some(poll) => (ptr::from_mut(poll), 1),
        None => (ptr::null_mut(), 0),
    };
    // SAFETY: `first` points to `count` structs. If the call fails, the caller checks its state again.
    unsafe { libc::ppoll(first, count, &raw const time, ptr::null()) };
}

fn time_of(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: duration.subsec_nanos() as libc::c_long,
    }
}

/// Starts to connect, without blocking.
pub fn connect(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: it has no preconditions.
    let file = unsafe { libc::socket(family, kind, 0) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the file descriptor is open and has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let result = match address {
        SocketAddr::V4(address) => {
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(address.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            connect_to(&file, &name)
        }
        SocketAddr::V6(address) => {
            let name = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: address.ip().octets(),
                },
                sin6_scope_id: address.scope_id(),
            };
            connect_to(&file, &name)
        }
    };
    match result {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from(file)),
    }
}

fn connect_to<Name>(file: &OwnedFd, name: &Name) -> io::Result<()> {
    let size = size_of::<Name>() as libc::socklen_t;
    // SAFETY: the name is a socket address of this size.
    let result = unsafe { libc::connect(file.as_raw_fd(), ptr::from_ref(name).cast(), size) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a connection is established. An error means that the attempt has failed.
pub fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}
