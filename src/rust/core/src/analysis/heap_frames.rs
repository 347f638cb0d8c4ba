//! Recognises frames of heap snapshots of R, see [`crate::model::heap`].
//!
//! The type of a frame says what it is. Formats such as pprof have no types of frames; then the name of the root shows
//! that a stack is of a snapshot.

use super::frame_names::FrameNames;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow};
use crate::model::heap::is_root_name;
use crate::model::{FrameType, HeapFrame, LocationId, Profile};

/// Whether a location is of a heap snapshot. It has a name, but is neither code nor part of a package.
pub fn is_of_heap(profile: &Profile, id: LocationId) -> bool {
    let type_ = profile.frame_type_of(&profile.locations.get(id));
    type_.and_then(HeapFrame::named).is_some()
}

/// Finds the types of objects in stacks.
pub struct TypeFrames {
    /// The type of type frames, if the profile has one.
    type_: Option<FrameType>,
    /// By location.
    frame_types: Vec<Option<FrameType>>,
    is_root: Vec<bool>,
}

impl TypeFrames {
    pub fn new(profile: &Profile, names: &FrameNames) -> Result<TypeFrames> {
        let locations = profile.locations.iter();
        let frame_types = locations.map(|location| location.frame_type).try_vec()?;
        let found = profile.locations.iter().find(|location| {
            let type_ = profile.frame_type_of(location);
            type_ == Some(HeapFrame::Type.name())
        });
        let mut is_root = Vec::new();
        for id in profile.locations.ids() {
            is_root.try_push(is_root_name(names.of(id)))?;
        }
        Ok(TypeFrames {
            type_: found.and_then(|location| location.frame_type),
            frame_types,
            is_root,
        })
    }

    /// The frames of a stack that hold its objects, innermost first: all but their type. All frames of a stack that is
    /// not of a snapshot, and the only frame of a stack.
    pub fn holders<'f>(&self, frames: &'f [LocationId]) -> &'f [LocationId] {
        let [innermost, holders @ ..] = frames else {
            return frames;
        };
        let Some(root) = holders.last() else {
            return frames;
        };
        let is_type = match self.frame_types[innermost.row()] {
            None => self.is_root[root.row()] && self.frame_types[root.row()].is_none(),
            type_ => type_ == self.type_,
        };
        if is_type { holders } else { frames }
    }
}
