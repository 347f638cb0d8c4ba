//! Reads a file while R writes it, for weeks: in parts, each of which is a profile.
//!
//! A run defines its options and the numbers of its files once. Therefore these definitions are read again at the start
//! of each part.

use super::FORMAT;
use super::grammar;
use super::line_reader::LineReader;
use crate::error::Result;
use crate::formats::bytes::first_line;
use crate::formats::format::Look;
use crate::io::input::Origin;
use crate::limits::memory::TryGrow;
use crate::model::Profile;
use memchr::memchr;

/// Whether a file starts like a file of R's profiler.
pub fn starts_with_header(start: &[u8]) -> bool {
    grammar::header(first_line(start)).is_some()
}

pub struct Follower {
    reader: LineReader,
    /// The header of the run, and its `#File` lines.
    known: Vec<u8>,
}

/// The result of reading a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    pub bytes: usize,
    /// Whether another run follows, so that the part must end here.
    pub is_end: bool,
}

impl Default for Follower {
    fn default() -> Follower {
        Follower {
            reader: reader(),
            known: Vec::new(),
        }
    }
}

fn reader() -> LineReader {
    LineReader::new(Origin::default(), &FORMAT, Look::Unknown)
}

impl Follower {
    /// The number of samples of the part.
    pub fn samples(&self) -> usize {
        self.reader.profile.samples.len()
    }

    /// Whether the last sample has a name with line feeds, and the next lines may contain the rest.
    pub fn is_pending(&self) -> bool {
        self.reader.pending.is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.samples() == 0 && !self.is_pending()
    }

    /// Reads the complete lines at the start of a text.
    pub fn take(&mut self, text: &[u8]) -> Result<Followed> {
        let mut bytes = 0;
        while let Some(length) = memchr(b'\n', &text[bytes..]) {
            let line = &text[bytes..bytes + length];
            let is_header = grammar::header(line).is_some();
            if is_header {
                if !self.is_empty() {
                    let is_end = true;
                    return Ok(Followed { bytes, is_end });
                }
                self.known.clear();
                self.reader = reader();
            }
            let with_feed = &text[bytes..=bytes + length];
            if is_header || grammar::file_line(line).is_some() {
                self.known.try_extend(with_feed)?;
            }
            self.reader.take_line(line)?;
            bytes += with_feed.len();
        }
        let is_end = false;
        Ok(Followed { bytes, is_end })
    }

    /// Ends the part, and begins another one of the same run.
    pub fn part(&mut self) -> Result<Profile> {
        self.begin()?.end(b"").map(|(profile, _)| profile)
    }

    /// Ends the part after an error, without returning it, and begins another one.
    pub fn skip(&mut self) -> Result<()> {
        self.begin().map(drop)
    }

    fn begin(&mut self) -> Result<LineReader> {
        let mut next = Follower::default();
        next.take(&self.known)?;
        Ok(std::mem::replace(self, next).reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "line profiling: sample.interval=20000\n";

    /// The stacks of a part: names with files and lines.
    fn stacks(profile: &Profile) -> Vec<String> {
        let frame = |&location: &_| {
            let function = profile.function_of(location).unwrap();
            let [name, file] = [function.name, function.filename].map(|s| profile.strings.get(s));
            format!(
                "{name}:{file}:{}",
                profile.locations.get(location).line_for_r()
            )
        };
        let stack = |&id: &_| {
            let frames = profile.stacks.get(id).to_vec().unwrap();
            frames.iter().map(frame).collect::<Vec<_>>().join(" ")
        };
        profile.samples.stack.iter().map(stack).collect()
    }

    #[test]
    fn each_part_knows_the_files_of_its_run() {
        let mut follower = Follower::default();
        let mut parts = Vec::new();
        let text = [
            HEADER,
            "#File 1: a.R\n1#1 \"f\" \n1#2 \"f\" \n",
            "#File 2: b.R\n2#3 \"g\" 1#1 \"f\" \n2#4 ",
            "\"g\" \n",
            "2#5 \"h\" \n",
        ];
        let mut left = Vec::new();
        for piece in text {
            left.extend_from_slice(piece.as_bytes());
            let followed = follower.take(&left).unwrap();
            assert!(!followed.is_end);
            left.drain(..followed.bytes);
            if !follower.is_empty() {
                parts.push(stacks(&follower.part().unwrap()));
                assert!(follower.is_empty());
            }
        }
        assert!(left.is_empty());
        let expected: [&[&str]; 4] = [
            &["f:a.R:1", "f:a.R:2"],
            &["g:b.R:3 f:a.R:1"],
            &["g:b.R:4"],
            &["h:b.R:5"],
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_part_is_of_one_run() {
        let text = [
            HEADER,
            "#File 1: a.R\n1#1 \"f\" \n",
            "line profiling: sample.interval=10000\n",
            "1#1 \"f\" \n#File 1: b.R\n1#1 \"f\" \n",
        ]
        .concat();
        let mut follower = Follower::default();
        let first = follower.take(text.as_bytes()).unwrap();
        assert!(first.is_end);
        let part = follower.part().unwrap();
        assert_eq!(stacks(&part), ["f:a.R:1"]);
        let rest = &text.as_bytes()[first.bytes..];
        let second = follower.take(rest).unwrap();
        assert_eq!((second.bytes, second.is_end), (rest.len(), false));
        let part = follower.part().unwrap();
        assert_eq!(stacks(&part), ["f::1", "f:b.R:1"]);
        assert_eq!(part.sources.len(), 1);
        let period = part.sources[0].period.as_ref().unwrap();
        assert_eq!(period.nanoseconds(), Some(1e7));
    }

    #[test]
    fn a_name_with_a_line_feed_is_pending() {
        let mut follower = Follower::default();
        let text = [HEADER, "\"f\n"].concat();
        follower.take(text.as_bytes()).unwrap();
        assert_eq!((follower.samples(), follower.is_pending()), (0, true));
        follower.take(b"g\" \"main\" \n").unwrap();
        assert_eq!((follower.samples(), follower.is_pending()), (1, false));
        assert_eq!(stacks(&follower.part().unwrap()), ["f\ng::0 main::0"]);
    }

    #[test]
    fn files_of_rprof_are_recognised() {
        assert!(starts_with_header(
            b"GC profiling: sample.interval=20000\n\"f\" \n"
        ));
        assert!(!starts_with_header(b"\"f\" \"main\" \n"));
        assert!(!starts_with_header(b""));
    }
}
