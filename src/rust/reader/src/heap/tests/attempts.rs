//! How often snapshots are tried of a process.

use super::damage::change;
use super::scripted::{
    ELEMENTS, NOWHERE, Scripted, Turn, attribute, heap_with_list, milliseconds, with_wrong,
};
use super::whole::taken;
use super::{FakeHeap, Random, cases};
use crate::heap::attempts::{LIMITS, Limits, best};
use crate::heap::snapshot::Snapshot;
use profile_core::error::{Error, Result};
use profile_runtime::heap::NEXT;
use std::time::Duration;

#[test]
fn a_whole_snapshot_takes_one_attempt() {
    let mut process = with_wrong(100, 500, |_| Vec::new());
    let snapshot = process.best().unwrap();
    assert_eq!((process.attempts, snapshot.heap.wrong), (1, 0));
    assert_eq!(attribute(&snapshot.profile, "profile.pauses"), 1);
    let total = attribute(&snapshot.profile, "profile.pauses.total");
    assert_eq!(total, 100_000_000);
}

#[test]
fn damage_takes_two_attempts() {
    for count in [1, 30, 300] {
        let mut process = with_wrong(100, 500, |_| (0..count).collect());
        let snapshot = process.best().unwrap();
        assert_eq!(process.attempts, 2);
        assert_eq!(snapshot.heap.wrong, count as u64);
        let number = |key| attribute(&snapshot.profile, key);
        assert_eq!(number("profile.heap.wrong_references"), count as u64);
        assert_eq!(number("profile.pauses"), 2);
        assert_eq!(number("profile.pauses.total"), 200_000_000);
        // Only what was damaged is missing.
        let (whole, _) = heap_with_list();
        let whole = taken(&whole, &mut whole.view(), None).unwrap();
        assert_eq!(snapshot.heap.objects, whole.heap.objects);
        assert_eq!(whole.heap.unheld, 0);
        assert_eq!(snapshot.heap.unheld, 56 * count as u64);
    }
}

#[test]
fn motion_takes_attempts_until_it_is_over() {
    let mut process = with_wrong(10, 50, |number| match number {
        ..5 => vec![number],
        _ => Vec::new(),
    });
    let snapshot = process.best().unwrap();
    assert_eq!((process.attempts, snapshot.heap.wrong), (5, 0));
}

#[test]
fn damage_is_told_from_motion() {
    let mut process = with_wrong(10, 50, |number| match number {
        ..4 => vec![500, number, 10 * number],
        _ => vec![500],
    });
    let snapshot = process.best().unwrap();
    assert_eq!((process.attempts, snapshot.heap.wrong), (4, 1));
    // An element that leads elsewhere has moved, although it is wrong again.
    let (heap, places) = heap_with_list();
    let mut process = Scripted::new(heap, 10, 50, |number, heap: &mut FakeHeap| {
        let moved = NOWHERE + 16 * number.min(3) as u64;
        heap.space.set(places[7], moved);
        Turn::Read
    });
    let snapshot = process.best().unwrap();
    assert_eq!((process.attempts, snapshot.heap.wrong), (4, 1));
}

/// Always others, 7 or more of them, but 4 at the third attempt.
fn always_others(number: usize) -> Vec<usize> {
    let count = if number == 3 { 4 } else { 7 + number % 3 };
    (0..count)
        .map(|row| (number * 10 + row) % ELEMENTS)
        .collect()
}

#[test]
fn what_never_stands_still_is_stopped_for_a_second_at_most() {
    for (stop, attempts) in [(100, 10), (200, 5), (300, 3), (400, 2), (600, 1), (3000, 1)] {
        let mut process = with_wrong(stop, 10, always_others);
        let snapshot = process.best().unwrap();
        assert_eq!(process.attempts, attempts, "{stop}");
        assert!(attempts == 1 || process.stopped <= LIMITS.stopped);
        // The best snapshot, and the stops of all of them.
        let fewest = (1..=attempts)
            .map(|number| always_others(number).len())
            .min();
        assert_eq!(Some(snapshot.heap.wrong as usize), fewest);
        let total = attribute(&snapshot.profile, "profile.pauses.total");
        assert_eq!(u128::from(total), process.stopped.as_nanos());
    }
}

#[test]
fn no_attempt_begins_after_five_seconds() {
    let mut process = with_wrong(1, 990, always_others);
    let snapshot = process.best().unwrap();
    assert_eq!((process.attempts, snapshot.heap.wrong), (5, 4));
    let mut process = with_wrong(1, 20_000, always_others);
    process.best().unwrap();
    assert_eq!(process.attempts, 1);
    // Even if the clock stands still.
    let mut process = with_wrong(0, 0, always_others);
    let limits = Limits {
        attempts: 20,
        ..LIMITS
    };
    best(&mut process, &limits, &|| false).unwrap();
    assert_eq!(process.attempts, 20);
}

