//! Addresses: where in memory the code of a location is.
//!
//! Where functions were inlined, several locations have the same address: the innermost
//! first, each marked as inlined into the next. Interpreted code, such as R code, has no
//! address.

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
    /// code folding), so that the function may be another one than the name says.
    pub is_folded: bool,
    pub native_id: Option<NativeId>,
}

/// An address without any information has no row, see `Profile::intern_address()`.
pub type Addresses = Interner<Vec<Address>, AddressId>;
