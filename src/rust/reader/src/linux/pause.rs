//! Stops a thread of another process for a moment, using `ptrace()`.
//!
//! The thread is seized and interrupted, and detached when [`Pause`] is dropped, also after an error or a panic. The
//! kernel detaches it if this process is killed meanwhile, and when the thread that has stopped it ends. Therefore
//! processes are stopped by a thread that ends with the recording, see [`crate::apart`].
//!
//! A signal that arrives during the pause is passed on. A process that was already stopped by a signal remains
//! stopped. System calls are restarted by the kernel, as after `SIGSTOP` and `SIGCONT`.

use super::permission::not_permitted;
use super::proc::gone;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_unwind::Registers;
use std::fs;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait until the thread has stopped. It does not stop while it waits for a device.
const LONGEST: Duration = Duration::from_millis(500);
/// How long a thread that runs on another CPU takes to stop.
const SOON: Duration = Duration::from_micros(20);
/// The maximum pause between two checks.
const STEP: Duration = Duration::from_micros(500);

/// Stops a thread, repeatedly.
#[derive(Debug)]
pub struct Stopper {
    pid: libc::pid_t,
    /// Whether the thread was interrupted and has not stopped yet.
    is_pending: bool,
}

/// The first thread of a process, while it is stopped.
#[derive(Debug)]
pub struct Pause {
    pid: libc::pid_t,
    /// A signal that it is about to receive, or 0.
    signal: libc::c_int,
    pub registers: Registers,
}

/// Why a thread was not stopped.
enum Failure {
    Ended,
    Refused,
    /// It may stop later.
    Late,
}

impl Stopper {
    /// Fails with the reason if the process may not be stopped.
    pub fn new(pid: i32) -> Result<Stopper> {
        let mut stopper = Stopper {
            pid,
            is_pending: false,
        };
        match stopper.attempt() {
            Ok(_) | Err(Failure::Late) => Ok(stopper),
            Err(Failure::Ended) => Err(gone(pid)),
            Err(Failure::Refused) => Err(refused(pid)),
        }
    }

    /// Stops the thread. `None` if that is not possible now: it has ended, is traced by another process, or waits
    /// for a device.
    pub fn stop(&mut self) -> Option<Pause> {
        self.attempt().ok()
    }

    fn attempt(&mut self) -> std::result::Result<Pause, Failure> {
        if !self.is_pending {
            request(libc::PTRACE_SEIZE, self.pid, 0).map_err(|errno| match errno {
                libc::ESRCH => Failure::Ended,
                _ => Failure::Refused,
            })?;
            self.is_pending = true;
            // Fails only if it has ended, which is noticed below.
            let _ = request(libc::PTRACE_INTERRUPT, self.pid, 0);
        }
        let status = self.wait()?;
        self.is_pending = false;
        // The status contains the signal and, in the next byte, the kind of stop. There is no signal to pass on at
        // the stop that was requested, or if the process was already stopped.
        let mut pause = Pause {
            pid: self.pid,
            signal: match status >> 8 {
                0 => status & 0x7f,
                _ => 0,
            },
            registers: Registers::new([0; 17]),
        };
        pause.registers = pause.read_registers().ok_or(Failure::Ended)?;
        Ok(pause)
    }

    /// Waits until the thread stops.
    fn wait(&mut self) -> std::result::Result<libc::c_int, Failure> {
        let begin = Instant::now();
        let mut step = Duration::from_micros(10);
        loop {
            // SAFETY: the kernel fills the struct. Nothing is reaped, since the process may be a child of this one
            // that other code waits for.
            let (result, info) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let flags =
                    libc::WSTOPPED | libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
                let result = libc::waitid(libc::P_PID, self.pid as libc::id_t, &mut info, flags);
                (result, info)
            };
            // SAFETY: `waitid()` has filled these fields, or left them 0.
            let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
            match (result, info.si_code) {
                (0, libc::CLD_TRAPPED | libc::CLD_STOPPED) if found != 0 => return Ok(status),
                (0, _) if found == 0 => {}
                (0, _) => {
                    self.reap();
                    return Err(Failure::Ended);
                }
                // The thread is no longer traced.
                _ => return Err(Failure::Ended),
            }
            if begin.elapsed() > LONGEST {
                return Err(Failure::Late);
            }
            if begin.elapsed() < SOON {
                std::hint::spin_loop();
                continue;
            }
            thread::sleep(step);
            step = (step * 2).min(STEP);
        }
    }

    /// Reaps a process that has ended, so that its parent is notified. This is not needed if this process is the
    /// parent.
    fn reap(&mut self) {
        self.is_pending = false;
        if parent(self.pid) != Some(std::process::id()) {
            // SAFETY: the process has ended. Its parent is notified when this process has waited for it.
            unsafe { libc::waitpid(self.pid, ptr::null_mut(), libc::WNOHANG | libc::__WALL) };
        }
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        if self.is_pending {
            // If the thread still has not stopped, it is detached when this thread ends.
            drop(self.attempt());
        }
    }
}

