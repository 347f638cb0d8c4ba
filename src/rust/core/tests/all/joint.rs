//! Tests combining recordings with R's files: which tick is assigned to which sample.

use profile_core::error::Position;
use profile_core::formats::problems::{ProblemKind, Problems};
use profile_core::io::input::Origin;
use profile_core::joint::positions::CodeId;
use profile_core::joint::recording::{EXACT, Title, WHOLE_CONTEXTS, WHOLE_STACK, WITH_POSITIONS};
use profile_core::joint::{
    Distinct, Evaluator, Line, Module, Position as InCode, Recording, Role, Wanted, check_target,
    merge,
};
use profile_core::model::Profile;
use std::path::PathBuf;
use std::sync::LazyLock;

const HEADER: &str = "memory profiling: GC profiling: sample.interval=10000\n";
const TOP: u64 = 1 << 30;

/// A tick with this number of R calls, the innermost of which runs native code.
fn tick(calls: usize, before: usize, after: usize) -> Vec<u64> {
    let mut words = vec![
        (calls as u64 + 1) | (calls as u64) << 32,
        WHOLE_STACK | WHOLE_CONTEXTS,
        before as u64,
        after as u64,
    ];
    // Innermost first: native code, then R's frames, each with a record of a call.
    words.extend([0x2000 | 1 << 48, (TOP - 0x10000) | EXACT]);
    for call in 0..calls as u64 {
        words.extend([0x1001, TOP - 0xf000 + 0x100 * call]);
    }
    for call in 0..calls as u64 {
        words.extend([(TOP - 0xf000 + 0x100 * call + 8) | 4 << 48, 0]);
    }
    words
}

fn recording(words: &[u64]) -> Recording<'_> {
    let module = |path: &str, role| Module {
        path: path.to_owned(),
        role,
        ..Module::default()
    };
    Recording {
        is_native: true,
        words,
        modules: vec![
            module("/nowhere/libR.so", Role::Evaluator),
            module("/nowhere/native.so", Role::Library),
        ],
        evaluator: Evaluator::default(),
        stack_top: TOP,
        lines_written_at_once: false,
        lost: 0,
        start: 1_790_000_000_250_000_000,
        duration: 3_000_000_000,
    }
}

/// A line of R's file with this number of calls: f1 inside f2, and so on.
fn line(calls: usize) -> String {
    let items: String = (1..=calls).map(|call| format!("\"f{call}\" ")).collect();
    format!(":1:2:3:4:{items}\n")
}

fn merged(file: &str, recording: &Recording) -> (Profile, Problems) {
    let path = scratch(file);
    let result = merge(&path, Origin::default(), recording, wanted(), &|| false);
    std::fs::remove_file(path).unwrap();
    result.unwrap()
}

/// Native frames, but neither memory nor lines.
fn wanted<'a>() -> Wanted<'a> {
    static NONE: LazyLock<Distinct> = LazyLock::new(Distinct::default);
    Wanted {
        memory: false,
        positions: &NONE,
        lines: &[],
    }
}

fn scratch(file: &str) -> PathBuf {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("profile-joint-{}-{number}.out", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, file).unwrap();
    path
}

/// The functions of each sample, innermost first.
fn stacks(profile: &Profile) -> Vec<String> {
    let name = |&location: &_| {
        let function = profile.function_of(location).unwrap();
        profile.strings.get(function.name)
    };
    let samples = profile.samples.stack.iter();
    samples
        .map(|&stack| {
            let names: Vec<&str> = profile
                .stacks
                .get(stack)
                .to_vec()
                .unwrap()
                .iter()
                .map(name)
                .collect();
            names.join(" ")
        })
        .collect()
}

/// The number of samples that have a native frame.
fn joint(profile: &Profile) -> usize {
    let stacks = stacks(profile);
    stacks.iter().filter(|s| s.contains("native.so+")).count()
}

fn unmatched(problems: &Problems) -> Vec<Position> {
    let kept = problems.kept().iter();
    kept.filter(|problem| problem.kind == ProblemKind::NativeUnmatched)
        .map(|problem| problem.position.clone())
        .collect()
}

