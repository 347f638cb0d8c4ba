//! Samples that may continue on the next line.
//!
//! A function name may contain line feeds, so a sample whose line ends inside a name may
//! continue on the next line. The line may also be truncated, or an editor may have removed its
//! trailing blank. Which of these applies depends on the lines that follow.

use super::grammar;
use super::line_reader::{Block, LineReader, Pending};
use super::parse::Parsed;
use crate::error::Result;
use crate::formats::lines::Reader;
use crate::formats::problems::ProblemKind;
use crate::limits::memory::TryGrow;

/// A name with line feeds is searched for in at most this many lines and bytes.
/// R <= 4.2 truncates names at 498 bytes, so its names have no more lines.
const JOINED_LINES: usize = 500;
const JOINED_BYTES: usize = 64 << 10;

impl LineReader {
    /// Whether this line continues the pending sample. If not, the sample is closed
    /// and the line is read by itself.
    pub(super) fn continues(&mut self, line: &[u8], block: Block) -> Result<bool> {
        let Some(mut pending) = self.pending.take() else {
            return Ok(false);
        };
        let starts_anew = grammar::header(line).is_some()
            || (block.header.line && grammar::file_line(line).is_some())
            || if block.header.memory {
                grammar::memory_prefix(line).is_some()
            } else {
                starts_sample(line, block.header.line)
            };
        let too_long = pending.breaks.len() + 1 >= JOINED_LINES
            || pending.text.len() + line.len() >= JOINED_BYTES;
        if starts_anew || too_long {
            self.close(block, pending)?;
            return Ok(false);
        }
        pending.text.try_push(b'\n')?;
        pending.breaks.try_push(pending.text.len())?;
        pending.text.try_extend(line)?;
        // Without a quote, the line does not end the name.
        if line.contains(&b'"') {
            let known = self.parser.known(&pending.text);
            let (parser, mut context) = self.context();
            context.line = pending.number;
            let whole = match known {
                Some(stack) => Parsed::Whole(stack),
                None => parser.learn(&pending.text, &mut context)?,
            };
            if let Parsed::Whole(stack) = whole {
                self.push(block, stack, pending.memory)?;
                return Ok(true);
            }
        }
        self.pending = Some(pending);
        Ok(true)
    }

    /// Ends a pending sample that no further line completes: it was trimmed or truncated.
    pub(super) fn close(&mut self, block: Block, pending: Pending) -> Result<()> {
        let here = self.number;
        self.number = pending.number;
        let first = pending.breaks.first().map_or(pending.text.len(), |b| b - 1);
        self.close_line(block, &pending.text[..first], pending.memory)?;
        // The lines that were added to it are read by themselves. In memory
        // profiles they cannot be samples, as they have no figures.
        if !block.header.memory {
            for (i, &start) in pending.breaks.iter().enumerate() {
                self.number = pending.number + 1 + i as u64;
                let end = pending
                    .breaks
                    .get(i + 1)
                    .map_or(pending.text.len(), |b| b - 1);
                self.close_line(block, &pending.text[start..end], None)?;
            }
        }
        self.number = here;
        Ok(())
    }

    fn close_line(&mut self, block: Block, text: &[u8], memory: Option<[u64; 4]>) -> Result<()> {
        if !text.ends_with(b" ") {
            let whole = with_blank(text)?;
            if let Some(stack) = self.parser.known(&whole) {
                self.note(ProblemKind::TrimmedLine, text);
                return self.push(block, stack, memory);
            }
            let (parser, mut context) = self.context();
            if let Parsed::Whole(stack) = parser.learn(&whole, &mut context)? {
                self.note(ProblemKind::TrimmedLine, text);
                return self.push(block, stack, memory);
            }
        }
        self.push_part(block, text, memory, ProblemKind::TornSample)
    }
}

/// Whether a line is a sample by itself. A line that starts with `" "` may also be the end of a name
/// with a line feed at its end, which is more likely than a name that starts with a blank. A line that
/// ends with a quote is a sample too, whose trailing blank may have been removed.
fn starts_sample(line: &[u8], line_profiling: bool) -> bool {
    if line.starts_with(b"\" \"") || line == b"\" " {
        return false;
    }
    let trimmed = || line.len() > 2 && line.starts_with(b"\"") && line.ends_with(b"\"");
    grammar::starts_with_item(line, line_profiling) || trimmed()
}

/// The text with the blank that ends each item.
fn with_blank(text: &[u8]) -> Result<Vec<u8>> {
    let mut whole = Vec::new();
    whole.try_extend(text)?;
    whole.try_push(b' ')?;
    Ok(whole)
}
