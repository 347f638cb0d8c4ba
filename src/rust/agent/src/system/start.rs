//! Starts a program that inherits nothing from this process: no signal mask, no file descriptors, no terminal.
//!
//! The standard library would use `fork()`, which runs the fork handlers of libraries. Run in this thread while R
//! computes, those of BLAS may deadlock. `posix_spawn()` runs no handlers, and its cost does not depend on the memory
//! of the process.

use profile_core::limits::memory::TryGrow;
use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::io::{self, ErrorKind};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fs, ptr};

/// Starts a program with arguments and an environment, whose strings are each terminated by NUL. The program is the
/// first argument. Its output replaces the contents of the file `log`. Returns the process id, for [`has_ended()`].
pub fn start(arguments: &[u8], environment: &[u8], log: &Path) -> io::Result<c_int> {
    let log = CString::new(log.as_os_str().as_bytes())?;
    let arguments = pointers(arguments)?;
    let environment = pointers(environment)?;
    let program = arguments.first().copied().unwrap_or(ptr::null_mut());
    if program.is_null() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let files = Files::new(&log)?;
    let attributes = Attributes::new()?;
    let mut child = 0;
    // SAFETY: the strings end with NUL, the lists with a null pointer, and all of them live until the call returns.
    done(unsafe {
        libc::posix_spawn(
            &raw mut child,
            program,
            &raw const files.0,
            &raw const attributes.0,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    })?;
    Ok(child)
}

/// Whether a child process has ended. Must not be called again after it has returned `true`.
pub fn has_ended(child: c_int) -> bool {
    // SAFETY: the status is not requested, so nothing is written.
    unsafe { libc::waitpid(child, ptr::null_mut(), libc::WNOHANG) != 0 }
}

/// An array for C: pointers to the strings, followed by a null pointer.
fn pointers(texts: &[u8]) -> io::Result<Vec<*mut c_char>> {
    let mut pointers = Vec::new();
    let mut push = |pointer| {
        let pushed = pointers.try_push(pointer);
        pushed.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))
    };
    for text in texts.split_inclusive(|&byte| byte == 0) {
        if let Ok(text) = CStr::from_bytes_with_nul(text) {
            push(text.as_ptr().cast_mut())?;
        }
    }
    push(ptr::null_mut())?;
    Ok(pointers)
}

/// The file actions of the new process. All file descriptors of R are closed explicitly, since they are not closed by
/// default: a socket of a service would stay open as long as the program runs.
struct Files(libc::posix_spawn_file_actions_t);

impl Files {
    fn new(log: &CStr) -> io::Result<Files> {
        // SAFETY: it is initialized before it is used.
        let mut files = Files(unsafe { mem::zeroed() });
        let actions = &raw mut files.0;
        let write = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
        let open = |number, path: &CStr, flags| {
            // SAFETY: the actions are initialized before the first call, and the path is copied.
            done(unsafe {
                libc::posix_spawn_file_actions_addopen(actions, number, path.as_ptr(), flags, 0o600)
            })
        };
        // SAFETY: it fills the actions.
        done(unsafe { libc::posix_spawn_file_actions_init(actions) })?;
        open(0, c"/dev/null", libc::O_RDONLY)?;
        open(1, log, write)?;
        // SAFETY: the actions are initialized.
        done(unsafe { libc::posix_spawn_file_actions_adddup2(actions, 1, 2) })?;
        for entry in fs::read_dir("/proc/self/fd")? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse::<c_int>().ok());
            if let Some(number) = number.filter(|&number| number > 2) {
                // A descriptor that is closed in the meantime is not an error.
                // SAFETY: the actions are initialized.
                done(unsafe { libc::posix_spawn_file_actions_addclose(actions, number) })?;
            }
        }
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: the actions are initialized, or zero, which is an empty list.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// The attributes of the new process: a separate session, so that Ctrl-C in the terminal does not reach it, and
/// default signal handling, since all signals are blocked in the agent's thread.
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Attributes> {
        // SAFETY: they are initialized before they are used.
        let mut attributes = Attributes(unsafe { mem::zeroed() });
        let own = &raw mut attributes.0;
        let flags = libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        let flags = flags as c_short | libc::POSIX_SPAWN_SETSID;
        // SAFETY: the attributes and the sets are initialized before they are used.
        unsafe {
            done(libc::posix_spawnattr_init(own))?;
            let mut signals: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            done(libc::posix_spawnattr_setsigmask(own, &raw const signals))?;
            libc::sigfillset(&raw mut signals);
            done(libc::posix_spawnattr_setsigdefault(own, &raw const signals))?;
            done(libc::posix_spawnattr_setflags(own, flags))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the attributes are initialized; glibc's function does nothing.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

/// Converts the error code that a function of the `posix_spawn()` family returns.
fn done(code: c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn output(script: &str) -> String {
        let log = std::env::temp_dir().join(format!("profile-start-{}", std::process::id()));
        let command = format!("/bin/sh\0-c\0{script}\0");
        let child = start(command.as_bytes(), b"A=1 2\0PATH=/usr/bin:/bin\0", &log).unwrap();
        while !has_ended(child) {
            thread::yield_now();
        }
        let text = fs::read_to_string(&log).unwrap();
        fs::remove_file(log).unwrap();
        text
    }

    #[test]
    fn a_program_has_nothing_of_this_process() {
        // The script prints standard input, which is empty; the environment; the open files, which must be its own
        // only; the blocked and ignored signals, which must be none; and whether it has its own session.
        let script = "cat; echo \"$A\"; ls /proc/$$/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status; \
                      [ \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ ] && echo own";
        let text = output(script);
        let lines = text.lines().collect::<Vec<_>>();
        // SAFETY: the descriptor is closed at the end of the test. Without the file actions it would be inherited.
        let open = unsafe { libc::dup(2) };
        assert!(open > 2);
        let again = output(script);
        // SAFETY: it was opened above.
        unsafe { libc::close(open) };
        assert_eq!(lines.first(), Some(&"1 2"), "{text}");
        assert_eq!(text.lines().count(), again.lines().count(), "{text}{again}");
        assert_eq!(lines.last(), Some(&"own"), "{text}");
        for name in ["SigBlk:", "SigIgn:"] {
            let set = lines.iter().find_map(|line| line.strip_prefix(name));
            let set = u64::from_str_radix(set.unwrap().trim(), 16).unwrap();
            // Signals 32 and 33 belong to glibc.
            assert_eq!(set & !(3 << 31), 0, "{text}");
        }
        let files = lines
            .iter()
            .filter(|line| line.parse::<u8>().is_ok_and(|n| n < 3));
        assert_eq!(files.count(), 3, "{text}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let log = std::env::temp_dir().join(format!("profile-start-none-{}", std::process::id()));
        assert!(start(b"/no/such/program\0", b"", &log).is_err());
        assert!(start(b"", b"", &log).is_err());
        let _ = fs::remove_file(log);
    }
}