impl Pause {
    fn read_registers(&self) -> Option<Registers> {
        // SAFETY: the struct consists of integers.
        let mut found: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let done = request(
            libc::PTRACE_GETREGS,
            self.pid,
            (&raw mut found) as libc::c_ulong,
        );
        done.ok()?;
        Some(Registers::new([
            found.rax, found.rdx, found.rcx, found.rbx, found.rsi, found.rdi, found.rbp, found.rsp,
            found.r8, found.r9, found.r10, found.r11, found.r12, found.r13, found.r14, found.r15,
            found.rip,
        ]))
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        // Fails if the process was killed meanwhile.
        let _ = request(libc::PTRACE_DETACH, self.pid, self.signal as libc::c_ulong);
    }
}

/// Prepares this thread for stopping processes. It receives no signals, since R's handlers run in R's thread. Short
/// pauses do not last longer than requested, since a process may be stopped meanwhile.
pub fn prepare_thread() {
    // SAFETY: the set is filled before it is used.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, ptr::null_mut());
    }
}

/// Calls `ptrace()`. An error is the value of `errno`.
fn request(
    request: libc::c_uint,
    pid: libc::pid_t,
    data: libc::c_ulong,
) -> std::result::Result<(), i32> {
    // SAFETY: these requests take numbers, and `PTRACE_GETREGS` fills the struct whose address it gets.
    match unsafe { libc::ptrace(request, pid, ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EPERM)),
        _ => Ok(()),
    }
}

