//! Everything that the digest of a profile (`describe_profile()` in R) takes from its samples: the summary, the call
//! tree, the main caller of each function, and self by package.
//!
//! They are computed together, so that the tables of the profile are checked and read once.

use super::allocations::AllocatingFrames;
use super::call_tree::{CallTree, TreePart, call_tree};
use super::copies::{Copies, Copying, copies, copying};
use super::frame_names::FrameNames;
use super::frameworks::Frameworks;
use super::groups::By;
use super::loaded::{Loading, loading};
use super::packages::package_of;
use super::peak::{Peak, peak};
use super::recorded::{has_recorded_all, memory_time};
use super::sample_types::summed_type;
use super::summary::{Summary, summarise};
use super::weights::{Weight, sum_by_stack};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled};
use crate::model::known_types::{ALLOC_SIZE, ALLOC_SPACE, KnownType};
use crate::model::{COLLECTION, COPYING, FINALIZER, Profile};
use crate::tables::{Plumbing, Position};
use foldhash::fast::RandomState;
use std::collections::HashMap;

pub struct Description<'p> {
    pub summary: Summary<'p>,
    /// By function.
    pub tree: CallTree<'p>,
    /// For each function of the summary; `None` for functions without callers.
    pub callers: Vec<Option<MainCaller<'p>>>,
    /// Self of each package, if it is not 0, in descending order of the absolute value. `None` is the unknown package,
    /// which comes last among equals.
    pub packages: Vec<(Option<&'p str>, f64)>,
    /// The part of the samples with frames that frameworks add, and the mean number of these frames in all samples, by
    /// their absolute values.
    pub plumbing_share: f64,
    pub plumbing_rows: f64,
    /// The memory that each function allocated, if allocations were recorded one by one and the summary has only a lower
    /// bound.
    pub recorded: Option<Summary<'p>>,
    /// Whether `recorded` has the allocations of all sources.
    pub is_complete: bool,
    /// See [`memory_time()`].
    pub memory_time: Option<f64>,
    /// The bytes of all allocations, and where vectors were copied, if that is known exactly.
    pub allocated: f64,
    pub copies: Vec<Copies<'p>>,
    /// The samples during which objects were copied.
    pub copying: Option<Copying<'p>>,
    /// The time in which packages were loaded.
    pub loading: Loading<'p>,
    /// What was in use at the peak, if each vector was recorded.
    pub peak: Option<Peak<'p>>,
}

/// The caller from which most of the total of a function's outermost calls comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MainCaller<'p> {
    pub name: &'p str,
    /// The part of the total.
    pub total: f64,
}

/// Describes the sample type `wanted`, or the default one.
pub fn describe<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<Description<'p>> {
    let summary = summarise(profile, names, By::Function, wanted, stop)?;
    let (by, part) = (By::Function, TreePart::Whole);
    let tree = call_tree(profile, names, wanted, by, part, |_| true, stop)?;
    let mut callers: HashMap<&str, MainCaller, RandomState> = HashMap::default();
    for (callee, caller) in main_callers(&tree)? {
        callers.try_put(callee, caller)?;
    }
    let weights = [Weight::column(summed_type(profile, wanted)?)];
    let (_, by_stack) = sum_by_stack(profile, &weights, |_| true, stop)?;
    let (plumbing_share, plumbing_rows) = plumbing(profile, &by_stack, stop)?;
    let functions = summary.functions.keys.iter();
    let callers = functions.map(|name| callers.get((*name)?).copied());
    Ok(Description {
        callers: callers.try_vec()?,
        packages: packages(profile, names, wanted, &by_stack, stop)?,
        plumbing_share,
        plumbing_rows,
        recorded: if summary.measured_memory.is_lower_bound
            && [ALLOC_SIZE, ALLOC_SPACE]
                .iter()
                .all(|known| profile.known(known).is_some())
        {
            Some(summarise(
                profile,
                names,
                By::Function,
                Some(ALLOC_SPACE.name),
                stop,
            )?)
        } else {
            None
        },
        is_complete: has_recorded_all(profile),
        memory_time: memory_time(profile),
        allocated: sum_of(profile, &ALLOC_SPACE),
        copies: copies(profile, names, stop)?,
        copying: copying(profile, names, &by_stack, stop)?,
        loading: loading(profile, names, wanted, stop)?,
        peak: peak(profile, names, stop)?,
        summary,
        tree,
    })
}

/// The sum of all values of a type.
fn sum_of(profile: &Profile, type_: &KnownType) -> f64 {
    let values = profile.known(type_).into_iter();
    let all = values.flat_map(|values| values.column.iter());
    all.filter(|value| !value.is_nan()).sum()
}

