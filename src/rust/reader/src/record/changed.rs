//! Processes that execute another program while they are recorded: their source ends then. If they execute R, that is
//! recorded as another source.
//!
//! Every program is started by a fork, which executes it at once. Such a fork is no worker, although it has a copy of R and
//! may have been met at a tick: it is a source only if it has worked. If it has ended before the program was seen, only its
//! short life shows what it was.

use crate::process::{Process, STARTING};
use crate::record::role::Role;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::time::{Duration, Instant};

/// A fork that executes a program has worked before if it has computed, or lived, for as long as this.
const LEAST_COMPUTED: Duration = Duration::from_millis(20);
const LEAST_LIVED: Duration = Duration::from_secs(1);
/// A fork without samples that has ended has worked if it has lived for as long as this.
const BRIEF: Duration = Duration::from_millis(100);

/// What a process has done until it executed a program, or ended.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub role: Role,
    /// Whether it was seen to execute a program.
    pub has_left: bool,
    /// The number of its samples.
    pub samples: usize,
    /// The time for which it has computed, by its ticks, and for which it was recorded.
    pub computed: Duration,
    pub lived: Duration,
}

impl Done {
    /// Whether that was only the start of the program.
    pub fn is_start(self) -> bool {
        match self.role {
            Role::Named(_) => false,
            Role::Fork(_) if self.has_left => {
                self.computed < LEAST_COMPUTED && self.lived < LEAST_LIVED
            }
            Role::Fork(_) => self.samples == 0 && self.lived < BRIEF,
            _ => self.has_left && self.samples == 0,
        }
    }
}

/// Processes that the user has named, which are recorded again if they execute R. Others are found by what they belong to.
#[derive(Debug, Default)]
pub struct Named(Vec<(Process, Instant)>);

impl Named {
    /// Expects that this process executes R soon.
    pub fn expect(&mut self, process: Process, now: Instant) -> Result<()> {
        self.0.try_push((process, now))
    }

    /// Whether none is expected to execute R.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that run R now, except those that `attach` refuses, which may be just starting.
    pub fn attach(
        &mut self,
        now: Instant,
        mut attach: impl FnMut(Process) -> Result<bool>,
    ) -> Result<()> {
        let mut waiting = Vec::new();
        for (before, since) in self.0.drain(..) {
            let process = Process::find(before.pid).ok();
            let process = process.filter(|process| process.is_same_as(&before));
            let Some(process) = process else { continue };
            let is_r = !process.is_changing() && process != before && process.has_r();
            let is_late = now.saturating_duration_since(since).as_secs_f64() > STARTING;
            let is_attached = is_r && attach(process)?;
            if !is_attached && !is_late {
                waiting.try_push((before, since))?;
            }
        }
        self.0 = waiting;
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use crate::process::{EXECUTES, Entry, Scripted};

    #[test]
    fn a_fork_that_executes_a_program_at_once_is_its_start() {
        let done = |role, samples, computed, lived| Done {
            role,
            has_left: true,
            samples,
            computed: Duration::from_millis(computed),
            lived: Duration::from_millis(lived),
        };
        for (done, is_start) in [
            (done(Role::Fork(1), 0, 0, 3), true),
            // On a busy machine.
            (done(Role::Fork(1), 5, 10, 60), true),
            (done(Role::Fork(1), 20, 200, 200), false),
            (done(Role::Fork(1), 100, 0, 1000), false),
            (done(Role::Child(1), 0, 0, 5000), true),
            (done(Role::Child(1), 1, 10, 10), false),
            (done(Role::Named(1), 0, 0, 10), false),
        ] {
            assert_eq!(done.is_start(), is_start, "{done:?}");
        }
        // Nobody knows what these have executed, if anything.
        for (done, is_start) in [
            (done(Role::Fork(1), 0, 0, 30), true),
            (done(Role::Fork(1), 1, 10, 30), false),
            (done(Role::Fork(1), 0, 0, 100), false),
            (done(Role::Child(1), 0, 0, 30), false),
        ] {
            let ended = Done {
                has_left: false,
                ..done
            };
            assert_eq!(ended.is_start(), is_start, "{ended:?}");
        }
    }

    #[test]
    fn a_named_process_is_recorded_again_when_it_runs_r() {
        let system = Scripted::new("named");
        let run = |execution, command| {
            system.add(&Entry {
                pid: 7,
                started: 100,
                command,
                execution,
                ..Entry::default()
            });
        };
        run(1 << 20, "R");
        let now = Instant::now();
        let mut named = Named::default();
        named.expect(Process::find(7).unwrap(), now).unwrap();
        let attach = |named: &mut Named, seconds, is_possible| {
            let mut found = Vec::new();
            let attach = |process: Process| {
                found.push(process.pid);
                Ok(is_possible)
            };
            named
                .attach(now + Duration::from_secs(seconds), attach)
                .unwrap();
            (found, named.is_empty())
        };
        // It runs the same program, executes a shell, runs it, and R, which is starting.
        assert_eq!(attach(&mut named, 1, true), (vec![], false));
        run(EXECUTES, "R");
        assert_eq!(attach(&mut named, 1, true), (vec![], false));
        run(2 << 20, "sh");
        assert_eq!(attach(&mut named, 1, true), (vec![], false));
        run(3 << 20, "R");
        assert_eq!(attach(&mut named, 1, false), (vec![7], false));
        assert_eq!(attach(&mut named, 2, true), (vec![7], true));
        // Another program, for long; and another process with its number.
        for (execution, started, seconds) in [(4 << 20, 100, 6), (5 << 20, 200, 1)] {
            run(3 << 20, "R");
            named.expect(Process::find(7).unwrap(), now).unwrap();
            system.add(&Entry {
                pid: 7,
                started,
                command: if started == 100 { "sleep" } else { "R" },
                execution,
                ..Entry::default()
            });
            assert_eq!(attach(&mut named, seconds, true), (vec![], true));
        }
    }
}
