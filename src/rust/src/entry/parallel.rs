//! The entry point that computes the bill of parallel work.

use crate::arena::RObject;
use crate::argument::argument;
use crate::options::option;
use crate::outcome::outcome;
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::analysis::parallel::{self, At, Class, Track};
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow};

// The bill of parallel work, see `core/src/analysis/parallel.rs`. `tracks` is a list, see `to_r/processes.rs`; `master` and
// `workers` are rows of it, and `from` and `to` the first and the last tick that count; all are numbers from 1 on. Returns
// `list(slots, ticks, classes, counts)`: `counts` has those of each worker, one after the other, and then those of slots
// without a worker. NULL if there is no bill.
#[extendr]
fn rust_parallel_bill(
    tracks: &Robj,
    master: &Robj,
    workers: &Robj,
    from: &Robj,
    to: &Robj,
) -> Robj {
    outcome(|arena| {
        let tracks = parallel_tracks(tracks)?;
        let row = |number: i32| usize::try_from(number - 1).ok();
        let track = |number: i32| row(number).and_then(|row| tracks.get(row));
        let one = |number: &Robj| -> Result<i32> {
            Ok(argument(number).integers()?.first().copied().unwrap_or(0))
        };
        let Some(master) = track(one(master)?) else {
            return Ok(RObject::null());
        };
        let workers = argument(workers).integers()?.iter();
        let workers = workers.filter_map(|&number| track(number).cloned());
        let workers = workers.try_vec()?;
        let ticks = row(one(from)?).unwrap_or(0)..usize::try_from(one(to)?).unwrap_or(0);
        let Some(bill) = parallel::bill(master, &workers, ticks)? else {
            return Ok(RObject::null());
        };
        let counts = bill.workers.iter().chain([&bill.empty]).flatten();
        let counts = counts.map(|&count| count as f64).try_vec()?;
        let classes = Class::ALL.map(Class::name);
        arena.list(&[
            ("slots", arena.number(bill.slots as f64)?),
            ("ticks", arena.number(bill.ticks as f64)?),
            ("classes", arena.texts(&classes)?),
            ("counts", arena.numbers(&counts)?),
        ])
    })
}

fn parallel_tracks(tracks: &Robj) -> Result<Vec<Track>> {
    let numbers = |name| option(tracks, name)?.integers();
    let mut runs = numbers("state")?.iter().zip(numbers("times")?);
    let mut all = Vec::new();
    for (&first, &count) in numbers("first")?.iter().zip(numbers("runs")?) {
        let mut track = Track::new(usize::try_from(first).unwrap_or(0));
        for (&state, &times) in runs.by_ref().take(usize::try_from(count).unwrap_or(0)) {
            let at = u8::try_from(state).ok().and_then(At::of_code);
            let ticks = u32::try_from(times).unwrap_or(0);
            track.runs.try_push((at.unwrap_or_default(), ticks))?;
        }
        all.try_push(track)?;
    }
    Ok(all)
}

extendr_module! {
    mod parallel;
    fn rust_parallel_bill;
}
