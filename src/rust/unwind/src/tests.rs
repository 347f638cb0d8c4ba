//! Walks stacks in memory by unwind tables that are written here byte by byte. The tests cover each rule that compilers
//! use, and each reason why a walk ends.

#[cfg_attr(target_arch = "aarch64", path = "tests/aarch64.rs")]
#[cfg_attr(not(target_arch = "aarch64"), path = "tests/x86_64.rs")]
mod processor;

mod image;

use crate::registers::{REGISTERS, SAVED};
use crate::{Modules, Registers, Stack, UnwindTables, Unwinder};
use processor::{A, B, FRAME_POINTER, RETURN, STACK_POINTER};
use profile_core::joint::recording::{EXACT, NO_MODULE, PAIR};
use std::ops::Range;

/// The addresses of the code, the index and the stack of the test's module.
const CODE: u64 = 0x40_0000;
const INDEX: u64 = 0x50_0000;
const STACK: u64 = 0x7000_0000;

/// Operations of call frame information, see the DWARF standard, 6.4.2.
const ADVANCE: u8 = 0x40;
const OFFSET: u8 = 0x80;
const UNDEFINED: u8 = 0x07;
const DEF_CFA: u8 = 0x0c;
const DEF_CFA_REGISTER: u8 = 0x0d;
const DEF_CFA_OFFSET: u8 = 0x0e;
const EXPRESSION: u8 = 0x10;
const VAL_OFFSET: u8 = 0x14;

/// The rule at the start of each function: the return address is at the stack pointer.
const ENTRY: [u8; 5] = [DEF_CFA, STACK_POINTER, 8, OFFSET | RETURN, 1];

/// A function: its address, its length, whether it is the trampoline of a signal, and its rules.
struct Function {
    start: u64,
    length: u32,
    signal: bool,
    rules: Vec<u8>,
}

fn function(start: u64, length: u32, rules: &[u8]) -> Function {
    Function {
        start: CODE + start,
        length,
        signal: false,
        rules: rules.to_vec(),
    }
}

fn put(bytes: &mut Vec<u8>, value: i64) {
    bytes.extend_from_slice(&(value as i32).to_le_bytes());
}

/// Adds the length of an entry, and pads it with `nop`.
fn entry(tables: &mut Vec<u8>, mut content: Vec<u8>) {
    while content.len() % 8 != 4 {
        content.push(0);
    }
    put(tables, content.len() as i64);
    tables.extend(content);
}

/// `.eh_frame_hdr` at `INDEX`, and `.eh_frame` behind it.
fn tables_of(functions: &[Function]) -> (Range<u64>, Vec<u8>) {
    let size = 12 + 8 * functions.len() as u64;
    let start = INDEX + size;
    let (mut tables, mut index) = (Vec::new(), Vec::new());
    for function in functions {
        let common = tables.len() as i64;
        let mut cie = vec![0, 0, 0, 0, 1];
        cie.extend(if function.signal {
            b"zRS\0".iter()
        } else {
            b"zR\0".iter()
        });
        // Alignments of 1 and -8, the return address, and addresses relative to their own place.
        cie.extend([1, 0x78, RETURN, 1, 0x1b]);
        cie.extend(ENTRY);
        entry(&mut tables, cie);
        let place = tables.len() as i64;
        let mut fde = Vec::new();
        put(&mut fde, place + 4 - common);
        put(&mut fde, function.start as i64 - (start as i64 + place + 8));
        put(&mut fde, i64::from(function.length));
        fde.push(0);
        fde.extend(&function.rules);
        entry(&mut tables, fde);
        index.push((function.start, start + place as u64));
    }
    put(&mut tables, 0);
    let mut bytes = vec![1, 0x1b, 0x03, 0x3b];
    put(&mut bytes, start as i64 - (INDEX as i64 + 4));
    put(&mut bytes, functions.len() as i64);
    index.sort_unstable();
    for (function, entry) in index {
        put(&mut bytes, function as i64 - INDEX as i64);
        put(&mut bytes, entry as i64 - INDEX as i64);
    }
    bytes.extend(tables);
    (INDEX..start, bytes)
}

/// Words of a stack that begins at `STACK`.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u64]);

impl Stack for Words<'_> {
    fn read(self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(STACK)?;
        (offset % 8 == 0).then_some(())?;
        self.0.get(usize::try_from(offset / 8).ok()?).copied()
    }
}