/// The main caller of each function that has one.
fn main_callers<'p>(tree: &CallTree<'p>) -> Result<Vec<(&'p str, MainCaller<'p>)>> {
    // The total of the outermost calls of each pair of callee and caller, in the order of their first occurrence.
    let mut rows: HashMap<[u32; 2], usize, RandomState> = HashMap::default();
    let mut sums: Vec<([u32; 2], f64)> = Vec::new();
    // The groups of the nodes on the path to the current one, and how often each group is on it.
    let mut path: Vec<u32> = Vec::new();
    let mut open = filled(tree.groups.len(), 0_u32)?;
    for node in &tree.nodes {
        while path.len() >= node.depth as usize {
            if let Some(ended) = path.pop() {
                open[ended as usize] -= 1;
            }
        }
        if let (0, Some(&caller)) = (open[node.group as usize], path.last()) {
            let pair = [node.group, caller];
            let row = match rows.get(&pair) {
                Some(&row) => row,
                None => {
                    rows.try_put(pair, sums.len())?;
                    sums.try_push((pair, 0.0))?;
                    sums.len() - 1
                }
            };
            sums[row].1 += node.total;
        }
        open[node.group as usize] += 1;
        path.try_push(node.group)?;
    }
    let name = |group: u32| tree.groups[group as usize].name.unwrap_or_default();
    let mut main: Vec<Option<MainCaller>> = filled(tree.groups.len(), None)?;
    for ([callee, caller], total) in sums {
        let new = MainCaller {
            name: name(caller),
            total,
        };
        let slot = &mut main[callee as usize];
        // Ties are broken by the name, so that the result does not depend on the order in the file.
        let is_greater = |old: MainCaller| {
            let by_size = total.abs().total_cmp(&old.total.abs());
            by_size.then_with(|| old.name.cmp(new.name)).is_gt()
        };
        if slot.is_none_or(is_greater) {
            *slot = Some(new);
        }
    }
    let found = (0..).zip(main);
    let found = found.filter_map(|(callee, caller)| Some((name(callee), caller?)));
    found.try_vec()
}

/// Self by package, see [`package_of()`]. Garbage collections, copies and finalizers are packages of their own, so that
/// they do not count as unknown.
fn packages<'p>(
    profile: &'p Profile,
    names: &FrameNames,
    wanted: Option<&str>,
    by_stack: &[[f64; 1]],
    stop: Stop,
) -> Result<Vec<(Option<&'p str>, f64)>> {
    let allocating = AllocatingFrames::among(profile, names, &[summed_type(profile, wanted)?])?;
    let mut sums: HashMap<Option<&str>, f64, RandomState> = HashMap::default();
    let mut space = Vec::new();
    for (stack, &[sum]) in profile.stacks.ids().zip(by_stack) {
        cancel::at_row(stack.row(), stop)?;
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let Some(&innermost) = allocating.of(frames).first() else {
            continue;
        };
        let package = match package_of(profile, innermost) {
            None => [COLLECTION, COPYING, FINALIZER]
                .into_iter()
                .find(|mark| names.of(innermost) == *mark),
            package => package,
        };
        let before = sums.get(&package).copied().unwrap_or(0.0);
        sums.try_put(package, before + sum)?;
    }
    let mut packages = sums.into_iter().filter(|(_, sum)| *sum != 0.0);
    let mut packages = packages.by_ref().try_vec()?;
    packages.sort_unstable_by(|(a, one), (b, other)| {
        let by_size = other.abs().total_cmp(&one.abs());
        by_size
            .then_with(|| a.is_none().cmp(&b.is_none()))
            .then_with(|| a.cmp(b))
    });
    Ok(packages)
}

/// The part of the samples with plumbing, and the mean number of its frames.
fn plumbing(profile: &Profile, by_stack: &[[f64; 1]], stop: Stop) -> Result<(f64, f64)> {
    let frameworks = Frameworks::new(profile)?;
    let (mut with, mut rows, mut all) = (0.0, 0.0, 0.0);
    let mut space = Vec::new();
    for (stack, &[sum]) in profile.stacks.ids().zip(by_stack) {
        cancel::at_row(stack.row(), stop)?;
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let mut position = Position::default();
        let outer_first = frames.iter().rev();
        let hidden = outer_first.filter(|&&frame| !frameworks.shows(frame, &mut position));
        let count = hidden.count();
        with += if count > 0 { sum.abs() } else { 0.0 };
        rows += count as f64 * sum.abs();
        all += sum.abs();
    }
    Ok(if all > 0.0 {
        (with / all, rows / all)
    } else {
        (0.0, 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::profile;

    #[test]
    fn the_main_caller_has_most_of_the_outermost_calls() {
        let profile = profile(&[
            ("main>f>g>f>g", 2.0),
            ("loop>f", 5.0),
            ("main>f", 2.0),
            ("b>h", 1.0),
            ("a>h", 1.0),
            ("", 9.0),
        ]);
        let names = FrameNames::new(&profile).unwrap();
        let found = describe(&profile, &names, None, &|| false).unwrap();
        let shown = found.summary.functions.keys.iter().zip(&found.callers);
        let shown = shown.filter_map(|(name, caller)| {
            let name = (*name)?;
            let MainCaller {
                name: caller,
                total,
            } = (*caller)?;
            Some(format!("{name} <- {caller} {total}"))
        });
        // `f` that calls itself is counted once, and of two equal callers the first by name is the main one.
        assert_eq!(
            shown.collect::<Vec<_>>(),
            ["f <- loop 5", "g <- f 2", "h <- a 1"]
        );
    }

    #[test]
    fn self_counts_for_the_package_of_the_innermost_frame() {
        let profile = profile(&[
            ("f>p.a>q.b", 2.0),
            ("q.b>p.a", 3.0),
            ("p.a>q.b", 1.0),
            ("p.a>f", 3.0),
            ("p.a>collection", 4.0),
            ("p.a>r.b", 0.0),
        ]);
        let names = FrameNames::new(&profile).unwrap();
        let found = describe(&profile, &names, None, &|| false).unwrap();
        let expected = [
            (Some("<GC>"), 4.0),
            (Some("p"), 3.0),
            (Some("q"), 3.0),
            (None, 3.0),
        ];
        assert_eq!(found.packages, expected);
    }
}
