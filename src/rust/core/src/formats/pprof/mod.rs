//! Reads and writes profiles of Go's `pprof` and of other tools with the same format: a
//! protocol buffer message (`profile.proto`), usually compressed with gzip.
//!
//! Reading preserves all information of a file, with one sample for each `Sample`, and writing without
//! aggregation writes it again. Only unknown fields and the order of strings are not preserved.
//! Profiles of `Rprof()` are written such that they are useful in `pprof`, see [`Writer`].

mod detect;
mod proto;
mod read;
mod source_labels;
mod span_labels;
mod write;

pub use write::Writer;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "pprof",
    title: "a pprof profile",
    recognises: detect::is_pprof,
    is_guessed: true,
    is_aggregated: true,
    read: Some(read::read),
    write: Some(|options| {
        Ok(Box::new(Writer {
            aggregate: options.flag("aggregate")?,
            source_labels: options.flag("source_labels")?,
        }))
    }),
    file_names: &["*.pb", "*.pprof", "*.prof"],
    r_reader: Some("read_pprof"),
    r_writer: Some("write_pprof"),
    ..Format::NONE
};
