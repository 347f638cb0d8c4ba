//! Hand-made stacks and the expected results.

use super::super::recording::{EXACT, PAIR, WHOLE_CONTEXTS, WHOLE_STACK};
use super::*;
use std::ops::Range;

const R: u64 = 0;
const PROGRAM: u64 = 1;
const LIBC: u64 = 2;
const OURS: u64 = 3;
const LIBGCC: u64 = 4;
const TOP: u64 = 10_000;
/// Records of calls that are not on the C stack.
const NODES: u64 = 0x7000_0000;
/// The numbers of R's frames that belong to `Rf_eval()` and to the interpreter.
const EVAL: Range<u64> = 20..22;
const INTERPRETER: Range<u64> = 22..24;
/// The number of R's frame that belongs to a function that calls closures.
const CLOSURE: Range<u64> = 12..13;
/// The numbers of R's frames that belong to a function that copies objects, and to one that allocates memory for them.
const COPYING: Range<u64> = 10..11;
const ALLOCATING: Range<u64> = 11..12;
/// The number of our frame that belongs to a function that R calls in the place of `malloc()`.
const HOOK: Range<u64> = 342..343;

/// Frames as (module, stack pointer), outermost first; contexts as (address, promise), outermost
/// first. The program counter of a frame is 100 times its module plus its number, counted from the
/// outermost frame.
struct Example {
    frames: Vec<(u64, u64)>,
    contexts: Vec<(u64, u64)>,
    /// The number of a frame with the same program counter as the one before.
    repeated: Option<usize>,
    whole: bool,
    items: usize,
    calls: Vec<usize>,
}

/// The stack as a line, outermost first: items are letters from `a` (outermost), native frames are
/// shown by module and number.
fn woven(example: &Example) -> String {
    let mut words = vec![
        example.frames.len() as u64 | (example.contexts.len() as u64) << 32,
        WHOLE_CONTEXTS | if example.whole { WHOLE_STACK } else { 0 },
        0,
        0,
    ];
    let frames = example.frames.iter().enumerate().rev();
    for (number, &(module, pointer)) in frames {
        let innermost = number + 1 == example.frames.len();
        let at = number - usize::from(example.repeated == Some(number));
        let counter = 100 * module + at as u64 + u64::from(!innermost);
        words.extend([
            counter | module << 48,
            pointer | (u64::from(innermost) * EXACT),
        ]);
    }
    for &(address, promise) in example.contexts.iter().rev() {
        words.extend([address | 4 << 48, promise]);
    }
    assert_eq!(words.len() % PAIR, 0);
    let module = |path: &str, role| Module {
        path: path.to_owned(),
        role,
        ..Module::default()
    };
    let recording = Recording {
        is_native: true,
        words: &words,
        modules: vec![
            module("/usr/lib/R/lib/libR.so", Role::Evaluator),
            module("/usr/lib/R/bin/exec/R", Role::Program),
            module("/lib/libc.so.6", Role::Library),
            module("/lib/libcustom.so", Role::Library),
            module("/lib/libgcc_s.so.1", Role::Library),
        ],
        evaluator: Evaluator {
            eval: EVAL,
            interpreter: INTERPRETER,
            between: 0,
            closures: vec![CLOSURE],
            copying: vec![COPYING],
            allocating: vec![ALLOCATING],
            hooks: vec![HOOK],
        },
        stack_top: TOP,
        lines_written_at_once: false,
        lost: 0,
        start: 0,
        duration: 0,
    };
    let mut interleaver = Interleaver::new(&recording).unwrap();
    let tick = recording.ticks().next().unwrap();
    let all = example.contexts.len();
    let is_call = |item: usize| example.calls.contains(&(all - 1 - item));
    let Some(parts) = interleaver
        .interleave(&tick, example.items, is_call)
        .unwrap()
    else {
        return "uncertain".to_owned();
    };
    let words: Vec<String> = parts
        .iter()
        .map(|part| match part {
            StackPart::Item(item) => char::from(b'a' + (all - 1 - item) as u8).to_string(),
            StackPart::Native(frame) => match frame.address {
                100..200 => format!("program{}", frame.address - 100),
                200..300 => format!("libc{}", frame.address - 200),
                300..400 => format!("ours{}", frame.address - 300),
                400.. => format!("libgcc{}", frame.address - 400),
                address => format!("R{address}"),
            },
            StackPart::Copy => "copy".to_owned(),
        })
        .collect();
    words.join(" ")
}

fn example(frames: &[(u64, u64)], contexts: &[(u64, u64)]) -> Example {
    Example {
        frames: frames.to_vec(),
        contexts: contexts.to_vec(),
        repeated: None,
        whole: true,
        items: contexts.len(),
        calls: Vec::new(),
    }
}

