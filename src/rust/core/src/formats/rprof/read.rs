//! The format, and reading a whole file of it: bytes in chunks, cut into lines.
//!
//! Memory follows the distinct lines and the samples, not the file: a chunk of
//! a megabyte is read, cut into lines, and reused. What a line means is for
//! [`LineReader`] to say.

use super::foreign::{SNIFFED, is_rprof};
use super::line_reader::LineReader;
use crate::error::{Position, Result};
use crate::formats::format::{Format, Opened};
use crate::formats::problems::{ProblemKind, Problems};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::model::Profile;
use memchr::memchr2;
use std::io::{ErrorKind, Read};

/// How much of a file is in memory.
struct Limits {
    /// What is read at once; the longest line is a multiple of it.
    chunk: usize,
    /// R writes lines of some kilobytes.
    longest_line: usize,
}

const LIMITS: Limits = Limits {
    chunk: 1 << 20,
    longest_line: 64 << 20,
};

/// So many NUL bytes in a row inside a line are no damaged name: something is missing
/// in their place. Before and after lines and at the end of the file one is enough.
const HOLE: usize = 16;

pub const FORMAT: Format = Format {
    name: "rprof",
    title: "an Rprof file",
    recognises: is_rprof,
    read,
};

/// Reads what `Rprof()` wrote.
pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    read_lines(opened, &LIMITS, stop)
}

fn read_lines(opened: Opened, limits: &Limits, stop: Stop) -> Result<(Profile, Problems)> {
    let mut content = opened.content;
    let mut lines = Lines {
        reader: LineReader::new(opened.origin, opened.format, opened.recognise),
        buffer: Vec::new(),
        filled: 0,
        searched: 0,
        dropped: 0,
        skipping: false,
    };
    lines
        .buffer
        .try_fill(limits.chunk, 0, "a chunk of the file")?;
    let mut ended = false;
    while !ended {
        cancel::check(stop)?;
        lines.make_room(limits)?;
        match content.read(&mut lines.buffer[lines.filled..]) {
            Ok(0) => ended = true,
            Ok(count) => lines.filled += count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                lines.reader.note(ProblemKind::CutGzip, b"");
                ended = true;
            }
            Err(e) => return Err(lines.reader.damaged(&e)),
        }
        if lines.reader.is_at_start() && lines.filled < SNIFFED && !ended {
            // The first line is judged with what follows it in view.
            continue;
        }
        lines.take(ended)?;
    }
    let at = Position::Line(lines.reader.number);
    lines.reader.problems.padding(content.padding(), at);
    lines.reader.finish(&lines.buffer[..lines.filled])
}

/// Cuts what was read into lines. A file that was emptied while it was written to, or that
/// a machine wrote that crashed, has runs of NUL bytes, of any length: those are cut out.
struct Lines {
    reader: LineReader,
    /// Up to `filled` it holds the start of a line and whatever follows it; up to
    /// `searched` there is neither a line feed nor a NUL byte.
    buffer: Vec<u8>,
    filled: usize,
    searched: usize,
    /// NUL bytes of the run at `searched` that the buffer does not hold any more.
    dropped: u64,
    /// A line is too long: what comes up to its end is left out.
    skipping: bool,
}

impl Lines {
    /// Sees to it that more can be read.
    fn make_room(&mut self, limits: &Limits) -> Result<()> {
        if self.filled < self.buffer.len() {
            return Ok(());
        }
        if self.buffer.len() >= limits.longest_line {
            if !self.skipping {
                self.reader.overlong_line(&self.buffer)?;
            }
            self.skipping = true;
            self.filled = 0;
            self.searched = 0;
            return Ok(());
        }
        let double = self.buffer.len() * 2;
        self.buffer.try_fill(double, 0, "a long line")
    }

    /// Takes all whole lines, and at the end also the run of NUL bytes there.
    fn take(&mut self, ended: bool) -> Result<()> {
        let mut start = 0;
        let mut searched = self.searched;
        while let Some(length) = memchr2(b'\n', 0, &self.buffer[searched..self.filled]) {
            let end = searched + length;
            let text = match self.skipping {
                true => &[],
                false => &self.buffer[start..end],
            };
            if self.buffer[end] == b'\n' {
                if !std::mem::take(&mut self.skipping) {
                    self.reader.line(text, &self.buffer[start..self.filled])?;
                }
                start = end + 1;
                searched = start;
                continue;
            }
            let run = zeros(&self.buffer[end..self.filled]);
            let is_open = end + run == self.filled;
            if is_open && !ended {
                // How long it is remains to be seen. So many are enough to tell it by.
                let kept = run.min(HOLE);
                self.dropped += (run - kept) as u64;
                self.filled = end + kept;
                searched = end;
                break;
            }
            let count = std::mem::take(&mut self.dropped) + run as u64;
            searched = end + run;
            if is_open {
                self.reader.note_hole(count);
                self.filled = end;
                searched = end;
            } else if count >= HOLE as u64 || text.is_empty() && self.is_between_lines() {
                self.reader.hole(text, count)?;
                self.skipping = false;
                start = searched;
            }
        }
        if memchr2(b'\n', 0, &self.buffer[searched..self.filled]).is_none() {
            searched = self.filled;
        }
        if self.skipping {
            start = self.filled;
            searched = self.filled;
            self.dropped = 0;
        }
        self.buffer.copy_within(start..self.filled, 0);
        self.filled -= start;
        self.searched = searched - start;
        Ok(())
    }

    /// Whether text that is empty so far is the start of a line behind others. At the start of
    /// a file few NUL bytes say that it is of another format.
    fn is_between_lines(&self) -> bool {
        !self.skipping && !self.reader.is_at_start()
    }
}

/// How many zeros the bytes start with.
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
    use crate::io::input::Origin;

    const SMALL: Limits = Limits {
        chunk: SNIFFED,
        longest_line: 4 * SNIFFED,
    };
    const HEADER: &str = "line profiling: sample.interval=20000\n#File 1: a.R\n";

    /// Kind, line and text.
    type Noted = (ProblemKind, u64, String);

    /// The stacks of a file, each as its names, and its problems.
    fn read_small(bytes: &[u8]) -> Result<(Vec<String>, Vec<Noted>)> {
        let mut bytes = bytes;
        let opened = Opened {
            content: Content::new(&mut bytes).unwrap(),
            origin: Origin::default(),
            format: &FORMAT,
            recognise: |_| None,
        };
        let (profile, problems) = read_lines(opened, &SMALL, &|| false)?;
        let name = |&location: &_| {
            let function = profile.function_of(location);
            function.map_or("?", |f| profile.strings.get(f.name))
        };
        let stack = |&id: &_| profile.stacks.get(id).iter().map(name).collect::<Vec<_>>();
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
    fn a_line_that_is_too_long_is_left_out() {
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
        // At the end, and behind a name that may go on in the next line.
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
