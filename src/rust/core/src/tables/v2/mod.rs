//! Version "2.0": flat tables.

mod check;
mod dotted;
mod filter;
mod origins;
mod take;

pub use check::check_v2;
pub use filter::{Filters, Left, Matching, filter};
pub use origins::{Attributes, Entities, Resources, Scopes};
pub use take::profile_from_v2;

use super::{Functions, Locations, Meta, Owner, Text};

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
    pub origins: SampleOrigins<'a>,
    pub value_sample: &'a [i32],
    pub value_type: Text<'a>,
    pub value_unit: Text<'a>,
    pub value: &'a [f64],
    pub value_exact: Option<Text<'a>>,
    pub frame_sample: &'a [i32],
    pub frame_depth: &'a [i32],
    pub frame_location: &'a [i32],
    pub locations: Locations<'a>,
    pub location_facts: LocationFacts<'a>,
    pub functions: Functions<'a>,
    pub function_facts: FunctionFacts<'a>,
    pub mappings: Option<Mappings<'a>>,
    pub sample_types: Option<SampleTypes<'a>>,
    pub files: Option<Files<'a>>,
    pub labels: Option<Labels<'a>>,
    pub comments: Option<Comments<'a>>,
    pub resources: Option<Resources<'a>>,
    pub entities: Option<Entities<'a>>,
    pub scopes: Option<Scopes<'a>>,
    /// By [`Owner`].
    pub attributes: [Option<Attributes<'a>>; Owner::ALL.len()],
}

/// Columns of `sources` with a leading dot, as far as they are there.
#[derive(Debug, Default)]
pub struct SourceFacts<'a> {
    pub time_nanos: Option<Text<'a>>,
    pub period: Option<&'a [f64]>,
    pub period_exact: Option<Text<'a>>,
    pub period_type: Option<Text<'a>>,
    pub period_unit: Option<Text<'a>>,
    pub duration: Option<&'a [f64]>,
    pub duration_exact: Option<Text<'a>>,
    pub default_type: Option<Text<'a>>,
    pub drop_frames: Option<Text<'a>>,
    pub keep_frames: Option<Text<'a>>,
    pub doc_url: Option<Text<'a>>,
    pub scope_id: Option<&'a [i32]>,
    pub profile_id: Option<Text<'a>>,
    pub dropped_attributes: Option<&'a [f64]>,
    pub payload_format: Option<Text<'a>>,
    pub payload: Option<Text<'a>>,
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

/// When a sample was taken, and in which span of a trace.
#[derive(Debug, Default)]
pub struct SampleOrigins<'a> {
    pub timestamp: Option<&'a [f64]>,
    pub time_nanos: Option<Text<'a>>,
    pub trace_id: Option<Text<'a>>,
    pub span_id: Option<Text<'a>>,
}

/// Columns of `locations` with a leading dot, as far as they are there.
#[derive(Debug, Default)]
pub struct LocationFacts<'a> {
    pub line_exact: Option<Text<'a>>,
    pub column: Option<&'a [i32]>,
    pub column_exact: Option<Text<'a>>,
    pub inlined: Option<&'a [i32]>,
    pub frame_type: Option<Text<'a>>,
    pub mapping_id: Option<&'a [i32]>,
    pub address: Option<Text<'a>>,
    pub is_folded: Option<&'a [i32]>,
    pub native_id: Option<Text<'a>>,
}

/// Columns of `functions` with a leading dot, as far as they are there.
#[derive(Debug, Default)]
pub struct FunctionFacts<'a> {
    pub start_line_exact: Option<Text<'a>>,
    pub has_name: Option<&'a [i32]>,
    pub has_system_name: Option<&'a [i32]>,
    pub native_id: Option<Text<'a>>,
}

/// `.mappings`.
#[derive(Debug)]
pub struct Mappings<'a> {
    pub mapping_id: &'a [i32],
    pub memory_start: Text<'a>,
    pub memory_limit: Text<'a>,
    pub file_offset: Text<'a>,
    pub filename: Text<'a>,
    pub build_id: Text<'a>,
    pub has_functions: &'a [i32],
    pub has_filenames: &'a [i32],
    pub has_line_numbers: &'a [i32],
    pub has_inline_frames: &'a [i32],
    pub native_id: Option<Text<'a>>,
}

/// `.sample_types` of sources.
#[derive(Debug)]
pub struct SampleTypes<'a> {
    pub source_id: &'a [i32],
    pub type_: Text<'a>,
    pub unit: Text<'a>,
    pub recorded: Text<'a>,
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
    pub num_exact: Option<Text<'a>>,
    pub unit: Text<'a>,
    /// Of values that are neither text nor number.
    pub type_: Option<Text<'a>>,
    pub value: Option<Text<'a>>,
}

/// `.comments` of sources.
#[derive(Debug)]
pub struct Comments<'a> {
    pub source_id: &'a [i32],
    pub comment: Text<'a>,
}
