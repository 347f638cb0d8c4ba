//! `locations`: lines of functions, and their addresses in memory.

use super::cells::exact_line;
use super::columns::columns;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::model::{Address, FrameType, Location, MappingId};
use std::borrow::Cow;

pub static LOCATIONS: RowTable<Location, LocationDraft> = RowTable {
    info: TableInfo {
        key: &["location_id"],
        merged: true,
        attributes: Some(".location_attributes"),
        used_by: Some(("sample_locations", "location_id")),
        ..TableInfo::new("locations", "a line of a function")
    },
    columns: columns! {
        (p, l: Location, l.location: LocationDraft)
        Key "location_id" () "its id";
        Reference "function_id" Function(l.function)
            "the function it is in; `NA` for an address without a symbol" .or_na();
        Line "line" (l.line) "the line in the file; 0 or `NA` if unknown";
        ExactLine ".line_exact"
            (l.line, |exact| l.location.line = l.location.line.map(|line| exact_line(exact, line)))
            "`line`, if an integer cannot represent it" .optional();
        Line ".column" (l.column) "the column in the line; 0 if unknown" .optional_where(|_, l| l.column != 0);
        ExactLine ".column_exact"
            (Some(l.column), |exact| l.location.column = exact_line(exact, l.location.column))
            "`.column`, if an integer cannot represent it" .optional();
        Flag ".inlined" (l.inlined)
            "whether the frame was inlined into the next outer frame, so that both are the same machine code"
            .optional_where(|_, l| l.inlined);
        Text ".frame_type" (
            l.frame_type.map(|type_| type_.text()), |type_| l.location.frame_type = Some(FrameType::new(type_))
        )
            "the kind of frame: `r` for R code, `native` for machine code, or another text, such as \
             a value of OpenTelemetry's `profile.frame.type` (`cpython`, `jvm`, `kernel`)"
            .not_empty().optional();
        Reference ".mapping_id" Mapping(
            p.address_of(l).mapping.map(|m| m.row()), |row| l.address.mapping = Some(MappingId(row as u32))
        )
            "the mapping that the address is in" .or_na().optional();
        Hexadecimal ".address" (
            Some(p.address_of(l).address).filter(|&address| address != 0), |address| l.address.address = address
        )
            "the address in memory" .optional();
        Flag ".is_folded" (Some(p.address_of(l).is_folded), |folded| l.address.is_folded = folded)
            "whether other functions share the code, so that the function may be another one"
            .optional_where(|p, l| p.address_of(l).is_folded);
        NativeId ".native_id" (p.address_of(l).native_id, |id| l.address.native_id = Some(id))
            "the id in the file, unless ids are 1, 2, 3, ..." .optional();
    },
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
