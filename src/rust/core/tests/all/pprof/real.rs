//! Files that real profilers wrote: heap, CPU, lock and thread profiles of Go programs, and a CPU
//! profile of a node.js program.

use super::build::{origin, show, try_read, write};
use profile_core::formats::pprof;
use profile_core::formats::{self, Input};
use profile_core::model::Profile;
use std::fs;
use std::path::PathBuf;

pub fn files() -> Vec<PathBuf> {
    let directory = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/testthat/data/pprof"
    );
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 8);
    files
}

fn sums(profile: &Profile) -> Vec<f64> {
    let columns = profile.values.iter().map(|v| &v.column);
    columns
        .map(|column| column.iter().sum::<f64>() + 0.0)
        .collect()
}

#[test]
fn what_is_written_is_what_was_read() {
    for file in files() {
        let (profile, problems) =
            formats::read(Input::File(&file), Some(&pprof::FORMAT), origin(), &|| {
                false
            })
            .unwrap();
        assert!(problems.is_empty(), "{file:?}");
        let (again, _) = try_read(&write(&profile, false)).unwrap();
        assert_eq!(show(&again), show(&profile), "{file:?}");
        let (before, after) = (&profile.sources[0], &again.sources[0]);
        assert_eq!(before.period, after.period);
        assert_eq!(before.duration, after.duration);
        assert_eq!(before.default_type, after.default_type);
        assert_eq!(before.comments, after.comments);
        let bytes = write(&again, false);
        assert_eq!(bytes, write(&try_read(&bytes).unwrap().0, false));

        let (summed, _) = try_read(&write(&profile, true)).unwrap();
        assert_eq!(sums(&summed), sums(&profile), "{file:?}");
        assert!(summed.samples.len() <= profile.samples.len());
    }
}

/// These numbers were counted in the messages with other tools.
#[test]
fn facts_of_single_files_are_known() {
    let read = |name: &str| {
        let path = files().into_iter().find(|f| f.ends_with(name)).unwrap();
        formats::read(Input::File(&path), Some(&pprof::FORMAT), origin(), &|| {
            false
        })
        .unwrap()
        .0
    };
    let cpu = read("go_cpu.pb.gz");
    assert_eq!(sums(&cpu), [297.0, 2_970_000_000.0]);
    let period = cpu.sources[0].period.as_ref().unwrap();
    assert_eq!(period.nanoseconds(), Some(10_000_000.0));
    let heap = read("go_heap.pb.gz");
    assert!(heap.sources[0].default_type.is_none());
    let allocs = read("go_allocs.pb.gz");
    let default = allocs.sources[0].default_type.as_deref();
    assert_eq!(default, Some("alloc_space"));
    assert_eq!((heap.samples.len(), heap.labels.len()), (2134, 2101));
    let empty = read("go_mutex.pb.gz");
    assert_eq!((empty.samples.len(), empty.values.len()), (0, 2));
}