#[test]
fn each_line_gets_its_tick() {
    let file = format!("{HEADER}{}{}{}", line(2), line(0), line(1));
    let words = [tick(2, 0, 0), tick(0, 0, 0), tick(1, 0, 0)].concat();
    let (profile, problems) = merged(&file, &recording(&words));
    assert!(problems.is_empty());
    assert_eq!(
        stacks(&profile),
        [
            "native.so+0x2000 f1 f2",
            // No frame belongs to R, so the stack belongs to another program.
            "",
            "native.so+0x2000 f1"
        ]
    );
    let location = profile.stacks.get(profile.samples.stack[0]);
    let location = location.first().unwrap();
    let location = profile.locations.get(location);
    assert_eq!(profile.frame_type_of(&location), Some("native"));
    assert_eq!(profile.address_of(&location).address, 0x2000);
    // The memory figures, which were recorded only so that R writes a line at each tick, are
    // removed.
    assert_eq!(profile.values.len(), 1);
    assert!(!profile.sources[0].options.unwrap().memory);
}

#[test]
fn a_sample_with_other_calls_than_its_tick_keeps_rs_stack() {
    let file = format!("{HEADER}{}{}{}", line(2), line(3), line(1));
    let words = [tick(2, 0, 0), tick(2, 0, 0), tick(1, 0, 0)].concat();
    let (profile, problems) = merged(&file, &recording(&words));
    assert_eq!(joint(&profile), 2);
    assert_eq!(stacks(&profile)[1], "f1 f2 f3");
    assert_eq!(unmatched(&problems), [Position::Sample(2)]);
}

#[test]
fn another_number_of_lines_than_of_ticks_is_no_match_at_all() {
    let file = format!("{HEADER}{}{}", line(2), line(2));
    let words = [tick(2, 0, 0), tick(2, 0, 0), tick(2, 0, 0)].concat();
    let (profile, problems) = merged(&file, &recording(&words));
    assert_eq!(joint(&profile), 0);
    assert_eq!(unmatched(&problems).len(), 2);
}

#[test]
fn the_size_shows_which_tick_has_no_line() {
    let lines = [line(2), line(1), line(2)];
    let file = format!("{HEADER}{}", lines.concat());
    let first = HEADER.len() + lines[0].len();
    let second = first + lines[1].len();
    let words = [
        tick(2, HEADER.len(), first),
        // R wrote no line at this tick.
        tick(2, first, first),
        tick(1, first, second),
        tick(2, second, file.len()),
    ]
    .concat();
    let mut recording = recording(&words);
    recording.lines_written_at_once = true;
    let (profile, problems) = merged(&file, &recording);
    assert_eq!(problems.counts(), [(ProblemKind::SilentTick, 1)]);
    assert_eq!(joint(&profile), 3);

    // If there are two lines at one tick, neither belongs to it.
    let words = tick(2, HEADER.len(), second);
    recording.words = &words;
    let (profile, problems) = merged(&file, &recording);
    assert_eq!(joint(&profile), 0);
    assert_eq!(unmatched(&problems).len(), 3);
}

#[test]
fn a_copy_is_a_frame_except_during_garbage_collection() {
    let file = format!("{HEADER}{}:1:2:3:4:\"<GC>\" \"f1\" \n", line(2));
    let mut words = [tick(2, 0, 0), tick(1, 0, 0)];
    for tick in &mut words {
        // The innermost frame belongs to R, and copies.
        tick[4] = 0x3000;
    }
    let words = words.concat();
    let mut recording = recording(&words);
    recording.evaluator.copying.push(0x3000..0x3100);
    let (profile, problems) = merged(&file, &recording);
    assert!(problems.is_empty());
    assert_eq!(stacks(&profile), ["<copy> f1 f2", "<GC> f1"]);
    let innermost = profile.stacks.get(profile.samples.stack[0]).first();
    let location = profile.locations.get(innermost.unwrap());
    assert_eq!(profile.frame_type_of(&location), Some("r"));
}

