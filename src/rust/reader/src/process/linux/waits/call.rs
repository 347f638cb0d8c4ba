//! The system call of a thread, and what its arguments refer to.

/// A system call and its arguments, from `/proc/PID/task/TID/syscall`. A thread that is in none has a negative number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: i64,
    arguments: [u64; 6],
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    Sleep,
    /// A lock of the threads library, or something else that another thread does.
    Futex,
    /// The end of a process, of any child if it is unknown which.
    Child(Option<i32>),
    Descriptor(i32),
    /// A file that has a path in memory.
    Path,
    FileLock(i32),
    /// An array of structs.
    Poll {
        address: u64,
        count: u64,
    },
    /// Three sets of bits, of which any may be missing.
    Select {
        sets: [u64; 3],
        count: u64,
    },
    Epoll(i32),
    Other,
}

/// `fcntl()` waits with this command, and its form for open file descriptions.
const LOCKS: [u64; 2] = [libc::F_SETLKW as u64, libc::F_OFD_SETLKW as u64];
/// `waitid()` waits for a process by its id.
const BY_ID: u64 = libc::P_PID as u64;

impl Call {
    /// `None` if the thread runs.
    pub fn parse(text: &str) -> Option<Call> {
        let mut fields = text.split_ascii_whitespace();
        let number: i64 = fields.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        if number >= 0 {
            for argument in &mut arguments {
                let field = fields.next()?.strip_prefix("0x")?;
                *argument = u64::from_str_radix(field, 16).ok()?;
            }
        }
        Some(Call { number, arguments })
    }

    pub fn waiting(&self) -> Waiting {
        let [first, second, third, fourth, ..] = self.arguments;
        // Numbers are `int`s: their upper halves have no meaning.
        let int = |argument: u64| argument as i32;
        match self.number {
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Waiting::Sleep,
            libc::SYS_futex | libc::SYS_futex_waitv => Waiting::Futex,
            libc::SYS_wait4 => Waiting::Child(Some(int(first)).filter(|pid| *pid > 0)),
            libc::SYS_waitid => {
                Waiting::Child(Some(int(second)).filter(|pid| first == BY_ID && *pid > 0))
            }
            libc::SYS_flock => Waiting::FileLock(int(first)),
            libc::SYS_fcntl if LOCKS.contains(&second) => Waiting::FileLock(int(first)),
            libc::SYS_ppoll => Waiting::Poll {
                address: first,
                count: second,
            },
            libc::SYS_pselect6 => Waiting::Select {
                sets: [second, third, fourth],
                count: first,
            },
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Waiting::Epoll(int(first)),
            libc::SYS_read
            | libc::SYS_pread64
            | libc::SYS_readv
            | libc::SYS_preadv
            | libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_sync_file_range
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg
            | libc::SYS_connect
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_sendfile
            | libc::SYS_ftruncate
            | libc::SYS_fallocate
            | libc::SYS_syncfs
            | libc::SYS_getdents64 => Waiting::Descriptor(int(first)),
            libc::SYS_openat
            | libc::SYS_newfstatat
            | libc::SYS_statx
            | libc::SYS_unlinkat
            | libc::SYS_mkdirat
            | libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_msync
            | libc::SYS_sync => Waiting::Path,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open
            | libc::SYS_stat
            | libc::SYS_lstat
            | libc::SYS_unlink
            | libc::SYS_mkdir
            | libc::SYS_rename => Waiting::Path,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => Waiting::Poll {
                address: first,
                count: second,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => Waiting::Select {
                sets: [second, third, fourth],
                count: first,
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => Waiting::Epoll(int(first)),
            _ => Waiting::Other,
        }
    }
}
