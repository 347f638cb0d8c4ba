//! Builtin functions that are called at a position in byte code.

use crate::fake::objects::Code;
use crate::fake::process::{At, FakeR, On, frames};
use profile_reader::stack::reader::Motion;
use profile_runtime::contexts::{BUILTIN, CLOSURE, Layout};
use profile_runtime::objects::{CAR, CLOSXP, CODE, DATA, LENGTH, PRINTNAME, SPECIALSXP, VALUE};

/// Byte code that calls `{`, the builtins `sum`, `max` and `c`, and `{` again, starting at a.R#10; and these calls.
fn code(r: &mut FakeR) -> (Code, [u64; 5]) {
    let file = r.srcfile("a.R");
    let srcrefs: Vec<_> = (10..15).map(|line| r.srcref(line, file)).collect();
    let body = r.call_of("{");
    let [sum, max, c] = ["sum", "max", "c"].map(|name| r.call_of_builtin(name));
    let calls = [body, sum, max, c, body];
    (r.byte_code_of(&srcrefs, &calls), calls)
}

/// The frames if `f` has called `g` at a position of its code.
fn frames_at(r: &FakeR, code: Code, position: u64) -> Vec<String> {
    let mut r = r.clone();
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    r.enter(g, At::Relative(code, position));
    r.frames()
}

#[test]
fn builtins_that_call_functions_are_between_these_and_their_callers() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let (code, _) = code(&mut r);
        let (f, g) = (r.call_of("f"), r.call_of("g"));
        r.enter(f, At::Absolute(code, 1));
        r.enter(g, At::Absolute(code, 3));
        assert_eq!(r.frames(), ["g", "c", "f a.R#13", "sum", "at a.R#11"]);
    }
}

#[test]
fn the_builtin_that_runs_is_the_innermost_frame() {
    for layout in Layout::ALL {
        for is_in_function in [true, false] {
            let mut r = FakeR::new(layout);
            let (code, _) = code(&mut r);
            let f = r.call_of("f");
            let outside = r.head;
            r.record(On::C, CLOSURE, f, code.closure, At::Nowhere);
            r.is_at(At::Absolute(code, 2));
            let (memory, mut reader) = r.reader();
            reader.prepare_with(|| {}).unwrap();
            if is_in_function {
                assert_eq!(frames(&mut reader).unwrap(), ["max", "f a.R#12"]);
            } else {
                // A loop that belongs to no function.
                let head = crate::fake::process::variable("R_GlobalContext");
                memory.change(|space| space.set(head, outside));
                assert_eq!(frames(&mut reader).unwrap(), ["max", "at a.R#12"]);
            }
        }
    }
}

#[test]
fn a_function_that_begins_is_not_where_its_caller_is() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let (code, calls) = code(&mut r);
        let f = r.call_of("f");
        r.record(On::C, CLOSURE, f, code.closure, At::Nowhere);
        r.is_at(At::Absolute(code, 2));
        // A function of the user with the name of a builtin.
        let mut later = r.clone();
        later.record(
            On::C,
            CLOSURE,
            calls[1],
            code.closure,
            At::Absolute(code, 1),
        );
        let (memory, mut reader) = r.reader();
        reader.prepare_with(|| {}).unwrap();
        later.is_at(At::Absolute(code, 1));
        memory.change(|space| *space = later.space.clone());
        assert_eq!(frames(&mut reader).unwrap(), ["sum", "f a.R#11"]);
        later.is_at(At::Absolute(code, 2));
        memory.change(|space| *space = later.space.clone());
        assert_eq!(
            frames(&mut reader).unwrap(),
            ["max", "sum a.R#12", "f a.R#11"]
        );
    }
}

#[test]
fn a_call_that_has_a_record_is_no_further_builtin() {
    for flags in [CLOSURE, BUILTIN] {
        let mut r = FakeR::new(Layout::R_4_4);
        let (code, calls) = code(&mut r);
        let f = r.call_of("f");
        r.enter(f, At::Nowhere);
        // A function `sum` of the user, or `sum` while `Rprof()` runs.
        r.record(On::C, flags, calls[1], code.closure, At::Relative(code, 1));
        assert_eq!(r.frames(), ["sum", "f a.R#11"]);
    }
    // The method of a builtin is called by another call.
    let mut r = FakeR::new(Layout::R_4_4);
    let (code, _) = code(&mut r);
    let (f, method) = (r.call_of("f"), r.call_of("sum.a"));
    r.enter(f, At::Nowhere);
    r.enter(method, At::Relative(code, 1));
    assert_eq!(r.frames(), ["sum.a", "sum", "f a.R#11"]);
}

#[test]
fn an_argument_or_the_end_of_the_code_is_no_builtin() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (code, _) = code(&mut r);
    assert_eq!(frames_at(&r, code, 2), ["g", "max", "f a.R#12"]);
    let operand = code.instructions + DATA as u64 + 8 * 3;
    let element = code.expressions + DATA as u64 + 4 * 2;
    for other in [0, 1, 6, 7, 9, 10, 11, i32::MAX, -1, i32::MIN] {
        // An instruction with another operand, such as a variable.
        let mut other_operand = r.clone();
        other_operand.space.write(operand, &other.to_le_bytes());
        assert_eq!(frames_at(&other_operand, code, 2), ["g", "f a.R#12"]);
        // An instruction of another expression.
        let mut other_expression = r.clone();
        other_expression.space.write(element, &other.to_le_bytes());
        assert_eq!(frames_at(&other_expression, code, 2), ["g", "f a.R#12"]);
        // Both, so that the expression is no call of a builtin, or there is no such constant.
        let mut both = other_operand;
        both.space.write(element, &other.to_le_bytes());
        let expected: &[&str] = match other {
            7 => &["g", "sum", "f a.R#12"],
            9 => &["g", "c", "f a.R#12"],
            _ => &["g", "f a.R#12"],
        };
        assert_eq!(frames_at(&both, code, 2), expected, "{other}");
    }
    // Instructions that end before the operand, and a table that ends before the position.
    for (vector, length) in [(code.instructions, 6), (code.expressions, 2)] {
        let mut r = r.clone();
        r.space.set(vector + LENGTH as u64, length);
        assert_eq!(frames_at(&r, code, 2), ["g", "f a.R#12"]);
        assert_eq!(frames_at(&r, code, 1), ["g", "sum", "f a.R#11"]);
    }
}

