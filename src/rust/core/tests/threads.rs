//! The number of threads that compression and reading use. It is a separate test program, since
//! other tests in the same process would have threads of their own.

#![cfg(target_os = "linux")]

use profile_core::formats::{self, Input, rprof};
use profile_core::io::gzip;
use profile_core::io::input::Origin;
use profile_core::io::save;
use std::cell::Cell;
use std::fs;

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn one_more_thread_is_used() {
    let deflated = compressing();
    reading(&deflated);
}

/// Gives an Rprof file, compressed.
fn compressing() -> Vec<u8> {
    let mut deflated = Vec::new();
    let before = threads();
    let mut most = before;
    gzip::compress(&mut deflated, |out| {
        let lines = "\"inner\" \"outer\" \n".repeat(1 << 14);
        out.write_all(b"sample.interval=20000\n")
            .map_err(save::failed)?;
        for _ in 0..64 {
            out.write_all(lines.as_bytes()).map_err(save::failed)?;
            most = most.max(threads());
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(most, before + 1);
    // The kernel lists a thread for a moment after it was joined.
    assert!(threads() <= most);
    deflated
}

fn reading(deflated: &[u8]) {
    let before = threads();
    let most = Cell::new(before);
    let count = || {
        most.set(most.get().max(threads()));
        false
    };
    let (input, format) = (Input::Bytes(deflated), Some(&rprof::FORMAT));
    let (profile, _) = formats::read(input, format, Origin::default(), &count).unwrap();
    assert_eq!(profile.samples.len(), 64 << 14);
    assert_eq!(most.get(), before + 1);
}
