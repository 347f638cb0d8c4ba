//! Recognises JSON files of other kinds by the names of their outermost fields.

use crate::formats::bytes::is_json;
use crate::json::keys;
use memchr::memmem;

fn has(start: &[u8], text: &str) -> bool {
    memmem::find(start, text.as_bytes()).is_some()
}

/// Tables with a `schema`, as Firefox records them. Its viewer converts them, and writes another version.
pub fn is_gecko(start: &[u8]) -> bool {
    is_json(start)
        && keys::has_any(start, &["meta", "threads", "libs"])
        && (has(start, "\"schema\":{") || has(start, "\"schema\": {"))
        && !has(start, "\"preprocessedProfileVersion\"")
}

/// Sampled allocations of V8: a tree like in old CPU profiles.
pub fn is_heap_profile(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["head"]) && has(start, "\"selfSize\"")
}

pub fn is_heap_snapshot(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["snapshot"]) && has(start, "\"node_fields\"")
}

pub fn is_dhat(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["dhatFileVersion"])
}

/// A report of Ruby's stackprof.
pub fn is_stackprof(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["gc_samples"]) && has(start, "\"missed_samples\"")
}

/// A report of Python's pyinstrument.
pub fn is_pyinstrument(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["root_frame"]) && has(start, "\"sample_count\"")
}

/// What pyinstrument saves to load it later.
pub fn is_pyinstrument_session(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["start_call_stack"])
}

/// A recording of the performance panel that Firefox had until version 97.
pub fn is_devtools(start: &[u8]) -> bool {
    let mut names = keys::outermost(start);
    let expected: [&[u8]; 3] = [b"label", b"duration", b"markers"];
    is_json(start) && expected.iter().all(|&name| names.next() == Some(name))
}

/// A recording of a timeline of Safari.
pub fn is_safari(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["recording"]) && has(start, "\"instrumentTypes\"")
}

/// What GHC writes with the option `-pj`.
pub fn is_ghc(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["cost_centres"])
}

/// What Pyroscope's pages show.
pub fn is_flamebearer(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["flamebearer"])
}

/// Traces, metrics and logs.
pub fn is_other_signal(start: &[u8]) -> bool {
    is_json(start) && keys::has_any(start, &["resourceSpans", "resourceMetrics", "resourceLogs"])
}

/// Any object, or an array of objects.
pub fn is_any(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    is_json(start) || text.starts_with(b"[{") || text.starts_with(b"{")
}
