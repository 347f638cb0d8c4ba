//! Names of byte code without source references.
//!
//! Which function code belongs to, and its lines, are only known where a function with the same code can be compiled again:
//! that is left to R, when the recording has ended. Until then, the place of a position is the line of this number in a file
//! whose name contains the digest of the code.

use crate::running_r::RunningR;
use crate::stack::cache::Cache;
use crate::stack::frames::{CodeAt, Place};
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::model::{StringId, Strings, file_of_code};
use profile_runtime::byte_code::Code;
use profile_runtime::compiled::code_at;
use profile_runtime::digest::Digest;
use profile_runtime::memory::Memory;

/// The files, by the address of the code and what it refers to.
#[derive(Debug, Default)]
pub struct Codes {
    files: Cache<(u64, Code), Option<StringId>>,
}

impl Codes {
    /// The place that stands for a position; `None` if the code has gone, or cannot be read.
    pub fn place<M: Memory>(
        &mut self,
        memory: &mut Snapshot<M>,
        r: &RunningR,
        at: CodeAt,
        texts: &mut Strings,
    ) -> Result<Option<Place>> {
        let file = match self.files.get((at.address, at.code)) {
            Some(known) => known,
            None => {
                let base = r.modules.last().copied().unwrap_or(0);
                let digest = Digest::of(memory, at.code, base)?;
                let now = code_at(memory, at.address)?.map(|(_, code)| code);
                // The process may have replaced the code meanwhile, or the limit was reached.
                if now != Some(at.code) || memory.is_exhausted() {
                    return Ok(None);
                }
                let file = match digest {
                    Some(Digest(digest)) => Some(texts.intern(&file_of_code(digest)?)?),
                    None => None,
                };
                self.files.put((at.address, at.code), file)?;
                self.files.keep();
                file
            }
        };
        let line = i32::try_from(at.words).ok();
        Ok(file.zip(line).map(|(file, line)| Place { file, line }))
    }
}
