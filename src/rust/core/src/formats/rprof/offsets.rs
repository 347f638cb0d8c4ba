//! Where the samples of a file start, which shows what was recorded before an event at which the size of the file is
//! known.

use super::grammar::{file_line, header, memory_prefix};
use crate::error::Result;
use crate::limits::memory::TryGrow;
use memchr::memchr_iter;

/// The offsets of the lines that start a sample. If a name contains a line feed and there are no memory figures, more
/// lines seem to start a sample.
pub fn sample_starts(file: &[u8]) -> Result<Vec<u64>> {
    let mut starts = Vec::new();
    let mut has_memory = false;
    let mut start = 0;
    for end in memchr_iter(b'\n', file) {
        let line = &file[start..end];
        if let Some(header) = header(line) {
            has_memory = header.memory;
        } else {
            let is_sample = if has_memory {
                memory_prefix(line).is_some()
            } else {
                file_line(line).is_none()
            };
            if is_sample {
                starts.try_push(start as u64)?;
            }
        }
        start = end + 1;
    }
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_files_are_no_samples() {
        let plain =
            b"line profiling: sample.interval=20000\n#File 1: a.R\n1#2 \"f\" \n\"g\" \n\"cut";
        assert_eq!(sample_starts(plain).unwrap(), [51, 60]);
        let memory = b"memory profiling: sample.interval=20000\n:1:2:3:4:\"a\nb\" \n:1:2:3:4:\n";
        assert_eq!(sample_starts(memory).unwrap(), [40, 56]);
    }
}
