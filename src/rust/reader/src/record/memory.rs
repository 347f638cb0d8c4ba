//! The memory of the processes of a recording: the highest of each of them, and of all together at one moment, which is what
//! the limit of a container counts; and whether the kernel has killed one of them to free memory.
//!
//! The kernel knows the highest memory of a process exactly, as long as the process lives, so it is read again and again.
//! What forks share counts once for all together. The kernel needs milliseconds to find out how much that is, so this is
//! asked only when the sum of what each has mapped is higher than ever.

use self::group::{Group, JUST_NOW, Kills, OfGroup, RECENTLY};
use crate::process::{Cgroup, MemoryLimit, Process, kills_on_machine, memory_of_machine};
use crate::recorded::memory::{Cause, End, Ending, KILL};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::SourceId;
use std::time::Duration;

/// The time between two readings, for each of so many processes.
const EVERY: Duration = Duration::from_millis(20);
const AT_ONCE: u32 = 16;
/// The time between two readings of cgroups and of the machine, which cost more.
const SYSTEM: Duration = Duration::from_millis(100);
/// The memory of all together is measured when the sum has grown by so many percent, and the time between two measurements
/// is so many times that of one.
const GROWTH: u64 = 2;
const PAUSES: u32 = 20;
/// Little memory is available if it is one of so many parts.
const LITTLE: u64 = 20;

/// The memory of the processes of a recording.
#[derive(Debug, Default)]
pub struct MemoryWatch {
    members: Vec<Member>,
    groups: Vec<Group>,
    machine: Kills,
    next: Duration,
    next_of_system: Duration,
    together: Option<Together>,
    /// The sum at the last measurement of all together, and when the next one may be.
    measured: u64,
    next_measurement: Duration,
    /// What was available on this machine at the last reading, if it was little.
    available: Option<u64>,
}

/// A process, whose memory is read until it has ended.
#[derive(Debug)]
struct Member {
    process: Process,
    source: SourceId,
    /// The highest memory when it was found.
    before: u64,
    resident: u64,
    peak: u64,
    group: Option<usize>,
    is_over: bool,
    ending: Option<Ending>,
}

/// The memory of several processes at one moment, and the number of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    pub bytes: u64,
    pub processes: u64,
}

/// What is known about the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfProcess {
    pub pid: i32,
    pub source: SourceId,
    /// At the last reading.
    pub resident: u64,
    pub peak: u64,
    pub ending: Option<Ending>,
}

impl MemoryWatch {
    /// Watches a process that becomes a source of the profile.
    pub fn add(&mut self, process: &Process, source: SourceId) -> Result<()> {
        let now = process.memory_use();
        let group = match Cgroup::of(process.pid)? {
            Some(cgroup) => Some(self.group(cgroup)?),
            None => None,
        };
        if self.members.is_empty() {
            self.machine.read(kills_on_machine(), Duration::ZERO);
        }
        self.members.try_push(Member {
            process: process.clone(),
            source,
            before: now.map_or(0, |now| now.highest),
            resident: now.map_or(0, |now| now.resident),
            peak: now.map_or(0, |now| now.resident),
            group,
            is_over: false,
            ending: None,
        })
    }

    fn group(&mut self, cgroup: Cgroup) -> Result<usize> {
        let known = self.groups.iter().position(|group| group.cgroup == cgroup);
        if let Some(known) = known {
            return Ok(known);
        }
        self.groups.try_push(Group::new(cgroup))?;
        Ok(self.groups.len() - 1)
    }

    /// Reads the memory of all processes, if it is time for it. `clock` is the time since the recording began.
    pub fn look(&mut self, clock: &dyn Fn() -> Duration) {
        let now = clock();
        if now < self.next {
            return;
        }
        let mut sum = 0_u64;
        let mut count = 0;
        for member in self.members.iter_mut().filter(|member| !member.is_over) {
            if let Some(resident) = member.read() {
                sum = sum.saturating_add(resident);
                count += 1;
            }
        }
        self.next = now + EVERY * (1 + count / AT_ONCE);
        if now >= self.next_of_system {
            for group in &mut self.groups {
                group.read(now);
            }
            self.machine.read(kills_on_machine(), now);
            self.available = available_if_little();
            self.next_of_system = now + SYSTEM;
        }
        let has_grown = sum > self.measured.saturating_add(self.measured / 100 * GROWTH);
        if count > 1 && has_grown && now >= self.next_measurement {
            self.measure_together();
            self.measured = sum;
            let end = clock();
            self.next_measurement = end + end.saturating_sub(now) * PAUSES;
        }
    }