/// A heap of which R has taken this number of large objects out of their lists, to mark what they refer to.
fn collecting(count: usize) -> FakeHeap {
    let mut heap = FakeHeap::new();
    let elements: Vec<u64> = (0..10).map(|_| heap.real(1000)).collect();
    let list = heap.list(&elements);
    heap.define_global("list", list);
    heap.finish();
    let class = heap.class(heap.lists.layout.classes - 1);
    let head = heap.word(class, heap.lists.layout.lists[0].0);
    for _ in 0..count {
        let first = heap.word(head, NEXT);
        let second = heap.word(first, NEXT);
        heap.set(head, NEXT, second);
    }
    heap
}

#[test]
fn a_process_that_always_collects_is_read_in_the_end() {
    for (stop, work, attempts) in [
        (1, 0, 501),
        (50, 0, 11),
        (120, 0, 5),
        (700, 0, 2),
        (1, 490, 12),
    ] {
        let mut process =
            Scripted::new(collecting(3), stop, work, |_, _: &mut FakeHeap| Turn::Read);
        let snapshot = process.best().unwrap();
        assert_eq!(snapshot.heap.wrong, 3);
        assert!(process.attempts <= attempts, "{} {stop}", process.attempts);
        assert!(attempts == 2 || process.stopped <= LIMITS.stopped);
        assert!(process.now <= LIMITS.time + milliseconds(2 * (stop + work)));
    }
}

#[test]
fn a_process_that_collects_for_a_moment_is_tried_again() {
    let mut process = Scripted::new(collecting(3), 10, 0, |number, heap: &mut FakeHeap| {
        if number == 4 {
            *heap = collecting(0);
        }
        Turn::Read
    });
    let snapshot = process.best().unwrap();
    assert_eq!((process.attempts, snapshot.heap.wrong), (4, 0));
}

fn message(taken: Result<Snapshot>) -> String {
    taken.err().unwrap().to_string()
}

#[test]
fn errors_end_the_attempts_if_they_are_the_same() {
    let fails = |why: fn(usize) -> Turn, stop| {
        Scripted::new(
            heap_with_list().0,
            stop,
            0,
            move |number, _: &mut FakeHeap| why(number),
        )
    };
    let mut same = fails(|_| Turn::Fails("damaged"), 10);
    assert_eq!(message(same.best()), "damaged");
    assert_eq!(same.attempts, 5);
    // As long as they differ, the time is the limit.
    let mut others = fails(|number| Turn::Fails(["one", "two"][number % 2]), 50);
    assert_eq!(message(others.best()), "one");
    assert_eq!(others.stopped, milliseconds(500));
    let mut over = fails(
        |number| match number {
            ..5 => Turn::Fails("damaged"),
            _ => Turn::Read,
        },
        10,
    );
    assert_eq!(over.best().unwrap().heap.wrong, 0);
    // Another profiler may let it go at any time.
    let mut busy = fails(
        |number| match number {
            ..100 => Turn::Busy,
            _ => Turn::Read,
        },
        10,
    );
    assert_eq!(busy.best().unwrap().heap.wrong, 0);
    let mut always = fails(|_| Turn::Busy, 10);
    assert_eq!(message(always.best()), "busy");
    assert!(always.now <= LIMITS.time + milliseconds(100));
    assert_eq!(always.stopped, Duration::ZERO);
}

#[test]
fn a_process_that_ends_has_the_snapshot_so_far() {
    let mut ended = Scripted::new(heap_with_list().0, 10, 0, |_, _: &mut FakeHeap| Turn::Ended);
    assert_eq!(message(ended.best()), "ended");
    assert_eq!(ended.attempts, 1);
    let (heap, places) = heap_with_list();
    let mut later = Scripted::new(heap, 10, 0, |number, heap: &mut FakeHeap| {
        heap.space.set(places[0], NOWHERE);
        if number == 1 { Turn::Read } else { Turn::Ended }
    });
    assert_eq!(later.best().unwrap().heap.wrong, 1);
    assert_eq!(later.attempts, 2);
}

#[test]
fn the_user_ends_all_attempts() {
    let mut process = with_wrong(10, 0, always_others);
    let ended = best(&mut process, &LIMITS, &|| true);
    assert!(matches!(ended, Err(Error::Interrupted)));
    assert_eq!(process.attempts, 0);
}

#[test]
fn whatever_is_damaged_there_is_an_answer_in_ten_seconds() {
    let mut heap = cases::with_everything(false);
    heap.finish();
    let words = heap.space.words();
    let (mut snapshots, mut errors) = (0, 0);
    for number in 0..300 {
        let random = &mut Random::new(number);
        let mut damaged = cases::with_everything(false);
        damaged.finish();
        for _ in 0..[1, 30, 300][number as usize % 3] {
            change(random, &mut damaged.space, &words);
        }
        let mut process = Scripted::new(damaged, 60, 500, |_, _: &mut FakeHeap| Turn::Read);
        match process.best() {
            Ok(_) => snapshots += 1,
            Err(Error::Process(_)) => errors += 1,
            Err(error) => panic!("{number}: {error}"),
        }
        assert!(process.now <= milliseconds(10_000), "{number}");
        assert!(process.stopped <= LIMITS.stopped, "{number}");
    }
    assert!(snapshots > 30 && errors > 30, "{snapshots} {errors}");
}
