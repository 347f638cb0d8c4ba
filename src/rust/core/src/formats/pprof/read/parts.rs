//! Reads the parts that samples refer to: the tables and the source.

use super::header;
use super::outline::Outline;
use super::tables::{self, Locations};
use crate::formats::format::Format;
use crate::formats::problems::Problems;
use crate::io::input::Origin;
use crate::model::{Profile, SourceId};
use crate::protobuf::decode::Result as WireResult;

/// A profile without its samples, and the tables that are needed to read them.
pub struct Parts {
    pub profile: Profile,
    pub locations: Locations,
    pub source: SourceId,
    pub problems: Problems,
}

impl Parts {
    pub fn read(
        outline: &mut Outline,
        origin: &Origin,
        format: &'static Format,
        mut problems: Problems,
    ) -> WireResult<Parts> {
        let mut profile = Profile::default();
        let mappings = tables::mappings(outline, &mut profile, &mut problems)?;
        let functions = tables::functions(outline, &mut profile, &mut problems)?;
        let locations =
            tables::locations(outline, &mappings, &functions, &mut profile, &mut problems)?;
        let types = header::types(outline, &origin.name, &mut profile, &mut problems)?;
        let (uri, strings) = (origin.own_uri()?, &mut profile.strings);
        let source = header::source(outline, uri, format, types, strings, &mut problems)?;
        Ok(Parts {
            source: profile.add_source(source)?,
            profile,
            locations,
            problems,
        })
    }
}
