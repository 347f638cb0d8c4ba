//! How a result crosses to R: as a value, never by a jump or a panic.
//!
//! Every entry point returns `list(value, error)`, one of which is NULL, or NULL alone
//! where R jumped and has to continue with that. `R/rust.R` is the only place that takes
//! it apart; it raises errors with the user's call.
//!
//! extendr could raise errors itself, but with R's `error()`: without a class, and with the
//! text as its format. So entry points return no `Result`, and no panic leaves them.

use crate::slots::{Slots, root};
use extendr_api::Robj;
use profile_core::error::{Error, Place, Result};
use profile_core::message;
use profile_core::text::without_nul;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// The slot that the work fills with its result.
pub const VALUE: usize = 0;
const ERROR: usize = 1;

/// Runs `work`, which fills slot [`VALUE`] of the list it gets.
pub fn outcome(work: impl FnOnce(Slots) -> Result<()>) -> Robj {
    static QUIET: Once = Once::new();
    QUIET.call_once(remember_panics);
    let Ok(root) = root(2) else {
        return Robj::default();
    };
    let pair = Slots::of(&root);
    let done = catch_unwind(AssertUnwindSafe(|| match work(pair) {
        Ok(()) => Ok(()),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(error) => put_error(pair, &error),
    }));
    let done = done.unwrap_or_else(|_| {
        let message = PANIC.take().unwrap_or_else(|| message!("a panic"));
        pair.clear(ERROR);
        put_panic(pair, &message)
    });
    match done {
        Ok(()) => root,
        // R jumped.
        Err(_) => Robj::default(),
    }
}

/// Fields of the condition that R makes: class, message, and the place.
fn put_error(pair: Slots, error: &Error) -> Result<()> {
    let names = [
        c"class", c"message", c"path", c"line", c"byte", c"table", c"column", c"row", c"rule",
    ];
    let fields = pair.list(ERROR, &names)?;
    put_text(fields, 0, Some(error.class()))?;
    put_text(fields, 1, Some(&message!("{error}")))?;
    let path = match error {
        Error::Open { path, .. } | Error::Write { path, .. } => {
            Some(message!("{}", path.display()))
        }
        Error::Parse { input, .. } | Error::Foreign { input, .. } => Some(input.clone()),
        _ => None,
    };
    put_text(fields, 2, path.as_deref())?;
    let (line, byte) = match error.place() {
        Some(Place::Line(n)) => (Some(*n), None),
        Some(Place::Byte(n)) => (None, Some(*n)),
        Some(Place::Sample(_) | Place::Field(_)) | None => (None, None),
    };
    put_number(fields, 3, line.map(|n| n as f64))?;
    put_number(fields, 4, byte.map(|n| n as f64))?;
    if let Error::Invalid(invalid) = error {
        put_text(fields, 5, Some(&invalid.table))?;
        put_text(fields, 6, invalid.column)?;
        put_number(fields, 7, invalid.row.map(|n| n as f64))?;
        put_text(fields, 8, Some(&invalid.rule))?;
    }
    Ok(())
}

fn put_panic(pair: Slots, message: &str) -> Result<()> {
    let fields = pair.list(ERROR, &[c"class", c"message"])?;
    put_text(fields, 0, Some("profile_error_internal"))?;
    let message = message!("Internal error, please report it: {message}.");
    put_text(fields, 1, Some(&message))
}

/// Nothing is left NULL, R's own "no value".
fn put_text(fields: Slots, slot: usize, text: Option<&str>) -> Result<()> {
    match text {
        // A NUL would make R refuse the string.
        Some(text) => fields.strings(slot, &[&without_nul(text)?], &[0]),
        None => Ok(()),
    }
}

fn put_number(fields: Slots, slot: usize, number: Option<f64>) -> Result<()> {
    if let Some(number) = number {
        fields.doubles(slot, 1)?[0] = number;
    }
    Ok(())
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps a panic's message for the error instead of printing it.
fn remember_panics() {
    std::panic::set_hook(Box::new(|info| {
        let mut text = message!("{info}");
        // In place: a panic may come from want of memory.
        while let Some(at) = text.find('\n') {
            text.replace_range(at..=at, " ");
        }
        PANIC.set(Some(text));
    }));
}