#[test]
fn the_mark_of_garbage_collection_is_no_call() {
    let file = format!("{HEADER}:1:2:3:4:\"<GC>\" \"f1\" \n:1:2:3:4:\"<GC>\" \"f1\" \n");
    let words = [tick(1, 0, 0), tick(2, 0, 0)].concat();
    let (profile, _) = merged(&file, &recording(&words));
    assert_eq!(
        stacks(&profile),
        [
            "<GC> native.so+0x2000 f1",
            // Here the frame is a function of that name.
            "native.so+0x2000 <GC> f1"
        ]
    );
}

#[test]
fn a_line_that_r_cut_has_the_innermost_calls() {
    let name = "a".repeat(400);
    let items = format!("\"{name}\" ").repeat(25);
    let file = format!("{HEADER}:1:2:3:4:{items}\n:1:2:3:4:\"f1\" \n");
    let words = [tick(40, 0, 0), tick(3, 0, 0)].concat();
    let (profile, problems) = merged(&file, &recording(&words));
    assert_eq!(joint(&profile), 1);
    assert!(stacks(&profile)[0].ends_with(&name));
    // A short line was not truncated.
    assert_eq!(unmatched(&problems), [Position::Sample(2)]);
}

#[test]
fn ticks_that_did_not_fit_are_told_as_such() {
    let file = format!("{HEADER}{}{}{}", line(1), line(1), line(2));
    let words = [tick(1, 0, 0), tick(1, 0, 0)].concat();
    let mut recording = recording(&words);
    recording.lost = 1;
    let (profile, problems) = merged(&file, &recording);
    assert_eq!(joint(&profile), 2);
    assert_eq!(problems.counts(), [(ProblemKind::NativeFull, 1)]);
}

#[test]
fn stacks_that_are_not_whole_are_counted() {
    let file = format!("{HEADER}{}", line(1));
    let mut words = tick(1, 0, 0);
    words[1] = WHOLE_CONTEXTS;
    let (profile, problems) = merged(&file, &recording(&words));
    assert_eq!(joint(&profile), 1);
    assert_eq!(problems.counts(), [(ProblemKind::NativeCut, 1)]);
    words[1] = WHOLE_STACK;
    let (profile, problems) = merged(&file, &recording(&words));
    assert_eq!(joint(&profile), 0);
    assert_eq!(problems.counts(), [(ProblemKind::NativeUnmatched, 1)]);
}

#[test]
fn words_that_are_no_recording_do_no_harm() {
    let file = format!("{HEADER}{}", line(1).repeat(50));
    let mut state = 88172645463325252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..500 {
        let mut words: Vec<u64> = (0..50).flat_map(|_| tick(1, 0, 0)).collect();
        for _ in 0..20 {
            let at = next() as usize % words.len();
            words[at] = match next() % 3 {
                0 => next(),
                1 => next() % 16,
                _ => words[at] ^ (1 << (next() % 64)),
            };
        }
        words.truncate(next() as usize % words.len());
        let mut recording = recording(&words);
        recording.lines_written_at_once = round % 2 == 0;
        let (profile, _) = merged(&file, &recording);
        assert_eq!(profile.samples.len(), 50);
    }
}

#[test]
fn a_run_has_a_time_and_a_duration() {
    let file = format!("{HEADER}{}", line(1));
    let words = tick(1, 0, 0);
    let (profile, _) = merged(&file, &recording(&words));
    let source = &profile.sources[0];
    assert_eq!(source.timestamp, Some(1_790_000_000.25));
    assert_eq!(source.duration, Some(3_000_000_000));
}

#[test]
fn what_has_no_end_is_no_file_of_the_profiler() {
    let devices = ["/dev/zero", "/dev/full"].into_iter();
    for path in devices.filter(|_| cfg!(unix)).chain(["/"]) {
        let target = check_target(path.as_ref());
        assert_eq!(target.unwrap_err().class(), "profile_error_write", "{path}");
        let merged = merge(
            path.as_ref(),
            Origin::default(),
            &recording(&[]),
            wanted(),
            &|| false,
        );
        assert_eq!(merged.unwrap_err().class(), "profile_error_open", "{path}");
    }
    assert!(check_target("/nowhere/there".as_ref()).is_ok());
}

