//! Describes the format, and reads a file: splits its bytes into lines, which [`LineReader`]
//! interprets.
//!
//! The file is read in pieces of a quarter of a megabyte, whose buffers are used again, so that the
//! memory required depends on the numbers of distinct lines and of samples, not on the size of the
//! file. A second thread reads ahead ([`Pieces`]), since reading takes a third of the time.

use super::foreign::{SNIFFED, is_rprof};
use super::line_reader::LineReader;
use crate::error::{Position, Result};
use crate::formats::format::{Format, Opened};
use crate::formats::problems::{ProblemKind, Problems};
use crate::io::pieces::{self, PIECE, Pieces};
use crate::limits::cancel::{self, Stop};
use crate::model::Profile;
use memchr::memchr2;
use std::io::ErrorKind;

/// Limits of the buffer, in bytes.
struct Limits {
    /// The size of a piece.
    piece: usize,
    /// The maximum length of a line. R writes lines of a few kilobytes.
    longest_line: usize,
}

const LIMITS: Limits = Limits {
    piece: PIECE,
    longest_line: 64 << 20,
};

/// From this length on, a run of NUL bytes inside a line is a hole, not a part of a damaged name.
/// Between lines and at the end of the file, a single NUL byte is a hole.
const HOLE: usize = 16;

pub const FORMAT: Format = Format {
    name: "rprof",
    title: "an Rprof file",
    recognises: is_rprof,
    read,
};

/// Reads a file of `Rprof()`.
pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    read_lines(opened, &LIMITS, stop)
}

fn read_lines(opened: Opened, limits: &Limits, stop: Stop) -> Result<(Profile, Problems)> {
    let mut lines = Lines {
        reader: LineReader::new(opened.origin, opened.format, opened.recognise),
        longest: limits.longest_line,
        searched: 0,
        dropped: 0,
        skipping: false,
    };
    pieces::in_pieces(opened.content, limits.piece, |pieces| {
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
            if lines.reader.is_at_start() && pieces.bytes().len() < SNIFFED && !ended {
                // To recognise the format, more than the first line is needed.
                continue;
            }
            lines.take(pieces, ended)?;
        }
        let at = Position::Line(lines.reader.number);
        lines.reader.problems.padding(pieces.padding(), at);
        lines.reader.finish(pieces.bytes())
    })
}

/// Splits the content into lines, and removes holes: runs of NUL bytes of any length, which are
/// the result of truncating a file while it is written, or of a system crash.
struct Lines {
    reader: LineReader,
    /// The length from which a line is too long.
    longest: usize,
    /// The number of unused bytes that are known to contain no line feed or NUL byte.
    searched: usize,
    /// The number of NUL bytes of the run at `searched` that were removed.
    dropped: u64,
    /// Whether the current line is too long, so that its rest is skipped.
    skipping: bool,
}

