//! Tests reading and writing Rprof files: real files, truncated files, and files with which the
//! fuzzer (`examples/mutate`) found problems.

use profile_core::error::{Error, Result};
use profile_core::formats::problems::{ProblemKind, Problems};
use profile_core::formats::rprof;
use profile_core::formats::{self, Input, Writer as _};
use profile_core::io::input::Origin;
use profile_core::model::Profile;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

fn go_on() -> bool {
    false
}

fn origin() -> Origin {
    Origin {
        name: "input".to_owned(),
        ..Origin::default()
    }
}

fn read(text: &[u8]) -> Result<(Profile, Problems)> {
    formats::read(Input::Bytes(text), Some(&rprof::FORMAT), origin(), &go_on)
}

fn written(profile: &Profile) -> String {
    let mut out = Vec::new();
    rprof::Writer.write(profile, &mut out, &go_on).unwrap();
    String::from_utf8(out).unwrap()
}

/// The stacks as text, innermost first.
fn stacks(profile: &Profile) -> Vec<String> {
    let frame = |&location: &_| {
        let function = profile.function_of(location).unwrap();
        let line = profile.locations.get(location).line.unwrap();
        let file = profile.strings.get(function.filename);
        format!("{}@{file}:{line}", profile.strings.get(function.name))
    };
    let samples = profile.samples.stack.iter();
    samples
        .map(|&s| {
            let frames: Vec<String> = profile
                .stacks
                .get(s)
                .to_vec()
                .unwrap()
                .iter()
                .map(frame)
                .collect();
            frames.join(" ")
        })
        .collect()
}

fn corpus() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/testthat/data/rprof");
    let mut files: Vec<PathBuf> = std::fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 60);
    files
}

fn kinds(problems: &Problems) -> Vec<ProblemKind> {
    problems.counts().iter().map(|(kind, _)| *kind).collect()
}

/// A reader that returns a few bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(buffer.len()).min(self.0.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn it_does_not_matter_how_the_bytes_arrive() {
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > 100_000 || path.extension().is_some_and(|e| e == "gz") {
            continue;
        }
        let whole = read(&bytes);
        for step in [1, 7, 4096] {
            let dripped = formats::read(
                Input::Stream(&mut Drip(&bytes, step)),
                Some(&rprof::FORMAT),
                origin(),
                &go_on,
            );
            match (&whole, dripped) {
                (Ok((a, p)), Ok((b, q))) => {
                    assert_eq!(stacks(a), stacks(&b), "{}", path.display());
                    assert_eq!(p.kept(), q.kept(), "{}", path.display());
                }
                (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
                _ => panic!("{}", path.display()),
            }
        }
    }
}

#[test]
fn files_cut_at_any_byte_are_read_or_refused() {
    for name in ["append_line2.out", "newline_memory_gc_line.out"] {
        let path = corpus().into_iter().find(|p| p.ends_with(name)).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let full = read(&bytes).unwrap().0.samples.len();
        let mut before = 0;
        for end in 0..bytes.len().min(2500) {
            if let Ok((profile, _)) = read(&bytes[..end]) {
                let count = profile.samples.len();
                assert!(count <= full);
                // A longer prefix of a file never has fewer samples, except for the last one.
                assert!(count + 1 >= before, "{name} at {end}");
                before = count;
            }
        }
    }
}

#[test]
fn a_number_that_changes_its_file_keeps_both() {
    // Found by the fuzzer: the second meaning was assigned to the first one as well.
    let text = "line profiling: sample.interval=20000\n\
                #File 1: a\n#File 2: b\n1#1 \"f\" 2#2 \"g\" \n\
                #File 2: c\n1#1 \"f\" 2#2 \"g\" \n#File 3: b\n3#2 \"g\" \n";
    let (profile, problems) = read(text.as_bytes()).unwrap();
    assert_eq!(kinds(&problems), [ProblemKind::RepeatedFile]);
    let expected = ["f@a:1 g@b:2", "f@a:1 g@c:2", "g@b:2"];
    assert_eq!(stacks(&profile), expected);
    assert_eq!(written(&profile), text);
}

#[test]
fn a_number_is_not_taken_before_its_time() {
    // Found by the fuzzer: file 3 is unknown, so its name is "", which later is the name of file 2.
    let text = "line profiling: sample.interval=20000\n\
                #File 1: a\n#File 2: b\n1#1 \"f\" 2#2 \"g\" 3#4 \"h\" \n\
                #File 2: \n2#5 \"g\" \n";
    let (profile, _) = read(text.as_bytes()).unwrap();
    let expected = ["f@a:1 g@b:2 h@:4", "g@:5"];
    assert_eq!(stacks(&profile), expected);
    let again = read(written(&profile).as_bytes()).unwrap().0;
    assert_eq!(stacks(&again), expected);
}

