//! Converts the time in which packages were loaded to R objects.

use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::analysis::loaded::{Loading, Phase};
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;

/// `list(type, unit, whole, packages, askers)`: what was summed, its sum for all samples, a tibble with a row for each package
/// (`NA` if unknown), and one with a row for each pair of a package and another one that asked for it. Times are in seconds,
/// and missing if they are unknown.
pub fn loading<'call>(arena: Arena<'call>, loading: &Loading) -> Result<RObject<'call>> {
    let all = || loading.packages.iter();
    let mut packages = Tibble::new(arena, loading.packages.len())?;
    packages.texts("package", all().map(|loaded| loaded.package))?;
    packages.doubles("self", all().map(|loaded| loaded.self_[0]))?;
    packages.doubles("total", all().map(|loaded| loaded.total[0]))?;
    if loading.has_time {
        packages.doubles("self_time", all().map(|loaded| loaded.self_[1] / 1e9))?;
        packages.doubles("total_time", all().map(|loaded| loaded.total[1] / 1e9))?;
    }
    for phase in Phase::ALL {
        let part = all().map(|loaded| loaded.phases[phase as usize]);
        packages.doubles(phase.name(), part)?;
    }
    packages.texts("first", all().map(|loaded| Some(loaded.first())))?;
    packages.logicals("by_user", all().map(|loaded| Some(loaded.is_asked_by_user)))?;
    let pairs = || {
        all().flat_map(|loaded| {
            let askers = loaded.askers.iter();
            askers.map(|asker| (loaded.package, *asker))
        })
    };
    let pairs = pairs().try_vec()?;
    let mut askers = Tibble::new(arena, pairs.len())?;
    askers.texts("package", pairs.iter().map(|(package, _)| *package))?;
    askers.texts("asker", pairs.iter().map(|(_, asker)| Some(*asker)))?;
    let (name, unit) = loading.type_;
    arena.list(&[
        ("type", arena.text(name)?),
        ("unit", arena.text(unit)?),
        ("whole", arena.number(loading.whole)?),
        ("packages", packages.finish()?),
        ("askers", askers.finish()?),
    ])
}
