//! Strings: one row for each distinct text, always UTF-8.
//!
//! Names of functions and files are repeated in the other tables, which refer to them by
//! [`StringId`].

use crate::collections::{Interner, TextList, id};

id!(StringId, "strings");

pub type Strings = Interner<TextList, StringId>;
