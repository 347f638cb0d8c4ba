//! Lines of byte code without source references, by a copy of the function that was compiled from the same text with
//! them.
//!
//! The compiler emits the same instructions for both; only the constants differ, and so do their numbers. Code of
//! promises and inner functions is among the constants, to which instructions refer that create these. If several
//! promises of the original share one code, since their expressions are equal, the copy may have one for each line: then
//! the line is ambiguous.

use crate::byte_code::{Code, Tables, constant, entry, find_tables, length};
use crate::memory::{self, Memory, at};
use crate::objects::{BCODESXP, BODY, CELL, CLOSXP, DATA, INTSXP, Type, VECSXP, object_of};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled};

/// Inner functions within inner functions, and promises within promises.
const MOST_LEVELS: usize = 100;
/// Instructions are addresses of code of R's interpreter, operands have 4 bytes.
pub const OPERANDS: u64 = 1 << 32;
/// More words than the code of a function has.
const MOST_WORDS: u64 = 1 << 24;

/// Byte code, and its address.
pub type At = (u64, Code);

/// The instructions that create promises and functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creators([u64; 2]);

impl Creators {
    /// Learns them from two closures that were compiled: `function() f(g())` and `function() function() NULL`.
    pub fn learn(memory: &mut impl Memory, closures: [u64; 2]) -> Result<Option<Creators>> {
        let mut found = [0; 2];
        for (found, closure) in found.iter_mut().zip(closures) {
            let Some((_, code)) = code_of(memory, closure)? else {
                return Ok(None);
            };
            let words = instructions(memory, code)?;
            for pair in words.windows(2) {
                if pair[0] >= OPERANDS && inner(memory, code, pair[1])?.is_some() {
                    *found = pair[0];
                }
            }
        }
        let are_found = found.iter().all(|word| *word != 0) && found[0] != found[1];
        Ok(are_found.then_some(Creators(found)))
    }
}

/// The byte code of a closure, with its address.
pub fn code_of(memory: &mut impl Memory, closure: u64) -> Result<Option<At>> {
    let Some(closure) = object_of(memory, closure, CLOSXP) else {
        return Ok(None);
    };
    code_at(memory, at(&closure, BODY))
}

/// The byte code at an address.
pub fn code_at(memory: &mut impl Memory, address: u64) -> Result<Option<At>> {
    let code = Code::read(address, |address| {
        Ok(memory::array::<CELL>(memory, address))
    })?;
    Ok(code.map(|code| (address, code)))
}

/// The words of the instructions; the first one is the version of the byte code.
pub fn instructions(memory: &mut impl Memory, code: Code) -> Result<Vec<u64>> {
    let integers = length(memory, code.instructions, INTSXP).unwrap_or(0);
    let count = (integers / 2).min(MOST_WORDS);
    let mut bytes = filled(8 * count as usize, 0)?;
    let first = code.instructions.wrapping_add(DATA as u64);
    if !memory.read(first, &mut bytes) {
        return Ok(Vec::new());
    }
    let mut words = filled(count as usize, 0)?;
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = at(bytes, 0);
    }
    Ok(words)
}

/// The code that is the constant with this number, or the body of the function that the constant describes: a list of
/// the formals and the body.
pub fn inner(memory: &mut impl Memory, code: Code, number: u64) -> Result<Option<At>> {
    let Some(mut address) = constant(memory, code, number) else {
        return Ok(None);
    };
    let kind = memory::word(memory, address).map(Type::of);
    if kind == Some(VECSXP) {
        if length(memory, address, VECSXP).unwrap_or(0) < 2 {
            return Ok(None);
        }
        let body = address.wrapping_add(DATA as u64 + 8);
        address = memory::word(memory, body).unwrap_or(0);
    }
    if memory::word(memory, address).map(Type::of) != Some(BCODESXP) {
        return Ok(None);
    }
    code_at(memory, address)
}

/// The code of one of two functions, and of the other one at the same place.
#[derive(Debug, Clone, Copy)]
pub struct Both {
    pub original: At,
    pub copy: Code,
    tables: Tables,
}

impl Both {
    /// The number of positions.
    pub fn positions(&self, memory: &mut impl Memory) -> u64 {
        length(memory, self.original.1.instructions, INTSXP).unwrap_or(0) / 2
    }

