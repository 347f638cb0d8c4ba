//! An image of this process: a forked child that does nothing, so that its memory stays as it is at this moment.
//!
//! A child of a process with several threads has only the thread that called `fork()`, while the memory is as the others
//! left it: locks that they held are never released there. Code of libraries, even `malloc()`, could therefore wait for
//! ever. So no code of any library runs in the child, not even the functions that libraries want called before and
//! after a fork (as OpenBLAS does, which ends its threads then): the child is made by a system call, and makes only a few
//! others. This process reads its memory from outside.

use super::ProcessMemory;
use profile_core::error::{Error, Result};
use profile_core::message;
use std::ffi::CStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::process;
use std::time::{Duration, Instant};

/// The name of the child.
const NAME: &CStr = c"profile-image";

/// A child that is killed at the end. It has the file descriptors of this process in common, and no copies of them, which
/// would keep files and connections open.
pub struct Image {
    pub pid: libc::pid_t,
    /// The process that has made it. Its forks must not end it.
    parent: u32,
    has_ended: bool,
    /// How long it took to make it. R waits when it needs memory meanwhile.
    pub pause: Duration,
}

impl Image {
    /// Signals must be blocked in the calling thread. The child ends with that thread or, if the thread ends before the
    /// child has asked for this, with the process.
    pub fn take() -> Result<Image> {
        Image::take_for(0)
    }

    /// The same. The image permits this process to read it, if the system requires that.
    pub fn take_for(reader: libc::pid_t) -> Result<Image> {
        let begin = Instant::now();
        let parent = process::id();
        // Without a signal for the parent at its end, so that nobody else sees that there is a child: not a handler of
        // SIGCHLD, and no `wait()`.
        let flags = libc::CLONE_FILES as libc::c_ulong;
        // SAFETY: the child has a copy of the memory, including the stack, so it returns from this call as well. It then
        // only makes system calls, by `wait_for_end()`.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        match libc::pid_t::try_from(pid) {
            Ok(0) => wait_for_end(parent, reader),
            Ok(pid) if pid > 0 => {
                // If memory runs out, the image is to be killed first.
                let _ = fs::write(message!("/proc/{pid}/oom_score_adj"), "1000");
                Ok(Image {
                    pid,
                    parent,
                    has_ended: false,
                    pause: begin.elapsed(),
                })
            }
            _ => Err(not_forked(io::Error::last_os_error())),
        }
    }

    pub fn memory(&self) -> ProcessMemory {
        ProcessMemory::new(self.pid)
    }

    /// Ends it, and returns whether it has ended: another process that is just reading it may hold it for a moment.
    pub fn try_end(&mut self) -> bool {
        self.end(libc::WNOHANG);
        self.has_ended
    }

    fn end(&mut self, options: libc::c_int) {
        if self.has_ended || self.parent != process::id() {
            return;
        }
        // SAFETY: a child that nobody else waits for, so this is still its ID. Nothing is written for a null pointer.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            let ended = loop {
                let ended = libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL | options);
                if ended >= 0 || *libc::__errno_location() != libc::EINTR {
                    break ended;
                }
            };
            self.has_ended = ended != 0;
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.end(0);
    }
}

fn not_forked(source: io::Error) -> Error {
    match source.kind() {
        ErrorKind::OutOfMemory => Error::Memory,
        _ => Error::Limit {
            what: "process",
            source,
        },
    }
}

/// What the child does. All signals are blocked in it, except SIGKILL.
fn wait_for_end(parent: u32, reader: libc::pid_t) -> ! {
    // SAFETY: system calls that use no memory but a constant.
    unsafe {
        if reader != 0 {
            libc::syscall(libc::SYS_prctl, libc::PR_SET_PTRACER, reader);
        }
        libc::syscall(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // For lists of processes.
        libc::syscall(libc::SYS_prctl, libc::PR_SET_NAME, NAME.as_ptr());
        // The parent may have ended before this.
        while libc::syscall(libc::SYS_getppid) == libc::c_long::from(parent) {
            libc::syscall(libc::SYS_ppoll, 0, 0, 0, 0, 0);
        }
        loop {
            libc::syscall(libc::SYS_exit_group, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile_runtime::memory::Memory;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    static NUMBER: AtomicU64 = AtomicU64::new(1);

    fn number_in(image: &Image) -> u64 {
        let mut bytes = [0; 8];
        let address = (&raw const NUMBER).expose_provenance() as u64;
        assert!(image.memory().read(address, &mut bytes));
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn an_image_stays_as_it_was_and_is_removed() {
        let first = Image::take().unwrap();
        NUMBER.store(2, Ordering::SeqCst);
        let second = Image::take().unwrap();
        NUMBER.store(3, Ordering::SeqCst);
        assert_eq!([number_in(&first), number_in(&second)], [1, 2]);
        // Nobody who waits for any child finds it.
        // SAFETY: nothing is written for a null pointer.
        let waited = unsafe { libc::waitpid(first.pid, std::ptr::null_mut(), libc::WNOHANG) };
        assert_eq!(waited, -1);
        // It has the files of this process, and also those that are opened later.
        let file = fs::File::open("/proc/self/stat").unwrap();
        let file_in = |process: &str| {
            let link = format!("/proc/{process}/fd/{}", file.as_raw_fd());
            fs::read_link(link).unwrap()
        };
        assert_eq!(file_in("self"), file_in(&first.pid.to_string()));
        let path = format!("/proc/{}", first.pid);
        assert!(fs::exists(&path).unwrap());
        drop(first);
        assert!(!fs::exists(&path).unwrap());
        let mut second = second;
        while !second.try_end() {
            thread::yield_now();
        }
        assert!(!fs::exists(format!("/proc/{}", second.pid)).unwrap());
        assert!(second.try_end());
    }

    #[test]
    fn an_image_ends_with_its_thread() {
        let pid = thread::spawn(|| {
            let image = Image::take().unwrap();
            let pid = image.pid;
            // It gets its name after it has asked for its end.
            let name = format!("/proc/{pid}/comm");
            while fs::read_to_string(&name).unwrap().trim_end().as_bytes() != NAME.to_bytes() {
                thread::yield_now();
            }
            std::mem::forget(image);
            pid
        });
        let pid = pid.join().unwrap();
        // SAFETY: nothing is written for a null pointer. This waits until it has ended.
        let waited = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) };
        assert_eq!(waited, pid);
    }
}
