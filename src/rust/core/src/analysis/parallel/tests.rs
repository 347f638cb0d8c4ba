//! Bills of scripted slots.

use super::*;

/// A process at each tick, from tick `first` on: `T`, `t` and `z` compute, wait for a processor and wait in a task, `X` and `x`
/// compute and wait in a transfer, `S` and `s` while they start, and `C` and `.` elsewhere.
fn track(first: usize, script: &str) -> Track {
    let mut track = Track::new(first);
    for character in script.chars() {
        let (place, doing) = match character {
            'T' => (Place::Task, Doing::Computes),
            't' => (Place::Task, Doing::Delayed),
            'z' => (Place::Task, Doing::Waits),
            'X' => (Place::Transfer, Doing::Computes),
            'x' => (Place::Transfer, Doing::Waits),
            'S' => (Place::Starting, Doing::Computes),
            's' => (Place::Starting, Doing::Waits),
            'C' => (Place::Other, Doing::Computes),
            _ => (Place::Other, Doing::Waits),
        };
        track.push(At { place, doing }).unwrap();
    }
    track
}

fn counts(counts: &Counts) -> Vec<(&'static str, u64)> {
    let all = Class::ALL.iter().zip(counts);
    let some = all.filter(|(_, count)| **count > 0);
    some.map(|(class, count)| (class.name(), *count)).collect()
}

fn bill_of(master: &str, workers: &[(usize, &str)]) -> Bill {
    let workers: Vec<_> = workers.iter().map(|(first, s)| track(*first, s)).collect();
    let bill = bill(&track(0, master), &workers, 0..usize::MAX)
        .unwrap()
        .unwrap();
    let all = bill.workers.iter().chain([&bill.empty]).flatten();
    assert_eq!(all.sum::<u64>(), (bill.slots * bill.ticks) as u64);
    bill
}

#[test]
fn workers_of_a_cluster() {
    // The second worker ends before the first one, and waits for it; then the master works alone.
    let bill = bill_of(
        "ssss.....X...CCC..",
        &[(2, "SSxXTTtTzXTTT..."), (2, "SSxXTTX.........")],
    );
    assert_eq!((bill.slots, bill.ticks), (2, 18));
    assert_eq!(
        counts(&bill.workers[0]),
        [
            ("work", 6),
            ("processor", 1),
            ("task_waits", 1),
            ("transfer", 2),
            ("starting", 2),
            ("serial", 1),
            ("master_waits", 3),
        ]
    );
    assert_eq!(
        counts(&bill.workers[1]),
        [
            ("work", 2),
            // Once while the master transferred.
            ("transfer", 3),
            ("starting", 2),
            ("serial", 3),
            ("others", 2),
            ("master_waits", 4),
        ]
    );
    // Before the workers were there, the master started them.
    assert_eq!(counts(&bill.empty), [("starting", 4)]);
}

#[test]
fn forks_that_follow_each_other_share_slots() {
    let bill = bill_of(
        "CC........CC",
        &[
            (2, "TTTT"),
            (2, "TT"),
            // It has the slot of the second one.
            (5, "TTT"),
            (7, "zzX"),
        ],
    );
    assert_eq!((bill.slots, bill.ticks), (2, 12));
    let work: Vec<_> = bill.workers.iter().map(counts).collect();
    assert_eq!(work[0], [("work", 4)]);
    assert_eq!(work[3], [("task_waits", 2), ("transfer", 1)]);
    assert_eq!(
        counts(&bill.empty),
        [("serial", 8), ("others", 3), ("master_waits", 1)]
    );
}

#[test]
fn only_the_wanted_ticks_of_the_master_count() {
    let workers = [track(0, "TTTTTTTT"), track(6, "TT")];
    let of = |master: &Track, ticks| bill(master, &workers, ticks).unwrap();
    let whole = of(&track(0, "........"), 0..100).unwrap();
    assert_eq!((whole.slots, whole.ticks), (2, 8));
    let part = of(&track(0, "........"), 2..6).unwrap();
    assert_eq!((part.slots, part.ticks), (1, 4));
    assert_eq!(counts(&part.workers[0]), [("work", 4)]);
    assert_eq!(counts(&part.empty), []);
    let short = of(&track(1, "..."), 0..100).unwrap();
    assert_eq!((short.slots, short.ticks), (1, 3));
    assert_eq!(of(&track(0, "..."), 3..3), None);
    assert_eq!(of(&track(0, ""), 0..100), None);
    assert_eq!(bill(&track(0, "CCC"), &[], 0..3).unwrap(), None);
}

#[test]
fn a_process_that_only_starts_is_no_worker() {
    let bill = bill_of("sssss...", &[(1, "SSss"), (3, "SSTTT"), (4, "s")]);
    assert_eq!(bill.slots, 1);
    assert_eq!(counts(&bill.workers[0]), []);
    assert_eq!(counts(&bill.workers[1]), [("work", 3), ("starting", 2)]);
    assert_eq!(counts(&bill.empty), [("starting", 3)]);
}

#[test]
fn equal_ticks_are_one_run() {
    let track = track(3, "TTTT..T");
    assert_eq!(track.runs.len(), 3);
    assert_eq!(track.range(), 3..10);
    for place in PLACES {
        for doing in DOING {
            let at = At { place, doing };
            assert_eq!(At::of_code(at.code()), Some(at));
        }
    }
    assert_eq!(At::of_code(12), None);
}