    /// The line at a position: that of the source reference which the copy has there.
    pub fn line(&self, memory: &mut impl Memory, position: u64) -> Option<i32> {
        let number = entry(memory, self.tables.srcrefs, position)?;
        let srcref = constant(memory, self.copy, number)?;
        let srcref = object_of(memory, srcref, INTSXP)?;
        Some(at(&srcref, DATA) as i32)
    }
}

/// All codes of two functions, these and those in them; `None` if not all instructions are equal.
pub fn compare(
    memory: &mut impl Memory,
    creators: Creators,
    original: At,
    copy: At,
) -> Result<Option<Vec<Both>>> {
    let mut all = Vec::new();
    let are_equal = add(memory, creators, (original, copy), MOST_LEVELS, &mut all)?;
    Ok(are_equal.then_some(all))
}

fn add(
    memory: &mut impl Memory,
    creators: Creators,
    (original, copy): (At, At),
    levels: usize,
    all: &mut Vec<Both>,
) -> Result<bool> {
    let words = instructions(memory, original.1)?;
    let others = instructions(memory, copy.1)?;
    if levels == 0 || words.len() != others.len() || words.is_empty() {
        return Ok(false);
    }
    all.try_push(Both {
        original,
        copy: copy.1,
        tables: find_tables(memory, copy.1),
    })?;
    let mut creates = false;
    for (&word, &other) in words.iter().zip(&others) {
        let is_instruction = word >= OPERANDS;
        if is_instruction != (other >= OPERANDS) || is_instruction && word != other {
            return Ok(false);
        }
        if creates {
            let one = inner(memory, original.1, word)?;
            let other = inner(memory, copy.1, other)?;
            let are_equal = match (one, other) {
                (Some(one), Some(other)) => add(memory, creators, (one, other), levels - 1, all)?,
                (None, None) => true,
                _ => false,
            };
            if !are_equal {
                return Ok(false);
            }
        }
        creates = is_instruction && creators.0.contains(&word);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{NIL, Objects, address};
    use crate::objects::LANGSXP;

    const GETFUN: u64 = OPERANDS + 16;
    const MAKEPROM: u64 = OPERANDS + 32;
    const MAKECLOSURE: u64 = OPERANDS + 48;
    const CALL: u64 = OPERANDS + 64;
    const CREATORS: Creators = Creators([MAKEPROM, MAKECLOSURE]);

    /// Code that calls a function, with a promise whose code is given, and a function with the same code. With lines, each word
    /// has a source reference with the next line.
    fn code(r: &mut Objects, inner: usize, lines: Option<i32>) -> usize {
        let words = [12, GETFUN, 1, MAKEPROM, 2, MAKECLOSURE, 3, CALL, 0];
        let expression = r.add(LANGSXP, &[]);
        let name = r.symbol("f");
        let function = r.list(&[NIL, inner]);
        let mut constants = vec![expression, name, inner, function];
        add_lines(r, &words, &mut constants, lines);
        r.byte_code(&words, &constants)
    }

    fn leaf(r: &mut Objects, call: u64, lines: Option<i32>) -> usize {
        let expression = r.add(LANGSXP, &[]);
        let mut constants = vec![expression];
        add_lines(r, &[12, call], &mut constants, lines);
        r.byte_code(&[12, call], &constants)
    }

    fn add_lines(r: &mut Objects, words: &[u64], constants: &mut Vec<usize>, lines: Option<i32>) {
        let Some(first) = lines else {
            return;
        };
        let mut numbers = vec![i32::MIN];
        for line in first..first + words.len() as i32 - 1 {
            let srcref = r.integers(&[line, 1, line, 9]);
            numbers.push(constants.len() as i32);
            constants.push(srcref);
        }
        let table = r.srcrefs(&numbers);
        constants.push(table);
    }

    fn read(r: &mut Objects, code: usize) -> At {
        code_at(r, address(code)).unwrap().unwrap()
    }

    fn compared(r: &mut Objects, original: usize, copy: usize) -> Option<Vec<Both>> {
        let (original, copy) = (read(r, original), read(r, copy));
        compare(r, CREATORS, original, copy).unwrap()
    }

    #[test]
    fn each_code_has_the_lines_of_the_copy() {
        let mut r = Objects::new();
        let inner = leaf(&mut r, CALL, None);
        let original = code(&mut r, inner, None);
        let inner_copy = leaf(&mut r, CALL, Some(50));
        let copy = code(&mut r, inner_copy, Some(10));
        let all = compared(&mut r, original, copy).unwrap();
        // The function, its promise, and the function in it, which share their code.
        let codes: Vec<u64> = all.iter().map(|both| both.original.0).collect();
        assert_eq!(codes, [original, inner, inner].map(address));
        assert_eq!(all[0].positions(&mut r), 9);
        let lines: Vec<_> = (0..10).map(|at| all[0].line(&mut r, at)).collect();
        let expected: Vec<_> = (10..18).map(Some).collect();
        assert_eq!(lines[0], None);
        assert_eq!(lines[1..9], expected);
        assert_eq!(lines[9], None);
        assert_eq!(all[1].line(&mut r, 1), Some(50));
        // Without a table there are no lines.
        let all = compared(&mut r, original, original).unwrap();
        assert_eq!(all[0].line(&mut r, 1), None);
    }

    #[test]
    fn other_instructions_anywhere_are_other_code() {
        let mut r = Objects::new();
        let [inner, other] = [CALL, GETFUN].map(|call| leaf(&mut r, call, None));
        let original = code(&mut r, inner, None);
        let copy = code(&mut r, other, Some(10));
        assert!(compared(&mut r, original, copy).is_none());
        assert!(compared(&mut r, original, inner).is_none());
        // The copy creates no promise there.
        let copy = code(&mut r, NIL, Some(10));
        assert!(compared(&mut r, original, copy).is_none());
        // An operand in place of an instruction.
        let [one, number] = [[12, CALL, 1], [12, 7, 1]].map(|words| r.byte_code(&words, &[NIL]));
        assert!(compared(&mut r, one, number).is_none());
        // Operands may differ: they are numbers of constants.
        let two = r.byte_code(&[12, CALL, 2], &[NIL]);
        assert!(compared(&mut r, one, two).is_some());
        let empty = r.byte_code(&[], &[NIL]);
        assert!(compared(&mut r, empty, empty).is_none());
    }

    #[test]
    fn code_that_contains_itself_is_refused() {
        let mut r = Objects::new();
        let inner = leaf(&mut r, CALL, None);
        let original = code(&mut r, inner, None);
        let constants = r.0[original][5];
        r.object(constants).unwrap()[8] = address(original);
        assert!(compared(&mut r, original, original).is_none());
    }

    #[test]
    fn creators_are_learned_from_functions_that_use_them() {
        let mut r = Objects::new();
        let inner = leaf(&mut r, CALL, None);
        let function = r.list(&[NIL, inner]);
        let codes = [
            r.byte_code(&[12, GETFUN, 0, MAKEPROM, 1, CALL, 0], &[NIL, inner]),
            r.byte_code(&[12, MAKECLOSURE, 1, CALL], &[NIL, function]),
        ];
        let [promise, creator] = codes.map(|code| address(r.closure(code, NIL)));
        let found = Creators::learn(&mut r, [promise, creator]).unwrap();
        assert_eq!(found, Some(CREATORS));
        // Both must be found, and differ.
        for closures in [[promise, promise], [promise, address(inner)], [0, creator]] {
            assert_eq!(Creators::learn(&mut r, closures).unwrap(), None);
        }
    }

    #[test]
    fn inner_code_is_a_constant_or_the_body_of_a_function() {
        let mut r = Objects::new();
        let inside = leaf(&mut r, CALL, None);
        let function = r.list(&[NIL, inside]);
        let short = r.list(&[inside]);
        let other = r.list(&[NIL, NIL]);
        let outer = r.byte_code(&[12], &[NIL, inside, function, short, other]);
        let (_, outer) = read(&mut r, outer);
        let mut at = |number| {
            let found = inner(&mut r, outer, number).unwrap();
            found.map(|(address, _)| address)
        };
        assert_eq!(
            (at(1), at(2)),
            (Some(address(inside)), Some(address(inside)))
        );
        for number in [0, 3, 4, 5, u64::MAX] {
            assert_eq!(at(number), None, "{number}");
        }
    }
}
