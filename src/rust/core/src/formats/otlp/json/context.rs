//! The state that all objects of a text share while it is converted: the reason why the conversion
//! ended, which serde's errors cannot contain, and the depth of the current object.

use crate::limits::cancel::{self, Stop};
use serde_core::de::Error as JsonError;
use std::cell::Cell;

/// Fields and elements between two checks for an interrupt.
const INTERVAL: usize = 1000;

pub struct Context<'s> {
    stop: Stop<'s>,
    pub interrupted: Cell<bool>,
    pub out_of_memory: Cell<bool>,
    /// Whether the message is of a version that is not supported.
    pub outdated: Cell<bool>,
    /// The number of fields and elements so far.
    elements: Cell<usize>,
    /// The depth of the current object.
    pub depth: Cell<usize>,
}

impl<'s> Context<'s> {
    pub fn new(stop: Stop<'s>) -> Context<'s> {
        Context {
            stop,
            interrupted: Cell::new(false),
            out_of_memory: Cell::new(false),
            outdated: Cell::new(false),
            elements: Cell::new(0),
            depth: Cell::new(0),
        }
    }

    /// The error for a failed allocation; it is reported as [`Error::Memory`](crate::Error).
    pub fn no_memory<E: JsonError>(&self) -> E {
        self.out_of_memory.set(true);
        E::custom("out of memory")
    }

    /// Counts a field or an element, and checks for an interrupt.
    pub fn next<E: JsonError>(&self) -> Result<(), E> {
        let count = self.elements.replace(self.elements.get().wrapping_add(1));
        if count % INTERVAL == 0 && cancel::check(self.stop).is_err() {
            self.interrupted.set(true);
            return Err(E::custom("interrupted"));
        }
        Ok(())
    }
}
