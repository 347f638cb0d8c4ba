//! Entry points that compute something from a profile.

use crate::argument::{argument, text};
use crate::guard::stop;
use crate::options::groups;
use crate::outcome::outcome;
use crate::pool::pooled;
use crate::{from_r, to_r};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::analysis::call_tree::TreePart;
use profile_core::analysis::frame_names::FrameNames;
use profile_core::analysis::groups::By;
use profile_core::analysis::test_calls::TestCalls;
use profile_core::analysis::{call_tree, description, flat, holders, loaded, runs, summary};
use profile_core::limits::memory::TryCollect;
use profile_core::model::{SourceId, conversion};

// `sample_type` is the name of the sample type to sum, or NULL for the default. `by` is "function", "file" or "package".
#[extendr]
fn rust_summarise(x: &Robj, sample_type: &Robj, by: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::analysed(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let names = FrameNames::new(&profile)?;
        let summary = summary::summarise(&profile, &names, groups(by)?, wanted, &stop)?;
        to_r::summary(arena, &profile, &summary)
    })
}

// Returns what the digest of a profile shows, see `to_r/description.rs`.
#[extendr]
fn rust_describe(x: &Robj, sample_type: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::analysed(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let names = FrameNames::new(&profile)?;
        let description = description::describe(&profile, &names, wanted, &stop)?;
        to_r::description(arena, &profile, &description)
    })
}

// Returns the time in which packages were loaded, see `to_r/loading.rs`.
#[extendr]
fn rust_loading(x: &Robj, sample_type: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::analysed(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let names = FrameNames::new(&profile)?;
        let loading = loaded::loading(&profile, &names, wanted, &stop)?;
        to_r::loading(arena, &loading)
    })
}

// `by` is "function", "line", "file" or "package". `part` is "whole", or "callers" or "callees" of the function `name`.
// `sources` contains for each source whether its samples are used, and is NULL for all sources. If the profile has no
// function `name`, returns only `list(known)`, the names that it has.
#[extendr]
fn rust_call_tree(
    x: &Robj,
    sample_type: &Robj,
    by: &Robj,
    sources: &Robj,
    part: &Robj,
    name: &Robj,
) -> Robj {
    outcome(|arena| {
        let profile = from_r::analysed(argument(x), &stop)?;
        let wanted = argument(sample_type).text()?;
        let by = match groups(by)? {
            By::Line => By::Place,
            by => by,
        };
        let part = match text(part)? {
            "callers" => TreePart::Callers(text(name)?),
            "callees" => TreePart::Callees(text(name)?),
            _ => TreePart::Whole,
        };
        let wanted_sources = argument(sources).integers()?;
        let is_wanted = |source: SourceId| {
            wanted_sources
                .get(source.row())
                .is_none_or(|&flag| flag == 1)
        };
        let names = FrameNames::new(&profile)?;
        if let TreePart::Callers(name) | TreePart::Callees(name) = part {
            let known = names.known(&profile)?;
            if !known.contains(&name) {
                return arena.list(&[("known", arena.texts(&known)?)]);
            }
        }
        let tree = call_tree::call_tree(&profile, &names, wanted, by, part, is_wanted, &stop)?;
        to_r::call_tree(arena, &profile, &tree)
    })
}

// Returns the flat rows of a data set, see `to_r/flat.rs`. `keys` and `values`: attributes for all resources.
// `call`: a text that differs for each call.
#[extendr]
fn rust_flat(x: &Robj, keys: &Robj, values: &Robj, call: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::analysed(argument(x), &stop)?;
        let further = argument(keys).texts()?.into_iter();
        let further = further.zip(argument(values).texts()?).try_vec()?;
        let names = FrameNames::new(&profile)?;
        let flat = flat::flat(&profile, &names, &further, text(call)?, &stop)?;
        to_r::flat(arena, &profile, &flat)
    })
}

// Returns the name under which each location is shown, and whether it has a function with a name.
#[extendr]
fn rust_frame_names(x: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let names = FrameNames::new(&profile)?;
        to_r::frame_names(arena, &profile, &names)
    })
}

// Returns self and total values of each function, line, file or package in each source of the profiles in a list, see
// `to_r/runs.rs`. Without a `sample_type`, the sampled time is summed if it is known.
#[extendr]
fn rust_runs(profiles: &Robj, sample_type: &Robj, by: &Robj) -> Robj {
    outcome(|arena| {
        let profile = pooled(arena, argument(profiles).elements()?, &stop)?;
        let wanted = argument(sample_type).text()?;
        let names = FrameNames::new(&profile)?;
        let runs = runs::by_run(&profile, &names, wanted, groups(by)?, &stop)?;
        to_r::runs(arena, &runs)
    })
}

// Returns the paths that hold most of the memory in use, see `to_r/holders.rs`. If `base`, the number of sources that
// are compared with the others, is not 0: those below which it has changed most. `most`: the maximum number of rows.
#[extendr]
fn rust_holders(profiles: &Robj, base: &Robj, min_share: &Robj, most: &Robj) -> Robj {
    outcome(|arena| {
        let profile = pooled(arena, argument(profiles).elements()?, &stop)?;
        let base = argument(base).integers()?.first().copied();
        let number = |of: &Robj| {
            let number = argument(of).doubles().map(|all| all.first().copied());
            number.map(|number| number.unwrap_or_default())
        };
        let request = holders::Request {
            base: base.map_or(0, |base| base.max(0) as usize),
            min_share: number(min_share)?,
            // Infinity is the largest number.
            most: number(most)? as usize,
        };
        let names = FrameNames::new(&profile)?;
        let holders = holders::holders(&profile, &names, &request, &stop)?;
        to_r::holders(arena, &profile, holders.as_ref())
    })
}

// Returns a tibble with a row for each frame of each sample.
#[extendr]
fn rust_frames(x: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        to_r::frames(arena, &profile, argument(lazy).flag()?, &stop)
    })
}

// Returns the data frame that profvis draws, see `to_r/profvis.rs`.
#[extendr]
fn rust_profvis(x: &Robj, filenames: &Robj, texts: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let texts = argument(texts).texts()?;
        let files = argument(filenames).texts()?.into_iter().zip(texts);
        let files = files.try_vec()?;
        to_r::profvis(arena, &profile, &files, &stop)
    })
}

// Returns the factors by which values in these units are converted into the unit `to`; NA if that is not possible.
#[extendr]
fn rust_unit_factors(units: &Robj, to: &Robj) -> Robj {
    outcome(|arena| {
        let to = text(to)?;
        let units = argument(units).texts()?;
        let factor = |unit: &&str| {
            if *unit == to {
                1.0
            } else {
                conversion(unit, to).map_or(f64::NAN, |conversion| conversion.convert(1.0))
            }
        };
        arena.numbers(&units.iter().map(factor).try_vec()?)
    })
}

// Returns the tests of testthat that run in the samples, see `to_r/test_calls.rs`.
#[extendr]
fn rust_test_calls(x: &Robj) -> Robj {
    outcome(|arena| {
        let profile = from_r::profile(argument(x), &stop)?;
        let found = TestCalls::find(&profile, &stop)?;
        to_r::test_calls(arena, &profile, &found)
    })
}

extendr_module! {
    mod analysis;
    fn rust_unit_factors;
    fn rust_summarise;
    fn rust_describe;
    fn rust_loading;
    fn rust_call_tree;
    fn rust_flat;
    fn rust_frame_names;
    fn rust_runs;
    fn rust_holders;
    fn rust_frames;
    fn rust_profvis;
    fn rust_test_calls;
}