    fn measure_together(&mut self) {
        let mut together = Together {
            bytes: 0,
            processes: 0,
        };
        for member in self.members.iter().filter(|member| !member.is_over) {
            match member.process.proportional_memory() {
                Some(bytes) => {
                    together.bytes = together.bytes.saturating_add(bytes);
                    together.processes += 1;
                }
                // The sum would be too low.
                None if member.process.state().is_some() => return,
                None => {}
            }
        }
        let best = self.together.map_or(0, |best| best.bytes);
        if together.bytes > best {
            self.together = Some(together);
        }
    }

    /// The process of this source executes another program.
    pub fn leave(&mut self, source: SourceId) {
        let row = self.watched(source);
        if let Some(member) = row.and_then(|row| self.members.get_mut(row)) {
            member.is_over = true;
        }
    }

    /// The process of this source has ended.
    pub fn end(&mut self, source: SourceId, now: Duration) {
        let row = self.watched(source);
        if let Some(member) = row.and_then(|row| self.members.get(row)) {
            self.end_as(source, member.process.end(), now);
        }
    }

    /// The same, if it is known how.
    pub fn end_as(&mut self, source: SourceId, end: End, now: Duration) {
        let row = self.watched(source);
        let Some(member) = row.and_then(|row| self.members.get_mut(row)) else {
            return;
        };
        member.is_over = true;
        let group = member.group.and_then(|group| self.groups.get_mut(group));
        self.machine.read(kills_on_machine(), now);
        let mut limit = None;
        let mut counts = false;
        if let Some(group) = group {
            group.read_kills(now);
            counts = match end {
                End::Signal(KILL) => group.kills.explains(RECENTLY, now),
                End::Unknown => group.kills.explains(JUST_NOW, now),
                End::Exited | End::Signal(_) => false,
            };
            limit = group.limit;
        }
        let cause = match end {
            End::Signal(KILL) if counts => Cause::Killed,
            End::Signal(KILL) if self.machine.explains(RECENTLY, now) => Cause::KilledOnMachine,
            End::Signal(number) => Cause::Signal(number),
            End::Unknown if counts => Cause::KilledInGroup,
            End::Unknown | End::Exited => return,
        };
        if counts {
            // The same kill.
            self.machine.explains(RECENTLY, now);
        }
        member.ending = Some(Ending {
            cause,
            limit: limit.map(|limit| limit.bytes),
            used: limit.filter(MemoryLimit::is_near).map(|limit| limit.used),
            available: self.available,
        });
    }

    /// The row of this source, if its process has not ended.
    fn watched(&self, source: SourceId) -> Option<usize> {
        let mut members = self.members.iter();
        members.position(|member| member.source == source && !member.is_over)
    }

    /// Whether this source is watched and its process has ended.
    pub fn has_ended(&self, source: SourceId) -> bool {
        let row = self.watched(source);
        let member = row.and_then(|row| self.members.get(row));
        member.is_some_and(|member| member.process.state().is_none())
    }

    pub fn processes(&self) -> impl Iterator<Item = OfProcess> {
        self.members.iter().map(|member| OfProcess {
            pid: member.process.pid,
            source: member.source,
            resident: member.resident,
            peak: member.peak,
            ending: member.ending,
        })
    }

    /// The highest memory of all processes together; `None` if there was never more than one, or if that is unknown.
    pub fn together(&self) -> Option<Together> {
        self.together
    }

    pub fn of_group(&self) -> OfGroup {
        let group = self.members.first().and_then(|first| first.group);
        let group = group.and_then(|group| self.groups.get(group));
        group.map(Group::figures).unwrap_or_default()
    }
}

impl Member {
    /// The memory that it has mapped now.
    fn read(&mut self) -> Option<u64> {
        let now = self.process.memory_use()?;
        self.resident = now.resident;
        self.peak = self.peak.max(now.resident);
        if now.highest > self.before {
            self.peak = self.peak.max(now.highest);
        }
        Some(now.resident)
    }
}

fn available_if_little() -> Option<u64> {
    let (all, available) = memory_of_machine()?;
    (available < all / LITTLE).then_some(available)
}

mod group;
mod report;

#[cfg(test)]
mod tests;