#[test]
fn a_file_that_broke_off_on_a_full_disk_says_how_many_samples_are_missing() {
    let file = format!("{HEADER}{}", line(2));
    let words = [tick(2, 0, 0), tick(0, 0, 0), tick(1, 0, 0)].concat();
    let (profile, problems) = merged(&file, &recording(&words));
    assert_eq!(stacks(&profile), ["f1 f2"]);
    let mut counts = problems.counts().to_vec();
    counts.sort();
    let expected = [
        (ProblemKind::NativeUnmatched, 1),
        (ProblemKind::SilentTick, 2),
    ];
    assert_eq!(counts, expected);

    let path = scratch("");
    let result = merge(
        &path,
        Origin::default(),
        &recording(&words),
        wanted(),
        &|| false,
    );
    std::fs::remove_file(path).unwrap();
    assert_eq!(result.unwrap_err().class(), "profile_error_write");
}

#[test]
fn frames_without_a_line_get_that_of_their_position_and_calls_get_their_titles() {
    // R knows the line of the outermost function, a garbage collection has no position.
    let file = format!(
        "{}#File 1: own.R\n:1:2:3:4:\"<GC>\" \"f1\" \"f2\" 1#7 \"f3\" \n:1:2:3:4:\"f1\" \"f2\" 1#7 \"f3\" \n",
        "memory profiling: GC profiling: line profiling: sample.interval=10000\n"
    );
    let code = CodeId::new(0x1000, 1);
    let [known, unknown, other] = [5, 6, 7].map(|words| InCode::new(code, words).unwrap());
    let with = |positions: [[u64; 2]; 3]| {
        let mut words = tick(3, 0, 0);
        words[1] |= WITH_POSITIONS;
        words.extend(positions.concat());
        words
    };
    let mut words = [
        with([known.to_words(), InCode::NONE, other.to_words()]),
        with([unknown.to_words(), known.to_words(), other.to_words()]),
    ];
    // The first call of both, and the outermost one of the second.
    for (tick, number) in [(0, 0), (1, 0), (1, 2)] {
        let mut room = [0; 20];
        let title = Title::new(b"dplyr").unwrap();
        let count = title.write(number, &mut room).unwrap();
        words[tick][1] += (count as u64) << 32;
        words[tick].extend(&room[..count]);
    }
    let words = words.concat();
    let mut recording = recording(&words);
    recording.modules.clear();
    recording.is_native = false;
    let positions = Distinct::of(&recording).unwrap();
    assert_eq!(positions.positions, [known, other, unknown]);
    let file_of = "<pkg::f>";
    let lines = [Some(3), Some(4), None].map(|line| {
        line.map(|line| Line {
            file: file_of,
            line,
        })
    });
    let path = scratch(&file);
    let wanted = Wanted {
        memory: false,
        positions: &positions,
        lines: &lines,
    };
    let result = merge(&path, Origin::default(), &recording, wanted, &|| false);
    std::fs::remove_file(path).unwrap();
    let (profile, problems) = result.unwrap();
    assert!(problems.counts().is_empty());
    let place = |stack: &_| {
        let frames = profile.stacks.get(*stack).to_vec().unwrap();
        let frames = frames.iter().map(|&frame| {
            let function = profile.function_of(frame).unwrap();
            let [name, file] = [function.name, function.filename].map(|id| profile.strings.get(id));
            format!(
                "{name} {file} {}",
                profile.locations.get(frame).line_for_r()
            )
        });
        frames.collect::<Vec<_>>()
    };
    let places: Vec<_> = profile.samples.stack.iter().map(place).collect();
    assert_eq!(
        places[0],
        ["<GC>  0", "f1(dplyr) <pkg::f> 3", "f2  0", "f3 own.R 7"]
    );
    assert_eq!(
        places[1],
        ["f1(dplyr)  0", "f2 <pkg::f> 3", "f3(dplyr) own.R 7"]
    );
    assert_eq!(profile.sources[0].duration, None);
}
