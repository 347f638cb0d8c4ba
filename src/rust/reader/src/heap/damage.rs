//! What of a heap cannot be read, for messages.

use profile_core::error::Error;
use profile_core::message;
use std::fmt;

/// A part of the heap that is not what it should be. Classes are numbered as in R's `R_GenHeap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The struct of a class.
    Class(usize),
    /// The lists of a class.
    Pages(usize),
    Objects(usize),
    NewObjects(usize),
    /// What is at an address.
    Page(u64),
    Object(u64),
    Variables(u64),
    /// The list of the calls that are running.
    Calls,
}

impl fmt::Display for Damage {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Damage::Class(class) => write!(to, "the head of class {class}"),
            Damage::Pages(class) => write!(to, "the list of pages of class {class}"),
            Damage::Objects(class) => write!(to, "the list of objects of class {class}"),
            Damage::NewObjects(class) => write!(to, "the list of new objects of class {class}"),
            Damage::Page(address) => write!(to, "the page at {address:#x}"),
            Damage::Object(address) => write!(to, "the object at {address:#x}"),
            Damage::Variables(address) => write!(to, "the environment at {address:#x}"),
            Damage::Calls => write!(to, "the list of calls"),
        }
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Error {
        Error::Process(message!(
            "Its heap cannot be read: {damage} is damaged, or R was changing it."
        ))
    }
}

pub fn too_many_objects() -> Error {
    Error::Process(message!("Its heap has more objects than can be counted."))
}
