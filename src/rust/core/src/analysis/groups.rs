//! Groups of frames, for values by function, line, file or package.
//!
//! A function is all frames with the same name. The file is not used: R shows a promise in the file of
//! the function that created it, so one function may have several files.

use super::frame_names::{self, FrameNames};
use super::packages::package_of;
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, TryPut, written};
use crate::model::{LocationId, Profile, StringId};
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::HashMap;

/// Which frames are in the same group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Frames with the same name.
    Function,
    /// Frames that also have the same file and line.
    Line,
    /// Frames with the same name, file and line; without a symbol they must also have the same address. (Those of two runs
    /// usually differ.)
    Place,
    /// Frames of the same file. Calls within a file are merged into one node, as are those within a package.
    File,
    /// Frames of the same package.
    Package,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group<'p> {
    /// The name of the frames, the file or the package; `None` for frames without a file or a package.
    pub name: Option<&'p str>,
    /// `None` if it is unknown, or if the frames of the group have several files.
    pub filename: Option<&'p str>,
    /// `None` if it is unknown, or if frames are not grouped by line.
    pub line: Option<i32>,
    /// `None` if it is unknown, or if the frames of the group have several packages.
    pub package: Option<&'p str>,
    /// 0 unless frames are grouped by place and have no symbol.
    pub address: u64,
}

impl<'p> Group<'p> {
    /// The name, with the address if it is not the name: `[libfoo.so.1] 0x1000`.
    pub fn label(&self) -> Result<Option<Cow<'p, str>>> {
        let Some(name) = self.name else {
            return Ok(None);
        };
        if self.address == 0 || name.starts_with("0x") {
            return Ok(Some(Cow::Borrowed(name)));
        }
        let label = written(format_args!("{name} {:#x}", self.address))?;
        Ok(Some(Cow::Owned(label)))
    }
}

/// The common properties of the frames of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'p> {
    /// The row of the name.
    Function(u32),
    Line {
        name: u32,
        file: Option<StringId>,
        line: i32,
        address: u64,
    },
    File(Option<StringId>),
    Package(Option<&'p str>),
}

/// The groups of the locations of a profile.
#[derive(Default)]
pub struct FrameGroups<'p> {
    keys: Vec<Key<'p>>,
    rows: HashMap<Key<'p>, u32, RandomState>,
    /// The file and the package of the functions of each group, unless there are several.
    files: Vec<Option<StringId>>,
    packages: Vec<Option<&'p str>>,
    /// By location.
    pub of_location: Vec<u32>,
}

impl<'p> FrameGroups<'p> {
    pub fn new(profile: &'p Profile, names: &FrameNames, by: By) -> Result<FrameGroups<'p>> {
        let mut groups = FrameGroups::default();
        for location in profile.locations.ids() {
            groups.add(profile, names, location, by)?;
        }
        Ok(groups)
    }

    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Adds the next location.
    fn add(
        &mut self,
        profile: &'p Profile,
        names: &FrameNames,
        location: LocationId,
        by: By,
    ) -> Result<()> {
        let name = names.row(location);
        let file = frame_names::file(profile, location);
        let package = package_of(profile, location);
        let key = match by {
            By::Function => Key::Function(name),
            By::Line | By::Place => Key::Line {
                name,
                file,
                line: profile.locations.get(location).line_for_r(),
                address: match by {
                    By::Place => names.address(profile, location),
                    _ => 0,
                },
            },
            By::File => Key::File(file),
            By::Package => Key::Package(package),
        };
        let row = match self.rows.get(&key) {
            Some(&row) => row,
            None => {
                let row = next_row(self.keys.len(), "functions")?;
                self.rows.try_put(key, row)?;
                self.keys.try_push(key)?;
                self.files.try_push(file)?;
                self.packages.try_push(package)?;
                row
            }
        };
        let known = &mut self.files[row as usize];
        *known = known.filter(|_| *known == file);
        let known = &mut self.packages[row as usize];
        *known = known.filter(|_| *known == package);
        self.of_location.try_push(row)
    }

    /// The displayed properties of each group.
    pub fn shown(&self, profile: &'p Profile, names: &'p FrameNames) -> Result<Vec<Group<'p>>> {
        let text = |id: StringId| profile.strings.get(id);
        let groups = self.keys.iter().zip(self.files.iter().zip(&self.packages));
        let groups = groups.map(|(key, (file, package))| {
            let (name, filename, line, address) = match *key {
                Key::Function(name) => (Some(names.get(name)), file.map(text), 0, 0),
                Key::Line {
                    name,
                    file,
                    line,
                    address,
                } => (Some(names.get(name)), file.map(text), line, address),
                Key::File(file) => (file.map(text), file.map(text), 0, 0),
                // Not the file: most packages have several.
                Key::Package(package) => (package, None, 0, 0),
            };
            Group {
                name,
                filename,
                line: (line > 0).then_some(line),
                package: *package,
                address,
            }
        });
        groups.try_vec()
    }
}
