//! What the first vectors show: from where R's allocator calls `malloc()`, and where on the stack its own return address is.

use super::memory::own_memory;
use super::native::{Frame, Frames};
use super::sites::{Kind, Sites};
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_runtime::memory::Memory;

/// The largest frame of R's allocator, in words.
const MOST_WORDS: u64 = 256;

/// How a call of `malloc()` by R's allocator is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Way {
    /// The address in the allocator to which `malloc()` returns.
    pub site: u64,
    /// The distance from the stack pointer at the start of `malloc()` to the word with the allocator's return address.
    pub to_caller: u64,
}

/// How the calls of `getrusage()` are recognized by which R measures a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    site: u64,
    to_caller: u64,
    /// The addresses to which R's function for the time returns, at the start and at the end of a collection.
    callers: [u64; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Start,
    End,
}

impl Clock {
    /// Whether a call is one of these.
    ///
    /// # Safety
    /// `stack_pointer` is that of a call that returns to `site`.
    pub unsafe fn side(&self, stack_pointer: u64, site: u64) -> Option<Side> {
        if site != self.site {
            return None;
        }
        // SAFETY: a word in the frame of the function at `site`, whose size was seen.
        let caller = unsafe { ((stack_pointer + self.to_caller) as *const u64).read() };
        match self.callers {
            [start, _] if caller == start => Some(Side::Start),
            [_, end] if caller == end => Some(Side::End),
            _ => None,
        }
    }
}

/// The events of the vectors with the size that is expected.
#[derive(Debug, Default)]
pub struct Events {
    count: usize,
    events: [Option<Event>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Event {
    site: u64,
    /// The address to which the function at the site returns.
    caller: u64,
    /// The distances at which the word may be, as a set of bits.
    distances: [u64; MOST_WORDS as usize / 64],
    kind: Kind,
}

impl Events {
    /// Adds a call of `malloc()`, given the stack pointer at its start and the address that it returns to.
    pub fn add(&mut self, sites: &Sites, stack_pointer: u64, site: u64) {
        if let Some(slot) = self.events.get_mut(self.count) {
            let frames = Frames::of_this_thread();
            *slot = Event::new(sites, frames.from(site), stack_pointer, site);
        }
        self.count += 1;
    }

    /// What they show, if there was one new vector and then one copy of it.
    pub fn way(&self) -> Result<Way> {
        let way = match (self.count, self.events) {
            (2, [Some(new), Some(copy)]) => new.way(&copy),
            _ => None,
        };
        way.ok_or_else(|| {
            Error::Unsupported(message!("This R allocates vectors in an unknown way."))
        })
    }
}

impl Events {
    /// What they show if they are the starts and the ends of garbage collections.
    pub fn clock(&self) -> Option<Clock> {
        let [Some(start), Some(end)] = self.events else {
            return None;
        };
        if self.count % 2 != 0 {
            return None;
        }
        Some(Clock {
            site: start.site,
            to_caller: start.distance_to_caller(&end)?,
            callers: [start.caller, end.caller],
        })
    }
}

impl Event {
    fn new(sites: &Sites, frames: &[Frame], stack_pointer: u64, site: u64) -> Option<Event> {
        let caller = frames.get(1)?;
        let bytes = caller.stack_pointer.checked_sub(stack_pointer)?;
        // The part of the stack between the frame of the hook and that of the allocator's caller. Some of its words were never
        // written, so tools that look for this would report it if they were read directly.
        let mut stack = [0; MOST_WORDS as usize * 8];
        let stack = stack.get_mut(..bytes.min(8 * MOST_WORDS) as usize)?;
        if !own_memory().read(stack_pointer, stack) {
            return None;
        }
        let mut distances = [0; MOST_WORDS as usize / 64];
        for (number, word) in stack.chunks_exact(8).enumerate() {
            if word == caller.counter.to_ne_bytes() {
                distances[number / 64] |= 1 << (number % 64);
            }
        }
        Some(Event {
            site,
            caller: caller.counter,
            distances,
            kind: sites.kind_of(frames),
        })
    }

    fn way(&self, copy: &Event) -> Option<Way> {
        let is_known = self.kind == Kind::New && copy.kind == Kind::Copy;
        self.distance_to_caller(copy)
            .filter(|_| is_known)
            .map(|to_caller| Way {
                site: self.site,
                to_caller,
            })
    }

    /// The distance at which both events have the address of their caller.
    fn distance_to_caller(&self, copy: &Event) -> Option<u64> {
        let both = self
            .distances
            .iter()
            .zip(copy.distances)
            .map(|(a, b)| a & b);
        let mut found = None;
        for (group, bits) in (0..).zip(both) {
            match (bits.count_ones(), found) {
                (0, _) => {}
                (1, None) => found = Some(64 * group + u64::from(bits.trailing_zeros())),
                _ => return None,
            }
        }
        let found = found.filter(|_| self.site == copy.site && self.caller != copy.caller);
        found.map(|words| 8 * words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(site: u64, caller: u64, words: &[u64], kind: Kind) -> Option<Event> {
        let mut distances = [0; MOST_WORDS as usize / 64];
        for word in words {
            distances[*word as usize / 64] |= 1 << (word % 64);
        }
        Some(Event {
            site,
            caller,
            distances,
            kind,
        })
    }

    fn events(count: usize, events: [Option<Event>; 2]) -> Events {
        Events { count, events }
    }

    #[test]
    fn the_way_is_what_both_vectors_have_in_common() {
        let new = event(1, 10, &[5, 70, 100], Kind::New);
        let copy = event(1, 20, &[70], Kind::Copy);
        let way = events(2, [new, copy]).way().unwrap();
        assert_eq!((way.site, way.to_caller), (1, 560));
    }

    #[test]
    fn anything_else_is_refused() {
        let new = event(1, 10, &[5], Kind::New);
        let copy = event(1, 20, &[5], Kind::Copy);
        assert!(events(2, [new, copy]).way().is_ok());
        // Other numbers of events, or kinds, or sites; the same caller; no common word, or two.
        for refused in [
            events(1, [new, None]),
            events(3, [new, copy]),
            events(2, [copy, new]),
            events(2, [new, event(2, 20, &[5], Kind::Copy)]),
            events(2, [new, event(1, 10, &[5], Kind::Copy)]),
            events(2, [new, event(1, 20, &[6], Kind::Copy)]),
            events(
                2,
                [
                    event(1, 10, &[5, 6], Kind::New),
                    event(1, 20, &[5, 6], Kind::Copy),
                ],
            ),
        ] {
            assert!(refused.way().is_err());
        }
    }

    #[test]
    fn a_collection_has_a_start_and_an_end() {
        let start = event(1, 10, &[1], Kind::New);
        let end = event(1, 20, &[1], Kind::New);
        let clock = events(2, [start, end]).clock().unwrap();
        assert_eq!(events(4, [start, end]).clock(), Some(clock));
        assert_eq!(events(3, [start, end]).clock(), None);
        let stack = [0_u64, 20];
        let pointer = stack.as_ptr() as u64;
        // SAFETY: both words are there.
        let side = |site| unsafe { clock.side(pointer, site) };
        assert_eq!(side(1), Some(Side::End));
        assert_eq!(side(2), None);
    }
}
