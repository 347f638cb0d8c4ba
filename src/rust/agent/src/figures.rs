//! How much memory R and its process use: a few figures that are added to each chunk, so that a leak is seen before
//! anybody takes a snapshot.

use profile_reader::heap::counts::Usage;
use profile_reader::live::{Gauge, resident};
use std::cell::{Cell, RefCell};

/// The keys of the figures. Those of the heap are the same as in a snapshot, where they are exact.
const KEYS: [&str; 6] = [
    "profile.heap.used",
    "profile.heap.used.min",
    "profile.heap.free",
    "profile.heap.objects",
    "profile.heap.data",
    "profile.heap.resident",
];

/// How much memory R and its process use.
pub struct Figures {
    gauge: RefCell<Box<dyn FnMut() -> Option<Usage>>>,
    resident: fn() -> Option<u64>,
    /// The least that R has used since the last chunk. Between two garbage collections, the use only grows, so this is
    /// what was left by a collection, if there was one.
    least: Cell<Option<u64>>,
}

impl Figures {
    /// Without a gauge, only the memory of the process is known.
    pub fn current(gauge: Option<Gauge>) -> Figures {
        let mut gauge = gauge;
        let look = move || gauge.as_mut().and_then(Gauge::look);
        Figures::new(Box::new(look), resident)
    }

    pub fn new(gauge: Box<dyn FnMut() -> Option<Usage>>, resident: fn() -> Option<u64>) -> Figures {
        Figures {
            gauge: RefCell::new(gauge),
            resident,
            least: Cell::new(None),
        }
    }

    /// Called at each tick.
    pub fn look(&self) -> Option<Usage> {
        let usage = (self.gauge.borrow_mut())()?;
        let least = self.least.get().unwrap_or(u64::MAX);
        self.least.set(Some(least.min(usage.used)));
        Some(usage)
    }

    /// The memory of the process, in bytes.
    pub fn resident(&self) -> Option<u64> {
        (self.resident)()
    }

    /// The figures at the end of a chunk.
    pub fn in_chunk(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let usage = self.look();
        let values = [
            usage.map(|usage| usage.used),
            self.least.take(),
            usage.map(|usage| usage.free),
            usage.map(|usage| usage.objects),
            usage.map(|usage| usage.data),
            (self.resident)(),
        ];
        let figures = KEYS.into_iter().zip(values);
        figures.filter_map(|(key, value)| Some((key, value?)))
    }
}

#[cfg(test)]
mod tests;
