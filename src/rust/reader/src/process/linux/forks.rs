//! Forks of this process: which there were, and whom they permit to look into them.
//!
//! Most libraries that create a fork execute a program in it at once. Such a fork runs no R, but after it has ended, nothing
//! shows whether it did. So each fork is classified when it is created: a library that forks in order to go on with R, such
//! as the one of the package parallel, does not import the functions that execute programs.
//!
//! The security module Yama, by default on Ubuntu, lets a process look only into its descendants, and into those that have
//! permitted it to. The kernel forgets the permission neither when the process executes another program nor before it
//! ends, but a fork does not inherit it (`security/yama/yama_lsm.c`).

use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::{fs, mem};

/// The most forks whose IDs are known. Older ones are forgotten.
const MOST: usize = 1 << 14;
/// The most frames of the C stack between `fork()` and the handlers of this file.
const DEEPEST: usize = 32;
/// The functions that execute programs.
const EXECUTE: [&[u8]; 11] = [
    b"execl",
    b"execle",
    b"execlp",
    b"execv",
    b"execve",
    b"execveat",
    b"execvp",
    b"execvpe",
    b"fexecve",
    b"posix_spawn",
    b"posix_spawnp",
];

/// Forks that go on with R. This process shares the memory with its forks, and they with theirs.
struct Forks {
    count: AtomicU64,
    /// The ID of each, at its number modulo `MOST`.
    pids: [AtomicI32; MOST],
}

static FORKS: AtomicPtr<Forks> = AtomicPtr::new(ptr::null_mut());
/// Whether the next fork goes on with R.
static IS_R: AtomicBool = AtomicBool::new(true);
/// Where the library is loaded that has forked last, and whether it executes programs.
static LIBRARY: AtomicUsize = AtomicUsize::new(0);
static EXECUTES: AtomicBool = AtomicBool::new(false);
/// The process that forks permit to look into them, or 0.
static PERMITTED: AtomicI32 = AtomicI32::new(0);

fn forks() -> Option<&'static Forks> {
    // SAFETY: null, or memory that is never unmapped. All bits are valid values.
    unsafe { FORKS.load(Ordering::Acquire).as_ref() }
}

extern "C" fn before() {
    IS_R.store(!executes_programs(), Ordering::Relaxed);
}

extern "C" fn in_child() {
    permit(PERMITTED.load(Ordering::Relaxed));
    if let (Some(forks), true) = (forks(), IS_R.load(Ordering::Relaxed)) {
        let number = forks.count.fetch_add(1, Ordering::Relaxed);
        // SAFETY: it has no preconditions.
        let pid = unsafe { libc::getpid() };
        if let Some(place) = forks.pids.get(number as usize % MOST) {
            place.store(pid, Ordering::Release);
        }
    }
}

/// Whether the library that calls `fork()` executes programs.
fn executes_programs() -> bool {
    let Some((base, path)) = library_that_forks() else {
        return false;
    };
    if LIBRARY.load(Ordering::Relaxed) != base {
        let file = fs::read(Path::new(OsStr::from_bytes(path.to_bytes()))).unwrap_or_default();
        // Names of imported functions end with a 0, like all names in such a file.
        let executes = file
            .split(|&byte| byte == 0)
            .any(|name| EXECUTE.contains(&name));
        EXECUTES.store(executes, Ordering::Relaxed);
        LIBRARY.store(base, Ordering::Relaxed);
    }
    EXECUTES.load(Ordering::Relaxed)
}

/// The innermost library on the stack, except this one and the C library: where it is loaded, and its path.
fn library_that_forks() -> Option<(usize, &'static CStr)> {
    let mut frames = [ptr::null_mut(); DEEPEST];
    // SAFETY: it fills at most as many.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), DEEPEST as libc::c_int) };
    let own = library_at(before as *const ())?.0;
    let is_other = |found: &(usize, &CStr)| {
        let name = found.1.to_bytes().rsplit(|&byte| byte == b'/').next();
        let is_of_c = |name: &[u8]| name.starts_with(b"libc.") || name.starts_with(b"libpthread.");
        found.0 != own && !name.is_some_and(is_of_c)
    };
    let frames = frames.iter().take(usize::try_from(count).unwrap_or(0));
    frames
        .filter_map(|&frame| library_at(frame.cast_const().cast()))
        .find(is_other)
}

