//! Stacks: one row for each list of locations, innermost first.
//!
//! Real profiles repeat their stacks (a million samples, thirteen thousand
//! stacks), so a sample is one [`StackId`] and all work on stacks is done once
//! for each row here.

use super::locations::LocationId;
use crate::collections::{Interner, Lists, id};

id!(StackId, "stacks");

pub type Stacks = Interner<Lists<LocationId>, StackId>;
