//! Where vectors were copied, how often, and why; where they were converted to another type; and where an object was extended
//! step by step, for which a new vector was allocated each time. The time of copies is known by samples.
//!
//! A label may give the reason of a copy, which a place has if most of its bytes have it.

use super::frame_names::FrameNames;
use super::places::{Place, place_of};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut};
use crate::model::known_types::{ALLOC_OBJECTS, ALLOC_SPACE, COPY_OBJECTS, COPY_SPACE};
use crate::model::{COPYING, Profile};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The key of the label with the reason, a sentence.
const REASON: &str = "copy.reason";

/// The label of vectors that are larger and larger, and of those that others were converted to.
const ALLOCATION: &str = "allocation";
const GROWTH: &str = "growth";
const CONVERSION: &str = "conversion";

/// Why the vectors of a place were allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    Copy,
    /// All vectors that the place has allocated to extend an object.
    Growth,
    Conversion,
}

/// The copies of a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Copies<'p> {
    /// Of the frame.
    pub name: &'p str,
    /// `None` if no frame has a line.
    pub line: Option<(&'p str, i32)>,
    pub bytes: f64,
    pub copies: f64,
    pub reason: Option<&'p str>,
    pub purpose: Purpose,
}

/// The samples during which R copied objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Copying<'p> {
    pub sum: f64,
    /// The place with most of them, as in [`Copies`], and its part of the sum.
    pub name: &'p str,
    pub line: Option<(&'p str, i32)>,
    pub of_place: f64,
}

/// The samples whose innermost frame is a copy, given the sums of stacks; `None` if there are none.
pub fn copying<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    by_stack: &[[f64; 1]],
    stop: Stop,
) -> Result<Option<Copying<'p>>> {
    let mut sums: HashMap<Place, (f64, &str), RandomState> = HashMap::default();
    let mut space = Vec::new();
    let mut all = 0.0;
    for (stack, &[sum]) in profile.stacks.ids().zip(by_stack) {
        cancel::at_row(stack.row(), stop)?;
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let Some((_, callers)) = frames
            .split_first()
            .filter(|(innermost, _)| sum != 0.0 && names.of(**innermost) == COPYING)
        else {
            continue;
        };
        all += sum;
        if let Some((place, name)) = place_of(profile, names, callers) {
            let before = sums.get(&place).map_or(0.0, |(sum, _)| *sum);
            sums.try_put(place, (before + sum, name))?;
        }
    }
    let places = sums.into_iter();
    let places = places.map(|(place, (of_place, name))| Copying {
        sum: all,
        name,
        line: place.line(profile),
        of_place,
    });
    // Of equals, the first by its line and its name.
    Ok(places.min_by(|a, b| {
        let by_size = b.of_place.total_cmp(&a.of_place);
        by_size.then_with(|| (a.line, a.name).cmp(&(b.line, b.name)))
    }))
}

/// The copies of each place, the most bytes first.
pub fn copies<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    stop: Stop,
) -> Result<Vec<Copies<'p>>> {
    let copied = [&COPY_SPACE, &COPY_OBJECTS].map(|known| profile.known(known));
    let allocated = [&ALLOC_SPACE, &ALLOC_OBJECTS].map(|known| profile.known(known));
    let mut rows: HashMap<(Place, Purpose), usize, RandomState> = HashMap::default();
    let mut all: Vec<Copies> = Vec::new();
    let mut reasons: HashMap<(usize, Option<&str>), f64, RandomState> = HashMap::default();
    let mut labels = profile.labels.as_slice();
    let mut space = Vec::new();
    for (row, &stack) in profile.samples.stack.iter().enumerate() {
        cancel::at_row(row, stop)?;
        let count = labels
            .iter()
            .take_while(|label| label.sample == row)
            .count();
        let (own, rest) = labels.split_at(count);
        labels = rest;
        let text = |id| profile.strings.get(id);
        let label = own.iter().find(|label| text(label.key) == ALLOCATION);
        let purpose = match label.and_then(|label| label.str).map(text) {
            Some(GROWTH) => Purpose::Growth,
            Some(CONVERSION) => Purpose::Conversion,
            _ => Purpose::Copy,
        };
        let [bytes, counts] = match purpose {
            Purpose::Copy => copied,
            Purpose::Growth | Purpose::Conversion => allocated,
        };
        let Some(bytes) = bytes else {
            continue;
        };
        let value = bytes.column[row];
        if value.is_nan() || value == 0.0 {
            continue;
        }
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let Some((place, name)) = place_of(profile, names, frames) else {
            continue;
        };
        let line = place.line(profile);
        let place = (place, purpose);
        let at = match rows.get(&place) {
            Some(&at) => at,
            None => {
                all.try_push(Copies {
                    name,
                    line,
                    bytes: 0.0,
                    copies: 0.0,
                    reason: None,
                    purpose,
                })?;
                rows.try_put(place, all.len() - 1)?;
                all.len() - 1
            }
        };
        let number = counts.map_or(f64::NAN, |counts| counts.column[row]);
        all[at].bytes += value;
        all[at].copies += if number.is_nan() { 0.0 } else { number };
        let reason = own.iter().find(|label| text(label.key) == REASON);
        let key = (at, reason.and_then(|label| label.str).map(text));
        let before = reasons.get(&key).copied().unwrap_or(0.0);
        reasons.try_put(key, before + value)?;
    }
    let mut reasons = reasons.into_iter().try_vec()?;
    // The largest one first; of equals the first by its text.
    reasons.sort_unstable_by(|(a, one), (b, other)| other.total_cmp(one).then_with(|| a.cmp(b)));
    for ((at, reason), _) in reasons.into_iter().rev() {
        all[at].reason = reason.filter(|text| !text.is_empty());
    }
    all.sort_unstable_by(|a, b| {
        let by_size = b.bytes.total_cmp(&a.bytes);
        by_size.then_with(|| (a.line, a.name).cmp(&(b.line, b.name)))
    });
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::profile;

    /// Places with their parts of the sum, for stacks with these sums.
    fn found(stacks: &[(&str, f64)]) -> Option<String> {
        let profile = profile(stacks);
        let names = FrameNames::new(&profile).unwrap();
        let sums: Vec<_> = stacks.iter().map(|(_, sum)| [*sum]).collect();
        let found = copying(&profile, &names, &sums, &|| false).unwrap()?;
        let line = found.line.map(|(file, line)| format!(" {file}:{line}"));
        let line = line.unwrap_or_default();
        let Copying {
            name,
            of_place,
            sum,
            ..
        } = found;
        Some(format!("{name}{line} {of_place} of {sum}"))
    }

    #[test]
    fn copying_has_a_main_place() {
        let stacks = [
            ("f:1>copy", 1.0),
            ("f:2>g>copy", 2.0),
            ("f:2>copy", 3.0),
            ("g>copy", 4.0),
            ("f:1", 9.0),
            // Not innermost.
            ("copy>f:1", 9.0),
        ];
        assert_eq!(found(&stacks).unwrap(), "f file.R:2 5 of 10");
        assert_eq!(found(&stacks[3..]).unwrap(), "g 4 of 4");
        assert_eq!(found(&stacks[4..]), None);
        assert_eq!(found(&[]), None);
    }
}
