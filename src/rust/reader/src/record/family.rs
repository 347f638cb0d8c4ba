//! The processes that belong to a recording: those that the recorded ones started, and those that work for them.

use crate::process::{Process, STARTING, Sign, Workers, last_created};
use crate::record::role::{self, Role};
use crate::recorded::result::Members;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, TryGrow};
use std::time::{Duration, Instant};

/// The time between two searches if no process was created: one that is known may have executed R.
const PAUSE: Duration = Duration::from_millis(500);
/// The most processes that are recorded without being named.
const MOST: usize = 256;

/// A process, which comes first, these workers of it, and all that belong to them now.
pub fn members(pid: i32, workers: &[i32]) -> Result<Members> {
    let mut found = Vec::new();
    found.try_push((Process::find(pid)?, Role::Named(pid)))?;
    for &worker in workers {
        let process = Process::find(worker)?;
        if found.iter().all(|(other, _)| *other != process) {
            found.try_push((process, Role::Worker(pid)))?;
        }
    }
    // A worker may have workers.
    let left_out = loop {
        let mut family = Family::default();
        for (process, role) in &found {
            family.admit(process.clone(), *role)?;
        }
        let known = found.len();
        let processes = found.iter().map(|(process, _)| process.clone()).try_vec()?;
        for (process, role) in family.find(processes, Instant::now())? {
            if process.has_r() && !family.is_too_large_for(&process, role)? {
                family.admit(process.clone(), role)?;
                found.try_push((process, role))?;
            }
        }
        if found.len() == known {
            break family.left_out.len();
        }
    };
    let roles = found.iter().map(|(_, role)| *role).try_vec()?;
    Ok(Members {
        pids: found.iter().map(|(process, _)| process.pid).try_vec()?,
        roles: role::in_words(&roles)?,
        left_out,
    })
}

/// The search for processes that belong to others.
#[derive(Debug, Default)]
pub struct Family {
    /// The process that asked for the recording, if it records itself.
    master: Option<Process>,
    /// The environment variable of processes that were started during the recording, `NAME=VALUE`.
    variable: Option<String>,
    /// Processes that need no further examination: they do not run R, or are already being recorded.
    known: Vec<Process>,
    /// Processes that did not run R, and since when.
    passed_over: Vec<(Process, Instant)>,
    workers: Workers,
    /// Processes that give tasks to workers, and for which process each does.
    dispatchers: Vec<(i32, i32)>,
    /// The last process of the system at the last search, and when that was.
    last: Option<i32>,
    searched: Option<Instant>,
    /// Whether this search found anything. If it was not recorded, it may become R.
    has_found: bool,
    /// The number of processes that are recorded without being named.
    members: usize,
    /// The processes that are not recorded, since there are too many.
    pub left_out: Vec<(i32, Role)>,
    /// R processes into which this one may not look, and why.
    pub refused: Vec<(i32, Role, Error)>,
}

impl Family {
    /// The search for processes that belong to one that asked for it, and records itself.
    pub fn of(master: Process, variable: String) -> Family {
        Family {
            master: Some(master),
            variable: Some(variable),
            ..Family::default()
        }
    }

    /// Takes note that a process is recorded.
    pub fn admit(&mut self, process: Process, role: Role) -> Result<()> {
        self.members += usize::from(role.master().is_some());
        if let Role::Dispatcher(master) = role {
            self.dispatchers.try_push((process.pid, master))?;
        }
        self.known.try_push(process)
    }

    /// Takes note that a process does not run R. It is examined again as long as R may just be starting.
    pub fn pass_over(&mut self, process: Process, now: Instant) -> Result<()> {
        let age = |since| now.saturating_duration_since(since).as_secs_f64();
        match self.passed_over.iter().find(|(one, _)| *one == process) {
            Some((_, since)) if age(*since) >= STARTING => return self.known.try_push(process),
            Some(_) => {}
            None => {
                // The others have ended, or are known.
                let is_recent = |since| age(since) < 2.0 * STARTING;
                self.passed_over.retain(|(_, since)| is_recent(*since));
                self.passed_over.try_push((process.clone(), now))?;
            }
        }
        self.workers.forget(process.pid);
        Ok(())
    }

