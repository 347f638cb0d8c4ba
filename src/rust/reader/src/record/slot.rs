//! What a process does for parallel work, for the bill of [`profile_core::analysis::parallel`]: where it is, and whether it
//! computes. Here, ticks are at equal distances: those since the last look at the process count for this one. If all processors
//! are busy, looks are late, so that otherwise, other times would count more.
//!
//! Where it is follows from its stack. As long as it is in the same wait, its stack is the same, and is not read again.

use crate::record::role::Role;
use crate::recorded::scheduled::Since;
use crate::recorded::states::State;
use crate::stack::frames::{Frame, Package, Stack};
use profile_core::analysis::parallel::places::{Named, Part, Places};
use profile_core::analysis::parallel::{At, Doing, Place, Track};
use profile_core::error::Result;
use profile_core::model::Strings;

#[derive(Debug)]
pub struct Slot {
    part: Part,
    places: &'static Places,
    track: Track,
    /// Where it is, if that is known.
    place: Option<Place>,
    /// Whether it waited at the last look, where it is.
    has_waited: bool,
    /// Whether its stack is known since the last look.
    is_read: bool,
    /// The last look, until it is counted.
    seen: Option<(State, Option<Since>)>,
    /// The look before.
    last: Option<(Place, State)>,
    /// Ticks at which its stack could not be read. If it can be read later, it was where it was before; if not, it was ending.
    unread: u32,
    split: Split,
}

impl Slot {
    /// `first` is the number of ticks before.
    pub fn new(role: Option<Role>, first: usize) -> Result<Slot> {
        let part = match role {
            None | Some(Role::Named(_)) => Part::Master,
            Some(Role::Worker(_) | Role::Callr(_) | Role::Dispatcher(_)) => Part::Starting,
            Some(Role::Fork(_) | Role::Child(_)) => Part::Task,
        };
        Ok(Slot {
            part,
            places: Places::get()?,
            track: Track::new(first),
            place: None,
            has_waited: false,
            is_read: false,
            seen: None,
            last: None,
            unread: 0,
            split: Split::default(),
        })
    }

    /// Whether its stack has to be read: it need not be, if it is in the same wait as at the last tick.
    pub fn must_read(&self, since: Option<Since>) -> bool {
        let is_same = since.is_some_and(|since| !since.was_scheduled);
        !(is_same && self.has_waited && self.place.is_some())
    }

    /// Takes note of its stack.
    pub fn see(&mut self, stack: &Stack, texts: &Strings) {
        let named = |frame: &Frame| Named {
            called: texts.get(frame.called),
            package: match frame.package {
                Package::Named(name) => Some(texts.get(name)),
                Package::Unknown | Package::None => None,
            },
        };
        let frames = stack.frames.iter().rev().map(named);
        self.place = Some(self.places.place(frames, self.part));
        self.is_read = true;
    }

    /// Ends a look at the process.
    pub fn end_look(&mut self, state: State, since: Option<Since>) {
        self.is_read |= !self.must_read(since);
        // A thread that has been woken still stands where it waited.
        let was_scheduled = since.is_some_and(|since| since.was_scheduled);
        let waits = state != State::Running || self.has_waited && !was_scheduled;
        // Where it waits is known only if its stack was read.
        self.has_waited = waits && self.is_read;
        self.seen = Some((state, since));
    }

    /// Counts the ticks since the look before the last one: of several, those in the first half belong to the state before. If
    /// the process was not there before, or is not any more, only a half of them counts.
    pub fn count(&mut self, ticks: u32) -> Result<()> {
        let Some((state, since)) = self.seen.take() else {
            return match self.last.take() {
                Some((place, state)) if self.unread == 0 => self.push(place, state, ticks / 2),
                _ => Ok(()),
            };
        };
        let place = self.place.unwrap_or_default();
        self.split.add(since.filter(|_| place == Place::Task));
        if !std::mem::take(&mut self.is_read) && self.last.is_some() {
            self.unread = self.unread.saturating_add(ticks);
            return Ok(());
        }
        let before = ticks / 2;
        match self.last.replace((place, state)) {
            Some((place, state)) => self.push(place, state, self.unread.saturating_add(before))?,
            None => self.track.first += before as usize,
        }
        self.unread = 0;
        self.push(place, state, ticks - before)
    }

