//! The place of a stack: the line of the innermost frame that has one, and the innermost function if none has.

use super::frame_names::FrameNames;
use crate::model::{LocationId, Profile, StringId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place<'p> {
    Line(StringId, i32),
    Function(&'p str),
}

impl<'p> Place<'p> {
    /// The file and the line.
    pub fn line(self, profile: &'p Profile) -> Option<(&'p str, i32)> {
        match self {
            Place::Line(file, line) => Some((profile.strings.get(file), line)),
            Place::Function(_) => None,
        }
    }
}

/// The place of a stack, and the name of its frame.
pub fn place_of<'p>(
    profile: &Profile,
    names: &'p FrameNames,
    frames: &[LocationId],
) -> Option<(Place<'p>, &'p str)> {
    let line_of = |frame: LocationId| {
        let location = profile.locations.get(frame);
        let file = profile.functions.get(location.function?).filename;
        let has_line = location.line_for_r() > 0 && !profile.strings.get(file).is_empty();
        has_line.then(|| (file, location.line_for_r()))
    };
    let with_line = frames
        .iter()
        .find_map(|&frame| Some((line_of(frame)?, names.of(frame))));
    match with_line {
        Some(((file, line), name)) => Some((Place::Line(file, line), name)),
        None => frames.first().map(|&frame| {
            let name = names.of(frame);
            (Place::Function(name), name)
        }),
    }
}