impl Lines {
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
            let text = match self.skipping {
                true => &[],
                false => &bytes[start..end],
            };
            if bytes[end] == b'\n' {
                if !std::mem::take(&mut self.skipping) {
                    self.reader.line(text, &bytes[start..filled])?;
                }
                start = end + 1;
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
        !self.skipping && !self.reader.is_at_start()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::gzip::Content;
    use crate::io::input::{Origin, Source};

    const SMALL: Limits = Limits {
        piece: SNIFFED,
        longest_line: 4 * SNIFFED,
    };
    const HEADER: &str = "line profiling: sample.interval=20000\n#File 1: a.R\n";

    /// Kind, line and text.
    type Noted = (ProblemKind, u64, String);

    /// The stacks of a file, each as its names, and its problems.
    fn read_small(bytes: &[u8]) -> Result<(Vec<String>, Vec<Noted>)> {
        let opened = Opened {
            content: Content::new(Source::Bytes(bytes)).unwrap(),
            origin: Origin::default(),
            format: &FORMAT,
            recognise: |_| None,
        };
        let (profile, problems) = read_lines(opened, &SMALL, &|| false)?;
        let name = |&location: &_| {
            let function = profile.function_of(location);
            function.map_or("?", |f| profile.strings.get(f.name))
        };
        let stack = |&id: &_| {
            let frames = profile.stacks.get(id).to_vec().unwrap();
            frames.iter().map(name).collect::<Vec<_>>()
        };
        let stacks = profile.samples.stack.iter().map(stack);
        let kept = problems
            .kept()
            .iter()
            .map(|problem| match problem.position {
                Position::Line(line) => (problem.kind, line, problem.text.clone()),
                _ => unreachable!(),
            });
        Ok((stacks.map(|s| s.join(" ")).collect(), kept.collect()))
    }

    fn nuls(count: usize) -> String {
        "\0".repeat(count)
    }

    #[test]
    fn runs_of_nul_bytes_are_skipped_wherever_they_are() {
        use ProblemKind::{CutSample, NoHeader, NulRun, StrayText, TornSample};
        let (f, g) = ("\"f\" 1#2 \"main\" \n", "\"g\" \"main\" \n");
        for count in [16, 100, 4095, 4096, 4097, 9000, 100_000] {
            let (run, text) = (nuls(count), format!("{count} NUL bytes"));
            let read = |text: &[&str]| read_small(text.concat().as_bytes()).unwrap();
            let hole = |line| (NulRun, line, text.clone());
            let note = |kind, line, text: &str| (kind, line, text.to_owned());

            let (stacks, problems) = read(&[HEADER, f, g, &run]);
            assert_eq!(stacks, ["f main", "g main"]);
            assert_eq!(problems, [hole(5)]);

            let (stacks, problems) = read(&[HEADER, f, &run, g, &run, "\n", &run, f]);
            assert_eq!(stacks, ["f main", "g main", "f main"]);
            assert_eq!(problems.iter().filter(|p| p.0 == NulRun).count(), 3);

            // Emptied while it was written to, also in the middle of a line.
            let (stacks, problems) = read(&[&run, f, g]);
            assert_eq!(stacks, ["f main", "g main"]);
            assert_eq!(
                problems[..2],
                [hole(1), note(NoHeader, 1, f.trim_end_matches('\n'))]
            );
            let (stacks, problems) = read(&[&run, "interval=20000\n", g]);
            assert_eq!(stacks, ["g main"]);
            let stray = note(StrayText, 1, "interval=20000");
            assert_eq!(
                problems,
                [hole(1), stray, note(NoHeader, 2, "\"g\" \"main\" ")]
            );

            // What stands on either side of a hole is not joined.
            let (stacks, problems) = read(&[HEADER, "\"f\" \"ma", &run, "in\" \n", g]);
            assert_eq!(stacks, ["f", "g main"]);
            let torn = note(TornSample, 3, "\"f\" \"ma");
            assert_eq!(problems, [torn, hole(3), note(StrayText, 3, "in\" ")]);
            let (stacks, problems) = read(&[HEADER, g, "\"f\" \"ma", &run]);
            assert_eq!(stacks, ["g main", "f"]);
            assert_eq!(problems, [hole(4), note(CutSample, 4, "\"f\" \"ma")]);
            let (stacks, problems) = read(&[HEADER, "#File 2: b", &run, "\n", "2#1 \"f\" \n"]);
            assert_eq!(stacks, ["f"]);
            assert_eq!(problems[..2], [note(StrayText, 3, "#File 2: b"), hole(3)]);
            let (stacks, _) = read(&["sample.inter", &run, "\n", g]);
            assert_eq!(stacks, ["g main"]);
            let (stacks, problems) = read(&[HEADER, g, "memory prof", &run, "\n", g]);
            assert_eq!(stacks, ["g main", "g main"]);
            assert_eq!(
                problems[..2],
                [note(ProblemKind::CutHeader, 4, "memory prof"), hole(4)]
            );
        }
    }

    #[test]
    fn few_nul_bytes_inside_a_name_belong_to_it() {
        let run = nuls(HOLE - 1);
        for padding in 4000..4100 {
            let long = "x".repeat(padding);
            let text = format!("{HEADER}#File 2: {long}\n\"f{run}g\" \n");
            let (stacks, problems) = read_small(text.as_bytes()).unwrap();
            assert_eq!(stacks, [format!("f{}g", "<00>".repeat(HOLE - 1))]);
            assert_eq!(problems[0].0, ProblemKind::NulByte);
        }
        // Between lines one is enough.
        let (stacks, problems) = read_small(format!("{HEADER}\0\"f\" \n\0").as_bytes()).unwrap();
        assert_eq!(stacks, ["f"]);
        assert!(problems.iter().all(|p| p.0 == ProblemKind::NulRun));
    }

    #[test]
    fn nothing_but_nul_bytes_is_no_profile() {
        for count in [1, 16, 1000] {
            let error = read_small(nuls(count).as_bytes()).unwrap_err();
            assert!(error.to_string().contains("NUL"), "{error}");
        }
        assert!(read_small(format!("{}\u{1}\n", nuls(500)).as_bytes()).is_err());
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let (f, long) = ("\"f\" \"main\" \n", "x".repeat(50_000));
        let kinds = |text: &[&str]| {
            let (stacks, problems) = read_small(text.concat().as_bytes()).unwrap();
            let kinds = problems.into_iter().map(|(kind, line, _)| (kind, line));
            (stacks, kinds.collect::<Vec<_>>())
        };
        let overlong = ProblemKind::OverlongLine;
        let sample = ["\"", &long, "\" \n"].concat();
        for text in [&*sample, &[&long, "\n"].concat()] {
            let (stacks, problems) = kinds(&[HEADER, f, text, f]);
            assert_eq!(stacks, ["f main", "f main"]);
            assert_eq!(problems, [(overlong, 4)]);
        }
        // At the end, and after a name that may continue in the next line.
        assert_eq!(kinds(&[HEADER, f, &long]).1, [(overlong, 4)]);
        let (stacks, problems) = kinds(&[HEADER, "\"f\" \"g\n", &sample, f]);
        assert_eq!(stacks, ["f", "f main"]);
        assert_eq!(problems, [(ProblemKind::TornSample, 3), (overlong, 4)]);
        let (stacks, problems) = kinds(&[HEADER, &long, &nuls(10_000), f]);
        assert_eq!(stacks, ["f main"]);
        assert_eq!(problems, [(overlong, 3), (ProblemKind::NulRun, 4)]);
        // Before anything is known of the file, it is one of another format.
        assert!(read_small(long.as_bytes()).is_err());
    }
}