#[test]
fn only_builtins_of_base_that_are_called_by_name_are_claimed() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (code, calls) = code(&mut r);
    let symbol = r.symbol("sum");
    let nil = r.nil;
    let special = r.cell(SPECIALSXP, [nil; 3]);
    let closure = r.cell(CLOSXP, [nil; 3]);
    let text = r.string("sum");
    for (address, word) in [
        (symbol + VALUE as u64, special),
        (symbol + VALUE as u64, closure),
        (symbol + VALUE as u64, nil),
        (symbol + VALUE as u64, 0),
        (symbol + VALUE as u64, u64::MAX - 7),
        (symbol, 0),
        (symbol + PRINTNAME as u64, 0),
        (calls[1] + CAR as u64, text),
        (calls[1] + CAR as u64, calls[2]),
        (calls[1] + CAR as u64, 0),
        (calls[1], 0),
    ] {
        let mut r = r.clone();
        r.space.set(address, word);
        assert_eq!(frames_at(&r, code, 1), ["g", "f a.R#11"]);
    }
}

#[test]
fn what_the_compiler_replaces_is_not_claimed() {
    for (name, is_claimed) in [
        ("+", false),
        ("!", false),
        ("|", false),
        ("sqrt", false),
        ("seq_len", false),
        ("%%", true),
        ("%*%", true),
        (".Call", true),
        ("abs", true),
        ("", true),
        ("~", true),
    ] {
        let mut r = FakeR::new(Layout::R_4_4);
        let call = r.call_of_builtin(name);
        let file = r.srcfile("a.R");
        let srcref = r.srcref(1, file);
        let code = r.byte_code_of(&[srcref; 2], &[call; 2]);
        let expected: &[&str] = if is_claimed {
            &["g", name, "f a.R#1"]
        } else {
            &["g", "f a.R#1"]
        };
        assert_eq!(frames_at(&r, code, 1), expected);
    }
}

#[test]
fn builtins_do_not_need_places() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (code, _) = code(&mut r);
    r.space.set(code.table, 0);
    assert_eq!(frames_at(&r, code, 2), ["g", "max", "f"]);
}

#[test]
fn known_positions_are_not_read_again() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (code, calls) = code(&mut r);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    r.enter(g, At::Relative(code, 2));
    let expected = ["g", "max", "f a.R#12"];
    let (memory, mut reader) = r.reader();
    assert_eq!(frames(&mut reader).unwrap(), expected);
    // Without the operand, only a reader that knows the position finds the builtin.
    let operand = code.instructions + DATA as u64 + 8 * 3;
    memory.change(|space| {
        space.hide(operand..operand + 8);
        space.hide(calls[2]..calls[2] + 8);
    });
    assert_eq!(frames(&mut reader).unwrap(), expected);
    // Other code at the same addresses was compiled from another expression.
    let expression = code.constants + DATA as u64;
    memory.change(|space| space.set(expression, calls[1]));
    assert_eq!(frames(&mut reader).unwrap(), ["g", "f a.R#12"]);
}

#[test]
fn what_was_read_while_the_calls_changed_is_forgotten() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (code, _) = code(&mut r);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    let record = r.enter(g, At::Relative(code, 2));
    let expected = ["g", "max", "f a.R#12"];
    let next = r.space.word(record);
    let instructions = r.space.word(code.object + CODE as u64);
    let name = r.symbol("max") + PRINTNAME as u64;
    let (right, wrong) = (r.space.word(name), r.text(b"wrong"));
    let reads = {
        let (memory, mut reader) = r.reader();
        let before = memory.reads();
        frames(&mut reader).unwrap();
        memory.reads() - before
    };
    let mut failed = 0;
    for number in 0..reads {
        let (memory, mut reader) = r.reader();
        memory.change(|space| space.set(name, wrong));
        // From this read on, the calls have changed, and the code no longer exists.
        memory.before_read(move |space, reads| {
            if reads == number {
                space.set(record, 0);
                space.set(code.object + CODE as u64, 0);
            }
        });
        let first = frames(&mut reader);
        memory.leave_alone();
        memory.change(|space| {
            space.set(name, right);
            space.set(record, next);
            space.set(code.object + CODE as u64, instructions);
        });
        if first.is_none() {
            failed += 1;
            assert_eq!(frames(&mut reader).unwrap(), expected);
        }
    }
    assert!(failed > 10);
}

#[test]
fn all_frames_but_builtins_have_records() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (code, _) = code(&mut r);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    r.enter(g, At::Relative(code, 2));
    let (_, mut reader) = r.reader();
    let names = frames(&mut reader).unwrap();
    let stack = reader.read(Motion::Free).unwrap().unwrap();
    assert_eq!(stack.records.len(), stack.frames.len());
    let mut builtins = 0;
    for (name, record) in names.iter().zip(&stack.records) {
        let is_builtin = !["g", "f a.R#12"].contains(&name.as_str());
        assert_eq!(record.address == 0, is_builtin, "{names:?}");
        builtins += usize::from(is_builtin);
    }
    assert_eq!(builtins, 1);
}
