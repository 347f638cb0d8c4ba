//! The active span of R's thread, from the record that this package keeps in a process that uses it (`src/span.c`).
//!
//! The record is that of OpenTelemetry's OTEP 4947: the id of the trace, the id of the span, whether both are valid, and
//! more that is not needed here. Other libraries may publish such a record only in a thread-local variable, whose
//! address cannot be found without knowing the C library of the process; they are not read.

use crate::target::exports::{Exports, modules};
use profile_core::error::Result;
use profile_runtime::memory::{Mapping, Memory};

/// The variable that contains the record.
pub const VARIABLE: &str = "profile_thread_ctx_v1";
/// The size of the record, in whole words.
pub const SIZE: usize = 32;
/// The offset of the byte that is 1 if the record is valid.
const VALID: usize = 24;

/// The ids of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanIds {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}

impl SpanIds {
    /// `None` if no span is active, or the record is being changed.
    pub fn parse(record: &[u8; SIZE]) -> Option<SpanIds> {
        let (trace_id, rest) = record.split_first_chunk()?;
        let ids = SpanIds {
            trace_id: *trace_id,
            span_id: *rest.first_chunk()?,
        };
        let is_given = ids.trace_id != [0; 16] && ids.span_id != [0; 8];
        (record[VALID] == 1 && is_given).then_some(ids)
    }
}

/// The address of the record, if the process uses this package.
pub fn find(memory: &mut impl Memory, mappings: &[Mapping]) -> Result<Option<u64>> {
    let exports = Exports::find(memory, modules(mappings), [VARIABLE])?;
    Ok(exports.get(VARIABLE))
}