    /// Takes note that a process that runs R cannot be recorded, because this is not permitted, or because it is starting or
    /// ending.
    pub fn reject(&mut self, process: Process, role: Role, why: Error, now: Instant) -> Result<()> {
        if process.may_be_read() || !process.runs_a_program() {
            return self.pass_over(process, now);
        }
        self.refused.try_push((process.pid, role, why))?;
        self.known.try_push(process)
    }

    /// Whether no further process may be recorded. This is then noted, if it runs R.
    pub fn is_too_large_for(&mut self, process: &Process, role: Role) -> Result<bool> {
        if self.members < MOST {
            return Ok(false);
        }
        if process.has_r() {
            self.left_out.try_push((process.pid, role))?;
            self.known.try_push(process.clone())?;
        }
        Ok(true)
    }

    /// Takes note that a process that is recorded has executed another program, which may be R.
    pub fn forget(&mut self, pid: i32) {
        self.workers.forget(pid);
        self.has_found = true;
    }

    /// Processes that belong to these, or to the one that asked for the recording, and are not known. They may not run R.
    pub fn find(&mut self, recorded: Vec<Process>, now: Instant) -> Result<Vec<(Process, Role)>> {
        let last = last_created();
        let is_new = last.is_none() || last != self.last;
        let is_recent = |searched| now.saturating_duration_since(searched) < PAUSE;
        let is_due = !self.searched.is_some_and(is_recent);
        if !is_new && !self.has_found && !is_due && !self.workers.are_due() {
            return Ok(Vec::new());
        }
        let mut is_changing = false;
        let mut all = recorded;
        if let Some(master) = &self.master {
            all.try_push(master.clone())?;
        }
        let mut found = Vec::new();
        for row in 0..all.len() {
            is_changing |= self.add_children_of(row, &mut all, &mut found)?;
        }
        for (process, sign) in self.workers.find(&all, self.variable.as_deref())? {
            let role = match (sign, &self.master) {
                (Sign::Address(pid), _) => {
                    let mut dispatchers = self.dispatchers.iter();
                    let given = dispatchers.find(|(dispatcher, _)| *dispatcher == pid);
                    let master = given.map_or(pid, |(_, master)| *master);
                    let named = Role::on_command_line(&process, master)?;
                    named.unwrap_or(Role::Worker(master))
                }
                (Sign::Variable, Some(master)) => Role::of_program(&process, master.pid)?,
                (Sign::Variable, None) => continue,
            };
            self.add(&mut found, &process, || Ok(role))?;
            all.try_push(process)?;
            is_changing |= self.add_children_of(all.len() - 1, &mut all, &mut found)?;
        }
        self.last = last;
        self.searched = Some(now);
        self.has_found = is_changing || !found.is_empty();
        Ok(found)
    }

    /// Adds what a process has started to `found` and, since R may be started by a shell, to `all`. Returns whether one of
    /// these is just executing a program.
    fn add_children_of(
        &self,
        row: usize,
        all: &mut Vec<Process>,
        found: &mut Vec<(Process, Role)>,
    ) -> Result<bool> {
        let mut is_changing = false;
        let mut rows = Vec::new();
        rows.try_push(row)?;
        while let Some(row) = rows.pop() {
            let Some(parent) = all.get(row).cloned() else {
                continue;
            };
            for pid in parent.children()? {
                let Ok(child) = Process::find(pid) else {
                    continue;
                };
                is_changing |= child.is_changing();
                self.add(found, &child, || Role::of_child(&child, parent.pid))?;
                if !all.contains(&child) {
                    rows.try_push(all.len())?;
                    all.try_push(child)?;
                }
            }
        }
        Ok(is_changing)
    }

    fn add(
        &self,
        found: &mut Vec<(Process, Role)>,
        process: &Process,
        role: impl FnOnce() -> Result<Role>,
    ) -> Result<()> {
        // If R is the first process of a container, this one is its child.
        let is_own = u32::try_from(process.pid) == Ok(std::process::id());
        if !is_own
            && !process.is_changing()
            && !self.known.contains(process)
            && found.iter().all(|(other, _)| other != process)
        {
            found.try_push((process.clone(), role()?))?;
        }
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests;
