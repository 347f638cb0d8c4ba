//! pprof: the profiles of Go's `pprof` and of what it inspired, one protocol
//! buffer message (`profile.proto`), most often gzip'd.
//!
//! Reading gives all that a file says as it says it, one sample for each `Sample`,
//! and writing without aggregation says it again. Not kept are what has no meaning
//! there: unknown fields, and the order of strings. Writing what R's profiler
//! recorded aims at what makes a profile useful in `pprof`, see [`Writer`].

mod detect;
mod proto;
mod read;
mod source_labels;
mod write;

pub use write::Writer;

use super::format::Format;

pub const FORMAT: Format = Format {
    name: "pprof",
    title: "a pprof profile",
    recognises: detect::is_pprof,
    read: read::read,
};
