//! The place of a stack: the line of the innermost frame that has one, in source files if there is one in any, and the
//! innermost function if none has.

use super::frame_names::FrameNames;
use crate::model::{LocationId, Profile, StringId, code_of_file, is_deparsed};

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

/// Whether lines of a file say anything: positions in byte code do not.
pub fn is_file(file: &str) -> bool {
    !file.is_empty() && code_of_file(file).is_none()
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
        let has_line = location.line_for_r() > 0 && is_file(profile.strings.get(file));
        has_line.then(|| (file, location.line_for_r()))
    };
    let mut with_line = None;
    for &frame in frames {
        let Some(line) = line_of(frame) else {
            continue;
        };
        let is_source = !is_deparsed(profile.strings.get(line.0));
        if is_source || with_line.is_none() {
            with_line = Some((line, names.of(frame)));
        }
        if is_source {
            break;
        }
    }
    match with_line {
        Some(((file, line), name)) => Some((Place::Line(file, line), name)),
        None => frames.first().map(|&frame| {
            let name = names.of(frame);
            (Place::Function(name), name)
        }),
    }
}
