//! Positions in byte code without source references.

use crate::fake::FakeMemory;
use crate::fake::objects::Code;
use crate::fake::process::{At, FakeR, On, as_text};
use profile_core::model::{code_of_file, file_of_code};
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::contexts::{CLOSURE, Layout};
use profile_runtime::objects::{CODE, CONSTANTS, DATA};

/// Byte code of calls of `sum` without source references.
fn code(r: &mut FakeR) -> Code {
    let (nil, call) = (r.nil, r.call_of("sum"));
    r.byte_code_of(&[nil; 5], &[call; 5])
}

/// The stack with positions.
fn read(reader: &mut StackReader<FakeMemory>) -> Vec<String> {
    reader.read_positions();
    reader.read(Motion::Free).unwrap().unwrap();
    reader.name_positions().unwrap();
    as_text(&reader.stack().clone(), reader)
}

/// The digest in a frame such as `f <bytecode: 0123456789abcdef>#3`.
fn digest(frame: &str) -> Option<u64> {
    let (_, place) = frame.split_once(' ')?;
    code_of_file(place.split_once('#')?.0)
}

#[test]
fn they_are_lines_of_a_file_that_is_named_by_the_digest() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let code = code(&mut r);
        let (f, g) = (r.call_of("f"), r.call_of("g"));
        r.enter(f, At::Nowhere);
        r.record(On::C, CLOSURE, g, code.closure, At::Absolute(code, 3));
        // If they are not asked for, there are none.
        assert_eq!(r.frames(), ["g", "f"]);
        let (_, mut reader) = r.reader();
        let frames = read(&mut reader);
        let file = file_of_code(digest(&frames[1]).unwrap()).unwrap();
        assert_eq!(frames, ["g".to_owned(), format!("f {file}#3")]);
        // So has the innermost function.
        r.is_at(At::Absolute(code, 2));
        let (_, mut reader) = r.reader();
        reader.prepare_with(|| {}).unwrap();
        let expected = [format!("g {file}#2"), format!("f {file}#3")];
        assert_eq!(read(&mut reader), expected);
    }
}

#[test]
fn code_with_source_references_has_its_lines() {
    let mut r = FakeR::new(Layout::R_4_4);
    let file = r.srcfile("a.R");
    let srcrefs: Vec<_> = (10..15).map(|line| r.srcref(line, file)).collect();
    let code = r.byte_code(&srcrefs);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    r.enter(g, At::Relative(code, 3));
    let (_, mut reader) = r.reader();
    assert_eq!(read(&mut reader), ["g", "f a.R#13"]);
}

#[test]
fn the_digest_is_read_once_and_that_of_other_code_differs() {
    let mut r = FakeR::new(Layout::R_4_4);
    let code = code(&mut r);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    let other = r.call_of("max");
    r.enter(f, At::Nowhere);
    r.enter(g, At::Relative(code, 3));
    let (memory, mut reader) = r.reader();
    let first = read(&mut reader);
    // Known code is not read again.
    let operand = code.instructions + DATA as u64 + 8 * 5;
    memory.change(|space| space.set(operand, 5));
    assert_eq!(read(&mut reader), first);
    // Other code at its address was compiled from another expression.
    memory.change(|space| space.set(code.constants + DATA as u64, other));
    let second = read(&mut reader);
    assert!(digest(&second[1]).is_some());
    assert_ne!(digest(&second[1]), digest(&first[1]));
}

#[test]
fn code_that_has_gone_or_is_damaged_has_none() {
    for (field, word) in [(CODE, 0), (CODE, 8), (CONSTANTS, 0)] {
        let mut r = FakeR::new(Layout::R_4_4);
        let code = code(&mut r);
        let (f, g) = (r.call_of("f"), r.call_of("g"));
        r.enter(f, At::Nowhere);
        r.enter(g, At::Relative(code, 3));
        let (memory, mut reader) = r.reader();
        reader.read_positions();
        reader.read(Motion::Free).unwrap().unwrap();
        // The process goes on before the code is read.
        memory.change(|space| space.set(code.object + field as u64, word));
        reader.name_positions().unwrap();
        let stack = reader.stack().clone();
        assert_eq!(as_text(&stack, &reader), ["g", "f"]);
        assert!(stack.frames.iter().all(|frame| frame.code.is_none()));
    }
}
