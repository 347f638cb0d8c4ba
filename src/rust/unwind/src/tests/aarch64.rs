//! The registers that the tests use, and what only aarch64 has.

use super::*;
use crate::registers::TRAMPOLINE;

/// x19 and x20 in DWARF.
pub const A: u8 = 19;
pub const B: u8 = 20;
pub const FRAME_POINTER: u8 = 29;
pub const STACK_POINTER: u8 = 31;
pub const RETURN: u8 = 30;

const SAME_VALUE: u8 = 0x08;
/// The return address is signed from here on.
const NEGATE_RA_STATE: u8 = 0x2d;
/// A signature in the upper bits of an address.
const SIGNATURE: u64 = 0x4a << 48;

/// A function that calls no other one: the stack pointer and the return address stay where they are.
fn leaf(start: u64) -> Function {
    function(
        start,
        0x100,
        &[DEF_CFA, STACK_POINTER, 0, SAME_VALUE, RETURN],
    )
}

/// A function with a frame of 32 bytes, at whose start are the frame pointer and the return address.
fn with_frame_record(start: u64) -> Function {
    let rules = [
        DEF_CFA_OFFSET,
        32,
        OFFSET | FRAME_POINTER,
        4,
        OFFSET | RETURN,
        3,
    ];
    function(start, 0x100, &rules)
}

#[test]
fn an_interrupted_function_without_a_frame_has_its_caller() {
    let functions = [leaf(0x0), with_frame_record(0x200), outermost()];
    let registers = [(RETURN, CODE + 0x210)];
    let (found, whole) = walk(&functions, 0x10, &registers, &[7, OUTSIDE, 7, 7]);
    assert_eq!(
        found,
        [(0x10, 0, true), (0x210, 0, false), (0x1050, 32, false)]
    );
    assert!(whole);
    // A function that made a call has saved its return address, unless it is the outermost one.
    let functions = [with_frame_record(0x0), leaf(0x200)];
    let (found, whole) = walk(&functions, 0x10, &registers, &[7, CODE + 0x220, 7, 7]);
    assert_eq!(found, [(0x10, 0, true), (0x220, 32, false)]);
    assert!(whole);
}

#[test]
fn signed_return_addresses_lose_their_signature() {
    let mut signed = with_frame_record(0x0);
    signed.rules.insert(0, NEGATE_RA_STATE);
    let functions = [leaf(0x200), signed, outermost()];
    let registers = [(RETURN, SIGNATURE | (CODE + 0x10))];
    let words = [7, SIGNATURE | OUTSIDE, 7, 7];
    let (found, whole) = walk(&functions, 0x210, &registers, &words);
    assert_eq!(
        found,
        [(0x210, 0, true), (0x10, 0, false), (0x1050, 32, false)]
    );
    assert!(whole);
}

#[test]
fn interrupted_code_without_tables_has_its_caller() {
    let functions = [with_frame_record(0x200), outermost()];
    // The code has moved the stack pointer by 16.
    let registers = [(FRAME_POINTER, STACK + 16), (RETURN, CODE + 0x210)];
    let words = [7, 7, 7, OUTSIDE, 7, 7];
    let (found, whole) = walk(&functions, 0x800, &registers, &words);
    assert_eq!(
        found,
        [(0x800, 0, true), (0x210, 16, false), (0x1050, 48, false)]
    );
    assert!(whole);
    // The caller is found by its frame pointer, although its frame has an unknown size.
    let of_any_size = function(
        0x200,
        0x100,
        &[
            DEF_CFA,
            FRAME_POINTER,
            32,
            OFFSET | FRAME_POINTER,
            4,
            OFFSET | RETURN,
            3,
        ],
    );
    let (found, whole) = walk(&[of_any_size, outermost()], 0x800, &registers, &words);
    assert_eq!(
        found,
        [(0x800, 0, true), (0x210, 0, false), (0x1050, 48, false)]
    );
    assert!(whole);
    // The frame pointer of a caller that uses it for something else is none.
    let without = function(
        0x200,
        0x100,
        &[
            DEF_CFA_OFFSET,
            32,
            OFFSET | FRAME_POINTER,
            1,
            OFFSET | RETURN,
            3,
        ],
    );
    let (found, whole) = walk(&[without, outermost()], 0x800, &registers, &words);
    assert_eq!((found, whole), (vec![(0x800, 0, true)], false));
    // Of code that made a call, nothing is known.
    let functions = [with_frame_record(0x0), outermost()];
    let (found, whole) = walk(&functions, 0x10, &registers, &[7, CODE + 0x800, 7, 7]);
    assert_eq!(found, [(0x10, 0, true), (0x800, 32, false)]);
    assert!(!whole);
}

#[test]
fn code_that_a_signal_interrupted_is_found_without_tables() {
    let trampoline = TRAMPOLINE.unwrap();
    // The handler returns to code without tables.
    let handler = function(0x0, 0x100, &[SAME_VALUE, RETURN, DEF_CFA_OFFSET, 0]);
    let mut words = vec![7; 100];
    let place = trampoline.registers as usize / 8;
    words[place + usize::from(FRAME_POINTER)] = 9;
    // The interrupted function has no frame, so its return address is in its register.
    words[place + usize::from(RETURN)] = OUTSIDE;
    let pointer = STACK + 8 * 90;
    words[place + 31] = pointer;
    words[place + 32] = CODE + 0x200;
    let functions = [handler, leaf(0x200), outermost()];
    let code = (CODE + 0x800, trampoline.code);
    let registers = [(RETURN, CODE + 0x800)];
    let (found, whole) = walk_with_code(&functions, code, 0x10, &registers, &words);
    assert_eq!(
        found,
        [
            (0x10, 0, true),
            (0x800, 0, false),
            (0x200, 720, true),
            (0x1050, 720, false)
        ]
    );
    assert!(whole);
    // Other code without tables is no trampoline, and registers that cannot be read end the walk.
    let (_, whole) = walk(&functions, 0x10, &registers, &words);
    assert!(!whole);
    let short = &words[..place + 32];
    let (found, whole) = walk_with_code(&functions, code, 0x10, &registers, short);
    assert_eq!((found.len(), whole), (2, false));
}