    fn push(&mut self, place: Place, state: State, ticks: u32) -> Result<()> {
        for _ in 0..ticks {
            let doing = match state {
                State::Running if place == Place::Task => self.split.next(),
                State::Running => Doing::Computes,
                _ => Doing::Waits,
            };
            self.track.push(At { place, doing })?;
        }
        Ok(())
    }

    /// What it did. `has_ended`: whether the process has. A fork with one task is no worker any more when it has sent its result,
    /// and its successor may have begun before it has ended.
    pub fn into_track(mut self, has_ended: bool) -> Result<Track> {
        if let (false, Some((place, state))) = (has_ended, self.last) {
            self.push(place, state, self.unread)?;
        }
        while let (Part::Task, true, Some((at, _))) = (self.part, has_ended, self.track.runs.last())
        {
            if at.place != Place::Other {
                break;
            }
            self.track.runs.pop();
        }
        Ok(self.track)
    }
}

/// Splits the ticks at which a thread could run into those at which it computed, and those at which it waited for a processor,
/// in proportion to what the kernel has counted. It counts a wait for a processor when it ends.
#[derive(Debug, Default)]
struct Split {
    computed: u64,
    delayed: u64,
    ticks: u64,
    ticks_delayed: u64,
}

impl Split {
    fn add(&mut self, since: Option<Since>) {
        let since = since.unwrap_or_default();
        self.computed = self.computed.saturating_add(since.computed);
        self.delayed = self.delayed.saturating_add(since.delayed);
    }

