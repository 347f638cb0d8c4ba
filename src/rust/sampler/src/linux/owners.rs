//! The functions to whose code positions belong, when a recording has ended. Functions of loaded packages and of the
//! global environment still exist then. Others, such as those that only running functions referred to, may have been
//! freed: they are not looked at, and their positions have no lines.

use super::positions::Direct;
use crate::{LineAt, Owner, Roots};
use profile_core::error::Result;
use profile_core::joint::Distinct;
use profile_core::joint::positions::CodeId;
use profile_core::limits::memory::{TryGrow, TryPut, owned};
use profile_runtime::byte_code::Code;
use profile_runtime::compiled::{self, At, Both, Creators};
use profile_runtime::environments::BASE_NAME;
use profile_runtime::functions::{self, Compiled, Variable};
use profile_runtime::memory::{self, Memory, at};
use profile_runtime::objects::{CELL, CHARSXP, DATA, ENVSXP, LENGTH, PRINTNAME, Type, object_of};
use std::collections::HashMap;

/// Variables of a namespace with the methods of a generic function of S4.
const METHODS: &str = ".__T__";
/// The longest name that R allows.
const MOST_BYTES: u64 = 10_000;

/// The code of recorded positions.
struct Codes(HashMap<CodeId, Uses>);

#[derive(Default)]
struct Uses {
    /// Rows of the positions.
    rows: Vec<usize>,
    samples: u64,
    is_owned: bool,
}

impl Codes {
    fn of(distinct: &Distinct) -> Result<Codes> {
        let mut codes = HashMap::new();
        let rows = distinct.positions.iter().zip(&distinct.counts);
        for (row, (position, count)) in rows.enumerate() {
            let code = position.code();
            if !codes.contains_key(&code) {
                codes.try_put(code, Uses::default())?;
            }
            if let Some(uses) = codes.get_mut(&code) {
                uses.rows.try_push(row)?;
                uses.samples += count;
            }
        }
        Ok(Codes(codes))
    }

    fn uses(&mut self, (address, code): At) -> Option<&mut Uses> {
        self.0.get_mut(&CodeId::new(address, code.number()))
    }

    /// Takes code for a function, and returns how often it occurs.
    fn own(&mut self, code: At) -> u64 {
        match self.uses(code) {
            Some(uses) if !uses.is_owned => {
                uses.is_owned = true;
                uses.samples
            }
            _ => 0,
        }
    }

    fn are_owned(&self) -> bool {
        self.0.values().all(|uses| uses.is_owned)
    }
}

/// A function that may own code.
struct Candidate {
    function: Compiled,
    /// Row of the namespace, if it is that of a package.
    namespace: Option<usize>,
    samples: u64,
}

/// The functions to which recorded positions belong.
pub fn owners(distinct: &Distinct, roots: &Roots) -> Result<Vec<Owner>> {
    let mut codes = Codes::of(distinct)?;
    if codes.0.is_empty() {
        return Ok(Vec::new());
    }
    let memory = &mut Direct;
    let mut candidates = candidates(memory, roots)?;
    for candidate in &mut candidates {
        candidate.samples = codes.own(candidate.function.code);
    }
    // Code of promises and inner functions: mostly of functions that have run themselves, else of any.
    for has_run in [true, false] {
        let of_these = candidates.iter_mut();
        for candidate in of_these.filter(|candidate| (candidate.samples > 0) == has_run) {
            if codes.are_owned() {
                break;
            }
            candidate.samples += own_inner(memory, &mut codes, candidate.function.code.1, 100)?;
        }
    }
    let mut owners = Vec::new();
    for candidate in candidates.iter().filter(|candidate| candidate.samples > 0) {
        let package = candidate
            .namespace
            .and_then(|row| roots.namespaces.get(row));
        let package = package.map_or("", |namespace| namespace.0);
        owners.try_push(Owner {
            closure: candidate.function.closure,
            package: owned(package)?,
            name: text(memory, candidate.function.name)?.unwrap_or_default(),
            samples: candidate.samples,
        })?;
    }
    Ok(owners)
}

/// Takes the code of the constants of a function for it, and returns how often it occurs.
fn own_inner(
    memory: &mut impl Memory,
    codes: &mut Codes,
    code: Code,
    levels: usize,
) -> Result<u64> {
    let mut samples = 0;
    for number in 0..code.constants(memory) {
        if let Some(inner) = compiled::inner(memory, code, number)? {
            samples += codes.own(inner);
            if levels > 0 {
                samples += own_inner(memory, codes, inner.1, levels - 1)?;
            }
        }
    }
    Ok(samples)
}

