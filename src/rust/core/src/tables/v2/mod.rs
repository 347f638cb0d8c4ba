//! Version "2.0": flat tables.

mod check;
mod take;

pub use check::check_v2;
pub use take::profile_from_v2;

use super::{Functions, Locations, Meta, Text};

/// The seven tables, and what stands beside them.
#[derive(Debug, Default)]
pub struct TablesV2<'a> {
    pub meta: Meta<'a>,
    pub source_id: &'a [i32],
    pub source_type: Text<'a>,
    pub source_uri: Text<'a>,
    pub source_timestamp: &'a [f64],
    pub facts: SourceFacts<'a>,
    pub sample_id: &'a [i32],
    pub sample_source: &'a [i32],
    pub places: Option<SamplePlaces<'a>>,
    pub value_sample: &'a [i32],
    pub value_type: Text<'a>,
    pub value_unit: Text<'a>,
    pub value: &'a [f64],
    pub frame_sample: &'a [i32],
    pub frame_depth: &'a [i32],
    pub frame_location: &'a [i32],
    pub locations: Locations<'a>,
    pub functions: Functions<'a>,
    pub files: Option<Files<'a>>,
    pub labels: Option<Labels<'a>>,
    pub comments: Option<Comments<'a>>,
}

/// Columns of `sources` with a leading dot, as far as they are there.
#[derive(Debug, Default)]
pub struct SourceFacts<'a> {
    pub period: Option<&'a [f64]>,
    pub period_type: Option<Text<'a>>,
    pub period_unit: Option<Text<'a>>,
    pub duration: Option<&'a [f64]>,
    pub default_type: Option<Text<'a>>,
    pub memory: Option<&'a [i32]>,
    pub gc: Option<&'a [i32]>,
    pub line: Option<&'a [i32]>,
}

/// `samples$.toplevel_filename` and `.toplevel_line`.
#[derive(Debug)]
pub struct SamplePlaces<'a> {
    pub filename: Text<'a>,
    pub line: &'a [i32],
}

/// `.files`: the `#File` lines of Rprof sources.
#[derive(Debug)]
pub struct Files<'a> {
    pub source_id: &'a [i32],
    pub number: &'a [i32],
    pub filename: Text<'a>,
    /// The sample it stands before; NA at the end of the block.
    pub sample_id: &'a [i32],
}

/// `.labels`: key and value pairs of samples.
#[derive(Debug)]
pub struct Labels<'a> {
    pub sample_id: &'a [i32],
    pub key: Text<'a>,
    pub str: Text<'a>,
    pub num: &'a [f64],
    pub unit: Text<'a>,
}

/// `.comments` of sources.
#[derive(Debug)]
pub struct Comments<'a> {
    pub source_id: &'a [i32],
    pub comment: Text<'a>,
}
