//! Stops, signals and ends of processes: shells that this process has started.

use super::super::super::proc::Process;
use super::super::{Held, Thread, Watched, clock_of_thread, is_on_processor};
use super::*;
use crate::process::computing::{Evidence, SystemCall};
use crate::recorded::states::{State, Stops};
use std::io::{BufRead, BufReader, Write};
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
    let pause = (0..600).find_map(|_| stopper.stop().ok()).unwrap();
    let registers = pause.registers().unwrap();
    assert_ne!(registers.counter(), 0);
    assert_ne!(registers.stack_pointer(), 0);
    pause
}

#[test]
fn a_process_is_stopped_until_the_pause_ends() {
    for script in [LOOP, SLEEP] {
        let shell = Shell::start(script);
        let mut stopper = Stopper::new(shell.pid());
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
    let mut stopper = Stopper::new(shell.pid());
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
        thread: pid,
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
    let mut stopper = Stopper::new(shell.pid());
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
        let _pause = stop(&mut Stopper::new(pid));
        sender.send(status(pid, "TracerPid:")).unwrap();
        panic!("as a test");
    })
    .join()
    .unwrap_err();
    assert_ne!(tracer.recv().unwrap(), Some(0));
    shell.wait_for(&['R', 'S']);
    assert_eq!(status(pid, "TracerPid:"), Some(0));
    // A pause that is never dropped, by a thread that ends.
    thread::spawn(move || std::mem::forget(stop(&mut Stopper::new(pid))))
        .join()
        .unwrap();
    shell.kill(libc::SIGUSR1);
    assert_eq!(shell.line(), "signal");
}

#[test]
fn a_child_that_ends_is_left_to_whom_waits_for_it() {
    let mut shell = Shell::start(SLEEP);
    let mut stopper = Stopper::new(shell.pid());
    drop(stop(&mut stopper));
    shell.input = None;
    // It ends, whether it is stopped or not.
    shell.output.read_line(&mut String::new()).unwrap();
    while stopper.stop().is_ok() {}
    shell.wait_for(&['Z']);
    assert_eq!(shell.child.wait().unwrap().code(), Some(7));
}

#[test]
fn a_process_that_is_traced_already_is_refused_with_the_name_of_the_tracer() {
    let shell = Shell::start(LOOP);
    let _pause = stop(&mut Stopper::new(shell.pid()));
    let error = Stopper::new(shell.pid()).check().unwrap_err();
    assert!(matches!(error, Error::Process(_)));
    let expected = format!("because process {} (", std::process::id());
    assert!(error.to_string().contains(&expected), "{error}");
    let error = Stopper::new(std::process::id() as i32).check().unwrap_err();
    assert!(error.to_string().contains("cannot stop itself"), "{error}");
}

#[test]
fn a_thread_that_sleeps_is_not_stopped_and_its_waking_is_noticed() {
    let mut shell = Shell::start(SLEEP);
    shell.wait_for(&['S']);
    let open = |shell: &Shell| {
        let process = Process::find(shell.pid()).unwrap();
        Thread::open(&process, Stops::IfItRuns).unwrap()
    };
    let mut thread = open(&shell);
    let held = thread.hold(State::Sleeping);
    assert!(matches!(held, Held::Asleep(_)), "{held:?}");
    assert!(thread.is_still(&held));
    shell.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    let begin = Instant::now();
    while thread.is_still(&held) {
        assert!(begin.elapsed() < Duration::from_secs(300));
        thread::sleep(Duration::from_millis(1));
    }
    // One that has woken up since its state was read is stopped.
    let shell = Shell::start(LOOP);
    let mut thread = open(&shell);
    let held = (0..600).find_map(|_| match thread.hold(State::Sleeping) {
        Held::Stopped(pause) => Some(pause),
        Held::Free(_) => None,
        held => panic!("{held:?}"),
    });
    assert_eq!(shell.state(), 't');
    drop(held);
}

#[test]
fn a_stopped_thread_shows_whether_it_waits_in_a_system_call() {
    // It reads from a pipe.
    let shell = Shell::start(SLEEP);
    shell.wait_for(&['S']);
    let process = Process::find(shell.pid()).unwrap();
    let mut thread = Thread::open(&process, Stops::Always).unwrap();
    // It may run once more after it was seen to sleep, which would be a processor at the tick.
    while thread.activity().unwrap().state != State::Sleeping {}
    let held = thread.hold(State::Running);
    let waits = Evidence {
        call: SystemCall::Waits,
        on_processor: Some(false),
    };
    assert_eq!(thread.evidence(&held), waits);
    drop(held);
    // It may be stopped at any place, which sooner or later is none in the kernel.
    let shell = Shell::start(LOOP);
    let mut stopper = Stopper::new(shell.pid());
    let begin = Instant::now();
    while stop(&mut stopper).call() != SystemCall::None {
        assert!(begin.elapsed() < Duration::from_secs(300));
    }
}

#[test]
fn a_thread_of_this_process_is_on_a_processor_while_it_computes() {
    // SAFETY: it has no preconditions.
    let id = || unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    assert!(is_on_processor(clock_of_thread(id())));
    let (tell, told) = channel();
    let (end, ended) = channel::<()>();
    let other = thread::spawn(move || {
        tell.send(id()).unwrap();
        // Waits until the sender is dropped.
        ended.recv().unwrap_err();
    });
    let clock = clock_of_thread(told.recv().unwrap());
    let begin = Instant::now();
    while is_on_processor(clock) {
        assert!(begin.elapsed() < Duration::from_secs(300));
    }
    drop(end);
    other.join().unwrap();
}
