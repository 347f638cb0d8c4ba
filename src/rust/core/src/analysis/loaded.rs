//! The time that it takes to load and attach packages, by package: who asked for it first, and what took the time.
//!
//! The frames of [`TITLED`] functions, such as `loadNamespace(dplyr)`, contain the names of packages. A sample belongs to the
//! package of its innermost such frame, and counts once in the total of each package that has one. So all own times add up
//! to the time in which any package was loaded or attached.

mod phase;

pub use phase::Phase;

use super::frame_names::FrameNames;
use super::packages::package_of;
use super::sample_types::summed_type;
use super::weights::{Counted, Weight, sum_by_stack, type_of};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled};
use crate::model::titled::{Role, TITLED, row_of_call, title_of};
use crate::model::{LocationId, Profile};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// What a package took.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<'p> {
    /// `None` if the profile has no names of packages.
    pub package: Option<&'p str>,
    pub self_: Amount,
    pub total: Amount,
    /// The parts of self, in the order of [`Phase::ALL`].
    pub phases: [f64; Phase::ALL.len()],
    /// The first sample with the package, and who asked for it there.
    first: (usize, Asker<'p>),
    /// Other packages that asked for it, each of them once, and whether code outside of loads did.
    pub askers: Vec<&'p str>,
    pub is_asked_by_user: bool,
}

/// The value of the type that is summed, and the time in nanoseconds, if it is known.
pub type Amount = [f64; 2];

/// Who asks for a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker<'p> {
    /// Another package, while it was loaded or attached.
    Package(&'p str),
    /// The name of a call.
    Call(&'p str),
}

impl<'p> Loaded<'p> {
    /// The package that asked first, or the call that did.
    pub fn first(&self) -> &'p str {
        match self.first.1 {
            Asker::Package(name) | Asker::Call(name) => name,
        }
    }
}

/// The time in which packages were loaded or attached.
#[derive(Debug, Clone, PartialEq)]
pub struct Loading<'p> {
    pub type_: (&'p str, &'p str),
    /// Of all samples.
    pub whole: f64,
    /// Whether times are known.
    pub has_time: bool,
    /// In descending order of self, then of total.
    pub packages: Vec<Loaded<'p>>,
}

/// What a frame is.
#[derive(Debug, Clone, Copy)]
enum Kind<'p> {
    /// It loads or attaches a package, whose name may be unknown.
    Loader(Option<&'p str>, Role),
    Phase(Phase),
    /// It belongs to the way from a call to the load.
    Between,
    Other,
}

/// Functions of base between the call of the user and the load.
const BETWEEN: [&str; 20] = [
    "::",
    ":::",
    "get",
    "getExportedValue",
    "asNamespace",
    "getNamespace",
    "tryCatch",
    "tryCatchList",
    "tryCatchOne",
    "doTryCatch",
    "try",
    "withCallingHandlers",
    "withVisible",
    "suppressMessages",
    "suppressWarnings",
    "suppressPackageStartupMessages",
    "lapply",
    "vapply",
    "sapply",
    "FUN",
];

/// Sums the sample type `wanted`, or the default one, and the sampled time if it is known.
pub fn loading<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<Loading<'p>> {
    let summed = summed_type(profile, wanted)?;
    let weights = [Weight::column(summed), Weight::time(profile)?];
    let has_time = !matches!(weights[1], Weight::Nothing);
    let (counted, by_stack) = sum_by_stack(profile, &weights, |_| true, stop)?;
    let [Counted { whole, .. }, _] = counted;
    let kinds = profile.locations.ids().map(|id| kind(profile, names, id));
    let kinds = kinds.try_vec()?;
    let mut first_rows = filled(profile.stacks.len(), usize::MAX)?;
    for (row, stack) in profile.samples.stack.iter().enumerate() {
        let first = &mut first_rows[stack.row()];
        *first = row.min(*first);
    }
    let mut packages = Packages::default();
    let mut space = Vec::new();
    let mut seen: Vec<Option<&str>> = Vec::new();
    for (stack, amount) in profile.stacks.ids().zip(by_stack) {
        cancel::at_row(stack.row(), stop)?;
        // Other types, such as exact allocations, may have stacks of their own.
        if amount == [0.0; 2] {
            continue;
        }
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let innermost = frames.iter().position(|&frame| {
            let kind = kinds[frame.row()];
            matches!(kind, Kind::Loader(..))
        });
        let Some(innermost) = innermost.filter(|_| first_rows[stack.row()] != usize::MAX) else {
            continue;
        };
        seen.clear();
        for at in innermost..frames.len() {
            let Kind::Loader(package, role) = kinds[frames[at].row()] else {
                continue;
            };
            // Of outer calls whose package is not known yet, nothing is known.
            if package.is_none() && at != innermost {
                continue;
            }
            let row = packages.row(package)?;
            if at == innermost {
                let inside = frames[..at].iter().rev();
                let mut phases = inside.filter_map(|frame| match kinds[frame.row()] {
                    Kind::Phase(phase) => Some(phase),
                    _ => None,
                });
                let phase = match role {
                    Role::Attach => Phase::Attach,
                    Role::Load | Role::Unit => phases.next().unwrap_or(Phase::Other),
                };
                packages.all[row].add_own(amount, phase);
            }
            if !seen.contains(&package) {
                seen.try_push(package)?;
                let asker = asker(&kinds, names, &frames[at..], package);
                packages.all[row].add_total(amount, asker, first_rows[stack.row()])?;
            }
        }
    }
    Ok(Loading {
        type_: type_of(summed),
        whole: whole.get(),
        has_time,
        packages: packages.sorted(),
    })
}

