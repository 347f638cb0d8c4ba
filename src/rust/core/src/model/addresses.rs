//! Addresses: where in memory the code of a location is.
//!
//! One address stands for several locations where functions were inlined: the
//! innermost first, each of them marked as inlined into the next. Interpreted
//! code, R's above all, has none.

use super::mappings::MappingId;
use super::native_id::NativeId;
use crate::collections::{Interner, id};

id!(AddressId, "addresses");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Address {
    pub mapping: Option<MappingId>,
    /// 0 is none.
    pub address: u64,
    /// Whether several functions share this code, so that it may be another one
    /// than it seems (identical code folding).
    pub is_folded: bool,
    pub native_id: Option<NativeId>,
}

/// Without one that says nothing, see `Profile::intern_address()`.
pub type Addresses = Interner<Vec<Address>, AddressId>;
