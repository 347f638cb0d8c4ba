//! Returns results, errors and panics of entry points to R as values.
//!
//! Every entry point returns `list(value, error)`, of which at least one element is NULL, or
//! NULL instead of the list if R jumped and has to continue the jump. Only `R/rust.R` unpacks
//! the list; it raises errors with the user's call.
//!
//! extendr could raise errors itself, but by R's `error()`: without a class, and with the
//! message as format string. Therefore no entry point returns a `Result` or panics.

use crate::arena::{Arena, RObject, ResultList, Slot};
use extendr_api::Robj;
use profile_core::error::{Error, Position, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_core::text::without_nul;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Runs the body of an entry point and converts its result to `list(value, error)`.
pub fn outcome(work: impl for<'call> FnOnce(Arena<'call>) -> Result<RObject<'call>>) -> Robj {
    static QUIET: Once = Once::new();
    QUIET.call_once(remember_panics);
    match ResultList::new().and_then(|list| filled(list, work)) {
        Ok(list) => list.finish(),
        // R jumped.
        Err(_) => Robj::default(),
    }
}

fn filled(
    list: ResultList,
    work: impl for<'call> FnOnce(Arena<'call>) -> Result<RObject<'call>>,
) -> Result<ResultList> {
    let arena = list.arena();
    match catch_unwind(AssertUnwindSafe(|| work(arena))) {
        Ok(Ok(value)) => list.set(Slot::Value, value),
        Ok(Err(Error::Interrupted)) => return Err(Error::Interrupted),
        Ok(Err(error)) => list.set(Slot::Error, fields_of_error(arena, &error)?),
        Err(_) => list.set(Slot::Error, fields_of_panic(arena)?),
    }
    Ok(list)
}

/// The fields of the R condition: its class, its message, and where the error occurred.
fn fields_of_error<'call>(arena: Arena<'call>, error: &Error) -> Result<RObject<'call>> {
    let mut fields = Fields(arena, Vec::new());
    fields.text("class", error.class())?;
    fields.text("message", &message!("{error}"))?;
    match error {
        Error::Open { path, .. } | Error::Write { path, .. } => {
            fields.text("path", &message!("{}", path.display()))?;
        }
        Error::Parse { input, .. } => fields.text("path", input)?,
        Error::FileMemory { path, .. } => fields.text("path", path)?,
        Error::Foreign(foreign) => {
            fields.text("path", &foreign.input)?;
            if let Some(word) = foreign.looks_like {
                fields.text("looks_like", word)?;
            }
            if !foreign.remedy.is_empty() {
                fields.text("remedy", foreign.remedy)?;
            }
        }
        Error::Budget { input, needed, .. } => {
            fields.text("path", input)?;
            fields.number("needed", *needed as f64)?;
        }
        Error::LossyV1(_) => fields.text("version", "1.0")?,
        _ => {}
    }
    match error.position() {
        Some(Position::Line(line)) => fields.number("line", *line as f64)?,
        Some(Position::Byte(byte)) => fields.number("byte", *byte as f64)?,
        Some(Position::Sample(_) | Position::Field(_)) | None => {}
    }
    if let Error::Invalid(invalid) = error {
        fields.text("table", &invalid.table)?;
        if let Some(column) = &invalid.column {
            fields.text("column", column)?;
        }
        if let Some(row) = invalid.row {
            fields.number("row", row as f64)?;
        }
        fields.text("rule", &invalid.rule)?;
    }
    arena.list(&fields.1)
}

fn fields_of_panic(arena: Arena<'_>) -> Result<RObject<'_>> {
    let message = PANIC.take().unwrap_or_else(|| message!("a panic"));
    let message = message!("Internal error, please report it: {message}.");
    let mut fields = Fields(arena, Vec::new());
    fields.text("class", "profile_error_internal")?;
    fields.text("message", &message)?;
    arena.list(&fields.1)
}

struct Fields<'call>(Arena<'call>, Vec<(&'static str, RObject<'call>)>);

impl Fields<'_> {
    fn text(&mut self, name: &'static str, text: &str) -> Result<()> {
        // R strings cannot contain NUL.
        let text = self.0.text(&without_nul(text)?)?;
        self.1.try_push((name, text))
    }

    fn number(&mut self, name: &'static str, number: f64) -> Result<()> {
        let number = self.0.number(number)?;
        self.1.try_push((name, number))
    }
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Stores the message of a panic for the error instead of printing it.
fn remember_panics() {
    std::panic::set_hook(Box::new(|info| {
        let mut text = message!("{info}");
        // In place, because the panic may be due to a lack of memory.
        while let Some(at) = text.find('\n') {
            text.replace_range(at..=at, " ");
        }
        PANIC.set(Some(text));
    }));
}
