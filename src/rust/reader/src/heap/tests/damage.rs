//! Damaged heaps: reading them must end soon and return, whatever is in the memory.

use super::counting::memory_of;
use super::fake::VARIABLES;
use super::space::{Space, SpaceView};
use super::{FakeHeap, Random, cases};
use crate::heap::copied::CopiedMemory;
use crate::heap::copying::copy;
use crate::heap::damage::Damage;
use crate::heap::known::Known;
use crate::heap::lists::Lists;
use crate::heap::resident::Resident;
use crate::heap::snapshot::{About, Snapshot, take};
use profile_core::error::Result;
use profile_core::model::{Profile, Source};
use profile_runtime::heap::Layout;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const ROUNDS: u64 = 6_000;
/// Much more than a round takes, even if the machine is busy.
const LONGEST: Duration = Duration::from_secs(20);
/// The directory of pages takes most of what is needed.
const MOST_MEMORY: usize = 64 << 20;

/// Changes a word that has a meaning.
pub fn change(random: &mut Random, space: &mut Space, words: &[u64]) {
    let address = random.pick(words);
    let other = random.pick(words);
    let word = space.word(address);
    let new = match random.below(18) {
        0 => random.next(),
        1 => 0,
        2 => u64::MAX - random.below(64) as u64,
        3 | 4 => word ^ 1 << random.below(64),
        5 => word.wrapping_add(8),
        6 => word.wrapping_sub(8),
        7 => random.below(1000) as u64,
        8 => random.pick(&[
            10 << 30,
            1 << 31,
            (1 << 31) - 1,
            1 << 47,
            1 << 61,
            1 << 62,
            1 << 63,
        ]),
        // Other objects than before, or addresses inside of objects.
        9..=12 => space.word(other),
        13 | 14 => other,
        // The lower half, which is a counter in some places, or the flags of an object.
        15 => word | 0xffff_ffff,
        16 => word & !0xff | random.next() & 0xff,
        _ => other & !7,
    };
    space.set(address, new);
}

/// The same for what is known about objects, which was read from memory as well.
fn change_known(random: &mut Random, known: &mut Known, space: &Space, words: &[u64]) {
    let address = random.pick(words);
    let new = random.pick(&[0, u64::MAX, u64::MAX - 8, address, space.word(address)]);
    match random.below(12) {
        0 => known.nil = new,
        1 => known.global = new,
        2 => known.base = new,
        3 => known.empty = new,
        4 => known.unbound = new,
        5 => known.namespaces = new,
        6 => known.names_symbol = new,
        7 => known.class_symbol = new,
        8 => known.name_symbol = new,
        9 => known.protected = new..new.saturating_add(8 << random.below(20)),
        10 => known.protected.end = new,
        _ => known.node_stack_top = new,
    }
}

/// Changes a heap, and takes a snapshot of it, or of a copy. The same number always gives the same round. Returns
/// whether there is a snapshot.
fn round(heap: &FakeHeap, words: &[u64], number: u64) -> bool {
    let random = &mut Random::new(number);
    let (mut space, mut known) = (heap.space.clone(), heap.known.clone());
    for _ in 0..random.pick(&[1, 1, 1, 2, 5, 30]) {
        match random.below(12) {
            0 => change_known(random, &mut known, &space, words),
            // The structs that describe the heap.
            1 => {
                let heads: Vec<u64> = words
                    .iter()
                    .copied()
                    .filter(|a| *a < VARIABLES + 0x2000)
                    .collect();
                change(random, &mut space, &heads);
            }
            _ => change(random, &mut space, words),
        }
    }
    let variables = &heap.r.variables;
    let _ = Lists::find(&mut SpaceView(&space), variables, Layout::ALL);
    let least = random.pick(&[None, Some(0), Some(1), Some(200), Some(u64::MAX)]);
    match random.below(2) {
        0 => taken(heap, &known, least, |about, profile| {
            take(&mut SpaceView(&space), about, profile, Source::default())
        }),
        _ => taken(heap, &known, least, |about, profile| {
            let mut view = SpaceView(&space);
            let (r, libraries) = (&heap.r, &heap.libraries);
            let mappings = space.mappings();
            let copied = copy(
                &mut view,
                &mappings,
                r,
                &known,
                &heap.lists,
                libraries,
                true,
            )?;
            let copied = copied.ok_or(Damage::Calls)?;
            take(
                &mut CopiedMemory(&copied),
                about,
                profile,
                Source::default(),
            )
        }),
    }
}

fn taken(
    heap: &FakeHeap,
    known: &Known,
    least: Option<u64>,
    take: impl FnOnce(&About, Profile) -> Result<Snapshot>,
) -> bool {
    let about = About {
        r: &heap.r,
        known,
        lists: &heap.lists,
        libraries: &heap.libraries,
        resident: &Resident::Size(1 << 20),
        unheld: profile_core::model::heap::NO_HOLDER,
        least,
    };
    take(&about, Profile::default()).is_ok()
}

/// With the environment variable `PROFILE_FUZZ_SECONDS`, as many other rounds as fit into this time.
#[test]
fn a_damaged_heap_is_read_or_refused() {
    let seconds = env::var("PROFILE_FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let (first, last) = match seconds {
        Some(_) => (ROUNDS, u64::MAX),
        None => (0, ROUNDS),
    };
    let start = Instant::now();
    let mut heap = cases::with_everything(true);
    heap.finish();
    let words = heap.space.words();
    let (mut rounds, mut read, mut most) = (0, 0, (0, Duration::ZERO));
    for number in first..last {
        if seconds.is_some_and(|seconds| start.elapsed() > Duration::from_secs(seconds)) {
            break;
        }
        let before = Instant::now();
        let (result, memory) =
            memory_of(|| catch_unwind(AssertUnwindSafe(|| round(&heap, &words, number))));
        let is_read = result.unwrap_or_else(|_| panic!("round {number} failed"));
        let took = before.elapsed();
        assert!(took < LONGEST, "round {number} took {took:?}");
        assert!(memory < MOST_MEMORY, "round {number} took {memory} bytes");
        most = (most.0.max(memory), most.1.max(took));
        rounds += 1;
        read += u64::from(is_read);
    }
    println!("{read} of {rounds} damaged heaps were read; at most {most:?}");
    // Most changes concern few objects only, and some concern what everything depends on.
    assert!(rounds < 100 || (rounds / 10..rounds).contains(&read));
}
