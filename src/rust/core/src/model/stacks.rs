//! Stacks: one row for each list of locations, innermost first.
//!
//! Real profiles repeat their stacks (for example a million samples with thirteen thousand
//! stacks). Therefore a sample contains a [`StackId`], and stacks are processed once for each row
//! of this table.

use super::locations::LocationId;
use crate::collections::{Interner, Lists, id};

id!(StackId, "stacks");

pub type Stacks = Interner<Lists<LocationId>, StackId>;
