//! The frames of one stack, and their grouping into locations of pprof's format.
//!
//! A location of the format is an address. It has one row in `locations` or, if functions were
//! inlined there, one for each of them.

use crate::model::{FINALIZER, LocationId, NATIVE, Profile};

/// A frame of the current stack, which begins with the innermost one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub location: LocationId,
    /// The location in the profile with packages, see `Filters::packages`.
    pub with_package: LocationId,
    /// The row in `sample_locations`, or the position in the stack.
    pub row: usize,
    /// Equal for the frames of one location of the format.
    pub group: u32,
    /// Whether the frame is a line: an address without a symbol is a location without lines.
    pub has_function: bool,
    pub is_native: bool,
    /// Whether it is a finalizer, which no other frame has called.
    pub is_finalizer: bool,
    pub stays: bool,
}

impl Frame {
    pub fn new(profile: &Profile, location: LocationId, row: usize) -> Frame {
        let found = profile.locations.get(location);
        let type_ = found
            .frame_type
            .map(|type_| profile.strings.get(type_.text()));
        Frame {
            location,
            with_package: location,
            row,
            group: 0,
            has_function: found.function.is_some(),
            is_native: type_ == Some(NATIVE),
            is_finalizer: profile
                .function_of(location)
                .is_some_and(|function| profile.strings.get(function.name) == FINALIZER),
            stays: true,
        }
    }
}

/// Sets `group` of the frames of a stack.
pub(super) fn number_groups(profile: &Profile, frames: &mut [Frame]) {
    for outer in 1..frames.len() {
        let inner = frames[outer - 1];
        let same = profile.is_inlined_into(inner.location, frames[outer].location);
        frames[outer].group = inner.group + u32::from(!same);
    }
}

pub(super) fn is_same_group(a: &Frame, b: &Frame) -> bool {
    a.group == b.group
}

/// Removes frames.
pub(super) fn cut(frames: &mut [Frame]) {
    frames.iter_mut().for_each(|frame| frame.stays = false);
}
