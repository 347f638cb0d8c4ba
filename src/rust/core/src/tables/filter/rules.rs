//! The rules of pprof for one stack: whether its sample is kept, and which of its frames.
//!
//! The rules are implemented in `prune.go` and `filter.go` of google/pprof. If functions were inlined, pprof removes
//! all lines of a location in some cases and single lines in others. It removes a line from a location once, for all
//! samples. As this depends on the location only, here it is done in each stack.

use super::frame::{Frame, cut, is_same_group};
use super::matching::Matching;
use super::plumbing::{Plumbing, Position};
use crate::error::Result;
use crate::model::Profile;

/// The requested filters, in the order in which they are applied.
#[derive(Debug, Default)]
pub struct Filters<'a> {
    /// The number of outermost R frames to remove, with the native frames among them.
    pub outermost: usize,
    /// 1 for samples to keep, 0 for others; all are kept if it is empty.
    pub samples: &'a [i32],
    /// Functions to remove with everything that they called.
    pub drop: Vec<Matching<'a>>,
    /// The index into `drop`, counted from 1, that applies to the samples of each source.
    pub drop_of_source: &'a [i32],
    pub focus: Option<Matching<'a>>,
    pub ignore: Option<Matching<'a>>,
    pub hide: Option<Matching<'a>>,
    pub show: Option<Matching<'a>>,
    /// Leaves out what frameworks add. No sample is removed for it.
    pub plumbing: Option<&'a dyn Plumbing>,
    /// The profile that `plumbing` knows, if the packages of its functions were looked up: the same samples, with stacks
    /// of the same length.
    pub packages: Option<&'a Profile>,
    /// Shows only code of these locations, and what it calls directly. No sample is removed for it.
    pub mine: Option<Matching<'a>>,
    pub show_from: Option<Matching<'a>>,
    pub prune_from: Option<Matching<'a>>,
}

impl Filters<'_> {
    /// Whether a sample is not removed regardless of its stack.
    pub(super) fn selects(&self, sample: usize) -> bool {
        self.samples.get(sample) != Some(&0)
    }

    /// Sets the locations with packages of the frames of a sample.
    pub(super) fn add_packages(&self, sample: usize, frames: &mut [Frame]) -> Result<()> {
        let Some(profile) = self.packages else {
            return Ok(());
        };
        let Some(&id) = profile.samples.stack.get(sample) else {
            return Ok(());
        };
        let mut frames = frames.iter_mut();
        profile.stacks.get(id).try_for_each(|location| {
            if let Some(frame) = frames.next() {
                frame.with_package = location;
            }
            Ok(())
        })
    }

    /// Returns whether the sample is kept, and marks the frames to remove.
    pub(super) fn apply(&self, frames: &mut [Frame], source: usize) -> bool {
        if self.outermost > 0 && !cut_outermost(frames, self.outermost) {
            return false;
        }
        let rule = self.drop_of_source.get(source);
        let rule = rule.and_then(|&rule| usize::try_from(rule).ok()?.checked_sub(1));
        if let Some(drop) = rule.and_then(|rule| self.drop.get(rule)) {
            drop_called(frames, drop);
        }
        let by_name = [self.focus, self.ignore, self.hide, self.show];
        if by_name.iter().any(Option::is_some) && !self.by_name(frames) {
            return false;
        }
        if let Some(frameworks) = self.plumbing {
            let mut position = Position::default();
            keep_some(frames, |frame, _| {
                frameworks.shows(frame.with_package, &mut position)
            });
        }
        if let Some(mine) = self.mine {
            keep_some(frames, |frame, caller| {
                mine.has(frame) || caller.is_some_and(|caller| mine.matches(caller.location))
            });
        }
        if !self.show_from.is_none_or(|from| show_from(frames, from)) {
            return false;
        }
        if let Some(from) = self.prune_from {
            prune_from(frames, from);
        }
        true
    }

    /// Without `focus`, any frame is sufficient, but at least one is necessary.
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

    /// A location that lost its last line is removed. If only some lines are to be shown, locations
    /// without lines are removed as well.
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

/// Removes the `count` outermost R frames, and the native frames among them; returns false if no frame is left. Finalizers
/// have no such frames.
fn cut_outermost(frames: &mut [Frame], count: usize) -> bool {
    if frames.last().is_some_and(|frame| frame.is_finalizer) {
        return true;
    }
    let of_r = frames
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, f)| !f.is_native);
    match of_r.map(|(at, _)| at).nth(count - 1) {
        Some(innermost) => cut(&mut frames[innermost..]),
        None => return false,
    }
    frames.iter().any(|frame| frame.stays)
}

/// Starting from the outermost frame, removes the first location that matches and everything
/// that it called, but not before one that does not match, so that a frame remains.
pub(super) fn drop_called(frames: &mut [Frame], drop: &Matching) {
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
        // If the outermost line of a location does not match, some lines are kept.
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

/// Keeps the frames that are shown, from the outermost one on, given the frame and its caller; if there is none, the
/// outermost one, so that nothing is lost.
fn keep_some(frames: &mut [Frame], mut shows: impl FnMut(&Frame, Option<Frame>) -> bool) {
    let outermost = frames.iter().rposition(|frame| frame.stays);
    let mut caller = None;
    for frame in frames.iter_mut().rev().filter(|frame| frame.stays) {
        let before = *frame;
        frame.stays = shows(&before, caller);
        caller = Some(before);
    }
    if let (Some(outermost), false) = (outermost, frames.iter().any(|frame| frame.stays)) {
        frames[outermost].stays = true;
    }
}

/// Removes all callers of the outermost match; returns false if nothing matches.
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

/// Removes everything that the innermost match called.
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
