//! A fuzzer: reads and writes randomly changed files for a given time.
//!
//! ```sh
//! cargo run --release --example mutate -- SECONDS [SEED] [FORMAT | FILE ...]
//! ```
//!
//! Half of the inputs have a changed structure (`structured`): JSON whose fields and values are dropped, repeated,
//! exchanged or replaced, and text with changed lines. With a FORMAT, such as `firefox`, all inputs are such mutants of
//! files of that format. The others have changed bytes; these inputs are the given files, by default the files of the
//! package's tests, both unchanged and converted to OTLP (as bytes and as JSON) and to the formats of viewers. Unless
//! files are given, the irregular messages of the tests are used as well, with some numbers changed. Each input is read
//! in all formats. A profile that was read must be written and read back unchanged; nothing may panic or take longer
//! than ten seconds. Inputs that fail are saved in the directory for temporary files, and their names are printed.
//! With 0 SECONDS, such FILEs are only checked again, as they are.
//!
//! A profile that was read may be irregular in ways that a file cannot store. So what must not change is the profile that
//! was written and read once (`of_otlp::settled()` has exceptions), and files are compared from then on. Times of viewers
//! may differ by rounding, see `of_viewers::is_same()`.

use of_otlp::{as_otlp, irregular_message, read_otlp, there_and_back_otlp, through_otlp};
use of_text::examine_text;
use profile_core::error::{Error, Result};
use profile_core::formats::problems::Problems;
use profile_core::formats::{self, Input, Writer as _};
use profile_core::formats::{pprof, rprof};
use profile_core::io::gzip::Content;
use profile_core::io::input::{Origin, Source};
use profile_core::model::Profile;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod lines;
mod of_otlp;
mod of_text;
mod of_viewers;
mod pages;
mod structured;
mod tree;
// For the messages of the tests.
#[allow(unused)]
#[path = "../../tests/all/otlp/mod.rs"]
mod otlp;

/// Inputs have less than a megabyte. The limit leaves room for other work of the machine.
const SLOW: Duration = Duration::from_secs(10);

/// A random number generator (xorshift64*) with the same results on every platform.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Bytes with a meaning in one of the formats.
const PIECES: [&[u8]; 72] = [
    b"\"",
    b"\" \"",
    b"\" ",
    b" ",
    b"\n",
    b"\r\n",
    b"\n\n",
    b":1:2:3:4:",
    b":18446744073709551615:0:0:0:",
    b"1#2 ",
    b"99#7 ",
    b"1#-3 ",
    b"4294967295#2147483648 ",
    b"#File 1: x\n",
    b"#File 2: \n",
    b"sample.interval=20000\n",
    b"memory profiling: sample.interval=1\n",
    b"line profiling: sample.interval=0\n",
    b"\"<GC>\" ",
    b"\xff\xfe",
    b"\xc3",
    b"\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x10",
    b"\x0a\x00",
    b"\x12\x00",
    b"\x22\x01\x01",
    b"\x2a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x00\x00\x00\x02",
    b";",
    b";;",
    b"_[k]",
    b"_[i] ",
    b" 12\n",
    b" 1.5e3\n",
    b" 9223372036854775807\n",
    b"new page:",
    b"48 :",
    b"\n8048 :\"f\" ",
    b"\t7f0 f+0x1 (m)\n",
    b"\n\nR 1/2 [003] 4.5: 6 cycles: \n",
    b" (inlined)\n",
    b"\n  a.c:12\n",
    b"# ========\n",
    b" ([unknown])",
    b"null",
    b"{},",
    b"[]",
    b",",
    b"-1",
    b"1e400",
    b"\"NaN\"",
    b"\\ud800",
    b"\"values\":[\"5\",6],",
    b"\"attributeIndices\":[1,1,2],",
    b"\"samples\":[[0,1],[0]],",
    b"\"weights\":[1,2],",
    b"{\"type\":\"O\",\"frame\":0,\"at\":5},",
    b"{\"type\":\"C\",\"frame\":0,\"at\":7},",
    b"\"children\":[1,2],",
    b"\"parent\":2,",
    b"\"id\":1,",
    b"\"timeDeltas\":[0,1,-5],",
    b"\"positionTicks\":[{\"line\":5,\"ticks\":99999999999}],",
    b"\"prefixOffset\":[0,1,1,5],",
    b"\"prefix\":[null,0,5],",
    b"\"weight\":[1,-2.5,null],",
    b"\"weightType\":\"bytes\",",
    b"9223372036854775807",
    b"1.5e300",
    b"4294967295",
    b"\"kvlistValue\":{\"values\":[{\"key\":\"a\"}]},",
];

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            1 => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            2 => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            3 => {
                let end = (at + random.below(200)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => bytes.truncate(at),
            5 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            _ => {
                bytes.drain(..at.min(random.below(100)));
            }
        }
    }
}

fn origin() -> Origin {
    Origin {
        name: "input".to_owned(),
        ..Origin::default()
    }
}

