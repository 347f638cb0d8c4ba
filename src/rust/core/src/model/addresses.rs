//! Addresses: where in memory the code of a location is.
//!
//! If functions were inlined, several locations have the same address; in a stack the innermost
//! is the first, and each is marked as inlined into the next. Interpreted code, such as R code,
//! has no address.

use super::mappings::MappingId;
use super::native_id::NativeId;
use crate::collections::{Interner, id};

id!(AddressId, "addresses");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Address {
    pub mapping: Option<MappingId>,
    /// 0 if there is none.
    pub address: u64,
    /// Whether the linker merged several functions with the same code into one (identical
    /// code folding), so that the function may not be the one that the name refers to.
    pub is_folded: bool,
    pub native_id: Option<NativeId>,
}

/// An address without any information has no row, see `Profile::intern_address()`.
pub type Addresses = Interner<Vec<Address>, AddressId>;
