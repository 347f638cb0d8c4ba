//! Splits a text file into lines, for the readers of all text formats.
//!
//! The file is read in pieces of a quarter of a megabyte, whose buffers are used again, so that the
//! memory required depends on what the reader keeps, not on the size of the file. A second thread reads
//! ahead ([`Pieces`]), since reading takes a third of the time. Truncated gzip data, lines that are too
//! long and runs of NUL bytes are the same for all formats.

use crate::error::{Error, Position, Result};
use crate::formats::problems::{ProblemKind, Problems};
use crate::io::gzip::Content;
use crate::io::pieces::{self, PIECE, Pieces};
use crate::limits::cancel::{self, Stop};
use crate::message;
use crate::model::Profile;
use memchr::memchr2;
use std::io::{self, ErrorKind};

/// The number of bytes from which a reader can tell whether the file is of its format. The first call of
/// [`Reader::line()`] has as many, unless the file is shorter.
pub const SNIFFED: usize = 4096;

/// Limits of the buffer, in bytes.
pub struct Limits {
    /// The size of a piece.
    pub piece: usize,
    /// The maximum length of a line. Profilers write lines of a few kilobytes.
    pub longest_line: usize,
}

pub const LIMITS: Limits = Limits {
    piece: PIECE,
    longest_line: 64 << 20,
};

/// From this length on, a run of NUL bytes inside a line is a hole, not a part of a damaged name.
/// Between lines and at the end of the file, a single NUL byte is a hole.
pub const HOLE: usize = 16;

/// Interprets lines.
pub trait Reader {
    /// The number of lines that were read.
    fn number(&self) -> u64;
    fn problems(&mut self) -> &mut Problems;
    /// The name of the file in messages.
    fn input(&self) -> &str;

    /// One line without its line feed; `rest` is the piece from the start of this line to its end.
    fn line(&mut self, line: &[u8], rest: &[u8]) -> Result<()>;
    /// Called with the rest of the piece after a line. A reader that can process several of the next lines at once does
    /// so, and returns their length, including the line feed of the last one.
    fn lines(&mut self, _text: &[u8]) -> Result<usize> {
        Ok(0)
    }
    /// A hole: a run of NUL bytes, and `text`, the part of its line before it.
    fn hole(&mut self, text: &[u8], count: u64) -> Result<()>;
    /// A line that is too long and therefore skipped; `start` contains its first bytes.
    fn overlong_line(&mut self, start: &[u8]) -> Result<()>;
    /// The end of the file; `rest` contains the bytes after the last line feed.
    fn finish(self, rest: &[u8]) -> Result<(Profile, Problems)>;

    /// Records a problem of the current line.
    fn note(&mut self, kind: ProblemKind, text: &[u8]) {
        let position = Position::Line(self.number());
        self.problems().note(kind, position, text);
    }

    /// Records a hole in the next line.
    fn note_hole(&mut self, count: u64) {
        let text = message!("{count} NUL bytes");
        let position = Position::Line(self.number() + 1);
        self.problems()
            .note(ProblemKind::NulRun, position, text.as_bytes());
    }

    fn damaged(&self, error: &io::Error) -> Error {
        Error::damaged(self.input(), Position::Line(self.number() + 1), error)
    }
}

/// Reads the content with this reader.
pub fn read<R: Reader>(
    content: Content,
    reader: R,
    limits: &Limits,
    stop: Stop,
) -> Result<(Profile, Problems)> {
    let mut lines = Lines {
        reader,
        longest: limits.longest_line,
        searched: 0,
        dropped: 0,
        skipping: false,
    };
    pieces::in_pieces(content, limits.piece, |pieces| {
        let mut ended = false;
        while !ended {
            cancel::check(stop)?;
            lines.leave_out_long(pieces)?;
            match pieces.more() {
                Ok(count) => ended = count == 0,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                    lines.reader.note(ProblemKind::CutGzip, b"");
                    ended = true;
                }
                Err(e) => return Err(lines.reader.damaged(&e)),
            }
            if lines.is_at_start() && pieces.bytes().len() < SNIFFED && !ended {
                continue;
            }
            lines.take(pieces, ended)?;
        }
        let at = Position::Line(lines.reader.number());
        lines.reader.problems().padding(pieces.padding(), at);
        lines.reader.finish(pieces.bytes())
    })
}