/// The compiled functions of packages and of the global environment, each once: in the namespace where it was defined.
fn candidates(memory: &mut impl Memory, roots: &Roots) -> Result<Vec<Candidate>> {
    let mut rows = HashMap::new();
    for (row, (_, namespace)) in roots.namespaces.iter().enumerate() {
        rows.try_put(*namespace, row)?;
    }
    let mut base = roots.namespaces.iter();
    let base = base.position(|namespace| namespace.0 == BASE_NAME);
    let mut found = Vec::new();
    let mut add = |memory: &mut _, variable, place: Option<usize>| -> Result<()> {
        if let Some(function) = functions::compiled(memory, variable)? {
            let home = rows.get(&function.environment).copied();
            // A package may contain functions of other packages.
            // `.Last.value` may be any function.
            let is_base = place.is_some() && place == base;
            if home == place || home.is_none() && !is_base {
                found.try_push(Candidate {
                    function,
                    namespace: place,
                    samples: 0,
                })?;
            }
        }
        Ok(())
    };
    for &symbol in roots.of_base {
        if let Some(variable) = functions::variable_of_base(memory, symbol) {
            add(memory, variable, base)?;
        }
    }
    for (row, (_, namespace)) in roots.namespaces.iter().enumerate() {
        for variable in functions::variables(memory, roots.nil, *namespace)? {
            if has_methods(memory, variable) {
                for method in functions::variables(memory, roots.nil, variable.value)? {
                    add(memory, method, Some(row))?;
                }
            } else {
                add(memory, variable, Some(row))?;
            }
        }
    }
    for variable in functions::variables(memory, roots.nil, roots.global)? {
        add(memory, variable, None)?;
    }
    Ok(found)
}

fn has_methods(memory: &mut impl Memory, variable: Variable) -> bool {
    if memory::word(memory, variable.value).map(Type::of) != Some(ENVSXP) {
        return false;
    }
    let name = memory::array::<CELL>(memory, variable.symbol).map(|symbol| at(&symbol, PRINTNAME));
    let name = name.and_then(|name| text(memory, name).ok().flatten());
    name.is_some_and(|name| name.starts_with(METHODS))
}

/// The text of a `CHARSXP`.
fn text(memory: &mut impl Memory, address: u64) -> Result<Option<String>> {
    let Some(object) = object_of(memory, address, CHARSXP) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    bytes.try_fill(at(&object, LENGTH).min(MOST_BYTES) as usize, 0)?;
    if !memory.read(address.wrapping_add(DATA as u64), &mut bytes) {
        return Ok(None);
    }
    Ok(String::from_utf8(bytes).ok())
}

/// The instructions that create promises and functions, from two compiled functions, see [`Creators::learn()`].
pub fn learn(closures: [u64; 2]) -> Result<Option<Creators>> {
    Creators::learn(&mut Direct, closures)
}

/// The rows of recorded positions in a function, with their lines in a copy of it that has source references; `None` if
/// their instructions differ. A position has no line if it is ambiguous.
pub fn lines(
    distinct: &Distinct,
    creators: Creators,
    original: u64,
    copy: u64,
) -> Result<Option<Vec<(usize, i32)>>> {
    let memory = &mut Direct;
    let Some(all) = compare(memory, creators, original, copy)? else {
        return Ok(None);
    };
    let mut codes = Codes::of(distinct)?;
    let mut lines = Lines::default();
    for both in all {
        let uses = codes.uses(both.original);
        for &row in uses.map_or(&[][..], |uses| &uses.rows) {
            if let Some(position) = distinct.positions.get(row) {
                lines.add(row as u64, both.line(memory, position.words()))?;
            }
        }
    }
    let mut found = Vec::new();
    for (row, line) in lines.0 {
        if let Some(line) = line {
            found.try_push((row as usize, line))?;
        }
    }
    Ok(Some(found))
}

/// All positions in a function, for tests.
pub fn all_lines(creators: Creators, original: u64, copy: u64) -> Result<Option<Vec<LineAt>>> {
    let memory = &mut Direct;
    let Some(all) = compare(memory, creators, original, copy)? else {
        return Ok(None);
    };
    let mut codes: Vec<(u64, Lines)> = Vec::new();
    for both in all {
        let known = codes.iter().position(|code| code.0 == both.original.0);
        let row = known.unwrap_or(codes.len());
        if known.is_none() {
            codes.try_push((both.original.0, Lines::default()))?;
        }
        if let Some((_, lines)) = codes.get_mut(row) {
            for position in 0..both.positions(memory) {
                lines.add(position, both.line(memory, position))?;
            }
        }
    }
    let mut found = Vec::new();
    for (number, (_, lines)) in codes.into_iter().enumerate() {
        for (position, line) in lines.0 {
            found.try_push(LineAt {
                code: number,
                position,
                line,
            })?;
        }
    }
    Ok(Some(found))
}

pub fn compare(
    memory: &mut impl Memory,
    creators: Creators,
    original: u64,
    copy: u64,
) -> Result<Option<Vec<Both>>> {
    let original = compiled::code_of(memory, original)?;
    let copy = compiled::code_of(memory, copy)?;
    match original.zip(copy) {
        Some((original, copy)) => compiled::compare(memory, creators, original, copy),
        None => Ok(None),
    }
}

/// Lines by number; `None` for those that are not known, or ambiguous: code of the original that several codes of the copy
/// correspond to.
#[derive(Default)]
pub struct Lines(pub HashMap<u64, Option<i32>>);

impl Lines {
    pub fn add(&mut self, number: u64, line: Option<i32>) -> Result<()> {
        let known = self.0.get(&number).copied();
        let line = line.filter(|_| known.is_none() || known == Some(line));
        self.0.try_put(number, line)?;
        Ok(())
    }
}