/// `a()` calls native code, which calls `b()`, which calls native code again.
fn nested() -> Example {
    example(
        &[
            (PROGRAM, 9900),
            (LIBC, 9800),
            (R, 9700),
            (R, 9500), // has the record of a
            (OURS, 9300),
            (R, 9200),
            (R, 9000), // has the record of b
            (R, 8900),
            (OURS, 8800),
            (OURS, 8700),
        ],
        &[(9600, 0), (9100, 0)],
    )
}

#[test]
fn native_frames_stand_below_the_call_that_made_them() {
    assert_eq!(woven(&nested()), "a ours4 b ours8 ours9");
}

#[test]
fn what_is_outside_r_is_left_out() {
    let only_r = example(&[(PROGRAM, 9900), (LIBC, 9800), (R, 9700)], &[]);
    assert_eq!(woven(&only_r), "");
    let embedded = example(&[(OURS, 9900), (R, 9800), (OURS, 9700)], &[]);
    assert_eq!(woven(&embedded), "ours2");
}

#[test]
fn the_c_library_counts_as_rs_where_r_calls_it() {
    let copies = example(&[(R, 9700), (LIBC, 9600)], &[(9800, 0)]);
    assert_eq!(woven(&copies), "a");
    let ours = example(
        &[(R, 9700), (OURS, 9600), (LIBC, 9500), (R, 9400)],
        &[(9800, 0)],
    );
    assert_eq!(woven(&ours), "a ours1 libc2 R3");
}

#[test]
fn a_hook_and_what_it_calls_are_left_out() {
    let mut frames = vec![(R, 9700), (OURS, 9600), (R, 9500)];
    frames.extend((0..39).map(|number| (R, 9400 - number)));
    let with = |inside: &[(u64, u64)]| {
        let frames = [frames.as_slice(), inside].concat();
        woven(&example(&frames, &[(9800, 0)]))
    };
    let without = with(&[]);
    assert!(without.starts_with("a ours1 R2"), "{without}");
    // The hook is frame number 42.
    assert_eq!(with(&[(OURS, 9000)]), without);
    assert_eq!(with(&[(OURS, 9000), (OURS, 8900), (LIBC, 8800)]), without);
    assert_ne!(with(&[(LIBC, 9000), (OURS, 8900)]), without);
}

#[test]
fn a_copy_is_the_innermost_item() {
    // Frame 10 copies. The frames before it belong to R, except for number 9.
    let with = |before: u64, inside: &[(u64, u64)], contexts: &[(u64, u64)]| {
        let mut frames = vec![(R, 9700); 9];
        frames.extend([(before, 9600), (R, 9500)]);
        frames.extend(inside);
        woven(&example(&frames, contexts))
    };
    let inside = |inside: &[(u64, u64)]| with(R, inside, &[(9800, 0)]);
    assert_eq!(inside(&[]), "a copy");
    assert_eq!(inside(&[(LIBC, 9400)]), "a copy");
    // Frame 11 allocates the copy.
    assert_eq!(inside(&[(R, 9400)]), "a");
    assert_eq!(inside(&[(R, 9400), (LIBC, 9300)]), "a");
    assert_eq!(inside(&[(LIBC, 9400), (LIBC, 9300), (R, 9200)]), "a copy");
    // The call runs in the frame of its caller.
    let compiled = [(9800, 0), (NODES + 10, 0)];
    assert_eq!(with(R, &[(LIBC, 9400)], &compiled), "a b copy");
    // Native code makes R copy an object.
    let called = with(OURS, &[(LIBC, 9400)], &[(9800, 0)]);
    assert_eq!(called, "a ours9 R10 libc11 copy");
    // Copying calls native code, or has an expression evaluated (frame 20).
    assert_eq!(inside(&[(OURS, 9400)]), "a ours11");
    assert_eq!(inside(&[(OURS, 9400), (LIBC, 9300)]), "a ours11 libc12");
    assert_eq!(inside(&[(LIBC, 9400); 9]), "a copy");
    let evaluates = [&[(LIBC, 9400); 9][..], &[(R, 9300)]].concat();
    assert_eq!(inside(&evaluates), "a");
}

#[test]
fn a_builtin_that_calls_native_code_is_replaced_by_it() {
    let mut call = example(&[(R, 9500), (OURS, 9400)], &[(9700, 0), (9600, 0)]);
    assert_eq!(woven(&call), "a b ours1");
    call.calls = vec![1];
    assert_eq!(woven(&call), "a ours1");
    // No native frame replaces it yet.
    call.frames.truncate(1);
    assert_eq!(woven(&call), "a b");
}

