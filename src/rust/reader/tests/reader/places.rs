//! Places in source files, by `srcref` and by position in byte code.

use crate::fake::objects::{Code, HASH_TABLE};
use crate::fake::process::{At, FakeR, frames};
use profile_runtime::contexts::{BCBODY, BCPC, Layout};
use profile_runtime::environments::hash;
use profile_runtime::objects::{
    ATTRIBUTES, CAR, CDR, CONSTANTS, DATA, ENVSXP, FRAME, HASHTAB, LENGTH, TAG,
};

/// The frames of functions `f` and `g` that were called at these places.
fn frames_of(mut r: FakeR, toplevel: At, outer: At, inner: At) -> Vec<String> {
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, toplevel);
    r.enter(g, outer);
    r.is_at(inner);
    r.frames()
}

/// Byte code with the places a.R#10, a.R#11, ...
fn code(r: &mut FakeR) -> Code {
    let file = r.srcfile("a.R");
    let srcrefs: Vec<_> = (10..15).map(|line| r.srcref(line, file)).collect();
    r.byte_code(&srcrefs)
}

#[test]
fn each_function_has_the_place_where_the_next_one_was_called() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let (a, b) = (r.srcfile("a.R"), r.hashed_srcfile("b.R"));
        let places = [(1, a), (2, b), (3, a)].map(|(line, file)| At::Srcref(r.srcref(line, file)));
        assert_eq!(
            frames_of(r.clone(), places[0], places[1], places[2]),
            ["g a.R#3", "f b.R#2", "at a.R#1"]
        );
        assert_eq!(
            frames_of(r, At::Nowhere, places[1], At::Nowhere),
            ["g", "f b.R#2"]
        );
    }
}

#[test]
fn positions_in_byte_code_have_places() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let code = code(&mut r);
        for position in 0..5 {
            let expected = ["g".to_owned(), format!("f a.R#{}", 10 + position)];
            let places = [At::Absolute(code, position), At::Relative(code, position)];
            // A relative position is 0 if it was not set.
            let has_relative = layout.relative_pc.is_some() && position > 0;
            let count = if has_relative { 2 } else { 1 };
            for &place in &places[..count] {
                let read = frames_of(r.clone(), At::Nowhere, place, At::Nowhere);
                assert_eq!(read, expected);
            }
        }
    }
}

#[test]
fn positions_outside_of_the_table_have_no_place() {
    let mut r = FakeR::new(Layout::R_4_4);
    let code = code(&mut r);
    for position in [5, 6, u64::from(u32::MAX), 1 << 32, 1 << 61, u64::MAX] {
        assert_eq!(
            frames_of(
                r.clone(),
                At::Nowhere,
                At::Relative(code, position),
                At::Nowhere
            ),
            ["g", "f"]
        );
    }
    let mut r = FakeR::new(Layout::R_4_2);
    let code = self::code(&mut r);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    let record = r.enter(g, At::Absolute(code, 2));
    assert_eq!(r.frames(), ["g", "f a.R#12"]);
    // The next instruction, and the variable that has its address.
    let next = r.space.word(record + BCPC);
    for (address, words) in [
        (
            next,
            [
                0,
                8,
                code.instructions,
                code.instructions + DATA as u64 - 8,
                u64::MAX - 7,
            ],
        ),
        (record + BCPC, [0, 1, 8, u64::MAX - 7, u64::MAX]),
    ] {
        for word in words {
            let mut r = r.clone();
            r.space.set(address, word);
            assert_eq!(r.frames(), ["g", "f"]);
        }
    }
}

#[test]
fn numbers_outside_of_the_constants_have_no_place() {
    let mut r = FakeR::new(Layout::R_4_4);
    let code = code(&mut r);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    r.enter(g, At::Relative(code, 1));
    // After the constants there happens to be a place.
    let constants = code.constants + DATA as u64;
    let srcref = r.space.word(constants + 16);
    let behind = r.allocate(8);
    r.space.set(behind, srcref);
    let number = ((behind - constants) / 8) as i32;
    for (number, frame) in [(1, "f a.R#10"), (number, "f"), (-1, "f"), (i32::MIN, "f")] {
        let mut r = r.clone();
        let entry = code.table + DATA as u64 + 4;
        r.space.write(entry, &number.to_le_bytes());
        assert_eq!(r.frames(), ["g", frame]);
    }
}

