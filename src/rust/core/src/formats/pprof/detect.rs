//! Detects pprof messages. They have no signature, but their first fields, `sample_type` (which
//! contains two numbers) and `sample`, differ from the fields of OpenTelemetry with the same numbers.

use crate::formats::bytes::{FieldShape, field_shapes};

/// Whether the content looks like pprof.
pub fn is_pprof(start: &[u8]) -> bool {
    for (number, shape) in field_shapes(start) {
        match (number, shape) {
            // Messages, strings, or packed numbers; and numbers.
            (3..=6 | 11 | 13, FieldShape::Inside(_)) => return true,
            (7..=10 | 12..=15, FieldShape::Varint) => return true,
            (1, FieldShape::Inside(Some(0))) => return true,
            (1, FieldShape::Inside(Some(2))) => return false,
            (1 | 2, FieldShape::Inside(_)) => {}
            _ => return false,
        }
    }
    false
}
