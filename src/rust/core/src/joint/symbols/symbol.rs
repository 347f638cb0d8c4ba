//! What is found for an address: the name of a function, and a place in its source.

use crate::error::Result;
use crate::limits::memory::written;
use crate::model::UNKNOWN;

/// What Linux appends to the path of a file that is gone.
pub const DELETED: &str = " (deleted)";

/// A function at an address, and its line: for the innermost function the line that
/// runs, for all others the line of the inlined call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Symbol {
    /// For people: C++ without parameters, Rust without a hash.
    pub name: String,
    /// For the linker.
    pub system_name: String,
    /// "" is unknown.
    pub filename: String,
    /// 0 is unknown, and so for the following.
    pub line: u32,
    pub column: u32,
    /// Where the function begins, if that is in `filename`.
    pub start_line: u32,
    pub name_source: NameSource,
}

/// Where the name of a [`Symbol`] is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameSource {
    /// An inlined function without a name is [`UNKNOWN`].
    DebugInformation,
    SymbolTable,
    /// Its name is made of the module and the address of the function.
    #[default]
    Address,
}

/// The symbol of an address in the file `path` that has no name.
pub fn unnamed(path: &str, address: u64) -> Result<Symbol> {
    let file = path.strip_suffix(DELETED).unwrap_or(path);
    let name = match file.rsplit('/').next() {
        None | Some("") => UNKNOWN,
        Some(name) => name,
    };
    let name = || written(format_args!("{name}+0x{address:x}"), "native frames");
    Ok(Symbol {
        system_name: name()?,
        name: name()?,
        ..Symbol::default()
    })
}
