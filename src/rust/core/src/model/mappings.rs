//! Mappings: one row for each part of a file (a program, a library) that was
//! mapped into memory. The first one is the program itself.

use super::native_id::NativeId;
use super::strings::StringId;
use crate::collections::id;

id!(MappingId, "mappings");

/// The attribute of a mapping with the hash of its file that OpenTelemetry defines: a build id for
/// files with and without one of their linker.
pub const FILE_HASH: &str = "process.executable.build_id.htlhash";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The first address, and the one after the last.
    pub start: u64,
    pub limit: u64,
    /// The offset in the file that is mapped to `start`.
    pub offset: u64,
    pub filename: StringId,
    pub build_id: StringId,
    pub symbols: Symbols,
    pub native_id: Option<NativeId>,
}

impl Mapping {
    /// A mapping of which only the file is known.
    pub fn of_file(filename: StringId, build_id: StringId) -> Mapping {
        Mapping {
            start: 0,
            limit: 0,
            offset: 0,
            filename,
            build_id,
            symbols: Symbols::default(),
            native_id: None,
        }
    }
}

/// Which information on the functions of a mapping is final. A viewer may look up the rest in the
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Symbols {
    pub functions: bool,
    pub filenames: bool,
    pub line_numbers: bool,
    pub inline_frames: bool,
}

/// A mapping and its position among others.
pub struct PlacedMapping {
    pub position: usize,
    pub mapping: Mapping,
}
