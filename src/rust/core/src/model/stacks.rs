//! Stacks: one row for each list of locations, innermost first.
//!
//! Real profiles repeat their stacks (for example a million samples with thirteen thousand
//! stacks). Therefore a sample contains a [`StackId`], and stacks are processed once for each row
//! of this table. The rows can be shared: the columns that R has of them are computed from
//! them when their values are needed (`model/frames.rs`).

use super::locations::LocationId;
use crate::collections::{Interner, SharedLists, id};

id!(StackId, "stacks");

pub type Stacks = Interner<SharedLists<LocationId>, StackId>;
