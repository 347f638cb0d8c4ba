//! Detects messages of OpenTelemetry: JSON by its keys, protocol buffers by their fields. Since
//! version 1.7, a message has only two fields: `resource_profiles`, which contains messages, and
//! `dictionary`.

use crate::formats::bytes::{FieldShape, field_shapes, is_json};
use crate::json::keys;

/// Whether the content looks like OpenTelemetry's profiles.
pub fn is_otlp(start: &[u8]) -> bool {
    if is_json(start) {
        // The second name is an error, which the reader explains.
        let names = ["resourceProfiles", "resource_profiles", "dictionary"];
        return keys::has_any(start, &names);
    }
    is_message(start) || is_framed(start) && start.get(4..).is_some_and(is_message)
}

/// Whether the content may start with the length of a message, whose first byte is 0.
pub fn is_framed(start: &[u8]) -> bool {
    start.first() == Some(&0)
}

fn is_message(start: &[u8]) -> bool {
    let mut any = false;
    for (number, shape) in field_shapes(start) {
        match (number, shape) {
            (1, FieldShape::Inside(Some(2))) => return true,
            (1, FieldShape::Inside(Some(0))) => return false,
            (1 | 2, FieldShape::Inside(_)) => any = true,
            _ => return false,
        }
    }
    any
}
