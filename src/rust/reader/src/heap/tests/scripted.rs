//! Processes whose memory and clock follow a script.

use super::FakeHeap;
use super::whole::{copied_while, taken};
use crate::heap::attempts::{LIMITS, Subject, best};
use crate::heap::copied::CopiedMemory;
use crate::heap::snapshot::Snapshot;
use profile_core::error::{Error, Result};
use profile_core::model::Profile;
use profile_runtime::objects::DATA;
use std::time::Duration;

pub const ELEMENTS: usize = 1000;
/// No object is here.
pub const NOWHERE: u64 = 0x1234_5678;

pub fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What happens at an attempt, given its number.
pub enum Turn {
    Read,
    /// The process cannot be stopped.
    Busy,
    /// It has ended.
    Ended,
    /// What is read is damaged, as this says.
    Fails(&'static str),
}

/// A process. `before` changes its memory before each attempt, for which it is stopped for `stop`, and which takes `work`
/// after that.
pub struct Scripted<F> {
    pub heap: FakeHeap,
    before: F,
    stop: Duration,
    work: Duration,
    pub attempts: usize,
    pub stopped: Duration,
    pub now: Duration,
    has_ended: bool,
}

impl<F: FnMut(usize, &mut FakeHeap) -> Turn> Scripted<F> {
    pub fn new(heap: FakeHeap, stop: u64, work: u64, before: F) -> Scripted<F> {
        Scripted {
            heap,
            before,
            stop: milliseconds(stop),
            work: milliseconds(work),
            attempts: 0,
            stopped: Duration::ZERO,
            now: Duration::ZERO,
            has_ended: false,
        }
    }

    pub fn best(&mut self) -> Result<Snapshot> {
        best(self, &LIMITS, &|| false).map(|(snapshot, _)| snapshot)
    }

    fn read(&self, may_collect: bool) -> Result<Option<Snapshot>> {
        let Some(copied) = copied_while(&self.heap, may_collect)? else {
            return Ok(None);
        };
        taken(&self.heap, &mut CopiedMemory(&copied), None).map(Some)
    }
}

impl<F: FnMut(usize, &mut FakeHeap) -> Turn> Subject for Scripted<F> {
    fn attempt(&mut self, may_collect: bool) -> (Option<Duration>, Result<Option<Snapshot>>) {
        self.attempts += 1;
        let taken = match (self.before)(self.attempts, &mut self.heap) {
            Turn::Busy => return (None, Err(Error::Process("busy".to_owned()))),
            Turn::Ended => {
                self.has_ended = true;
                return (None, Err(Error::Process("ended".to_owned())));
            }
            Turn::Fails(why) => Err(Error::Process(why.to_owned())),
            Turn::Read => self.read(may_collect),
        };
        self.stopped += self.stop;
        self.now += self.stop + self.work;
        (Some(self.stop), taken)
    }

    fn exists(&self) -> bool {
        !self.has_ended
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn wait(&mut self, pause: Duration) {
        self.now += pause;
    }
}

/// A heap with a list of lists, and the address of each element of the outer one.
pub fn heap_with_list() -> (FakeHeap, Vec<u64>) {
    let mut heap = FakeHeap::new();
    let number = heap.real(10);
    let elements: Vec<u64> = (0..ELEMENTS).map(|_| heap.list(&[number])).collect();
    let list = heap.list(&elements);
    heap.define_global("list", list);
    heap.finish();
    let places = (0..ELEMENTS as u64).map(|row| list + DATA as u64 + 8 * row);
    (heap, places.collect())
}

/// Makes exactly these elements wrong.
fn set_wrong(heap: &mut FakeHeap, places: &[u64], right: &[u64], wrong: &[usize]) {
    for (row, (place, word)) in places.iter().zip(right).enumerate() {
        let is_wrong = wrong.contains(&row);
        heap.space
            .set(*place, if is_wrong { NOWHERE } else { *word });
    }
}

/// A process in which, at each attempt, the elements with these numbers are wrong.
pub fn with_wrong<'t>(
    stop: u64,
    work: u64,
    mut wrong: impl FnMut(usize) -> Vec<usize> + 't,
) -> Scripted<impl FnMut(usize, &mut FakeHeap) -> Turn + 't> {
    let (heap, places) = heap_with_list();
    let right: Vec<u64> = places.iter().map(|place| heap.space.word(*place)).collect();
    Scripted::new(heap, stop, work, move |number, heap: &mut FakeHeap| {
        set_wrong(heap, &places, &right, &wrong(number));
        Turn::Read
    })
}

pub fn attribute(profile: &Profile, key: &str) -> u64 {
    let attributes = &profile.sources[0].attributes;
    let found: Vec<u64> = attributes
        .iter()
        .filter(|attribute| profile.strings.get(attribute.key) == key)
        .map(|attribute| profile.strings.get(attribute.value.text).parse().unwrap())
        .collect();
    assert_eq!(found.len(), 1, "{key}");
    found[0]
}
