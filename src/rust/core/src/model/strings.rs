//! Strings: one row for each distinct text, always UTF-8.
//!
//! Names of functions and files repeat in every other table; there they are a
//! [`StringId`].

use crate::collections::{Interner, TextList, id};

id!(StringId, "strings");

pub type Strings = Interner<TextList, StringId>;