#[test]
fn a_file_that_is_named_after_its_first_use_is_known_from_there() {
    let text = "line profiling: sample.interval=1\n1#1 \"f\" \n#File 1: a\n1#1 \"f\" \n";
    let (profile, problems) = read(text.as_bytes()).unwrap();
    assert_eq!(kinds(&problems), [ProblemKind::UnknownFile]);
    assert_eq!(stacks(&profile), ["f@:1", "f@a:1"]);
}

#[test]
fn the_user_can_stop() {
    let path = corpus()
        .into_iter()
        .find(|p| p.ends_with("basic_all.out"))
        .unwrap();
    let stop = || true;
    let result = formats::read(Input::File(&path), Some(&rprof::FORMAT), origin(), &stop);
    assert!(matches!(result, Err(Error::Interrupted)));
    let (profile, _) =
        formats::read(Input::File(&path), Some(&rprof::FORMAT), origin(), &go_on).unwrap();
    let mut profile = profile;
    profile.values[0].column.each().unwrap()[0] = 1e9;
    let result = rprof::Writer.write(&profile, &mut io::sink(), &stop);
    assert!(matches!(result, Err(Error::Interrupted)));
}

#[test]
fn a_line_without_an_end_is_refused_in_bounded_memory() {
    let endless = io::repeat(b'x').take(1 << 32);
    match formats::read(
        Input::Stream(&mut { endless }),
        Some(&rprof::FORMAT),
        origin(),
        &go_on,
    ) {
        Err(Error::Foreign(_)) => {}
        other => panic!("{:?}", other.map(|_| ())),
    }
}

#[test]
fn names_that_never_end_cost_linear_time() {
    // Each line could continue in the next one.
    let mut text = b"sample.interval=20000\n".to_vec();
    for _ in 0..200_000 {
        text.extend_from_slice(b"x\"y\n\"\n");
    }
    let (_, problems) = read(&text).unwrap();
    assert!(problems.kept().len() <= 2000);
}

/// A small generator of numbers (xorshift64*), the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

const NAMES: [&str; 20] = [
    "f",
    "data.frame",
    "%in%",
    "l[[\"a b\"]]",
    "x$f",
    "pkg::f",
    "pkg:::g",
    "<Anonymous>",
    "<GC>",
    "f\"q",
    " leading",
    "trailing ",
    "a b c",
    "1#2",
    "1#2 x",
    "#File 1: z",
    ":1:2:3:4:",
    "sample.interval=5",
    "grüße",
    "%s%n",
];

#[test]
fn what_was_written_by_the_grammar_is_read() {
    let mut random = Random(7);
    for round in 0..2000 {
        let mut text = String::new();
        let mut expected = Vec::new();
        for _ in 0..1 + random.below(3) {
            let [memory, gc, line] = [0; 3].map(|_| random.chance(50));
            for (on, option) in [(memory, "memory"), (gc, "GC"), (line, "line")] {
                if on {
                    text += &format!("{option} profiling: ");
                }
            }
            text += &format!("sample.interval={}\n", 1 + random.below(20_000));
            let mut files = 0;
            for _ in 0..random.below(20) {
                let mut sample = String::new();
                let mut stack = Vec::new();
                if memory {
                    for _ in 0..4 {
                        sample += &format!(":{}", random.below(1 << 30));
                    }
                    sample += ":";
                }
                for _ in 0..random.below(8) + u64::from(!memory) {
                    let name = random.of(&NAMES);
                    let mut place = "@:0".to_owned();
                    if line && random.chance(50) {
                        // R numbers files in the order of their occurrence.
                        let file = 1 + random.below(files + 1);
                        if file > files {
                            files = file;
                            text += &format!("#File {file}: dir {file}/#1: x.R\n");
                        }
                        let number = random.below(1000);
                        sample += &format!("{file}#{number} ");
                        place = format!("@dir {file}/#1: x.R:{number}");
                    }
                    sample += &format!("\"{name}\" ");
                    stack.push(format!("{name}{place}"));
                }
                text += &format!("{sample}\n");
                expected.push(stack.join(" "));
            }
        }
        let (profile, problems) = read(text.as_bytes()).unwrap();
        assert_eq!(stacks(&profile), expected, "round {round}:\n{text}");
        assert!(problems.is_empty(), "round {round}:\n{text}");
        assert_eq!(written(&profile), text, "round {round}");
    }
}
