//! Which samples and which of their frames the filters of pprof leave.
//!
//! Whether an expression matches is decided before, once for each row of
//! `locations`: here is only the way along each stack. It goes by the locations of
//! the format, each of which has one row or, where functions were inlined, several:
//! pprof drops all of it in one case and some of its lines in another.
//!
//! The rules are those of `prune.go` and `filter.go` of google/pprof. There the
//! lines are taken from a location once, for all samples; as that depends on
//! nothing but the location, it is here done wherever it stands.

use crate::collections::next_row;
use crate::error::Result;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryGrow, filled};
use crate::model::{LocationId, Profile};
use crate::schema::{Key, Reading};

/// For each row of `locations` whether an expression matches it: 1 is yes.
#[derive(Debug, Clone, Copy)]
pub struct Matching<'a>(pub &'a [i32]);

/// What is asked for, in the order in which it is done.
#[derive(Debug, Default)]
pub struct Filters<'a> {
    /// Functions to drop with all that they called.
    pub drop: Vec<Matching<'a>>,
    /// Which of these, counted from 1, holds for the samples of each source.
    pub drop_of_source: &'a [i32],
    pub focus: Option<Matching<'a>>,
    pub ignore: Option<Matching<'a>>,
    pub hide: Option<Matching<'a>>,
    pub show: Option<Matching<'a>>,
    pub show_from: Option<Matching<'a>>,
    pub prune_from: Option<Matching<'a>>,
}

/// What the filters leave.
#[derive(Debug)]
pub struct Filtered {
    /// For each sample whether it stays, and whether it still begins where it began.
    pub samples: Vec<bool>,
    pub outermost: Vec<bool>,
    /// The new depth of each row of `sample_locations`; 0 where it goes.
    pub depths: Vec<i32>,
    /// The rows of `sample_locations` whose function was inlined into one that is gone, and
    /// would now seem to be inlined into another.
    pub no_longer_inlined: Vec<usize>,
}

/// Filters tables that were checked.
pub fn filter(reading: &Reading, filters: &Filters, stop: Stop) -> Result<Filtered> {
    let (profile, runs) = (&reading.profile, &reading.runs);
    let mut left = Filtered {
        samples: filled(runs.of_sample.len(), false, "samples")?,
        outermost: filled(runs.of_sample.len(), false, "samples")?,
        depths: filled(runs.locations.len(), 0, "rows")?,
        no_longer_inlined: Vec::new(),
    };
    let mut frames: Vec<Frame> = Vec::new();
    for sample in 0..runs.of_sample.len() {
        if sample % ROWS == 0 {
            cancel::check(stop)?;
        }
        frames.clear();
        for row in runs.rows(sample) {
            if let Some(location) = reading.row_of(Key::Location, runs.locations[row]) {
                let location = LocationId(next_row(location, "locations")?);
                frames.try_push(Frame::new(profile, location, row), "a stack")?;
            }
        }
        number_groups(profile, &mut frames);
        let source = profile
            .samples
            .source
            .get(sample)
            .map(|source| source.row());
        let stays = filters.apply(&mut frames, source);
        left.samples[sample] = stays;
        left.outermost[sample] = frames.last().is_none_or(|frame| frame.stays);
        if !stays {
            continue;
        }
        let mut inner: Option<&Frame> = None;
        for (frame, depth) in frames.iter().filter(|frame| frame.stays).zip(1..) {
            left.depths[frame.row] = depth;
            let joined = |inner: &&Frame| {
                inner.group != frame.group
                    && profile.is_inlined_into(inner.location, frame.location)
            };
            if let Some(inner) = inner.filter(joined) {
                left.no_longer_inlined.try_push(inner.row, "rows")?;
            }
            inner = Some(frame);
        }
    }
    Ok(left)
}

/// A frame of the stack at hand, innermost first.
#[derive(Debug, Clone, Copy)]
struct Frame {
    location: LocationId,
    /// In `sample_locations`.
    row: usize,
    /// Equal for the frames of one location of the format.
    group: u32,
    /// Whether it is a line: an address without a symbol is a location without any.
    has_function: bool,
    stays: bool,
}

impl Frame {
    fn new(profile: &Profile, location: LocationId, row: usize) -> Frame {
        Frame {
            location,
            row,
            group: 0,
            has_function: profile.locations.get(location).function.is_some(),
            stays: true,
        }
    }
}

