//! Tells a pprof message from others. It has no mark of its own, but its first fields differ
//! from those of OpenTelemetry, which are numbered alike: here `sample_type`, two numbers, and
//! `sample`.

use crate::formats::bytes::{FieldShape, field_shapes};

/// Whether the content looks like pprof.
pub fn is_pprof(start: &[u8]) -> bool {
    for (number, shape) in field_shapes(start) {
        match (number, shape) {
            (3..=15, FieldShape::Varint | FieldShape::Inside(_)) => return true,
            (1, FieldShape::Inside(Some(0))) => return true,
            (1, FieldShape::Inside(Some(2))) => return false,
            (1 | 2, FieldShape::Inside(_)) => {}
            _ => return false,
        }
    }
    false
}
