//! Converts what the digest of a profile shows to R objects.

use super::{call_tree, summary};
use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::analysis::description::Description;
use profile_core::error::Result;
use profile_core::model::Profile;

/// The part of the samples that must have plumbing, so that it is suggested to hide it.
const WORTH_HIDING: f64 = 0.2;

/// `list(summary, tree, callers, packages, has_plumbing, plumbing_rows)`: the results of `rust_summarise()` and `rust_call_tree()`, a
/// tibble of the main callers with a row for each function of the summary, one of self by package, whether there is plumbing to
/// hide, and the mean number of its frames.
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
        ("recorded", recorded.unwrap_or(Ok(RObject::null()))?),
    ])
}
