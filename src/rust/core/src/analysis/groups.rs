//! Groups of frames, for values by function, line or package.
//!
//! Frames are grouped by the name of their function unless lines or packages are requested. The
//! file is not used: R shows a promise in the file of the function that created it, so one function
//! may have several files.

use crate::collections::next_row;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, TryPut};
use crate::model::{LocationId, Profile, StringId};
use foldhash::fast::RandomState;
use std::collections::HashMap;

const WHAT: &str = "groups of frames";

/// Which frames are in the same group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Frames of functions with the same name.
    Function,
    /// Frames that also have the same file and line.
    Line,
    /// Frames of the same package. Calls within a package are merged into one node.
    Package,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group<'p> {
    /// The name of the function or package; `None` for frames without one.
    pub name: Option<&'p str>,
    /// `None` if it is unknown, or if the frames of the group have several files.
    pub filename: Option<&'p str>,
    /// `None` if it is unknown, or if frames are not grouped by line.
    pub line: Option<i32>,
    /// `None` if it is unknown, or if the frames of the group have several packages.
    pub package: Option<&'p str>,
}

/// The common properties of the frames of a group: name, file and line. File and line are only set
/// if frames are grouped by line.
type Key = (Option<StringId>, Option<StringId>, i32);

/// The groups of the locations of a profile.
#[derive(Default)]
pub struct FrameGroups {
    keys: Vec<Key>,
    rows: HashMap<Key, u32, RandomState>,
    /// The file and the package of the functions of each group, unless there are several.
    files: Vec<Option<StringId>>,
    packages: Vec<Option<StringId>>,
    /// By location.
    pub of_location: Vec<u32>,
}

impl FrameGroups {
    pub fn new(profile: &Profile, by: By) -> Result<FrameGroups> {
        let mut groups = FrameGroups::default();
        for location in profile.locations.ids() {
            groups.add(profile, location, by)?;
        }
        Ok(groups)
    }

    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Adds the next location.
    fn add(&mut self, profile: &Profile, location: LocationId, by: By) -> Result<()> {
        let function = profile.function_of(location);
        let name = function.map(|function| function.name);
        let file = function.map(|function| function.filename);
        let package = function.and_then(|function| function.package);
        let key = match by {
            By::Function => (name, None, 0),
            By::Line => (name, file, profile.locations.get(location).line_for_r()),
            By::Package => (package, None, 0),
        };
        let row = match self.rows.get(&key) {
            Some(&row) => row,
            None => {
                let row = next_row(self.keys.len(), "functions")?;
                self.rows.try_put(key, row, WHAT)?;
                self.keys.try_push(key, WHAT)?;
                self.files.try_push(file, WHAT)?;
                self.packages.try_push(package, WHAT)?;
                row
            }
        };
        let keep = |known: &mut Option<StringId>, found| *known = known.filter(|_| *known == found);
        keep(&mut self.files[row as usize], file);
        keep(&mut self.packages[row as usize], package);
        self.of_location.try_push(row, WHAT)
    }

    /// The displayed properties of each group.
    pub fn shown<'p>(&self, profile: &'p Profile, by: By) -> Result<Vec<Group<'p>>> {
        let text = |id: StringId| profile.strings.get(id);
        let groups = self.keys.iter().zip(self.files.iter().zip(&self.packages));
        let groups = groups.map(|((name, _, line), (file, package))| Group {
            name: name.map(text),
            filename: file
                .map(text)
                .filter(|file| by != By::Package && !file.is_empty()),
            line: (*line > 0).then_some(*line),
            package: package.map(text),
        });
        groups.try_vec(WHAT)
    }
}