fn read_rprof(bytes: &[u8]) -> Result<(Profile, Problems)> {
    formats::read(Input::Bytes(bytes), Some(&rprof::FORMAT), origin(), &|| {
        false
    })
}

fn read_pprof(bytes: &[u8]) -> Result<(Profile, Problems)> {
    formats::read(Input::Bytes(bytes), Some(&pprof::FORMAT), origin(), &|| {
        false
    })
}

/// The part of a frame that all formats can store: function, file and line.
type Frame<'a> = (&'a str, &'a str, i64);

/// The frames of each sample. `repeat`: repeat them as often as the count of the sample.
fn samples(profile: &Profile, repeat: bool) -> Vec<Vec<Frame<'_>>> {
    let text = |id| profile.strings.get(id);
    let mut out = Vec::new();
    for (row, &stack) in profile.samples.stack.iter().enumerate() {
        let frames: Vec<Frame> = profile
            .stacks
            .get(stack)
            .to_vec()
            .unwrap_or_default()
            .iter()
            .map(|&l| {
                let f = profile.function_of(l);
                // pprof cannot store the line of an unknown function.
                let line = f.and(profile.locations.get(l).line).unwrap_or(0);
                (
                    f.map_or("<unknown>", |f| text(f.name)),
                    f.map_or("", |f| text(f.filename)),
                    line,
                )
            })
            .collect();
        let times = match profile.counts() {
            Some(counts) if repeat => counts.column[row] as usize,
            _ => 1,
        };
        for _ in 0..times {
            out.push(frames.clone());
        }
    }
    out
}

/// Whether the counts are small enough for `Rprof()` files, which repeat a stack for each sample.
fn is_small(profile: &Profile) -> bool {
    match profile.counts() {
        Some(counts) => counts.column.iter().map(|c| c.abs()).sum::<f64>() < 1e5,
        None => true,
    }
}

/// Checks one input. The error describes the check that failed.
fn examine(bytes: &[u8]) -> std::result::Result<(), String> {
    if let Ok((profile, _)) = read_rprof(bytes) {
        let mut again = Vec::new();
        rprof::Writer
            .write(&profile, &mut again, &|| false)
            .map_err(|e| format!("an Rprof file that was read cannot be written: {e}"))?;
        let (second, _) = read_rprof(&again).map_err(|e| format!("nor read again: {e}"))?;
        let has_frames = |s: &Vec<Frame>| !s.is_empty();
        let keep = |p| {
            let mut all = samples(p, false);
            all.retain(has_frames);
            all
        };
        // Names with line feeds, or with carriage returns at the end, can be parsed
        // differently if the lines around them change.
        let plain = |p: &Profile| p.strings.iter().all(|s| !s.contains(['\n', '\r']));
        if plain(&profile) && keep(&profile) != keep(&second) {
            return Err("written as Rprof, it reads back as another profile".to_owned());
        }
        there_and_back(&profile)?;
        there_and_back_otlp(&profile)?;
    }
    examine_text(bytes)?;
    if let Ok((profile, _)) = read_otlp(bytes) {
        there_and_back_otlp(&profile)?;
        // pprof cannot store all of it, so only errors are checked.
        through_pprof(&profile, false)?;
    }
    if let Ok((profile, _)) = formats::read(Input::Bytes(bytes), None, origin(), &|| false) {
        through_otlp(&profile, false, false)?;
        of_viewers::there_and_back(&profile)?;
    }
    of_viewers::examine(bytes)?;
    if let Ok((profile, _)) = read_pprof(bytes) {
        there_and_back(&profile)?;
        there_and_back_otlp(&profile)?;
        if is_small(&profile) {
            match rprof::Writer.write(&profile, &mut Vec::new(), &|| false) {
                Ok(_) | Err(Error::Lossy(_)) => {}
                Err(e) => return Err(format!("a pprof profile cannot be written as Rprof: {e}")),
            }
        }
    }
    Ok(())
}

fn there_and_back(profile: &Profile) -> std::result::Result<(), String> {
    let Some((bytes, second)) = through_pprof(profile, false)? else {
        return Ok(());
    };
    // Go rejects lines without a function, so they are not written.
    let mut locations = profile.locations.iter();
    let writable = locations.all(|l| l.function.is_some() || l.line.is_none());
    if writable && samples(profile, false) != samples(&second, false) {
        return Err("written as pprof, it reads back as another profile".to_owned());
    }
    // Our own output stays the same when it is read and written again.
    if through_pprof(&second, false)?.is_none_or(|(again, _)| again != bytes) {
        return Err("our pprof comes back as other bytes".to_owned());
    }
    // Merging merged samples changes nothing.
    if let Some((bytes, merged)) = through_pprof(&second, true)? {
        if through_pprof(&merged, true)?.is_none_or(|(again, _)| again != bytes) {
            return Err("merged, it can be merged again".to_owned());
        }
    }
    Ok(())
}

