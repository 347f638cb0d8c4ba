//! The processes that belong to a recording: those that the recorded ones started, and those that work for them.

use crate::process::{Process, Sign, Workers};
use crate::record::role::Role;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;

/// The most processes that are recorded without being named.
const MOST: usize = 256;
/// How long a process may take to become R, in seconds.
const STARTING: f64 = 5.0;

/// The search for processes that belong to others.
#[derive(Debug, Default)]
pub struct Family {
    /// The process that asked for the recording, if it records itself.
    master: Option<Process>,
    /// The environment variable of processes that were started during the recording, `NAME=VALUE`.
    variable: Option<String>,
    /// Processes that need no further examination: they do not run R, or are already being recorded.
    known: Vec<Process>,
    workers: Workers,
    /// The number of processes that are recorded without being named.
    members: usize,
    /// The number of processes that are not recorded, since there are too many.
    pub left_out: usize,
    /// R processes into which this one may not look, and why the first one.
    pub refused: Vec<(i32, Role)>,
    pub refusal: Option<Error>,
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
        self.known.try_push(process)
    }

    /// Takes note that a process cannot be recorded. It may still become R if it has just been started, and may be ending.
    pub fn reject(&mut self, process: Process, role: Role, why: Error) -> Result<()> {
        if process.has_r() && process.runs_a_program() && !process.may_be_read() {
            self.refused.try_push((process.pid, role))?;
            self.refusal.get_or_insert(why);
            self.known.try_push(process)?;
        } else if process.age().is_some_and(|age| age >= STARTING) {
            self.known.try_push(process)?;
        }
        Ok(())
    }

    /// Whether no further process may be recorded. This is then counted, if it runs R.
    pub fn is_too_large_for(&mut self, process: &Process) -> Result<bool> {
        if self.members < MOST {
            return Ok(false);
        }
        if process.has_r() {
            self.left_out += 1;
            self.known.try_push(process.clone())?;
        }
        Ok(true)
    }

    /// Processes that belong to these, or to the one that asked for the recording, and are not known. They may not run R.
    pub fn find(&mut self, recorded: Vec<Process>) -> Result<Vec<(Process, Role)>> {
        let mut all = recorded;
        if let Some(master) = &self.master {
            all.try_push(master.clone())?;
        }
        let mut found = Vec::new();
        for row in 0..all.len() {
            self.add_children_of(row, &mut all, &mut found)?;
        }
        for (process, sign) in self.workers.find(&all, self.variable.as_deref())? {
            let role = match (sign, &self.master) {
                (Sign::Address(pid), _) => Role::Worker(pid),
                (Sign::Variable, Some(master)) => Role::Child(master.pid),
                (Sign::Variable, None) => continue,
            };
            self.add(&mut found, &process, || Ok(role))?;
            all.try_push(process)?;
            self.add_children_of(all.len() - 1, &mut all, &mut found)?;
        }
        Ok(found)
    }

    /// Adds what a process has started to `found` and, since R may be started by a shell, to `all`.
    fn add_children_of(
        &self,
        row: usize,
        all: &mut Vec<Process>,
        found: &mut Vec<(Process, Role)>,
    ) -> Result<()> {
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
                self.add(found, &child, || Role::of_child(&child, parent.pid))?;
                if !all.contains(&child) {
                    rows.try_push(all.len())?;
                    all.try_push(child)?;
                }
            }
        }
        Ok(())
    }

    fn add(
        &self,
        found: &mut Vec<(Process, Role)>,
        process: &Process,
        role: impl FnOnce() -> Result<Role>,
    ) -> Result<()> {
        if !self.known.contains(process) && found.iter().all(|(other, _)| other != process) {
            found.try_push((process.clone(), role()?))?;
        }
        Ok(())
    }
}