/// Splits the content into lines, and removes holes: runs of NUL bytes of any length, which are
/// the result of truncating a file while it is written, or of a system crash.
struct Lines<R> {
    reader: R,
    /// The length from which a line is too long.
    longest: usize,
    /// The number of unused bytes that are known to contain no line feed or NUL byte.
    searched: usize,
    /// The number of NUL bytes of the run at `searched` that were removed.
    dropped: u64,
    /// Whether the current line is too long, so that its rest is skipped.
    skipping: bool,
}

impl<R: Reader> Lines<R> {
    fn is_at_start(&self) -> bool {
        self.reader.number() == 0
    }

    /// Drops the start of a line that is too long already.
    fn leave_out_long(&mut self, pieces: &mut Pieces) -> Result<()> {
        let length = pieces.bytes().len();
        if length >= self.longest {
            self.check_length(pieces.bytes())?;
            pieces.keep(length..length);
            self.searched = 0;
        }
        Ok(())
    }

    /// Reports a line that is too long, and skips it.
    #[inline]
    fn check_length(&mut self, line: &[u8]) -> Result<()> {
        match line.get(..self.longest) {
            Some(start) if !self.skipping => {
                self.skipping = true;
                self.reader.overlong_line(start)
            }
            _ => Ok(()),
        }
    }

    /// Passes all complete lines to the reader, and holes as far as their end has been read.
    fn take(&mut self, pieces: &mut Pieces, ended: bool) -> Result<()> {
        let bytes = pieces.bytes();
        let mut filled = bytes.len();
        let mut start = 0;
        let mut searched = self.searched;
        while let Some(length) = memchr2(b'\n', 0, &bytes[searched..filled]) {
            let end = searched + length;
            self.check_length(&bytes[start..end])?;
            let text = if self.skipping {
                &[]
            } else {
                &bytes[start..end]
            };
            if bytes[end] == b'\n' {
                let is_taken = !std::mem::take(&mut self.skipping);
                if is_taken {
                    self.reader.line(text, &bytes[start..filled])?;
                }
                start = end + 1;
                if is_taken {
                    start += self.reader.lines(&bytes[start..filled])?;
                }
                searched = start;
                continue;
            }
            let run = zeros(&bytes[end..filled]);
            let is_open = end + run == filled;
            if is_open && !ended {
                // The end of the run is not in the buffer. A part of it is kept to recognise it.
                let kept = run.min(HOLE);
                self.dropped += (run - kept) as u64;
                filled = end + kept;
                searched = end;
                break;
            }
            let count = std::mem::take(&mut self.dropped) + run as u64;
            searched = end + run;
            if is_open {
                self.reader.note_hole(count);
                filled = end;
                searched = end;
            } else if count >= HOLE as u64 || text.is_empty() && self.is_between_lines() {
                self.reader.hole(text, count)?;
                self.skipping = false;
                start = searched;
            }
        }
        if memchr2(b'\n', 0, &bytes[searched..filled]).is_none() {
            searched = filled;
        }
        if self.skipping {
            start = filled;
            searched = filled;
            self.dropped = 0;
        }
        pieces.keep(start..filled);
        self.searched = searched - start;
        Ok(())
    }

    /// Whether the buffer is at the start of a line that is not the first one. A file that starts with a
    /// few NUL bytes is of another format.
    fn is_between_lines(&self) -> bool {
        !self.skipping && !self.is_at_start()
    }
}

/// The number of zeros at the start of the bytes.
fn zeros(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut blocks = bytes.chunks_exact(ZEROS.len());
    let whole = blocks.by_ref().take_while(|block| *block == ZEROS).count();
    let start = whole * ZEROS.len();
    let more = bytes[start..].iter().take_while(|&&byte| byte == 0).count();
    start + more
}
