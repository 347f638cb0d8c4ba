//! The number of threads that compression and reading use. It is a separate test program, since
//! other tests in the same process would start threads of their own.

#![cfg(target_os = "linux")]

use profile_core::formats::{self, Input, rprof};
use profile_core::io::gzip;
use profile_core::io::input::Origin;
use profile_core::io::save;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

/// The threads of this process, by their names in `/proc`.
fn threads() -> BTreeSet<OsString> {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    threads.map(|thread| thread.unwrap().file_name()).collect()
}

/// Threads that were started since `before`. The kernel lists a thread for a moment after it was joined, so their
/// number is not the difference of two counts.
struct Started {
    before: BTreeSet<OsString>,
    seen: RefCell<BTreeSet<OsString>>,
}

impl Started {
    fn since_now() -> Started {
        Started {
            before: threads(),
            seen: RefCell::default(),
        }
    }

    fn look(&self) {
        let now = threads();
        self.seen
            .borrow_mut()
            .extend(now.difference(&self.before).cloned());
    }

    fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    /// Waits until all of them have ended, without a time limit.
    fn have_ended(&self) {
        while !threads().is_disjoint(&self.seen.borrow()) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn one_more_thread_is_used() {
    let deflated = compressing();
    reading(&deflated);
}

/// Returns an Rprof file, compressed.
fn compressing() -> Vec<u8> {
    let mut deflated = Vec::new();
    let started = Started::since_now();
    gzip::compress(&mut deflated, |out| {
        let lines = "\"inner\" \"outer\" \n".repeat(1 << 14);
        out.write_all(b"sample.interval=20000\n")
            .map_err(save::failed)?;
        for _ in 0..64 {
            out.write_all(lines.as_bytes()).map_err(save::failed)?;
            started.look();
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(started.count(), 1);
    started.have_ended();
    deflated
}

fn reading(deflated: &[u8]) {
    let started = Started::since_now();
    let look = || {
        started.look();
        false
    };
    let (input, format) = (Input::Bytes(deflated), Some(&rprof::FORMAT));
    let (profile, _) = formats::read(input, format, Origin::default(), &look).unwrap();
    assert_eq!(profile.samples.len(), 64 << 14);
    assert_eq!(started.count(), 1);
    started.have_ended();
}
