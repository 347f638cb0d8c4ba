//! The state that all objects of a text share while it is converted: the error that ended the
//! conversion, if serde's errors cannot contain it, and the depth of the current object.

use crate::error::Error;
use crate::limits::cancel::{self, Stop};
use serde_core::de::Error as JsonError;
use std::cell::Cell;

/// Fields and elements between two checks for an interrupt.
const INTERVAL: usize = 1000;

pub struct Context<'s> {
    stop: Stop<'s>,
    /// The name of the file in messages.
    pub input: &'s str,
    /// The reason why the conversion ended, if it is not the syntax of the text.
    pub failure: Cell<Option<Error>>,
    /// The number of fields and elements so far.
    elements: Cell<usize>,
    /// The depth of the current object.
    pub depth: Cell<usize>,
}

impl<'s> Context<'s> {
    pub fn new(input: &'s str, stop: Stop<'s>) -> Context<'s> {
        Context {
            stop,
            input,
            failure: Cell::new(None),
            elements: Cell::new(0),
            depth: Cell::new(0),
        }
    }

    /// Ends the conversion with this error.
    pub fn fail<E: JsonError>(&self, error: Error) -> E {
        self.failure.set(Some(error));
        E::custom("not shown")
    }

    /// Counts a field or an element, and checks for an interrupt.
    pub fn next<E: JsonError>(&self) -> Result<(), E> {
        let count = self.elements.replace(self.elements.get().wrapping_add(1));
        if count % INTERVAL == 0 {
            cancel::check(self.stop).map_err(|error| self.fail(error))?;
        }
        Ok(())
    }
}
