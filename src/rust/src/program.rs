//! Runs a program in the place of this process: it has the terminal, the input and the output, and it gets the signals
//! that are sent to this process. A script that `profile record` runs can thus be interrupted and ended as if nothing
//! were recording it.

use profile_core::error::{Error, Result};
use profile_core::message;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

/// The time between two looks at a running program.
const PAUSE: Duration = Duration::from_millis(20);

/// How a program ended.
pub struct Ended {
    /// Its exit status; if a signal has ended it, 128 and the number of the signal, as shells do.
    pub status: i32,
    pub signal: Option<i32>,
}

/// Runs a program with its arguments. `started` is called with its process id, and `ended` when it has ended, while the
/// system still knows the process. `goes_on` is called again and again while it runs, and returns false to end it.
pub fn run(
    command: &[&Path],
    started: impl FnOnce(i32),
    goes_on: Option<&dyn Fn() -> bool>,
    ended: impl FnOnce(),
) -> Result<Ended> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::Unsupported(message!("No program.")));
    };
    let failed = |source: io::Error| match source.kind() {
        // As fork() reports it.
        ErrorKind::WouldBlock => Error::Limit {
            what: "process",
            source,
        },
        _ => Error::Process(message!("Cannot run `{}`: {source}.", program.display())),
    };
    let start = || {
        let child = Command::new(program).args(arguments).spawn()?;
        started(i32::try_from(child.id()).unwrap_or_default());
        Ok(child)
    };
    let wait = |child: &mut Child| {
        if let Some(goes_on) = goes_on {
            while !has_ended(child, false) {
                if !goes_on() {
                    child.kill()?;
                    break;
                }
                thread::sleep(PAUSE);
            }
        }
        has_ended(child, true);
        ended();
        child.wait()
    };
    signals::passing_on(start, wait)
        .map(how_it_ended)
        .map_err(failed)
}

/// Whether a program has ended, which this waits for if it `waits`. The program's status remains to be asked for.
#[cfg(target_os = "linux")]
fn has_ended(child: &mut Child, waits: bool) -> bool {
    let how = if waits { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the struct consists of integers, and the system fills it. Its process id is valid for this call.
        let (waited, pid) = unsafe {
            let mut about: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOWAIT | how;
            let waited = libc::waitid(libc::P_PID, child.id(), &raw mut about, options);
            (waited, about.si_pid())
        };
        if waited == 0 {
            return pid != 0;
        }
        // Any other error is that of asking for the status.
        if io::Error::last_os_error().kind() != ErrorKind::Interrupted {
            return true;
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn has_ended(child: &mut Child, waits: bool) -> bool {
    if waits {
        child.wait().is_ok()
    } else {
        !matches!(child.try_wait(), Ok(None))
    }
}

/// Makes this process independent of the terminal, so that Ctrl-C there does not reach it.
pub fn leave_terminal() {
    #[cfg(unix)]
    // SAFETY: it has no preconditions, and fails if this process leads a group, which does not matter.
    unsafe {
        libc::setsid();
    }
}

#[cfg(unix)]
fn how_it_ended(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal();
    let by_signal = signal.map(|signal| 128 + signal);
    Ended {
        status: status.code().or(by_signal).unwrap_or(1),
        signal,
    }
}

#[cfg(not(unix))]
fn how_it_ended(status: ExitStatus) -> Ended {
    Ended {
        status: status.code().unwrap_or(1),
        signal: None,
    }
}

#[cfg(unix)]
mod signals {
    use std::io;
    use std::mem::zeroed;
    use std::process::{Child, ExitStatus};
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicI32, Ordering};

    const PASSED_ON: [libc::c_int; 6] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ];

    /// `SI_USER`: a process has sent the signal. Those of the terminal, such as Ctrl-C, also reach the program.
    const SENT: libc::c_int = if cfg!(any(target_vendor = "apple", target_os = "freebsd")) {
        0x10001
    } else {
        0
    };

    /// The program's process id, 0 if it does not run.
    static PROGRAM: AtomicI32 = AtomicI32::new(0);
    /// A signal that came before the program was running, 0 for none.
    static EARLY: AtomicI32 = AtomicI32::new(0);

    /// Starts a program and waits for its end. Meanwhile it gets the signals that this process gets.
    pub fn passing_on(
        start: impl FnOnce() -> io::Result<Child>,
        wait: impl FnOnce(&mut Child) -> io::Result<ExitStatus>,
    ) -> io::Result<ExitStatus> {
        EARLY.store(0, Ordering::SeqCst);
        let handlers = Handlers::install();
        let mut child = start()?;
        PROGRAM.store(
            i32::try_from(child.id()).unwrap_or_default(),
            Ordering::SeqCst,
        );
        let early = EARLY.swap(0, Ordering::SeqCst);
        if early != 0 {
            send(early);
        }
        let status = wait(&mut child);
        // The system does not give its number to another process so soon that a signal could reach that one.
        PROGRAM.store(0, Ordering::SeqCst);
        drop(handlers);
        status
    }

    fn send(signal: libc::c_int) {
        // SAFETY: a child of this process.
        unsafe { libc::kill(PROGRAM.load(Ordering::SeqCst), signal) };
    }

    extern "C" fn pass_on(signal: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the system passes a struct.
        let code = unsafe { (*about).si_code };
        if code != SENT {
            return;
        }
        if PROGRAM.load(Ordering::SeqCst) == 0 {
            EARLY.store(signal, Ordering::SeqCst);
        } else {
            send(signal);
        }
    }

    /// The handlers that were there before; they are installed again at the end.
    struct Handlers([libc::sigaction; PASSED_ON.len()]);

    impl Handlers {
        fn install() -> Handlers {
            // SAFETY: structs of integers and pointers, for which zeros are valid.
            let (mut new, mut old): (libc::sigaction, Handlers) = unsafe { (zeroed(), zeroed()) };
            new.sa_sigaction = pass_on as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            for (signal, old) in PASSED_ON.iter().zip(&mut old.0) {
                // SAFETY: valid structs; the handler only reads and writes atomic variables and calls kill().
                unsafe { libc::sigaction(*signal, &raw const new, old) };
            }
            old
        }
    }

    impl Drop for Handlers {
        fn drop(&mut self) {
            for (signal, old) in PASSED_ON.iter().zip(&self.0) {
                // SAFETY: the handlers of before.
                unsafe { libc::sigaction(*signal, old, null_mut()) };
            }
        }
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;
    use std::process::{Child, ExitStatus};

    /// Windows has no signals; Ctrl-C reaches all processes of a console.
    pub fn passing_on(
        start: impl FnOnce() -> io::Result<Child>,
        wait: impl FnOnce(&mut Child) -> io::Result<ExitStatus>,
    ) -> io::Result<ExitStatus> {
        wait(&mut start()?)
    }
}
