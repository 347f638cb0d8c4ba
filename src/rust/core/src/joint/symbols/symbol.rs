//! The result of symbolization: the name of a function, its file and its line.

use crate::error::Result;
use crate::limits::memory::written;
use crate::model::UNKNOWN;

/// The suffix that Linux appends to the path of a file that was removed.
pub const DELETED: &str = " (deleted)";

/// A function at an address, and its line: for the innermost function the line that is
/// executed, for all others the line of the inlined call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Symbol {
    /// The demangled name: C++ without parameters, Rust without a hash.
    pub name: String,
    /// The linkage name, as in the symbol table.
    pub system_name: String,
    /// Empty if it is unknown.
    pub filename: String,
    /// 0 if it is unknown, as are `column` and `start_line`.
    pub line: u32,
    pub column: u32,
    /// The line at which the function begins, if it is in `filename`.
    pub start_line: u32,
    pub name_source: NameSource,
}

/// The origin of the name of a [`Symbol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameSource {
    /// Debug information. An inlined function without a name is [`UNKNOWN`].
    DebugInformation,
    SymbolTable,
    /// The name consists of the module and the address of the function.
    #[default]
    Address,
}

/// A symbol for a function in the file `path` whose name is unknown.
pub fn unnamed(path: &str, address: u64) -> Result<Symbol> {
    let file = path.strip_suffix(DELETED).unwrap_or(path);
    let name = match file.rsplit('/').next() {
        None | Some("") => UNKNOWN,
        Some(name) => name,
    };
    let name = || written(format_args!("{name}+0x{address:x}"));
    Ok(Symbol {
        system_name: name()?,
        name: name()?,
        ..Symbol::default()
    })
}