fn number_groups(profile: &Profile, frames: &mut [Frame]) {
    for outer in 1..frames.len() {
        let inner = frames[outer - 1];
        let same = profile.is_inlined_into(inner.location, frames[outer].location);
        frames[outer].group = inner.group + u32::from(!same);
    }
}

fn is_same_group(a: &Frame, b: &Frame) -> bool {
    a.group == b.group
}

fn cut(frames: &mut [Frame]) {
    frames.iter_mut().for_each(|frame| frame.stays = false);
}

impl Matching<'_> {
    /// Whether a frame that is still there matches.
    fn has(&self, frame: &Frame) -> bool {
        frame.stays && self.0.get(frame.location.row()) == Some(&1)
    }
}

impl Filters<'_> {
    /// Whether the sample stays; marks the frames that do not.
    fn apply(&self, frames: &mut [Frame], source: Option<usize>) -> bool {
        let rule = source.and_then(|row| self.drop_of_source.get(row));
        let rule = rule.and_then(|&rule| usize::try_from(rule).ok()?.checked_sub(1));
        if let Some(drop) = rule.and_then(|rule| self.drop.get(rule)) {
            drop_called(frames, drop);
        }
        let by_name = [self.focus, self.ignore, self.hide, self.show];
        if by_name.iter().any(Option::is_some) && !self.by_name(frames) {
            return false;
        }
        if !self.show_from.is_none_or(|from| show_from(frames, from)) {
            return false;
        }
        if let Some(from) = self.prune_from {
            prune_from(frames, from);
        }
        true
    }

    /// Without `focus` any frame will do, but there must be one.
    fn by_name(&self, frames: &mut [Frame]) -> bool {
        let focused = |frame: &Frame| match self.focus {
            Some(focus) => focus.has(frame),
            None => frame.stays,
        };
        let ignored = |frame: &Frame| self.ignore.is_some_and(|ignore| ignore.has(frame));
        if !frames.iter().any(focused) || frames.iter().any(ignored) {
            return false;
        }
        if self.hide.is_none() && self.show.is_none() {
            return true;
        }
        for group in frames.chunk_by_mut(is_same_group) {
            self.hide(group);
        }
        frames.iter().any(|frame| frame.stays)
    }

    /// A location that has lost its last line is hidden, and where lines are asked
    /// for so is one that never had any.
    fn hide(&self, group: &mut [Frame]) {
        let hidden = |frame: &Frame| self.hide.is_some_and(|hide| hide.has(frame));
        let shown = |frame: &Frame| self.show.is_none_or(|show| show.has(frame));
        if self.show.is_none() && !group.iter().any(hidden) {
            return;
        }
        for frame in group.iter_mut() {
            frame.stays &= !hidden(frame) && (shown(frame) || !frame.has_function);
        }
        if !group.iter().any(|frame| frame.stays && frame.has_function) {
            cut(group);
        }
    }
}

/// Seen from the outermost frame, the first location that matches goes with all
/// below, but not before one that does not match: something is to be left.
fn drop_called(frames: &mut [Frame], drop: &Matching) {
    let is_dropped = |frame: &Frame| frame.has_function && drop.has(frame);
    let mut inner_part = None;
    let mut found_user = false;
    let mut start = frames.len();
    for group in frames.chunk_by_mut(is_same_group).rev() {
        let end = start;
        start -= group.len();
        let Some(line) = group.iter().rposition(is_dropped) else {
            found_user = true;
            continue;
        };
        // Of a location whose outermost line does not match some lines stay.
        let (dropped, outer) = group.split_at_mut(line + 1);
        let whole = !outer.iter().any(|frame| frame.has_function);
        if !whole {
            cut(dropped);
        }
        if found_user && inner_part.is_none() {
            inner_part = Some(if whole { end } else { start });
        }
    }
    cut(&mut frames[..inner_part.unwrap_or(0)]);
}

/// Cuts what is further out than the outermost match; false where there is none.
fn show_from(frames: &mut [Frame], from: Matching) -> bool {
    let mut shown = 0;
    let mut end = 0;
    for group in frames.chunk_by_mut(is_same_group) {
        end += group.len();
        if let Some(line) = group.iter().rposition(|frame| from.has(frame)) {
            cut(&mut group[line + 1..]);
            shown = end;
        }
    }
    cut(&mut frames[shown..]);
    shown > 0
}