/// A single module with this `number`. `code` is an address, and the code there.
struct One<'a> {
    tables: UnwindTables<'a>,
    number: usize,
    code: (u64, u64),
}

impl<'a> One<'a> {
    fn new(tables: UnwindTables<'a>, number: usize) -> One<'a> {
        One {
            tables,
            number,
            code: (0, 0),
        }
    }
}

impl Modules for One<'_> {
    fn at(&mut self, address: u64) -> Option<usize> {
        (CODE..CODE + 0x10_0000)
            .contains(&address)
            .then_some(self.number)
    }

    fn tables(&self, module: usize) -> Option<&UnwindTables<'_>> {
        (module == self.number).then_some(&self.tables)
    }

    fn code(&mut self, _: usize, address: u64) -> Option<u64> {
        (address == self.code.0).then_some(self.code.1)
    }
}

/// A frame of the result: its program counter relative to `CODE`, its stack pointer relative to `STACK`, and whether
/// the program counter is exact.
type Frame = (u64, u64, bool);

fn frames(words: &[u64], count: usize) -> Vec<Frame> {
    let pairs = words.chunks(PAIR).take(count);
    pairs
        .map(|pair| {
            let counter = pair[0] << 16 >> 16;
            (
                counter.wrapping_sub(CODE),
                (pair[1] & !EXACT) - STACK,
                pair[1] & EXACT != 0,
            )
        })
        .collect()
}

/// Walks a stack from these registers (numbers and values). Returns the frames, and whether the stack is complete.
fn walk(
    functions: &[Function],
    counter: u64,
    registers: &[(u8, u64)],
    words: &[u64],
) -> (Vec<Frame>, bool) {
    walk_with_code(functions, (0, 0), counter, registers, words)
}

fn walk_with_code(
    functions: &[Function],
    code: (u64, u64),
    counter: u64,
    registers: &[(u8, u64)],
    words: &[u64],
) -> (Vec<Frame>, bool) {
    let (header, bytes) = tables_of(functions);
    let tables = UnwindTables::new(&header, &bytes).unwrap();
    let mut modules = One::new(tables, 0);
    modules.code = code;
    let mut unwinder = Unwinder::new(modules).unwrap();
    let start = start(counter, registers);
    let mut room = [0; 100];
    let walked = unwinder
        .walk(start.clone(), Words(words), &mut room)
        .unwrap();
    let first = (frames(&room, walked.frames), walked.whole);
    // The second time, rules come from the cache.
    let walked = unwinder.walk(start, Words(words), &mut room).unwrap();
    assert_eq!((frames(&room, walked.frames), walked.whole), first);
    first
}

fn start(counter: u64, registers: &[(u8, u64)]) -> Registers {
    let mut start = Registers::new([0; REGISTERS]);
    start.return_to(CODE + counter, STACK);
    for &(register, value) in registers {
        start.set(register.into(), value);
    }
    start
}

/// A function that pushes the frame pointer and uses it as frame pointer: its rules change at offsets 1 and 4.
fn with_frame_pointer(start: u64) -> Function {
    let rules = [
        ADVANCE | 1,
        DEF_CFA_OFFSET,
        16,
        OFFSET | FRAME_POINTER,
        2,
        ADVANCE | 3,
        DEF_CFA_REGISTER,
        FRAME_POINTER,
    ];
    function(start, 0x100, &rules)
}

/// The start of the program, which has no caller.
fn outermost() -> Function {
    function(0x1000, 0x100, &[UNDEFINED, RETURN])
}

const OUTSIDE: u64 = CODE + 0x1050;

#[test]
fn each_part_of_a_function_has_its_rule() {
    let functions = [with_frame_pointer(0x0), outermost()];
    // Before the push.
    let (found, whole) = walk(&functions, 0x0, &[], &[OUTSIDE, 7, 7]);
    assert_eq!(found, [(0x0, 0, true), (0x1050, 8, false)]);
    assert!(whole);
    // After the push.
    let (found, _) = walk(&functions, 0x1, &[], &[9, OUTSIDE, 7]);
    assert_eq!(found, [(0x1, 0, true), (0x1050, 16, false)]);
    let (found, _) = walk(&functions, 0x3, &[], &[9, OUTSIDE, 7]);
    assert_eq!(found, [(0x3, 0, true), (0x1050, 16, false)]);
    // By the frame pointer, wherever the stack pointer is.
    let (found, whole) = walk(
        &functions,
        0x4,
        &[(FRAME_POINTER, STACK + 16)],
        &[7, 7, 9, OUTSIDE],
    );
    assert_eq!(found, [(0x4, 0, true), (0x1050, 32, false)]);
    assert!(whole);
}

