//! Entry points that watch the memory of processes, and take snapshots when it is highest.

use crate::arena::RObject;
use crate::argument::argument;
use crate::guard::stop;
use crate::outcome::outcome;
use crate::to_r;
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_reader::live::PeakWatch;
use profile_reader::recorded::memory::Peak;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The processes whose memory is watched.
static PEAKS: Mutex<Vec<PeakWatch>> = Mutex::new(Vec::new());

fn peaks() -> MutexGuard<'static, Vec<PeakWatch>> {
    let mut peaks = PEAKS.lock().unwrap_or_else(PoisonError::into_inner);
    if peaks.iter().any(|peak| !peak.is_here()) {
        // The threads belong to the parent of this fork, so that nobody can wait for their end.
        std::mem::forget(std::mem::take(&mut *peaks));
    }
    peaks
}

/// Called before the library is unloaded.
pub fn abandon() {
    drop(end_peaks());
}

/// Ends the threads that watch the memory of processes, and returns what they have found.
fn end_peaks() -> Result<Vec<Peak>> {
    let mut found = Ok(Vec::new());
    for peak in std::mem::take(&mut *peaks()) {
        // All of them have to end.
        let peak = peak.end();
        found = found.and_then(|mut found: Vec<Peak>| found.try_push(peak?).map(|()| found));
    }
    found
}

// Watches the memory of these processes, and takes a snapshot of each at each new maximum.
#[extendr]
fn rust_peaks_start(pids: &Robj) -> Robj {
    outcome(|_| {
        drop(end_peaks());
        for &pid in argument(pids).integers()? {
            let started = PeakWatch::start(pid).and_then(|peak| peaks().try_push(peak));
            if let Err(error) = started {
                drop(end_peaks());
                return Err(error);
            }
        }
        Ok(RObject::null())
    })
}

// Returns what is known about their memory now, a row for each.
#[extendr]
fn rust_peaks_look() -> Robj {
    outcome(|arena| {
        let so_far = peaks().iter().map(PeakWatch::so_far).try_vec()?;
        to_r::peaks_so_far(arena, &so_far)
    })
}

// Ends the watch, and returns the same, the last snapshot of each, why there is none, and how processes have ended.
#[extendr]
fn rust_peaks_end(lazy: &Robj) -> Robj {
    outcome(|arena| to_r::peaks(arena, &end_peaks()?, argument(lazy).flag()?, &stop))
}

extendr_module! {
    mod peaks;
    fn rust_peaks_start;
    fn rust_peaks_look;
    fn rust_peaks_end;
}
