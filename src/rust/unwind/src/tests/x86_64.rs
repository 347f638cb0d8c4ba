//! The registers that the tests use, and what only x86-64 has.

use super::*;

/// rbx and r12 in DWARF.
pub const A: u8 = 3;
pub const B: u8 = 12;
pub const FRAME_POINTER: u8 = 6;
pub const STACK_POINTER: u8 = 7;
pub const RETURN: u8 = 16;

const DEF_CFA_EXPRESSION: u8 = 0x0f;

#[test]
fn the_stubs_of_a_procedure_linkage_table_have_expressions() {
    // As linkers describe them: rsp + 8, and 8 more from byte 11 of a stub on.
    let expression = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let mut rules = vec![DEF_CFA_EXPRESSION, expression.len() as u8];
    rules.extend(expression);
    let functions = || [function(0x0, 0x100, &rules), outermost()];
    let (found, _) = walk(&functions(), 0x1a, &[], &[OUTSIDE, 7, 7]);
    assert_eq!(found, [(0x1a, 0, true), (0x1050, 8, false)]);
    let (found, whole) = walk(&functions(), 0x1b, &[], &[9, OUTSIDE, 7]);
    assert_eq!(found, [(0x1b, 0, true), (0x1050, 16, false)]);
    assert!(whole);
}