/// What a location is.
fn kind<'p>(profile: &'p Profile, names: &'p FrameNames, id: LocationId) -> Kind<'p> {
    let name = names.of(id);
    let package = package_of(profile, id);
    let is_of = |wanted| package.is_none_or(|package| package == wanted);
    if !is_of("base") {
        return match package {
            Some("methods") => Kind::Phase(Phase::S4),
            _ => Kind::Other,
        };
    }
    let (role, title) = match title_of(name) {
        Some((titled, title)) => (Some(titled.role), Some(title)),
        None => (row_of_call(name).map(|row| TITLED[row].role), None),
    };
    if let Some(role @ (Role::Load | Role::Attach)) = role {
        return Kind::Loader(title, role);
    }
    let plain = name.strip_prefix("base::").unwrap_or(name);
    match Phase::of_function(plain) {
        Some(phase) => Kind::Phase(phase),
        None if BETWEEN.contains(&plain) => Kind::Between,
        None => Kind::Other,
    }
}

/// Who asks for a package, given the frames from the one that loads it outwards.
fn asker<'p>(
    kinds: &[Kind<'p>],
    names: &'p FrameNames,
    frames: &[LocationId],
    package: Option<&str>,
) -> Asker<'p> {
    let (mut call, mut is_attached, mut is_user) = (None, false, false);
    for &frame in frames {
        match kinds[frame.row()] {
            Kind::Loader(Some(other), _) if Some(other) != package => {
                return Asker::Package(other);
            }
            // Further out, only another load is of interest.
            _ if is_user => {}
            Kind::Loader(_, role) => {
                call = Some(names.of(frame));
                is_attached = role == Role::Attach;
            }
            Kind::Other | Kind::Phase(_) => {
                is_user = true;
                // `library(dplyr)` says more than the function that calls it.
                if !is_attached {
                    call = Some(names.of(frame));
                }
            }
            Kind::Between => {}
        }
    }
    Asker::Call(call.unwrap_or_default())
}

/// The packages that were seen.
#[derive(Default)]
struct Packages<'p> {
    rows: HashMap<Option<&'p str>, usize, RandomState>,
    all: Vec<Loaded<'p>>,
}

impl<'p> Packages<'p> {
    fn row(&mut self, package: Option<&'p str>) -> Result<usize> {
        if let Some(&row) = self.rows.get(&package) {
            return Ok(row);
        }
        self.rows.try_put(package, self.all.len())?;
        self.all.try_push(Loaded {
            package,
            self_: [0.0; 2],
            total: [0.0; 2],
            phases: [0.0; Phase::ALL.len()],
            first: (usize::MAX, Asker::Call("")),
            askers: Vec::new(),
            is_asked_by_user: false,
        })?;
        Ok(self.all.len() - 1)
    }

    fn sorted(mut self) -> Vec<Loaded<'p>> {
        self.all.sort_unstable_by(|a, b| {
            let by_size = |one: f64, other: f64| other.abs().total_cmp(&one.abs());
            by_size(a.self_[0], b.self_[0])
                .then_with(|| by_size(a.total[0], b.total[0]))
                .then_with(|| a.package.cmp(&b.package))
        });
        self.all
    }
}

impl<'p> Loaded<'p> {
    fn add_own(&mut self, amount: Amount, phase: Phase) {
        super::weights::add(&mut self.self_, &amount);
        self.phases[phase as usize] += amount[0];
    }

    fn add_total(&mut self, amount: Amount, asker: Asker<'p>, row: usize) -> Result<()> {
        super::weights::add(&mut self.total, &amount);
        if row < self.first.0 {
            self.first = (row, asker);
        }
        match asker {
            Asker::Package(name) if !self.askers.contains(&name) => self.askers.try_push(name)?,
            Asker::Package(_) => {}
            Asker::Call(_) => self.is_asked_by_user = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