#[test]
fn saved_registers_are_those_of_the_caller() {
    let saved = SAVED.map(|register| register as u8);
    for register in saved.into_iter().filter(|register| *register != RETURN) {
        // The inner function saves the register, and the outer one finds its frame by it.
        let inner = function(0x0, 0x100, &[DEF_CFA_OFFSET, 24, OFFSET | register, 3]);
        let outer = function(0x200, 0x100, &[DEF_CFA, register, 16]);
        let words = [STACK + 32, 7, CODE + 0x210, 7, 7, OUTSIDE, 7];
        let (found, whole) = walk(&[inner, outer, outermost()], 0x10, &[(register, 1)], &words);
        assert_eq!(
            found,
            [(0x10, 0, true), (0x210, 24, false), (0x1050, 48, false)],
            "register {register}"
        );
        assert!(whole);
    }
}

#[test]
fn a_return_address_belongs_to_the_call_before_it() {
    // The call is the last instruction of its function; what follows has another rule.
    let caller = function(0x0, 0x40, &[DEF_CFA_OFFSET, 16]);
    let next = function(0x40, 0x40, &[DEF_CFA_OFFSET, 32]);
    let inner = function(0x200, 0x40, &[]);
    let (found, whole) = walk(
        &[caller, next, inner, outermost()],
        0x200,
        &[],
        &[CODE + 0x40, 7, OUTSIDE, 7, 7],
    );
    assert_eq!(
        found,
        [(0x200, 0, true), (0x40, 8, false), (0x1050, 24, false)]
    );
    assert!(whole);
}

#[test]
fn code_that_a_signal_interrupted_is_at_its_own_address() {
    // As above, but the caller is a signal's trampoline: the interrupted instruction is the first of its function.
    let before = function(0x0, 0x40, &[DEF_CFA_OFFSET, 16]);
    let interrupted = function(0x40, 0x40, &[DEF_CFA_OFFSET, 32]);
    let mut trampoline = function(0x200, 0x40, &[]);
    trampoline.signal = true;
    let words = [CODE + 0x40, 7, 7, 7, OUTSIDE];
    let (found, whole) = walk(
        &[before, interrupted, trampoline, outermost()],
        0x200,
        &[],
        &words,
    );
    assert_eq!(
        found,
        [(0x200, 0, true), (0x40, 8, true), (0x1050, 40, false)]
    );
    assert!(whole);
}

#[test]
fn rules_may_be_expressions() {
    // A register that is saved at an address which an expression computes (the address of the frame minus 16), and a
    // register whose value is such an address.
    let inner = function(
        0x0,
        0x100,
        &[
            DEF_CFA_OFFSET,
            32,
            OFFSET | RETURN,
            1,
            EXPRESSION,
            A,
            2,
            0x40,
            0x1c,
        ],
    );
    let outer = function(0x200, 0x100, &[DEF_CFA, A, 8, VAL_OFFSET, B, 1]);
    let next = function(0x300, 0x100, &[DEF_CFA, B, 24]);
    let words = [7, 7, STACK + 40, CODE + 0x210, 7, CODE + 0x310, 7, OUTSIDE];
    let (found, whole) = walk(&[inner, outer, next, outermost()], 0x10, &[], &words);
    assert_eq!(
        found,
        [
            (0x10, 0, true),
            (0x210, 32, false),
            (0x310, 48, false),
            (0x1050, 64, false)
        ]
    );
    assert!(whole);
}