    fn next(&mut self) -> Doing {
        self.ticks += 1;
        let both = self.computed as f64 + self.delayed as f64;
        let share = self.delayed as f64 / both.max(1.0);
        if self.ticks_delayed as f64 + 0.5 < share * self.ticks as f64 {
            self.ticks_delayed += 1;
            Doing::Delayed
        } else {
            Doing::Computes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(computed: u64, delayed: u64, was_scheduled: bool) -> Option<Since> {
        Some(Since {
            computed: computed * 1_000_000,
            delayed: delayed * 1_000_000,
            was_scheduled,
        })
    }

    /// The ticks of a thread that is in a task, and could run at each of them, given the milliseconds since the last one.
    fn ticks(all: &[(u64, u64)]) -> String {
        let mut split = Split::default();
        let mut next = |&(computed, delayed): &(u64, u64)| {
            split.add(since(computed, delayed, true));
            match split.next() {
                Doing::Computes => 'c',
                Doing::Delayed => 'd',
                Doing::Waits => 'w',
            }
        };
        all.iter().map(&mut next).collect()
    }

    #[test]
    fn time_without_a_processor_is_a_share_of_the_ticks() {
        assert_eq!(ticks(&[(10, 0); 5]), "ccccc");
        assert_eq!(ticks(&[(0, 10); 4]), "dddd");
        assert_eq!(ticks(&[(5, 5); 6]), "cdcdcd");
        assert_eq!(ticks(&[(7, 3); 10]).matches('d').count(), 3);
        // A long wait is counted when it has ended.
        let late = [
            (10, 0),
            (0, 0),
            (0, 0),
            (0, 30),
            (10, 0),
            (10, 0),
            (10, 0),
            (10, 0),
        ];
        assert_eq!(ticks(&late).matches('d').count(), 3);
        // The kernel does not count.
        assert_eq!(ticks(&[(0, 0); 3]), "ccc");
    }

    fn look(slot: &mut Slot, state: State, since: Option<Since>) {
        count(slot, state, since, 1);
    }

    fn count(slot: &mut Slot, state: State, since: Option<Since>, ticks: u32) {
        slot.is_read = true;
        slot.end_look(state, since);
        slot.count(ticks).unwrap();
    }

    #[test]
    fn the_stack_of_one_wait_is_read_once() {
        let mut slot = Slot::new(Some(Role::Fork(1)), 0).unwrap();
        let (same, other) = (since(0, 0, false), since(1, 0, true));
        assert!(slot.must_read(None));
        slot.place = Some(Place::Task);
        look(&mut slot, State::Sleeping, None);
        assert!(!slot.must_read(same) && slot.must_read(other) && slot.must_read(None));
        look(&mut slot, State::Sleeping, same);
        // It was woken, but has no processor.
        look(&mut slot, State::Running, same);
        assert!(!slot.must_read(same) && slot.must_read(other));
        look(&mut slot, State::Running, other);
        assert!(slot.must_read(same));
        let at = |doing| At {
            place: Place::Task,
            doing,
        };
        // It waits elsewhere, but could not be read.
        slot.end_look(State::Sleeping, other);
        slot.count(1).unwrap();
        assert!(slot.must_read(same));
        let runs = [(at(Doing::Waits), 2), (at(Doing::Computes), 3)];
        assert_eq!(slot.into_track(false).unwrap().runs, runs);
    }

    #[test]
    fn only_time_in_tasks_is_split() {
        let mut slot = Slot::new(Some(Role::Worker(1)), 7).unwrap();
        slot.place = Some(Place::Transfer);
        for _ in 0..3 {
            look(&mut slot, State::Running, since(0, 100, true));
        }
        slot.place = Some(Place::Task);
        look(&mut slot, State::Running, since(10, 0, true));
        let at = |place| At {
            place,
            doing: Doing::Computes,
        };
        let track = slot.into_track(true).unwrap();
        assert_eq!(track.runs, [(at(Place::Transfer), 3), (at(Place::Task), 1)]);
        assert_eq!(track.first, 7);
    }

    #[test]
    fn a_fork_ends_when_it_has_sent_its_result() {
        let track = |role, has_ended| {
            let mut slot = Slot::new(Some(role), 0).unwrap();
            for place in [Place::Other, Place::Task, Place::Transfer, Place::Other] {
                slot.place = Some(place);
                look(&mut slot, State::Running, None);
                look(&mut slot, State::Sleeping, None);
            }
            let runs = slot.into_track(has_ended).unwrap().runs;
            runs.iter().map(|(_, ticks)| *ticks).sum::<u32>()
        };
        assert_eq!(track(Role::Fork(1), true), 6);
        assert_eq!(track(Role::Fork(1), false), 8);
        assert_eq!(track(Role::Worker(1), true), 8);
    }

    #[test]
    fn a_process_that_ends_cannot_be_read() {
        let track = |has_ended| {
            let mut slot = Slot::new(Some(Role::Fork(1)), 0).unwrap();
            slot.place = Some(Place::Task);
            let mut unread = |is_read, ticks| {
                slot.is_read = is_read;
                slot.end_look(State::Running, None);
                slot.count(ticks).unwrap();
            };
            unread(true, 1);
            unread(false, 1);
            unread(true, 1);
            unread(false, 2);
            let runs = slot.into_track(has_ended).unwrap().runs;
            runs.iter().map(|(_, ticks)| *ticks).sum::<u32>()
        };
        assert_eq!((track(true), track(false)), (3, 5));
    }

    #[test]
    fn late_looks_count_for_the_ticks_around_them() {
        let mut slot = Slot::new(None, 10).unwrap();
        // It is new.
        count(&mut slot, State::Running, None, 3);
        count(&mut slot, State::Sleeping, None, 5);
        count(&mut slot, State::Running, None, 0);
        // It has ended.
        slot.count(4).unwrap();
        slot.count(4).unwrap();
        let at = |doing| At {
            place: Place::Other,
            doing,
        };
        let track = slot.into_track(false).unwrap();
        assert_eq!(track.first, 11);
        let runs = [
            (at(Doing::Computes), 2 + 2),
            (at(Doing::Waits), 3),
            (at(Doing::Computes), 2),
        ];
        assert_eq!(track.runs, runs);
    }
}