/// Cuts what is further in than the innermost match.
fn prune_from(frames: &mut [Frame], from: Matching) {
    let mut inner_part = None;
    let mut start = 0;
    for group in frames.chunk_by_mut(is_same_group) {
        if let Some(line) = group.iter().position(|frame| from.has(frame)) {
            cut(&mut group[..line]);
            inner_part = inner_part.or(Some(start));
        }
        start += group.len();
    }
    cut(&mut frames[..inner_part.unwrap_or(0)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::memory::{MemoryColumn, MemoryTable, MemoryTables};
    use crate::tables::check_v2;

    /// A stack in letters, innermost first: a capital is inlined into what follows,
    /// a dash is an address without a symbol.
    fn stack(text: &str) -> Vec<Frame> {
        let mut group = 0;
        let mut frames = Vec::new();
        for (row, letter) in text.bytes().enumerate() {
            frames.push(Frame {
                location: LocationId(letter.to_ascii_lowercase().into()),
                row,
                group,
                has_function: letter != b'-',
                stays: true,
            });
            group += u32::from(!letter.is_ascii_uppercase());
        }
        frames
    }

    fn matching(letters: &str) -> Vec<i32> {
        let mut rows = vec![0; 128];
        letters.bytes().for_each(|l| rows[usize::from(l)] = 1);
        rows
    }

    fn left(text: &str, frames: &[Frame]) -> String {
        let letters = text.chars().zip(frames);
        letters.filter(|(_, f)| f.stays).map(|(l, _)| l).collect()
    }

    fn dropped(text: &str, letters: &str) -> String {
        let mut frames = stack(text);
        drop_called(&mut frames, &Matching(&matching(letters)));
        left(text, &frames)
    }

    fn filtered(text: &str, filters: &Filters) -> Option<String> {
        let mut frames = stack(text);
        let stays = filters.apply(&mut frames, Some(0));
        stays.then(|| left(text, &frames))
    }

    #[test]
    fn dropping_starts_at_the_outermost_match_below_a_user_frame() {
        assert_eq!(dropped("abcbd", "b"), "d");
        assert_eq!(dropped("abcd", "d"), "abcd");
        assert_eq!(dropped("abcd", "bd"), "cd");
        assert_eq!(dropped("abcd", "abcd"), "abcd");
        assert_eq!(dropped("abcd", "x"), "abcd");
        assert_eq!(dropped("", "x"), "");
    }

    #[test]
    fn dropping_cuts_the_lines_of_a_location() {
        assert_eq!(dropped("aBcd", "b"), "cd");
        assert_eq!(dropped("aBcd", "c"), "d");
        assert_eq!(dropped("aBCde", "b"), "Cde");
        assert_eq!(dropped("aBCd", "b"), "aCd", "no user frame but a itself");
        // A line that is cut is cut in every location, also before the user frame.
        assert_eq!(dropped("aBc", "b"), "ac");
        assert_eq!(dropped("aBcBc", "b"), "acc");
        assert_eq!(dropped("aBcBcd", "b"), "cd");
        assert_eq!(dropped("aB-cd", "b"), "cd", "an address is no line");
    }

    #[test]
    fn focus_and_ignore_are_about_the_stack() {
        let (b, c) = (matching("b"), matching("c"));
        let focus = Filters {
            focus: Some(Matching(&b)),
            ..Filters::default()
        };
        assert_eq!(filtered("abc", &focus).as_deref(), Some("abc"));
        assert_eq!(filtered("ac", &focus), None);
        assert_eq!(filtered("", &focus), None);
        let both = Filters {
            ignore: Some(Matching(&c)),
            ..focus
        };
        assert_eq!(filtered("abc", &both), None);
        assert_eq!(filtered("ab", &both).as_deref(), Some("ab"));
    }

    #[test]
    fn hide_and_show_are_about_lines() {
        let (b, ab) = (matching("b"), matching("ab"));
        let hide = Filters {
            hide: Some(Matching(&b)),
            ..Filters::default()
        };
        assert_eq!(filtered("aBcd", &hide).as_deref(), Some("acd"));
        assert_eq!(filtered("a-B-", &hide).as_deref(), Some("a-"));
        assert_eq!(filtered("bb", &hide), None);
        assert_eq!(filtered("", &hide), None);
        let show = Filters {
            show: Some(Matching(&ab)),
            ..Filters::default()
        };
        assert_eq!(filtered("aBcd-b", &show).as_deref(), Some("aBb"));
        assert_eq!(filtered("c-", &show), None);
        let both = Filters {
            hide: Some(Matching(&b)),
            ..show
        };
        assert_eq!(filtered("aBcd-b", &both).as_deref(), Some("a"));
    }

    #[test]
    fn stacks_are_cut_at_either_end() {
        let b = matching("b");
        let outer = Filters {
            show_from: Some(Matching(&b)),
            ..Filters::default()
        };
        assert_eq!(filtered("abcbd", &outer).as_deref(), Some("abcb"));
        assert_eq!(filtered("aBcBcd", &outer).as_deref(), Some("aBB"));
        assert_eq!(filtered("acd", &outer), None);
        let inner = Filters {
            prune_from: Some(Matching(&b)),
            ..Filters::default()
        };
        assert_eq!(filtered("abcbd", &inner).as_deref(), Some("bcbd"));
        assert_eq!(filtered("aABcABcd", &inner).as_deref(), Some("BcBcd"));
        assert_eq!(filtered("acd", &inner).as_deref(), Some("acd"));
        assert_eq!(filtered("", &inner).as_deref(), Some(""));
    }

    #[test]
    fn matches_that_are_too_short_match_nothing() {
        let filters = Filters {
            drop: vec![Matching(&[])],
            drop_of_source: &[1],
            hide: Some(Matching(&[])),
            ..Filters::default()
        };
        assert_eq!(filtered("aBcd", &filters).as_deref(), Some("aBcd"));
        for rule in [0, -1, 2, i32::MIN] {
            let filters = Filters {
                drop_of_source: &[rule],
                ..Filters::default()
            };
            assert_eq!(filtered("ab", &filters).as_deref(), Some("ab"));
        }
    }

    #[test]
    fn tables_in_any_order_get_new_depths() {
        let mut tables = MemoryTables::default();
        let names = texts(&["f", "f", "f"]);
        let zeros = integers(&[0, 0, 0]);
        for (name, columns) in [
            (
                "meta",
                vec![("key", texts(&["version"])), ("value", texts(&["2.0"]))],
            ),
            (
                "sources",
                vec![
                    ("source_id", integers(&[7])),
                    ("source_type", texts(&["rprof"])),
                    ("source_uri", texts(&["a"])),
                    ("source_timestamp", MemoryColumn::Doubles(vec![0.0])),
                ],
            ),
            (
                "samples",
                vec![
                    ("sample_id", integers(&[5, 3])),
                    ("source_id", integers(&[7, 7])),
                ],
            ),
            (
                "sample_values",
                vec![
                    ("sample_id", integers(&[])),
                    ("type", texts(&[])),
                    ("unit", texts(&[])),
                    ("value", MemoryColumn::Doubles(vec![])),
                ],
            ),
            (
                "sample_locations",
                vec![
                    ("sample_id", integers(&[3, 5, 5, 5])),
                    ("depth", integers(&[2, 9, 4, 1])),
                    ("location_id", integers(&[2, 1, 2, 3])),
                ],
            ),
            (
                "locations",
                vec![
                    ("location_id", integers(&[1, 2, 3])),
                    ("function_id", integers(&[1, 2, 3])),
                    ("line", zeros.clone()),
                    (".inlined", MemoryColumn::Logicals(vec![0, 0, 1])),
                ],
            ),
            (
                "functions",
                vec![
                    ("function_id", integers(&[1, 2, 3])),
                    ("name", names.clone()),
                    ("system_name", names.clone()),
                    ("filename", names),
                    ("start_line", zeros),
                ],
            ),
        ] {
            let (names, columns) = columns.into_iter().unzip();
            tables.tables.push(MemoryTable::new(name, names, columns));
        }
        let filters = Filters {
            hide: Some(Matching(&[0, 1, 0])),
            ..Filters::default()
        };
        let inputs = tables.inputs().unwrap();
        let reading = check_v2(&MemoryTables::list(&inputs).unwrap(), &|| false).unwrap();
        let left = filter(&reading, &filters, &|| false).unwrap();
        assert_eq!(left.samples, [true, false]);
        assert_eq!(left.outermost, [true, false]);
        assert_eq!(left.depths, [0, 2, 0, 1]);
        let inlined_into_hidden = [3];
        assert_eq!(left.no_longer_inlined, inlined_into_hidden);
    }

    fn integers(values: &[i32]) -> MemoryColumn {
        MemoryColumn::Integers(values.to_vec())
    }

    fn texts(texts: &[&str]) -> MemoryColumn {
        MemoryColumn::Texts(texts.iter().map(|text| Some((*text).into())).collect())
    }
}
