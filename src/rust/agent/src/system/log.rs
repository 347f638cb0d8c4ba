//! The in-memory file to which R's profiler writes, and the detection of other users of that profiler.
//!
//! R opens `/proc/self/fd/N` to append to it. The offset of its end grows for weeks, while the memory of everything
//! that was read is freed. The file disappears with the process, however that ends.

use profile_core::error::{Error, Result};
use profile_core::formats::rprof::starts_with_header;
use profile_core::message;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

const NAME: &CStr = c"profile-agent";
/// The longest header that R's profiler writes has 80 bytes.
const HEADER: usize = 100;

#[derive(Debug)]
pub struct Log {
    file: File,
    device: libc::dev_t,
    inode: libc::ino_t,
    /// The file descriptor with which R writes, when it was last determined.
    writer: AtomicI32,
}

impl Log {
    pub fn create() -> Result<Log> {
        if has_limited_files() {
            return Err(Error::Unsupported(message!(
                "The size of files is limited (`ulimit -f`), and `Rprof()` would exceed the limit in time."
            )));
        }
        let file = in_memory().map_err(|error| unsupported(&error))?;
        let about = about(file.as_raw_fd());
        let about = about.ok_or_else(|| unsupported(&io::Error::last_os_error()))?;
        let log = Log {
            file,
            device: about.st_dev,
            inode: about.st_ino,
            writer: AtomicI32::new(-1),
        };
        // Checks whether holes can be punched.
        log.free(1).map_err(|error| unsupported(&error))?;
        Ok(log)
    }

    /// The path with which R can open the file in this process.
    pub fn path(&self) -> String {
        message!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// Reads from an offset on. Returns 0 at the end of the file.
    pub fn read(&self, from: u64, room: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(room, from)
    }

    /// Frees the memory of all bytes before an offset, which then read as zeros. Truncating the file instead would
    /// lose what R writes meanwhile.
    pub fn free(&self, before: u64) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let length = libc::off_t::try_from(before).unwrap_or(libc::off_t::MAX);
        // SAFETY: it has no preconditions.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), mode, 0, length) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes all further writes by R fail. Nobody would read them, and they would fill the memory.
    pub fn seal(&self) {
        // SAFETY: it has no preconditions. If it fails, R continues to write until its profiler ends.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) };
    }

    /// Whether R's profiler is writing to this file.
    pub fn is_written(&self) -> bool {
        let known = self.writer.load(Ordering::Relaxed);
        if self.is_writer(known) {
            return true;
        }
        let found = descriptors().find(|&descriptor| self.is_writer(descriptor));
        self.writer.store(found.unwrap_or(-1), Ordering::Relaxed);
        found.is_some()
    }

    fn is_writer(&self, descriptor: RawFd) -> bool {
        let is_own = descriptor < 0 || descriptor == self.file.as_raw_fd();
        let about = about(descriptor).filter(|_| !is_own);
        about.is_some_and(|about| (about.st_dev, about.st_ino) == (self.device, self.inode))
    }
}

/// Whether R's profiler is in use by others, or another profiler uses its timer. R has no API for this, but its
/// profiler writes a header at the start and keeps its file open until it ends.
pub fn is_profiled() -> bool {
    has_timer() || descriptors().any(is_rprof)
}

fn unsupported(error: &io::Error) -> Error {
    Error::Unsupported(message!(
        "`Rprof()` cannot write to memory on this system: {error}."
    ))
}

fn in_memory() -> io::Result<File> {
    // Linux before 6.3 does not support `MFD_NOEXEC_SEAL`, and later versions log a warning if it is missing.
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let mut file = -1;
    for flags in [flags | libc::MFD_NOEXEC_SEAL, flags] {
        // SAFETY: the name ends in a zero.
        file = unsafe { libc::memfd_create(NAME.as_ptr(), flags) };
        if file >= 0 {
            break;
        }
    }
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the file descriptor is open and has no other owner.
    Ok(unsafe { File::from_raw_fd(file) })
}

fn has_limited_files() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the kernel fills the struct.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur != libc::RLIM_INFINITY
}