/// Writes the profile as pprof and reads it back; `None` if pprof cannot store it.
fn through_pprof(
    profile: &Profile,
    aggregate: bool,
) -> std::result::Result<Option<(Vec<u8>, Profile)>, String> {
    let options = pprof::Writer {
        aggregate,
        ..Default::default()
    };
    let mut bytes = Vec::new();
    match options.write(profile, &mut bytes, &|| false) {
        Ok(_) => {}
        Err(Error::Lossy(_)) => return Ok(None),
        Err(e) => return Err(format!("it cannot be written as pprof: {e}")),
    }
    let (second, _) = read_pprof(&bytes).map_err(|e| format!("our pprof cannot be read: {e}"))?;
    Ok(Some((bytes, second)))
}

fn corpus() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/testthat/data");
    let mut files = Vec::new();
    for folder in [
        "rprof",
        "pprof",
        "collapsed",
        "perf",
        "speedscope",
        "cpuprofile",
        "otlp",
        "found",
    ] {
        if let Ok(entries) = fs::read_dir(data.join(folder)) {
            files.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    files.sort();
    files
}

/// The decompressed bytes of a file, truncated so that they are fast to read.
fn seed_of(path: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(path).ok()?;
    let mut plain = Vec::new();
    let mut content = Content::new(Source::Bytes(&bytes)).ok()?;
    std::io::Read::read_to_end(&mut content, &mut plain).ok()?;
    // Messages have their strings at the end, so they are truncated less, and so is JSON.
    let is_whole = read_pprof(&plain).is_ok() || plain.starts_with(b"{");
    plain.truncate(if is_whole { 1 << 16 } else { 6000 });
    Some(plain)
}

/// A seed or an irregular message with changed bytes.
fn changed_bytes(seeds: &[Vec<u8>], are_given: bool, random: &mut Random) -> Vec<u8> {
    let irregular = !are_given && random.below(2) == 0;
    let mut bytes = if irregular {
        irregular_message(random)
    } else {
        seeds[random.below(seeds.len())].clone()
    };
    // Irregular messages are also used as they are.
    if !irregular || random.below(2) == 0 {
        mutate(&mut bytes, random);
    }
    bytes
}

/// The result of a check, which may also panic or take too long.
fn attempt(
    check: impl FnOnce() -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    let start = Instant::now();
    let result =
        catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Err("a panic".to_owned()));
    match start.elapsed() {
        time if time > SLOW => Err(format!("it takes {time:?}")),
        _ => result,
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(10);
    let seed = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(1);
    let arguments: Vec<String> = arguments.collect();
    let only = arguments.first().and_then(|name| formats::named(name));
    let mut files: Vec<PathBuf> = match only {
        Some(_) => Vec::new(),
        None => arguments.iter().map(PathBuf::from).collect(),
    };
    let are_given = !files.is_empty();
    if files.is_empty() {
        files = corpus();
    }
    let mut subjects = if are_given {
        Vec::new()
    } else {
        structured::subjects(&files)
    };
    subjects.retain(|subject| only.is_none_or(|only| only == subject.format));
    let mut seeds: Vec<Vec<u8>> = files.iter().filter_map(|p| seed_of(p)).collect();
    if !are_given {
        seeds.extend(as_otlp(&files));
    }
    seeds.extend(of_viewers::as_json(&files));
    assert!(!seeds.is_empty(), "no file to start from");
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut inputs, mut failed) = (0u64, 0u64);
    std::panic::set_hook(Box::new(|_| {}));
    // Inputs that failed before, as they are.
    for path in files.iter().filter(|_| are_given) {
        let bytes = fs::read(path).unwrap_or_default();
        if let Err(why) = attempt(|| examine(&bytes)) {
            println!("{}: {why}", path.display());
        }
    }
    while Instant::now() < end {
        let of_structure = only.is_some() || !are_given && random.below(2) == 0;
        let at = random.below(subjects.len());
        let subject = subjects.get_mut(at).filter(|_| of_structure);
        let (bytes, result) = match subject {
            Some(subject) => {
                let bytes = subject.mutant(&mut random);
                let result = attempt(|| subject.examine(&bytes));
                subject.failed += u64::from(result.is_err());
                (bytes, result)
            }
            None => {
                let bytes = changed_bytes(&seeds, are_given, &mut random);
                let result = attempt(|| examine(&bytes));
                (bytes, result)
            }
        };
        inputs += 1;
        if let Err(why) = result {
            failed += 1;
            let path = std::env::temp_dir().join(format!("profile-mutate-{seed}-{inputs}"));
            let _ = fs::write(&path, &bytes);
            println!("{}: {why}", path.display());
        }
        if failed > 20 {
            break;
        }
    }
    for subject in &subjects {
        println!(
            "{}: {} mutants of its structure, {} could be read, {} failed",
            subject.format.name, subject.mutants, subject.read, subject.failed
        );
    }
    println!(
        "{inputs} inputs from {} seeds and irregular messages, {failed} failed",
        seeds.len()
    );
    std::process::exit(i32::from(failed > 0));
}