/// The library with this address.
fn library_at(address: *const ()) -> Option<(usize, &'static CStr)> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: it fills the struct unless it returns 0. The path is part of the loader's list of libraries, and the one
    // that is calling is not unloaded meanwhile.
    unsafe {
        let is_found = libc::dladdr(address.cast(), found.as_mut_ptr()) != 0;
        let found = found.assume_init();
        (is_found && !found.dli_fname.is_null())
            .then(|| (found.dli_fbase as usize, CStr::from_ptr(found.dli_fname)))
    }
}

fn permit(pid: i32) {
    if pid != 0 {
        // SAFETY: it only sets an attribute of this process, and may be called after fork(). Kernels without Yama refuse
        // it, and do not need it.
        unsafe {
            libc::prctl(
                libc::PR_SET_PTRACER,
                libc::c_ulong::from(pid.unsigned_abs()),
            )
        };
    }
}

/// The number of forks since the first call that go on with R: forks of this process, and their forks.
pub fn count_forks() -> u64 {
    register();
    forks().map_or(0, |forks| forks.count.load(Ordering::Relaxed))
}

/// Their process IDs, except for the first `count`, as far as they are known; `None` if forks are not noted here.
pub fn forked(count: u64) -> Result<Option<Vec<i32>>> {
    let Some(forks) = forks() else {
        return Ok(None);
    };
    let end = forks.count.load(Ordering::Relaxed);
    let mut pids = Vec::new();
    for number in count.max(end.saturating_sub(MOST as u64))..end {
        let place = forks.pids.get(number as usize % MOST);
        pids.try_extend(place.map(|pid| pid.load(Ordering::Acquire)).as_slice())?;
    }
    Ok(Some(pids))
}

/// Without memory for that, forks are neither noted nor readable.
fn register() {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        let mut frames = [ptr::null_mut(); 1];
        // SAFETY: the first call loads a library that the next ones use. The memory is as large as requested, aligned,
        // and filled with zeros. The handlers use no locks and allocate no memory in the child; the C library removes
        // them when the library that contains them is unloaded.
        unsafe {
            libc::backtrace(frames.as_mut_ptr(), 1);
            let memory = libc::mmap(
                ptr::null_mut(),
                mem::size_of::<Forks>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if memory != libc::MAP_FAILED {
                FORKS.store(memory.cast(), Ordering::Release);
            }
            libc::pthread_atfork(Some(before), None, Some(in_child));
        }
    });
}

/// Permits a process to look into this one, and into its forks from now on; 0 for none.
pub fn permit_process(pid: i32) {
    register();
    if pid == 0 {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, 0) };
    }
    permit(pid);
    PERMITTED.store(pid, Ordering::Relaxed);
}

/// Whether Yama lets this process look only into its descendants and where it is permitted.
pub fn needs_permission() -> bool {
    // SAFETY: it has no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    !is_root && scope.trim() == "1"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a fork, which ends at once.
    fn fork() -> i32 {
        // SAFETY: the child only ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: see above.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: a child of this process.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        child
    }

    #[test]
    fn forks_are_noted_unless_their_library_executes_programs() {
        let count = count_forks();
        // These tests are part of a program, which is the library in question. Other tests may create forks meanwhile.
        let (base, _) = library_at(before as *const ()).unwrap();
        assert_eq!(library_that_forks().map(|found| found.0 == base), None);
        let child = fork();
        assert!(forked(count).unwrap().unwrap().contains(&child));
    }

    #[test]
    fn libraries_that_execute_programs_import_functions_for_that() {
        let executes = |code: &[u8]| {
            code.split(|&byte| byte == 0)
                .any(|name| EXECUTE.contains(&name))
        };
        assert!(executes(b"\x7fELF\0fork\0execvp\0"));
        assert!(!executes(b"\x7fELF\0fork\0R_execClosure\0my_execvp\0"));
    }
}