#[test]
fn calls_off_the_c_stack_follow_the_evaluator() {
    let compiled = example(
        &[
            (R, 9700), // runs a, b and c
            (OURS, 9500),
            (R, 9300),
            (R, 9100), // has the record of d, runs e
            (OURS, 9000),
        ],
        &[
            (9800, 0),
            (NODES + 10, 0),
            (NODES + 20, 0),
            (9200, 0),
            (NODES + 30, 0),
        ],
    );
    assert_eq!(woven(&compiled), "a b c ours1 d e ours4");
}

#[test]
fn a_promise_that_c_code_forced_tells_the_frame() {
    let promise = 9350;
    let forced = example(
        &[
            (R, 9700), // runs a and b
            (OURS, 9500),
            (R, 9300), // has the promise
            (R, 9100), // runs c
            (OURS, 9000),
        ],
        &[(9800, 0), (NODES + 10, 0), (NODES + 20, promise)],
    );
    assert_eq!(woven(&forced), "a b ours1 c ours4");
}

#[test]
fn byte_code_that_c_code_had_evaluated_makes_the_order_uncertain() {
    let after = |foreign: usize, frames_of_r: usize| {
        let mut frames = vec![(R, 9700)];
        frames.resize(1 + foreign, (OURS, 9500));
        frames.resize(1 + foreign + frames_of_r, (R, 9300));
        frames.push((OURS, 9000));
        woven(&example(&frames, &[(9800, 0), (NODES + 10, 0)]))
    };
    // Frames 20 and 21 belong to `Rf_eval()`, 22 and 23 to the interpreter.
    assert_eq!(after(20, 2), "uncertain");
    // With one more frame in front, `Rf_eval()` evaluates a promise.
    assert_eq!(
        after(19, 3).split(' ').skip(21).collect::<Vec<_>>(),
        ["R20", "R21", "R22", "ours23"]
    );
    // Without the interpreter, no byte code runs.
    assert!(after(20, 1).ends_with("ours20 R21 ours22"));
    // The interpreter was not called by `Rf_eval()`.
    assert_eq!(after(21, 1), "uncertain");
}

#[test]
fn where_the_line_was_cut_nothing_further_out_is_told() {
    let mut cut = nested();
    cut.items = 1;
    assert_eq!(woven(&cut), "b ours8 ours9");
}

#[test]
fn a_stack_that_was_not_followed_to_its_end_keeps_what_is_sure() {
    let mut lost = nested();
    lost.whole = false;
    lost.frames.drain(..5);
    // Frame 5 of the whole stack is now the outermost known one.
    assert_eq!(woven(&lost), "a b ours3 ours4");
    // Only the innermost frame is known.
    lost.frames.drain(..4);
    assert_eq!(woven(&lost), "a b ours0");
}

#[test]
fn a_caller_in_no_module_is_damage() {
    let mut odd = example(&[(R, 9700), (OURS, 9600)], &[(9800, 0)]);
    odd.frames[0].0 = 99;
    odd.whole = false;
    assert_eq!(woven(&odd), "a ours1");
}

#[test]
fn a_call_that_r_has_forgotten_makes_the_order_uncertain() {
    // Frame 12 calls a closure, in which foreign code runs.
    let mut frames = vec![(R, 9700)];
    frames.resize(13, (R, 9500));
    assert_eq!(woven(&example(&frames, &[(9800, 0)])), "a");
    frames.push((OURS, 9400));
    assert_eq!(woven(&example(&frames, &[(9800, 0)])), "uncertain");
    // Frame 12 contains a record.
    frames[12].1 = 9450;
    assert_eq!(
        woven(&example(&frames, &[(9800, 0), (9460, 0)])),
        "a b ours13"
    );
}

#[test]
fn a_stack_that_cpp_has_changed_for_a_jump_is_uncertain() {
    let frames = [
        (R, 9700),
        (OURS, 9600),
        (OURS, 9500),
        (LIBGCC, 9400),
        (LIBGCC, 9300),
    ];
    let mut thrown = example(&frames, &[(9800, 0)]);
    assert_eq!(woven(&thrown), "a ours1 ours2 libgcc3 libgcc4");
    thrown.repeated = Some(2);
    assert_eq!(woven(&thrown), "uncertain");
    // A function that calls itself.
    thrown.frames[3].0 = OURS;
    thrown.frames[4].0 = OURS;
    assert_eq!(woven(&thrown), "a ours1 ours1 ours3 ours4");
    // The unwinder itself.
    let mut inside = example(
        &[
            (R, 9700),
            (OURS, 9600),
            (LIBGCC, 9500),
            (LIBGCC, 9400),
            (LIBGCC, 9300),
        ],
        &[(9800, 0)],
    );
    inside.repeated = Some(3);
    assert_eq!(woven(&inside), "a ours1 libgcc2 libgcc2 libgcc4");
}
