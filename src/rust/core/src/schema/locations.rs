//! `locations`: lines of functions, and their addresses in memory.

use super::cells::exact_line;
use super::column;
use super::key::Key;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::model::{Address, FrameType, FunctionId, Location, MappingId};
use std::borrow::Cow;

type Column = column::Column<Location, LocationDraft>;

pub static LOCATIONS: RowTable<Location, LocationDraft> = RowTable {
    info: TableInfo {
        key: &["location_id"],
        merged: true,
        attributes: Some(".location_attributes"),
        used_by: Some(("sample_locations", "location_id")),
        ..TableInfo::new("locations", "a line of a function")
    },
    columns: &[
        Column::key(Key::Location, "its id"),
        Column::reference(
            "function_id",
            Key::Function,
            "the function it is in; `NA` for an address without a symbol",
            |_, l| l.function.map(|f| f.row()),
            |l, row| l.location.function = Some(FunctionId(row as u32)),
        )
        .or_na(),
        Column::line(
            "line",
            "the line in the file; 0 or `NA` if unknown",
            |_, l| l.line,
            |l, line| l.location.line = Some(line),
        ),
        Column::exact_line(
            ".line_exact",
            "`line`, if an integer cannot represent it",
            |_, l| l.line,
            |l, exact| l.location.line = l.location.line.map(|line| exact_line(exact, line)),
        )
        .optional(),
        Column::line(
            ".column",
            "the column in the line; 0 if unknown",
            |_, l| Some(l.column),
            |l, column| l.location.column = column,
        )
        .optional_where(|_, l| l.column != 0),
        Column::exact_line(
            ".column_exact",
            "`.column`, if an integer cannot represent it",
            |_, l| Some(l.column),
            |l, exact| l.location.column = exact_line(exact, l.location.column),
        )
        .optional(),
        Column::flag(
            ".inlined",
            "whether the frame was inlined into the next outer frame, so that both are the same \
             machine code",
            |_, l| Some(l.inlined),
            |l, inlined| l.location.inlined = inlined,
        )
        .optional_where(|_, l| l.inlined),
        Column::text(
            ".frame_type",
            "the kind of frame: `r` for R code, `native` for machine code, or another text, such as \
             a value of OpenTelemetry's `profile.frame.type` (`cpython`, `jvm`, `kernel`)",
            |_, l| l.frame_type.map(|type_| type_.text()),
            |l, type_| l.location.frame_type = Some(FrameType::new(type_)),
        )
        .not_empty()
        .optional(),
        Column::reference(
            ".mapping_id",
            Key::Mapping,
            "the mapping that the address is in",
            |p, l| p.address_of(l).mapping.map(|m| m.row()),
            |l, row| l.address.mapping = Some(MappingId(row as u32)),
        )
        .or_na()
        .optional(),
        Column::hexadecimal(
            ".address",
            "the address in memory",
            |p, l| Some(p.address_of(l).address).filter(|&address| address != 0),
            |l, address| l.address.address = address,
        )
        .optional(),
        Column::flag(
            ".is_folded",
            "whether other functions share the code, so that the function may be another one",
            |p, l| Some(p.address_of(l).is_folded),
            |l, folded| l.address.is_folded = folded,
        )
        .optional_where(|p, l| p.address_of(l).is_folded),
        Column::native_id(
            ".native_id",
            "the id in the file, unless ids are 1, 2, 3, ...",
            |p, l| p.address_of(l).native_id,
            |l, id| l.address.native_id = Some(id),
        )
        .optional(),
    ],
    rows: |profile| Ok(Cow::Borrowed(profile.locations.iter().as_slice())),
    blank: LocationDraft::default,
    rules: &[],
    store: |reading, rows| {
        let profile = &mut reading.profile;
        for draft in rows {
            let address = profile.intern_address(draft.address)?;
            profile.locations.push(Location {
                address,
                ..draft.location
            })?;
        }
        Ok(())
    },
};

/// A location while it is read; its address is not interned yet.
#[derive(Default)]
pub struct LocationDraft {
    location: Location,
    address: Address,
}
