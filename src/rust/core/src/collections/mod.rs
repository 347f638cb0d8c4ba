//! Collections that the model and the formats share: lists that are stored in one buffer, and
//! interned tables.

mod index;
mod interner;
mod lists;

pub use index::{Index, next_row};
pub(crate) use interner::id;
pub use interner::{Id, Interner, Rows, add};
pub use lists::{Lists, SharedLists, TextList};
