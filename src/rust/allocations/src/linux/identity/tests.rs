//! Records of finalizers, in memory that looks like R's.

use super::*;
use profile_runtime::contexts::{BUILTIN, CLOSURE};

const WORDS: usize = JUMP_TARGET as usize / 8 + 1;

/// Records with these flags and jump targets, innermost first, and the outermost one.
struct Stack {
    records: Vec<[u64; WORDS]>,
    head: Box<u64>,
}

impl Stack {
    fn new(records: &[(u32, u64)]) -> Stack {
        let mut stack = Stack {
            records: vec![[0; WORDS]; records.len() + 1],
            head: Box::new(0),
        };
        let addresses: Vec<u64> = stack.records.iter().map(|r| r.as_ptr() as u64).collect();
        for (number, &(flags, target)) in records.iter().enumerate() {
            let record = &mut stack.records[number];
            record[NEXT as usize / 8] = addresses[number + 1];
            record[CALLFLAG as usize / 8] = flags.into();
            record[WORDS - 1] = target;
        }
        *stack.head = addresses[0];
        stack
    }

    fn identity(&self, finalizer: Option<u64>) -> Identity {
        Identity {
            head: &raw const *self.head as u64,
            srcref: 0,
            positions: PositionVariables { code: 0, pc: 0 },
            marker: 0,
            nil: 0,
            layout: Layout::R_4_2,
            finalizer,
        }
    }

    /// What is learnt if the record with this number is in the frame of this function.
    fn learnt(&self, number: usize, function: u64) -> Option<u64> {
        let mut identity = self.identity(None);
        let frame = |distance: u64, function| Frame {
            stack_pointer: (self.records[number].as_ptr() as u64).wrapping_add(distance),
            function,
            ..Frame::default()
        };
        let frames = [
            frame(100_u64.wrapping_neg(), 1),
            frame(0, function),
            frame(100, 2),
        ];
        // SAFETY: the records exist.
        unsafe { identity.learn_finalizer(&frames) };
        identity.finalizer
    }
}

const OF_FINALIZERS: u64 = 10;
const FINALIZER: (u32, u64) = (TOPLEVEL, OF_FINALIZERS);
const OTHER: (u32, u64) = (TOPLEVEL, 20);
const CALL: (u32, u64) = (CLOSURE, 30);
const LOOP: (u32, u64) = (1, 40);

#[test]
fn finalizers_are_recognized_by_the_code_that_makes_their_records() {
    let stack = Stack::new(&[(BUILTIN, 50), CALL, FINALIZER, CALL, OTHER, CALL]);
    assert_eq!(stack.learnt(2, 7), Some(OF_FINALIZERS));
    // `R_ToplevelExec()`, which is not found in this process.
    assert_eq!(stack.learnt(2, address_of(TOPLEVEL_EXEC)), None);
    // No finalizer, or several records of this kind.
    assert_eq!(Stack::new(&[CALL, LOOP]).learnt(0, 7), None);
    assert_eq!(Stack::new(&[FINALIZER, CALL, FINALIZER]).learnt(0, 7), None);
    let alike = [(TOPLEVEL, 10), (CLOSURE, 10)];
    assert_eq!(Stack::new(&alike).learnt(0, 7), None);
}

#[test]
fn a_finalizer_runs_as_long_as_it_has_not_called_r() {
    let runs = |records: &[(u32, u64)]| {
        let identity = Stack::new(records);
        // SAFETY: the records exist.
        unsafe { identity.identity(Some(OF_FINALIZERS)).is_in_finalizer() }
    };
    assert!(runs(&[FINALIZER, CALL]));
    assert!(runs(&[OTHER, LOOP, FINALIZER, CALL]));
    assert!(!runs(&[CALL, FINALIZER, CALL]));
    assert!(!runs(&[OTHER, CALL]));
    assert!(!runs(&[LOOP]));
    assert!(!runs(&[]));
    let stack = Stack::new(&[FINALIZER]);
    // SAFETY: as above.
    assert!(!unsafe { stack.identity(None).is_in_finalizer() });
}
