//! The units of debug information, one for each compiled source file. Their functions and
//! lines are read when an address of the unit is looked up for the first time.

use super::debug_info::{Slice, Unit, undamaged};
use super::functions::Functions;
use super::lines::Lines;
use crate::error::Result;
use crate::limits::memory::TryGrow;
use gimli::constants as dw;
use gimli::{AttributeValue, Dwarf};
use std::sync::Arc;

/// The maximum number of ranges per byte. There may be more ranges than bytes, since compilers let
/// range lists overlap, but not many more.
const MOST_RANGES: usize = 4;

/// All units of a file.
pub struct Units<'f> {
    pub dwarf: Arc<Dwarf<Slice<'f>>>,
    /// In the order of their offsets.
    pub rows: Vec<UnitRow<'f>>,
    pub most_ranges: usize,
}

pub struct UnitRow<'f> {
    /// The offset in its section.
    pub start: usize,
    pub unit: Unit<'f>,
    /// Units without code only contain entries that other units refer to.
    pub has_code: bool,
    pub is_of_cxx: bool,
    /// Read when it is first needed.
    pub content: Option<Content>,
}

/// The content of a unit. A damaged part is `None`.
pub struct Content {
    pub functions: Option<Functions>,
    pub lines: Option<Lines>,
}

impl<'f> Units<'f> {
    pub fn read(dwarf: Arc<Dwarf<Slice<'f>>>, size: usize) -> Result<Units<'f>> {
        let mut rows = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let start = header.offset().as_debug_info_offset();
            if let (Some(start), Ok(unit)) = (start, dwarf.unit(header)) {
                let (has_code, is_of_cxx) = about_unit(&unit).unwrap_or_default();
                let unit_row = UnitRow {
                    start: start.0,
                    unit,
                    has_code,
                    is_of_cxx,
                    content: None,
                };
                rows.try_push(unit_row)?;
            }
        }
        Ok(Units {
            dwarf,
            rows,
            most_ranges: size.saturating_mul(MOST_RANGES),
        })
    }
}

fn about_unit(unit: &Unit) -> Option<(bool, bool)> {
    let mut entries = unit.entries();
    entries.next_dfs().ok()?;
    let top = entries.current()?;
    let has_code = matches!(
        top.tag(),
        dw::DW_TAG_compile_unit | dw::DW_TAG_skeleton_unit
    );
    let language = top.attr_value(dw::DW_AT_language).ok()?;
    let is_of_cxx = matches!(
        language,
        Some(AttributeValue::Language(
            dw::DW_LANG_C_plus_plus
                | dw::DW_LANG_C_plus_plus_03
                | dw::DW_LANG_C_plus_plus_11
                | dw::DW_LANG_C_plus_plus_14
                | dw::DW_LANG_C_plus_plus_17
                | dw::DW_LANG_C_plus_plus_20
        ))
    );
    Some((has_code, is_of_cxx))
}

impl<'f> UnitRow<'f> {
    pub fn load(
        &mut self,
        dwarf: &Dwarf<Slice<'f>>,
        most_ranges: usize,
    ) -> Result<(&Unit<'f>, &Content)> {
        let content = match self.content.take() {
            Some(content) => content,
            None => Content {
                functions: undamaged(Functions::read(dwarf, &self.unit, most_ranges))?,
                lines: undamaged(Lines::read(&self.unit))?.flatten(),
            },
        };
        Ok((&self.unit, self.content.insert(content)))
    }
}
