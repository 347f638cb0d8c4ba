//! Reads a whole file: bytes in chunks, cut into lines.
//!
//! Memory follows the distinct lines and the samples, not the file: a chunk of
//! a megabyte is read, cut into lines, and reused. What a line means is for
//! [`LineReader`] to say.

use super::foreign::SNIFFED;
use super::lines::LineReader;
use crate::cancel::{self, Stop};
use crate::error::{Error, Place, Result};
use crate::gzip::Content;
use crate::input::{self, Origin};
use crate::memory::TryGrow;
use crate::model::Profile;
use crate::problems::{ProblemKind, Problems};
use memchr::memchr;
use std::io::{ErrorKind, Read};
use std::path::Path;

const CHUNK: usize = 1 << 20;
/// R writes lines of some kilobytes; a "line" beyond this is another format.
const LONGEST_LINE: usize = 64 << 20;

/// Reads an Rprof file, gzip'd or not.
pub fn read_path(path: &Path, origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let (content, origin) = input::open(path, origin)?;
    read(content, origin, stop)
}

/// Reads the bytes of an Rprof file, gzip'd or not.
pub fn read_bytes(bytes: &[u8], origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let content = Content::new(bytes).map_err(|e| Error::Parse {
        input: origin.name.clone(),
        place: Place::Byte(0),
        message: e.to_string(),
    })?;
    read(content, origin, stop)
}

/// Reads Rprof output from anywhere.
pub fn read(mut input: impl Read, origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let mut reader = LineReader::new(origin);
    let mut buffer = vec![0; CHUNK];
    // `buffer[..filled]` holds the start of a line and whatever follows it; up to
    // `searched` there is no line feed.
    let mut filled = 0;
    let mut searched = 0;
    let mut ended = false;
    while !ended {
        cancel::check(stop)?;
        if filled == buffer.len() {
            if buffer.len() >= LONGEST_LINE {
                return Err(reader.foreign(&buffer));
            }
            let double = buffer.len() * 2;
            buffer.try_fill(double, 0, "a long line")?;
        }
        match input.read(&mut buffer[filled..]) {
            Ok(0) => ended = true,
            Ok(count) => filled += count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                reader.note(ProblemKind::CutGzip, b"");
                ended = true;
            }
            Err(e) => return Err(reader.damaged(&e)),
        }
        if reader.is_at_start() && filled < SNIFFED && !ended {
            // The first line is judged with what follows it in view.
            continue;
        }
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &buffer[searched..filled]) {
            let end = searched + length;
            reader.line(&buffer[start..end], &buffer[start..filled])?;
            start = end + 1;
            searched = start;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
        searched = filled;
    }
    reader.finish(&buffer[..filled])
}
