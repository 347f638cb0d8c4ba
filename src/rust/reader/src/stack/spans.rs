//! The active span of R's thread, from the record that this package keeps in a process that uses it (`src/span.c`).
//!
//! The record is that of OpenTelemetry's OTEP 4947: the id of the trace, the id of the span, whether both are valid, and
//! an attribute, which is a label of samples: the name of the span. Other libraries may publish such a record only in a
//! thread-local variable, whose address cannot be found without knowing the C library of the process; they are not read.

use crate::running_r::exports::{Exports, modules};
use profile_core::analysis::label_frames::{OVERFLOW_KEY, SPAN_NAME};
use profile_core::error::Result;
use profile_core::model::{StringId, Strings};
use profile_core::text::decode;
use profile_runtime::memory::{self, Mapping, Memory};

/// The variable that contains the record.
pub const VARIABLE: &str = "profile_thread_ctx_v1";
/// The offset of the byte that is 1 if the record is valid, and those of the attribute: the number of its key, and the
/// length of its text, which is after it.
const VALID: usize = 24;
const KEY: usize = 28;
const LENGTH: usize = 29;
const TEXT: usize = 30;
/// The size of the part that is always read, in whole words; and of the longest text.
const FIXED: usize = 32;
const MOST_TEXT: usize = 255;
/// The keys that `src/process_context.c` publishes, in this order.
pub const KEYS: [&str; 2] = [SPAN_NAME, OVERFLOW_KEY];

/// The ids of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanIds {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}

/// A span, and the key and the text of its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    pub ids: SpanIds,
    pub label: Option<(&'static str, StringId)>,
}

/// A copy of the record. What is beyond the text is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record([u8; TEXT + MOST_TEXT]);

impl Record {
    /// `None` if it cannot be read. Without its text, it has no label.
    pub fn read(memory: &mut impl Memory, address: u64) -> Option<Record> {
        let mut record = Record([0; TEXT + MOST_TEXT]);
        let (fixed, rest) = record.0.split_at_mut(FIXED);
        fixed.copy_from_slice(&memory::array::<FIXED>(memory, address)?);
        let further = (TEXT + usize::from(fixed[LENGTH])).saturating_sub(FIXED);
        if further > 0 {
            let rest = rest.get_mut(..further);
            let at = address.saturating_add(FIXED as u64);
            if !rest.is_some_and(|rest| memory.read(at, rest)) {
                fixed[LENGTH] = 0;
            }
        }
        Some(record)
    }

    /// The span, whose text is added to `texts`. `None` if no span is active, or the record is being changed.
    pub fn parse(&self, texts: &mut Strings) -> Result<Option<Span>> {
        let Some(ids) = self.ids() else {
            return Ok(None);
        };
        let label = match self.label() {
            Some((key, text)) => Some((key, texts.intern(&decode(text)?.text)?)),
            None => None,
        };
        Ok(Some(Span { ids, label }))
    }

    fn ids(&self) -> Option<SpanIds> {
        let (trace_id, rest) = self.0.split_first_chunk()?;
        let ids = SpanIds {
            trace_id: *trace_id,
            span_id: *rest.first_chunk()?,
        };
        let is_given = ids.trace_id != [0; 16] && ids.span_id != [0; 8];
        (self.0[VALID] == 1 && is_given).then_some(ids)
    }

    fn label(&self) -> Option<(&'static str, &[u8])> {
        let key = KEYS.get(usize::from(self.0[KEY]))?;
        let text = self.0[TEXT..].get(..usize::from(self.0[LENGTH]))?;
        (!text.is_empty()).then_some((*key, text))
    }
}

/// The address of the record, if the process uses this package.
pub fn find(memory: &mut impl Memory, mappings: &[Mapping]) -> Result<Option<u64>> {
    let exports = Exports::find(memory, modules(mappings), [VARIABLE])?;
    Ok(exports.get(VARIABLE))
}
