//! Recognises JSON files of other kinds, which need more than the name of a field.

use crate::formats::bytes::is_json;
use crate::json::keys;
use memchr::memmem;

pub fn has(start: &[u8], text: &str) -> bool {
    memmem::find(start, text.as_bytes()).is_some()
}

/// Tables with a `schema`, as Firefox records them. Its viewer converts them, and writes another version.
pub fn is_gecko(start: &[u8]) -> bool {
    is_json(start)
        && keys::has_any(start, &["meta", "threads", "libs"])
        && (has(start, "\"schema\":{") || has(start, "\"schema\": {"))
        && !has(start, "\"preprocessedProfileVersion\"")
}

/// A recording of the performance panel that Firefox had until version 97.
pub fn is_devtools(start: &[u8]) -> bool {
    let mut names = keys::outermost(start);
    let expected: [&[u8]; 3] = [b"label", b"duration", b"markers"];
    is_json(start) && expected.iter().all(|&name| names.next() == Some(name))
}

/// Any object, or an array of objects.
pub fn is_any(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    is_json(start) || text.starts_with(b"[{") || text.starts_with(b"{")
}
