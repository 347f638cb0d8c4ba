//! Frames of heap snapshots of R. Their stacks are not calls: the outermost frame is a root, such as the global
//! environment, the frames below it are what holds objects, and the innermost one is the type of these objects.
//!
//! The type of a frame says what it is. Formats such as pprof have no types of frames; then the name of the root shows
//! that a stack is of a snapshot.

use super::frame_names::FrameNames;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow};
use crate::model::{FrameType, LocationId, Profile};

/// The innermost frame: the class or type of the objects.
const TYPE: &str = "type";

/// The other types of frames.
const HOLDERS: [&str; 6] = [
    "root",
    "binding",
    "element",
    "attribute",
    "environment",
    "code",
];

/// Names of roots, and their beginnings if more follows.
const ROOTS: [&str; 14] = [
    "globalenv",
    "base",
    "R itself",
    "calls",
    "lazy loading",
    "attached environment",
    ".Last.value",
    "protect stack",
    "byte code stack",
    "finalizers and weak references",
    "symbol table",
    "no holder found",
    "free cells of R",
    "not R's heap",
];
const ROOTS_OF: [&str; 6] = [
    "several roots",
    "namespace:",
    "package:",
    "imports of ",
    "call of ",
    "C variables of ",
];

/// Whether a location is of a heap snapshot. It has a name, but is neither code nor part of a package.
pub fn is_of_heap(profile: &Profile, id: LocationId) -> bool {
    let type_ = profile.frame_type_of(&profile.locations.get(id));
    type_.is_some_and(|type_| type_ == TYPE || HOLDERS.contains(&type_))
}

fn is_root_name(name: &str) -> bool {
    ROOTS.contains(&name) || ROOTS_OF.iter().any(|start| name.starts_with(start))
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
            type_ == Some(TYPE)
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
