//! The keys of the labels that contain the span of a sample. Go's profilers and Pyroscope use them as well.

pub const TRACE_ID: &str = "trace_id";
pub const SPAN_ID: &str = "span_id";