#[test]
fn objects_that_are_not_what_they_should_be_have_no_place() {
    let mut r = FakeR::new(Layout::R_4_4);
    let code = code(&mut r);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    let record = r.enter(g, At::Relative(code, 1));
    assert_eq!(r.frames(), ["g", "f a.R#11"]);
    let srcref = r.space.word(code.constants + DATA as u64 + 16);
    let attributes = r.space.word(srcref + ATTRIBUTES as u64);
    let file = r.space.word(attributes + CAR as u64);
    let variables = r.space.word(file + FRAME as u64);
    let name = r.space.word(variables + CDR as u64);
    let nil = r.nil;
    for (address, word) in [
        (record + BCBODY, 0),
        (record + BCBODY, nil),
        (record + BCBODY, u64::MAX),
        (code.object, 0),
        (code.object + CONSTANTS as u64, u64::MAX),
        (code.object + CONSTANTS as u64, nil),
        (code.constants, 0),
        (code.constants + LENGTH as u64, 0),
        (code.constants + LENGTH as u64, 1 << 31),
        (code.constants + LENGTH as u64, 1 << 63),
        (code.constants + LENGTH as u64, u64::MAX),
        (code.constants + DATA as u64 + 16, 0),
        (code.constants + DATA as u64 + 16, nil),
        (code.table, 0),
        (code.table + ATTRIBUTES as u64, nil),
        (code.table + LENGTH as u64, 0),
        (code.table + DATA as u64, u64::MAX),
        (srcref, 0),
        (srcref + LENGTH as u64, 0),
        (srcref + ATTRIBUTES as u64, nil),
        (srcref + ATTRIBUTES as u64, 8),
        (attributes, 0),
        (attributes + TAG as u64, nil),
        (attributes + CAR as u64, nil),
        (file, 0),
        (file + FRAME as u64, nil),
        (file + FRAME as u64, 1),
        (variables + CDR as u64, variables),
        (variables + CDR as u64, 0),
        (name + CAR as u64, nil),
        (name + CAR as u64, 0),
        (name + TAG as u64, 0),
    ] {
        let mut r = r.clone();
        r.space.set(address, word);
        assert_eq!(r.frames(), ["g", "f"], "{address:#x}: {word:#x}");
    }
}

#[test]
fn texts_of_any_length_are_not_read() {
    let mut r = FakeR::new(Layout::R_4_4);
    let file = r.hashed_srcfile("a.R");
    let srcref = r.srcref(1, file);
    let f = r.call_of("f");
    r.enter(f, At::Srcref(srcref));
    assert_eq!(r.frames(), ["f", "at a.R#1"]);
    let table = r.space.word(file + HASHTAB as u64);
    let chain = 8 * (hash("filename") % HASH_TABLE);
    let cell = r.space.word(table + DATA as u64 + chain);
    let text = r.space.word(r.space.word(cell + CAR as u64) + DATA as u64);
    for length in [10_001, 10 << 30, 1 << 31, 1 << 63, u64::MAX] {
        // A table that claims to be longer than it is.
        for vector in [text, table] {
            let mut r = r.clone();
            r.space.set(vector + LENGTH as u64, length);
            assert_eq!(r.frames(), ["f"], "{length}");
        }
    }
}

#[test]
fn circles_of_variables_and_attributes_are_left() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (f, x) = (r.call_of("f"), r.symbol("x"));
    let circle = r.pairlist(&[(x, x)]);
    r.space.set(circle + CDR as u64, circle);
    let table = r.list(&[circle; 100]);
    let nil = r.nil;
    let file = r.cell(ENVSXP, [circle, nil, table]);
    let srcref = r.srcref(1, file);
    r.enter(f, At::Srcref(srcref));
    let (memory, mut reader) = r.reader();
    assert_eq!(frames(&mut reader).unwrap(), ["f"]);
    assert!(memory.reads() < 20_000);
    r.space.set(srcref + ATTRIBUTES as u64, circle);
    assert_eq!(r.frames(), ["f"]);
}

#[test]
fn an_address_that_is_used_for_another_object_has_its_place() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (a, b) = (r.srcfile("a.R"), r.srcfile("b.R"));
    let one = r.srcref(1, a);
    let other = r.srcref(1, b);
    let f = r.call_of("f");
    r.enter(f, At::Srcref(one));
    let attributes = r.space.word(other + ATTRIBUTES as u64);
    let (memory, mut reader) = r.reader();
    assert_eq!(frames(&mut reader).unwrap(), ["f", "at a.R#1"]);
    memory.change(|space| space.write(one + DATA as u64, &7_i32.to_le_bytes()));
    assert_eq!(frames(&mut reader).unwrap(), ["f", "at a.R#7"]);
    memory.change(|space| space.set(one + ATTRIBUTES as u64, attributes));
    assert_eq!(frames(&mut reader).unwrap(), ["f", "at b.R#7"]);
    memory.change(|space| space.set(one, 0));
    assert_eq!(frames(&mut reader).unwrap(), ["f"]);
}

#[test]
fn a_function_that_called_what_is_no_call_has_the_place_of_that() {
    let mut r = FakeR::new(Layout::R_4_4);
    let file = r.srcfile("a.R");
    let places = [1, 2, 3].map(|line| At::Srcref(r.srcref(line, file)));
    let (f, g, nil) = (r.call_of("f"), r.call_of("g"), r.nil);
    r.enter(f, At::Nowhere);
    r.enter(nil, places[0]);
    r.enter(g, places[1]);
    r.is_at(places[2]);
    assert_eq!(r.frames(), ["g a.R#3", "f a.R#1"]);
}
