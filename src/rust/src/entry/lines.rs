//! Entry points for lines of code without source references: the sampler records positions in byte code, and when the
//! recording has ended, R compiles the functions to which they belong from their deparsed text.

use crate::arena::RObject;
use crate::argument::{Sexp, argument};
use crate::guard::stop;
use crate::options::option;
use crate::outcome::outcome;
use crate::{files, to_r};
use extendr_api::prelude::{Robj, extendr, extendr_module};
use profile_core::error::{Error, Result};
use profile_core::joint::{self, Distinct, Line, Wanted};
use profile_core::limits::memory::{TryCollect, TryGrow, filled};
use profile_core::model::code_of_file;
use profile_reader::live::own_positions;
use profile_reader::stack::innermost::Seen;
use profile_runtime::compiled::Creators;
use profile_runtime::digest::Digest;
use profile_sampler::{
    self as sampler, LineAt, Owner, PositionVariables, Roots, Stopped, WantedLine,
};
use std::cell::{Cell, RefCell};

thread_local! {
    /// What [`rust_lines_look()`] has seen and found. R's variables do not move.
    static SEEN: RefCell<Seen> = RefCell::default();
    static VARIABLES: RefCell<Option<PositionVariables>> = const { RefCell::new(None) };
    /// A run that has ended, and whose profile was not made yet.
    static ENDED: RefCell<Option<Ended>> = const { RefCell::new(None) };
    /// Where R's library starts.
    static BASE: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Ended {
    stopped: Stopped,
    positions: Distinct,
    creators: Option<Creators>,
}

/// Where R keeps the position of the innermost function, if it was found.
pub fn variables() -> Option<PositionVariables> {
    VARIABLES.with_borrow(|variables| *variables)
}

/// Ends the run of the sampler. If there is none, Ctrl-C may have interrupted what came after its end.
fn end() -> Result<Ended> {
    if let Some(stopped) = sampler::stop() {
        return Ok(Ended {
            positions: Distinct::of(&stopped.recording()?)?,
            stopped,
            creators: None,
        });
    }
    let ended = ENDED.take();
    ended.ok_or_else(|| Error::Unsupported("Nothing is recorded.".into()))
}

/// Passes the run, which is ended if `rust_lines_end()` has not done so, and the lines of its positions as far as R has found them: `lines` is
/// `list(row, file, line)` or NULL.
pub fn with_ended<T>(
    lines: Sexp,
    use_it: impl FnOnce(&Stopped, &Distinct, &[Option<Line>]) -> Result<T>,
) -> Result<T> {
    let ended = end()?;
    let mut found = filled(ended.positions.positions.len(), None)?;
    if !lines.is_null() {
        let column = |name| {
            lines
                .named(name)
                .map(|column| column.unwrap_or(Sexp::null()))
        };
        let rows = column("row")?.integers()?.iter();
        let files = column("file")?.texts()?;
        let lines = column("line")?.integers()?;
        for ((row, file), line) in rows.zip(files).zip(lines) {
            let slot = usize::try_from(*row)
                .ok()
                .and_then(|row| found.get_mut(row));
            if let Some(slot) = slot {
                let line = i64::from(*line);
                *slot = Some(Line { file, line });
            }
        }
    }
    let result = use_it(&ended.stopped, &ended.positions, &found);
    if result.is_err() {
        // Ctrl-C may have interrupted it.
        ENDED.set(Some(ended));
    }
    result
}

// Looks for the variables in which R keeps the position of its innermost function. Byte code must call this, and then
// `rust_lines_find()`.
#[extendr]
fn rust_lines_look() -> Robj {
    outcome(|_| {
        SEEN.with_borrow_mut(own_positions)?;
        Ok(RObject::null())
    })
}

// Returns whether these variables are known now: only they have such values at both calls.
#[extendr]
fn rust_lines_find() -> Robj {
    outcome(|arena| {
        let known = SEEN.with_borrow_mut(own_positions)?;
        let found = known.variables.map(|found| PositionVariables {
            marker: known.marker,
            srcrefs: [0, 1].map(|row| known.srcrefs.get(row).copied().unwrap_or(0)),
            code: found.code,
            pc: found.pc,
        });
        VARIABLES.set(found);
        arena.flag(found.is_some())
    })
}

// Ends the run of the sampler, whose signal must be blocked. Returns `list(functions, package, name, samples)`: the
// functions to which recorded positions belong. `functions` may be longer than the other columns. `closures` are two
// compiled functions, `function() f(g())` and `function() function() NULL`; `namespaces` a named list of all loaded ones,
// and `symbols` a list of the names of R's own functions.
#[extendr]
fn rust_lines_end(closures: &Robj, namespaces: &Robj, symbols: &Robj, global: &Robj) -> Robj {
    outcome(|arena| {
        let Ended {
            stopped, positions, ..
        } = end()?;
        let addresses = |list| -> Result<Vec<u64>> {
            let elements = argument(list).elements()?.iter();
            elements.map(|element| element.address()).try_vec()
        };
        let names = argument(namespaces).names()?;
        let environments = addresses(namespaces)?;
        let names = names.iter().copied().zip(environments).try_vec()?;
        let of_base = addresses(symbols)?;
        let roots = Roots {
            nil: Sexp::null().address(),
            namespaces: &names,
            global: argument(global).address(),
            of_base: &of_base,
        };
        let creators = match *addresses(closures)? {
            [promise, function] => sampler::learn([promise, function])?,
            _ => None,
        };
        // R may collect garbage when it allocates the list, but not when it is filled.
        let slots = if creators.is_some() {
            positions.positions.len()
        } else {
            0
        };
        let functions = arena.objects(slots)?;
        let owners = match creators {
            Some(_) => sampler::owners(&positions, &roots)?,
            None => Vec::new(),
        };
        for (slot, owner) in owners.iter().enumerate() {
            // SAFETY: the address of a closure to which a loaded package or the global environment refers.
            unsafe { functions.set(slot, owner.closure) };
        }
        ENDED.set(Some(Ended {
            stopped,
            positions,
            creators,
        }));
        let texts = |of: fn(&Owner) -> &str| owners.iter().map(of).try_vec();
        let samples = owners.iter().map(|owner| owner.samples as f64).try_vec()?;
        arena.list(&[
            ("functions", functions.list()),
            ("package", arena.texts(&texts(|owner| &owner.package)?)?),
            ("name", arena.texts(&texts(|owner| &owner.name)?)?),
            ("samples", arena.numbers(&samples)?),
        ])
    })
}

// Returns `list(row, line)` of the recorded positions in a function, by a compiled copy of it that has source references;
// NULL if the instructions of both differ. Rows are counted from 0.
#[extendr]
fn rust_lines_of(original: &Robj, copy: &Robj) -> Robj {
    outcome(|arena| {
        let found = ENDED.with_borrow(|ended| {
            let Some(ended) = ended else {
                return Ok(None);
            };
            let Some(creators) = ended.creators else {
                return Ok(None);
            };
            let [original, copy] = [original, copy].map(|function| argument(function).address());
            sampler::lines(&ended.positions, creators, original, copy)
        })?;
        let Some(found) = found else {
            return Ok(RObject::null());
        };
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for (row, line) in found {
            rows.try_push(i32::try_from(row).unwrap_or(i32::MAX))?;
            lines.try_push(line)?;
        }
        arena.list(&[
            ("row", arena.integer_vector(&rows)?),
            ("line", arena.integer_vector(&lines)?),
        ])
    })
}

// Returns `list(code, position, line)` of all positions in a function, for tests; NULL if the instructions of the copy differ.
// `closures` is as for `rust_lines_end()`.
#[extendr]
fn rust_lines_compared(original: &Robj, copy: &Robj, closures: &Robj) -> Robj {
    outcome(|arena| {
        let [original, copy] = [original, copy].map(|function| argument(function).address());
        let creators = match *argument(closures).elements()? {
            [promise, function] => sampler::learn([promise.address(), function.address()])?,
            _ => None,
        };
        let found = match creators {
            Some(creators) => sampler::all_lines(creators, original, copy)?,
            None => None,
        };
        let Some(found) = found else {
            return Ok(RObject::null());
        };
        let column = |of: fn(&LineAt) -> i32| {
            let values = found.iter().map(of).try_vec()?;
            arena.integer_vector(&values)
        };
        arena.list(&[
            ("code", column(|row| row.code as i32)?),
            ("position", column(|row| row.position as i32)?),
            ("line", column(|row| row.line.unwrap_or(i32::MIN))?),
        ])
    })
}

// Returns `list(tables, counts)` of the profile of a run that has ended, without native code. R's profiler must be
// stopped, and its file complete. `lines` is `list(row, file, line)`, or NULL.
#[extendr]
fn rust_lines_read(input: &Robj, memory: &Robj, lines: &Robj, lazy: &Robj) -> Robj {
    outcome(|arena| {
        let memory = argument(memory).flag()?;
        let file = option(input, "data")?.file()?;
        let origin = files::origin(input)?;
        let (profile, problems) = with_ended(argument(lines), |stopped, positions, lines| {
            let wanted = Wanted {
                memory,
                positions,
                lines,
            };
            joint::merge(file.path, origin, &stopped.recording()?, wanted, &stop)
                .map_err(|error| error.during("read", file.shown))
        })?;
        let lazy = argument(lazy).flag()?;
        to_r::result(arena, &profile, &problems, "2.0", lazy, &stop)
    })
}

fn base() -> Result<u64> {
    if let Some(base) = BASE.get() {
        return Ok(base);
    }
    let base = own_positions(&mut Seen::default())?.base;
    BASE.set(Some(base));
    Ok(base)
}

/// The digest of the code for which each file stands, see `profile_core::model::file_of_code()`.
fn digests(files: &Robj) -> Result<Vec<Digest>> {
    let files = argument(files).texts()?;
    let digests = files.iter().map(|file| code_of_file(file).unwrap_or(0));
    digests.map(Digest).try_vec()
}

// Returns, for each of the files that stand for byte code, the number of the only one of these compiled functions that has
// this code, or NA.
#[extendr]
fn rust_codes_find(functions: &Robj, files: &Robj) -> Robj {
    outcome(|arena| {
        let functions = argument(functions).elements()?.iter();
        let functions = functions.map(|function| function.address()).try_vec()?;
        let found = sampler::find_codes(&functions, base()?, &digests(files)?)?;
        let numbers = found.iter().map(|row| match row {
            Some(row) => i32::try_from(row + 1).unwrap_or(i32::MIN),
            None => i32::MIN,
        });
        arena.integer_vector(&numbers.try_vec()?)
    })
}

// Returns the lines of positions in files that stand for byte code of a function, by a compiled copy of it that has source
// references; NA for those that have none, and NULL if the instructions of both differ. `closures` is as for
// `rust_lines_end()`.
#[extendr]
fn rust_codes_lines(
    original: &Robj,
    copy: &Robj,
    closures: &Robj,
    files: &Robj,
    positions: &Robj,
) -> Robj {
    outcome(|arena| {
        let functions = [original, copy].map(|function| argument(function).address());
        let creators = match *argument(closures).elements()? {
            [promise, function] => sampler::learn([promise.address(), function.address()])?,
            _ => None,
        };
        let positions = argument(positions).integers()?.iter();
        let wanted = digests(files)?.into_iter().zip(positions);
        let wanted = wanted.map(|(code, &position)| WantedLine {
            code,
            position: u64::try_from(position).unwrap_or(u64::MAX),
        });
        let wanted = wanted.try_vec()?;
        let found = match creators {
            Some(creators) => sampler::code_lines(creators, base()?, functions.into(), &wanted)?,
            None => None,
        };
        let Some(found) = found else {
            return Ok(RObject::null());
        };
        let mut lines = filled(wanted.len(), i32::MIN)?;
        for (row, line) in found {
            if let Some(slot) = lines.get_mut(row) {
                *slot = line;
            }
        }
        arena.integer_vector(&lines)
    })
}

extendr_module! {
    mod lines;
    fn rust_lines_look;
    fn rust_lines_find;
    fn rust_lines_end;
    fn rust_lines_of;
    fn rust_lines_compared;
    fn rust_lines_read;
    fn rust_codes_find;
    fn rust_codes_lines;
}