#[test]
fn what_ends_a_walk() {
    let functions = || [with_frame_pointer(0x0), outermost()];
    // No return address: the stack is complete.
    assert!(walk(&functions(), 0x0, &[], &[0, 7]).1);
    // A caller without tables, or in no module, is the last frame.
    let (found, whole) = walk(&functions(), 0x0, &[], &[CODE + 0x800, 7]);
    assert_eq!((found.len(), whole), (2, false));
    let (found, whole) = walk(&functions(), 0x0, &[], &[17, 7]);
    assert_eq!((found.len(), whole), (2, false));
    // The return address, or a saved register, is not on the stack.
    let (found, whole) = walk(&functions(), 0x4, &[(FRAME_POINTER, STACK + 800)], &[7, 7]);
    assert_eq!((found.len(), whole), (1, false));
    let saved = function(0x0, 0x100, &[OFFSET | A, 2]);
    let (found, whole) = walk(&[saved, outermost()], 0x0, &[], &[OUTSIDE]);
    assert_eq!((found.len(), whole), (1, false));
    // The stack pointer does not move upwards.
    let (found, whole) = walk(&functions(), 0x4, &[(FRAME_POINTER, STACK - 16)], &[7, 7]);
    assert_eq!((found.len(), whole), (1, false));
    let below = [(STACK_POINTER, STACK + 24), (FRAME_POINTER, STACK)];
    let (found, whole) = walk(&functions(), 0x4, &below, &[9, OUTSIDE, 7, 7]);
    assert_eq!((found.len(), whole), (1, false));
}

#[test]
fn frames_have_their_modules() {
    let (header, bytes) = tables_of(&[with_frame_pointer(0x0), outermost()]);
    let tables = UnwindTables::new(&header, &bytes).unwrap();
    let mut unwinder = Unwinder::new(One::new(tables, 3)).unwrap();
    let mut room = [0; 10];
    let words = [CODE + 0x2000, 7];
    unwinder
        .walk(start(0x0, &[]), Words(&words), &mut room)
        .unwrap();
    assert_eq!([room[0] >> 48, room[PAIR] >> 48], [3, 3]);
    unwinder
        .walk(start(0x20_0000, &[]), Words(&words), &mut room)
        .unwrap();
    assert_eq!(room[0] >> 48, NO_MODULE);
    // There is room for no frame, or for one of two.
    let two = [OUTSIDE, 7];
    assert!(
        unwinder
            .walk(start(0x0, &[]), Words(&two), &mut [])
            .is_none()
    );
    assert!(
        unwinder
            .walk(start(0x0, &[]), Words(&two), &mut room[..PAIR])
            .is_none()
    );
    assert_eq!(
        unwinder
            .walk(start(0x0, &[]), Words(&two), &mut room[..2 * PAIR])
            .unwrap()
            .frames,
        2
    );
}

#[test]
fn a_rule_is_not_that_of_another_module() {
    let (header, bytes) = tables_of(&[function(0x0, 0x100, &[]), outermost()]);
    let tables = UnwindTables::new(&header, &bytes).unwrap();
    let mut unwinder = Unwinder::new(One::new(tables, 0)).unwrap();
    let mut room = [0; 10];
    let words = [OUTSIDE, OUTSIDE + 1, 7];
    unwinder
        .walk(start(0x10, &[]), Words(&words), &mut room)
        .unwrap();
    assert_eq!(frames(&room, 2)[1].0, 0x1050);
    // The same addresses, after another library was loaded there.
    let (header, bytes) = tables_of(&[function(0x0, 0x100, &[DEF_CFA_OFFSET, 16]), outermost()]);
    let tables = UnwindTables::new(&header, &bytes).unwrap();
    unwinder.modules = One::new(tables, 1);
    unwinder
        .walk(start(0x10, &[]), Words(&words), &mut room)
        .unwrap();
    assert_eq!(frames(&room, 2)[1].0, 0x1051);
}

#[test]
fn functions_have_their_extent() {
    let functions = [
        function(0x0, 0x40, &[]),
        function(0x40, 0x80, &[]),
        outermost(),
    ];
    let (header, bytes) = tables_of(&functions);
    let tables = UnwindTables::new(&header, &bytes).unwrap();
    assert_eq!(tables.function(CODE + 0x3f), Some(CODE..CODE + 0x40));
    assert_eq!(tables.function(CODE + 0x40), Some(CODE + 0x40..CODE + 0xc0));
    assert_eq!(tables.function(CODE + 0xc0), None);
    assert_eq!(
        tables.largest_function(),
        Some(CODE + 0x1000..CODE + 0x1100)
    );
    // An index that is truncated or empty.
    assert!(UnwindTables::new(&(INDEX..INDEX), &bytes).is_none());
    assert!(UnwindTables::new(&header, &bytes[..20]).is_none());
}