fn has_timer() -> bool {
    // SAFETY: zeros are valid, and the kernel fills the struct.
    let timer = unsafe {
        let mut timer: libc::itimerval = mem::zeroed();
        libc::getitimer(libc::ITIMER_PROF, &raw mut timer);
        timer.it_value
    };
    (timer.tv_sec, timer.tv_usec) != (0, 0)
}

/// The open file descriptors of this process.
fn descriptors() -> impl Iterator<Item = RawFd> {
    let entries = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn about(descriptor: RawFd) -> Option<libc::stat> {
    // SAFETY: zeros are valid, and the kernel fills the struct.
    unsafe {
        let mut about: libc::stat = mem::zeroed();
        (libc::fstat(descriptor, &raw mut about) == 0).then_some(about)
    }
}

/// Whether R's profiler has started to write to this file.
fn is_rprof(descriptor: RawFd) -> bool {
    // SAFETY: it has no preconditions.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    let is_file = |about: libc::stat| about.st_mode & libc::S_IFMT == libc::S_IFREG;
    if flags < 0
        || flags & libc::O_ACCMODE != libc::O_WRONLY
        || !about(descriptor).is_some_and(is_file)
    {
        return false;
    }
    let path = message!("/proc/self/fd/{descriptor}");
    if fs::read_link(&path).is_ok_and(|target| is_of_agent(&target)) {
        return false;
    }
    let mut start = [0; HEADER];
    let count = File::open(&path).and_then(|mut file| file.read(&mut start));
    count.is_ok_and(|count| starts_with_header(start.get(..count).unwrap_or_default()))
}

/// Whether the file belongs to an agent. A forked process inherits the file of its parent's agent, but its profiler
/// is not running.
fn is_of_agent(target: &Path) -> bool {
    let target = target.as_os_str().as_encoded_bytes();
    let name = target.strip_prefix(b"/memfd:");
    name.is_some_and(|name| name.starts_with(NAME.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Opens the file as R does.
    fn writer(log: &Log) -> File {
        let mut options = fs::OpenOptions::new();
        options.append(true).create(true).open(log.path()).unwrap()
    }

    fn blocks(log: &Log) -> libc::blkcnt_t {
        about(log.file.as_raw_fd()).unwrap().st_blocks
    }

    #[test]
    fn what_was_read_takes_no_memory() {
        let log = Log::create().unwrap();
        let mut writer = writer(&log);
        let mut end = 0;
        for _ in 0..50 {
            writer.write_all(&[b'x'; 10_000]).unwrap();
            let mut room = [0; 20_000];
            let count = log.read(end, &mut room).unwrap();
            assert_eq!(count, 10_000);
            assert!(room[..count].iter().all(|&byte| byte == b'x'));
            end += count as u64;
            log.free(end).unwrap();
            // Partially used pages remain.
            assert!(blocks(&log) <= 16, "{}", blocks(&log));
        }
        assert_eq!(log.read(end, &mut [0; 10]).unwrap(), 0);
        log.seal();
        assert!(writer.write_all(b"x").is_err());
    }

    #[test]
    fn its_writer_is_found() {
        let log = Log::create().unwrap();
        assert!(!log.is_written());
        let first = writer(&log);
        assert!(log.is_written() && log.is_written());
        let second = writer(&log);
        drop(first);
        assert!(log.is_written());
        drop(second);
        assert!(!log.is_written());
    }

    #[test]
    fn other_profiles_are_found() {
        let folder = std::env::temp_dir().join(format!("profile-log-{}", std::process::id()));
        let log = Log::create().unwrap();
        let mut own = writer(&log);
        own.write_all(b"sample.interval=20000\n").unwrap();
        assert!(!is_profiled());
        let mut file = File::create(&folder).unwrap();
        file.write_all(b"hello\n").unwrap();
        assert!(!is_profiled());
        let mut theirs = File::create(&folder).unwrap();
        theirs
            .write_all(b"GC profiling: sample.interval=20000\n")
            .unwrap();
        let found = is_profiled();
        drop((file, theirs));
        fs::remove_file(folder).unwrap();
        assert!(found && !is_profiled());
    }
}
