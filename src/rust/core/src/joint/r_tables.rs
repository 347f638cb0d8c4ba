//! The functions, locations and stacks of an R profile, while native frames are inserted into its stacks.

use super::distinct::Line;
use super::recording::Title;
use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{
    COPYING, FrameType, Function, Functions, Location, LocationId, Locations, Profile, Stacks,
};
use crate::text::decode;

/// R's builtins that call native code. In stacks they are replaced by the code that they called.
const NATIVE_CALLS: [&str; 7] = [
    ".Call",
    ".External",
    ".External2",
    ".C",
    ".Fortran",
    ".Call.graphics",
    ".External.graphics",
];

/// The tables of an R profile. The tables of the joint profile start empty, since some items do not occur in any of
/// its stacks.
pub struct RTables {
    functions: Functions,
    locations: Locations,
    pub stacks: Stacks,
    /// The new id of each location.
    renamed: Vec<Option<LocationId>>,
    frame_type: Option<FrameType>,
}

impl RTables {
    /// `is_native`: whether native frames are inserted, from which those of R have to be distinguished.
    pub fn take(profile: &mut Profile, is_native: bool) -> Result<RTables> {
        let frame_type = if is_native {
            profile.frame_type("r")?
        } else {
            None
        };
        let mut renamed = Vec::new();
        renamed.try_fill(profile.locations.len(), None)?;
        Ok(RTables {
            functions: std::mem::take(&mut profile.functions),
            locations: std::mem::take(&mut profile.locations),
            stacks: std::mem::take(&mut profile.stacks),
            renamed,
            frame_type,
        })
    }

    /// The location of an item, whose call may have a title.
    pub fn location_of(
        &mut self,
        item: LocationId,
        title: Option<&Title>,
        profile: &mut Profile,
    ) -> Result<LocationId> {
        match title {
            Some(title) => self.titled(item, title, profile),
            None => self.location(item, profile),
        }
    }

    pub fn location(&mut self, item: LocationId, profile: &mut Profile) -> Result<LocationId> {
        let slot = &mut self.renamed[item.row()];
        if let Some(location) = slot {
            return Ok(*location);
        }
        let mut location = self.locations.get(item);
        if let Some(function) = location.function {
            let function = self.functions.get(function);
            location.function = Some(profile.functions.intern(function)?);
        }
        location.frame_type = self.frame_type;
        let location = profile.locations.intern(location)?;
        *slot = Some(location);
        Ok(location)
    }

    /// The item with this line, unless R knows one.
    pub fn with_line(
        &mut self,
        item: LocationId,
        line: Line,
        profile: &mut Profile,
    ) -> Result<LocationId> {
        let mut location = self.locations.get(item);
        let Some(id) = location
            .function
            .filter(|_| location.line.unwrap_or(0) == 0)
        else {
            return Ok(item);
        };
        let mut function = self.functions.get(id);
        function.filename = profile.strings.intern(line.file)?;
        location.function = Some(self.functions.intern(function)?);
        location.line = Some(line.line);
        let item = self.locations.intern(location)?;
        if item.row() >= self.renamed.len() {
            self.renamed.try_fill(item.row() + 1, None)?;
        }
        Ok(item)
    }

    fn titled(
        &mut self,
        item: LocationId,
        title: &Title,
        profile: &mut Profile,
    ) -> Result<LocationId> {
        let mut location = self.locations.get(item);
        let Some(function) = location.function else {
            return self.location(item, profile);
        };
        let mut function = self.functions.get(function);
        let title = decode(title.bytes())?.text;
        let name = message!("{}({title})", profile.strings.get(function.name));
        function.set_name(&name, &mut profile.strings)?;
        location.function = Some(profile.functions.intern(function)?);
        location.frame_type = self.frame_type;
        profile.locations.intern(location)
    }

    /// The location of the frame that shows that R copies an object.
    pub fn copying(&self, profile: &mut Profile) -> Result<LocationId> {
        let name = profile.strings.intern(COPYING)?;
        let function = Function::named(name, profile.strings.intern("")?);
        profile.locations.intern(Location {
            function: Some(profile.functions.intern(function)?),
            line: Some(0),
            frame_type: self.frame_type,
            ..Location::default()
        })
    }

    /// Whether an item is one of the builtins that call native code.
    pub fn is_call(&self, item: LocationId, profile: &Profile) -> bool {
        let function = self.locations.get(item).function;
        let name = function.map(|f| profile.strings.get(self.functions.get(f).name));
        name.is_some_and(|name| NATIVE_CALLS.contains(&name.strip_prefix("base::").unwrap_or(name)))
    }
}
