//! What the first vectors show: from where R's allocator calls `malloc()`, and where on the stack its own return address is.

use super::native::{Frame, Frames};
use super::sites::{Kind, Sites};
use profile_core::error::{Error, Result};
use profile_core::message;

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
        let words = caller.stack_pointer.checked_sub(stack_pointer)? / 8;
        let mut distances = [0; MOST_WORDS as usize / 64];
        for number in 0..words.min(MOST_WORDS) {
            // SAFETY: a word of the stack between the frame of the hook and that of the allocator's caller.
            let word = unsafe { ((stack_pointer + 8 * number) as *const u64).read() };
            if word == caller.counter {
                distances[number as usize / 64] |= 1 << (number % 64);
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
