//! Recognises and reads a file.

use super::line_reader::LineReader;
use crate::analysis::label_frames::take_labels_of_file;
use crate::error::Result;
use crate::formats::format::Opened;
use crate::formats::lines::{self, LIMITS, Limits, Reader};
use crate::formats::problems::Problems;
use crate::limits::cancel::Stop;
use crate::message;
use crate::model::Profile;

/// Reads a file of `Rprof()`.
pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let mut budget = opened.origin.budget();
    let name = message!("{}", opened.origin.name);
    let (mut profile, problems) = read_as_recorded(opened, stop)?;
    take_labels_of_file(&mut profile, |bytes| budget.take(bytes, &name), stop)?;
    Ok((profile, problems))
}

pub fn read_as_recorded(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    read_lines(opened, &LIMITS, stop)
}

fn read_lines(opened: Opened, limits: &Limits, stop: Stop) -> Result<(Profile, Problems)> {
    let reader = LineReader::new(opened.origin, opened.format, opened.look);
    lines::read(opened.content, reader, limits, stop)
}

/// The other modules contain the methods.
impl Reader for LineReader {
    fn number(&self) -> u64 {
        self.number
    }

    fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    fn input(&self) -> &str {
        &self.origin.name
    }

    #[inline]
    fn line(&mut self, line: &[u8], _rest: &[u8]) -> Result<()> {
        self.take_line(line)
    }

    fn hole(&mut self, text: &[u8], count: u64) -> Result<()> {
        self.take_hole(text, count)
    }

    fn overlong_line(&mut self, start: &[u8]) -> Result<()> {
        self.leave_out(start)
    }

    fn finish(self, rest: &[u8]) -> Result<(Profile, Problems)> {
        self.end(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Position;
    use crate::formats::format::{Format, Look};
    use crate::formats::lines::{HOLE, SNIFFED};
    use crate::formats::problems::ProblemKind;
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
            format: &Format::NONE,
            look: Look::Unknown,
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

            // The file was emptied while R wrote to it, also in the middle of a line.
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

            // The texts before and after a hole are not joined.
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
        // Between lines, one NUL byte is a hole.
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
        // At the start of a file, NUL bytes mean that it has another format.
        assert!(read_small(long.as_bytes()).is_err());
    }
}
