//! Converts what the digest of a profile shows to R objects.

use super::{call_tree, loading, summary};
use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::analysis::copies::Purpose;
use profile_core::analysis::description::Description;
use profile_core::error::Result;
use profile_core::model::Profile;

/// The part of the samples that must have plumbing, so that it is suggested to hide it.
const WORTH_HIDING: f64 = 0.2;

/// A list: `summary` and `tree` are the results of `rust_summarise()` and `rust_call_tree()`, `callers` is a tibble with a row
/// for each function of the summary, and `packages` one of self by package. `has_plumbing` says whether there is plumbing to
/// hide, `plumbing_rows` is the mean number of its frames. Of exact allocations: `memory_time`, in nanoseconds, `NaN` if
/// unknown, `allocated` bytes, and the `copies` of each place. `copying` has a row if there are samples during which
/// objects were copied. `loading` is the result of `rust_loading()`. `peak_source` is the row of the source with the highest peak, `NaN` if there is none, and
/// `peak_places` are its places.
pub fn description<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    description: &Description,
) -> Result<RObject<'call>> {
    let callers = || description.callers.iter();
    let mut main = Tibble::new(arena, description.callers.len())?;
    main.texts("caller", callers().map(|c| c.map(|c| c.name)))?;
    let totals = callers().map(|c| c.map_or(f64::NAN, |c| c.total));
    main.doubles("total", totals)?;
    let all = || description.packages.iter();
    let mut packages = Tibble::new(arena, description.packages.len())?;
    packages.texts("package", all().map(|(package, _)| *package))?;
    packages.doubles("self", all().map(|(_, sum)| *sum))?;
    let all = || description.copies.iter();
    let mut copies = Tibble::new(arena, description.copies.len())?;
    copies.texts("name", all().map(|copies| Some(copies.name)))?;
    copies.texts("filename", all().map(|copies| Some(copies.line?.0)))?;
    copies.integers("line", all().map(|copies| copies.line.map_or(NA, |l| l.1)))?;
    copies.doubles("bytes", all().map(|copies| copies.bytes))?;
    copies.doubles("copies", all().map(|copies| copies.copies))?;
    copies.texts("reason", all().map(|copies| copies.reason))?;
    let is = |purpose| all().map(move |copies| Some(copies.purpose == purpose));
    copies.logicals("grows", is(Purpose::Growth))?;
    copies.logicals("converts", is(Purpose::Conversion))?;
    let all = || description.copying.iter();
    let mut copying = Tibble::new(arena, all().len())?;
    copying.texts("name", all().map(|copying| Some(copying.name)))?;
    copying.texts("filename", all().map(|copying| Some(copying.line?.0)))?;
    copying.integers(
        "line",
        all().map(|copying| copying.line.map_or(NA, |l| l.1)),
    )?;
    copying.doubles("self", all().map(|copying| copying.sum))?;
    copying.doubles("place", all().map(|copying| copying.of_place))?;
    let peak = description.peak.as_ref();
    let all = || peak.into_iter().flat_map(|peak| &peak.places);
    let mut places = Tibble::new(arena, all().count())?;
    places.texts("name", all().map(|place| Some(place.name)))?;
    places.texts("filename", all().map(|place| Some(place.line?.0)))?;
    places.integers("line", all().map(|place| place.line.map_or(NA, |l| l.1)))?;
    places.doubles("bytes", all().map(|place| place.bytes))?;
    let source = peak.map_or(f64::NAN, |peak| (peak.source + 1) as f64);
    let recorded = description.recorded.as_ref();
    let recorded = recorded.map(|recorded| summary(arena, profile, recorded));
    arena.list(&[
        ("summary", summary(arena, profile, &description.summary)?),
        ("tree", call_tree(arena, profile, &description.tree)?),
        ("callers", main.finish()?),
        ("packages", packages.finish()?),
        (
            "has_plumbing",
            arena.flag(description.plumbing_share > WORTH_HIDING)?,
        ),
        ("plumbing_rows", arena.number(description.plumbing_rows)?),
        ("is_complete", arena.flag(description.is_complete)?),
        (
            "memory_time",
            arena.number(description.memory_time.unwrap_or(f64::NAN))?,
        ),
        ("allocated", arena.number(description.allocated)?),
        ("copies", copies.finish()?),
        ("copying", copying.finish()?),
        ("loading", loading(arena, &description.loading)?),
        ("peak_source", arena.number(source)?),
        ("peak_places", places.finish()?),
        ("recorded", recorded.unwrap_or(Ok(RObject::null()))?),
    ])
}
