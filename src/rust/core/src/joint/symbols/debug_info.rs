//! Types for reading debug information (DWARF) with the crate gimli, and the sections that are read.

use super::elf::Elf;
use crate::error::{Error, Result};
use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, Dwarf, EndianSlice, LittleEndian, SectionId,
};

pub type Slice<'f> = EndianSlice<'f, LittleEndian>;
pub type Unit<'f> = gimli::Unit<Slice<'f>>;
pub type Value<'f> = AttributeValue<Slice<'f>>;

/// The reason why reading failed.
pub enum Failure {
    Damaged,
    Error(Error),
}

impl From<gimli::Error> for Failure {
    fn from(_: gimli::Error) -> Failure {
        Failure::Damaged
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// Treats damaged content as missing.
pub fn undamaged<T>(read: std::result::Result<T, Failure>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Damaged) => Ok(None),
        Err(Failure::Error(error)) => Err(error),
    }
}

/// Reads the sections that describe functions and lines. Also returns their total size.
pub fn sections<'f>(elf: &Elf<'f>) -> Result<(Dwarf<Slice<'f>>, usize)> {
    let mut size = 0usize;
    let mut dwarf = Dwarf::load(|id| -> Result<Slice<'f>> {
        let bytes = match id {
            SectionId::DebugAbbrev
            | SectionId::DebugAddr
            | SectionId::DebugInfo
            | SectionId::DebugLine
            | SectionId::DebugLineStr
            | SectionId::DebugRanges
            | SectionId::DebugRngLists
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets => elf.section(id.name())?,
            _ => None,
        };
        let bytes = bytes.unwrap_or_default();
        size = size.saturating_add(bytes.len());
        Ok(Slice::new(bytes, LittleEndian))
    })?;
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    Ok((dwarf, size))
}