/// The number after a name in `/proc/PID/status`.
fn status(pid: i32, name: &str) -> Option<u32> {
    let text = fs::read_to_string(message!("/proc/{pid}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().parse().ok()
}

fn parent(pid: i32) -> Option<u32> {
    status(pid, "PPid:")
}

fn refused(pid: i32) -> Error {
    if u32::try_from(pid) == Ok(std::process::id()) {
        return Error::Process(message!(
            "A process cannot stop itself: `pause = TRUE` is for other processes."
        ));
    }
    match status(pid, "TracerPid:") {
        Some(tracer) if tracer > 0 => {
            // `TracerPid` is the ID of a thread.
            let tracer = i32::try_from(tracer).ok();
            let tracer = tracer
                .and_then(|thread| status(thread, "Tgid:"))
                .unwrap_or(0);
            let name = fs::read_to_string(message!("/proc/{tracer}/comm")).unwrap_or_default();
            let name = name.trim();
            Error::Process(message!(
                "Process {pid} cannot be stopped, because process {tracer} ({name}) traces it, as debuggers do."
            ))
        }
        _ => not_permitted(pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::sync::mpsc::channel;

    /// A shell that runs a script. The tests wait for what it writes, and for states of the process.
    struct Shell {
        child: Child,
        input: Option<ChildStdin>,
        output: BufReader<ChildStdout>,
    }

    impl Shell {
        fn start(script: &str) -> Shell {
            let mut child = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let input = child.stdin.take();
            let output = BufReader::new(child.stdout.take().unwrap());
            let mut shell = Shell {
                child,
                input,
                output,
            };
            assert_eq!(shell.line(), "ready");
            shell
        }

        fn line(&mut self) -> String {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        }

        fn pid(&self) -> i32 {
            self.child.id() as i32
        }

        fn kill(&self, signal: libc::c_int) {
            // SAFETY: it has no preconditions.
            assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
        }

        fn state(&self) -> char {
            let text = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
            text.rsplit(") ").next().unwrap().chars().next().unwrap()
        }

        /// Waits until the state is one of these. The limit is for a state that never comes.
        fn wait_for(&self, states: &[char]) {
            let begin = Instant::now();
            while !states.contains(&self.state()) {
                assert!(
                    begin.elapsed() < Duration::from_secs(300),
                    "{}",
                    self.state()
                );
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }

    /// Runs.
    const LOOP: &str = "trap 'echo signal' USR1; echo ready; while :; do :; done";
    /// Sleeps until its input ends.
    const SLEEP: &str = "trap 'echo signal' USR1; echo ready; while read x; do :; done; exit 7";

    /// Stops a process. A busy machine may take longer than the stopper waits.
    fn stop(stopper: &mut Stopper) -> Pause {
        let pause = (0..600).find_map(|_| stopper.stop()).unwrap();
        assert_ne!(pause.registers.counter(), 0);
        assert_ne!(pause.registers.stack_pointer(), 0);
        pause
    }

    #[test]
    fn a_process_is_stopped_until_the_pause_ends() {
        for script in [LOOP, SLEEP] {
            let shell = Shell::start(script);
            let mut stopper = Stopper::new(shell.pid()).unwrap();
            for _ in 0..20 {
                let pause = stop(&mut stopper);
                assert_eq!(shell.state(), 't');
                drop(pause);
                assert_eq!(status(shell.pid(), "TracerPid:"), Some(0));
            }
            shell.wait_for(&['R', 'S']);
        }
    }

    #[test]
    fn signals_arrive_during_a_pause_and_before_one() {
        let mut shell = Shell::start(LOOP);
        let mut stopper = Stopper::new(shell.pid()).unwrap();
        for _ in 0..20 {
            let pause = stop(&mut stopper);
            shell.kill(libc::SIGUSR1);
            drop(pause);
            assert_eq!(shell.line(), "signal");
            shell.kill(libc::SIGUSR1);
            drop(stop(&mut stopper));
            assert_eq!(shell.line(), "signal");
        }
    }

    #[test]
    fn a_signal_that_was_about_to_arrive_is_passed_on() {
        // The process stops for the signal, before the requested stop.
        let mut shell = Shell::start(LOOP);
        let pid = shell.pid();
        request(libc::PTRACE_SEIZE, pid, 0).unwrap();
        shell.kill(libc::SIGUSR1);
        shell.wait_for(&['t']);
        let mut stopper = Stopper {
            pid,
            is_pending: true,
        };
        let pause = stop(&mut stopper);
        assert_eq!(pause.signal, libc::SIGUSR1);
        drop(pause);
        assert_eq!(shell.line(), "signal");
    }

    #[test]
    fn a_process_that_was_stopped_stays_so() {
        let shell = Shell::start(LOOP);
        shell.kill(libc::SIGSTOP);
        shell.wait_for(&['T']);
        let mut stopper = Stopper::new(shell.pid()).unwrap();
        for _ in 0..20 {
            let pause = stop(&mut stopper);
            assert_eq!(pause.signal, 0);
            drop(pause);
            shell.wait_for(&['T']);
        }
        shell.kill(libc::SIGCONT);
        shell.wait_for(&['R', 'S']);
    }

    #[test]
    fn it_runs_again_after_a_panic_and_when_the_thread_ends() {
        let mut shell = Shell::start(LOOP);
        let pid = shell.pid();
        let (sender, tracer) = channel();
        thread::spawn(move || {
            let _pause = stop(&mut Stopper::new(pid).unwrap());
            sender.send(status(pid, "TracerPid:")).unwrap();
            panic!("as a test");
        })
        .join()
        .unwrap_err();
        assert_ne!(tracer.recv().unwrap(), Some(0));
        shell.wait_for(&['R', 'S']);
        assert_eq!(status(pid, "TracerPid:"), Some(0));
        // A pause that is never dropped, by a thread that ends.
        thread::spawn(move || std::mem::forget(stop(&mut Stopper::new(pid).unwrap())))
            .join()
            .unwrap();
        shell.kill(libc::SIGUSR1);
        assert_eq!(shell.line(), "signal");
    }

    #[test]
    fn a_child_that_ends_is_left_to_whom_waits_for_it() {
        let mut shell = Shell::start(SLEEP);
        let mut stopper = Stopper::new(shell.pid()).unwrap();
        drop(stop(&mut stopper));
        shell.input = None;
        // It ends, whether it is stopped or not.
        shell.output.read_line(&mut String::new()).unwrap();
        while stopper.stop().is_some() {}
        shell.wait_for(&['Z']);
        assert_eq!(shell.child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn a_process_that_is_traced_already_is_refused_with_the_name_of_the_tracer() {
        let shell = Shell::start(LOOP);
        let _pause = stop(&mut Stopper::new(shell.pid()).unwrap());
        let error = Stopper::new(shell.pid()).unwrap_err();
        assert!(matches!(error, Error::Process(_)));
        let expected = format!("because process {} (", std::process::id());
        assert!(error.to_string().contains(&expected), "{error}");
        let error = Stopper::new(std::process::id() as i32).unwrap_err();
        assert!(error.to_string().contains("cannot stop itself"), "{error}");
    }
}
