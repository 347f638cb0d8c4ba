//! Tells messages of OpenTelemetry from others: JSON by its keys, protocol buffers by their
//! fields, `resource_profiles`, made of messages, and `dictionary`. They have no others since
//! version 1.7.

use crate::formats::bytes::{FieldShape, field_shapes, is_json};
use crate::json::keys;

/// Whether the content looks like OpenTelemetry's profiles.
pub fn is_otlp(start: &[u8]) -> bool {
    if is_json(start) {
        return keys::has_any(start, &["resourceProfiles", "dictionary"]);
    }
    is_message(start) || is_framed(start) && start.get(4..).is_some_and(is_message)
}

/// Whether the length of a message may stand before it, which starts with a 0.
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
