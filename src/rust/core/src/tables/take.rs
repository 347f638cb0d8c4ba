//! Takes in functions and locations that were checked, row by row: a row of the
//! model is the row of its table.

use super::exact;
use super::ids::Ids;
use super::{FunctionFacts, Functions, LocationFacts, Locations, NA, Text};
use crate::error::Result;
use crate::model::{
    Address, Function, FunctionId, Location, MappingId, Names, Profile, UNKNOWN, next_row,
};

pub fn functions(profile: &mut Profile, table: &Functions, facts: &FunctionFacts) -> Result<()> {
    const TABLE: &str = "functions";
    for row in 0..table.function_id.len() {
        let mut intern = |text: &Text| profile.strings.intern(text.get(row).unwrap_or(""));
        let name = intern(&table.name)?;
        let system_name = intern(&table.system_name)?;
        let filename = intern(&table.filename)?;
        let equal = name == system_name;
        let has_name = exact::flag(facts.has_name, row) != Some(false) || !equal;
        let has_system_name = exact::flag(facts.has_system_name, row) == Some(true) || !equal;
        let recorded = match (has_name, has_system_name) {
            (true, true) => Names::Both,
            (true, false) => Names::Name,
            (false, true) => Names::SystemName,
            (false, false) if profile.strings.get(name) == UNKNOWN => Names::Neither,
            (false, false) => Names::Name,
        };
        let exact = exact::decimal(
            TABLE,
            ".start_line_exact",
            facts.start_line_exact.as_ref(),
            row,
        )?;
        profile.functions.push(Function {
            name,
            system_name,
            filename,
            start_line: exact::of_integer(exact, table.start_line[row]),
            recorded,
            native_id: exact::native_id(TABLE, ".native_id", facts.native_id.as_ref(), row)?,
        })?;
    }
    Ok(())
}

pub fn locations(
    profile: &mut Profile,
    table: &Locations,
    functions: &Ids,
    facts: &LocationFacts,
    mappings: Option<&Ids>,
) -> Result<()> {
    const TABLE: &str = "locations";
    for row in 0..table.location_id.len() {
        let line = table.line[row];
        let line_exact = exact::decimal(TABLE, ".line_exact", facts.line_exact.as_ref(), row)?;
        let column = facts.column.map_or(0, |column| column[row].max(0));
        let column_exact =
            exact::decimal(TABLE, ".column_exact", facts.column_exact.as_ref(), row)?;
        let mapping = facts.mapping_id.and_then(|ids| mappings?.row(ids[row]));
        let mapping = mapping.map(|row| next_row(row, "mappings").map(MappingId));
        let address = Address {
            mapping: mapping.transpose()?,
            address: exact::hexadecimal(TABLE, ".address", facts.address.as_ref(), row)?,
            is_folded: exact::flag(facts.is_folded, row) == Some(true),
            native_id: exact::native_id(TABLE, ".native_id", facts.native_id.as_ref(), row)?,
        };
        let frame_type = facts.frame_type.as_ref().and_then(|t| t.get(row));
        let frame_type = profile.frame_type(frame_type.unwrap_or(""))?;
        let function = functions.row(table.function_id[row]);
        let function = function.map(|row| next_row(row, "functions").map(FunctionId));
        let address = profile.intern_address(address)?;
        profile.locations.push(Location {
            function: function.transpose()?,
            line: (line != NA).then(|| exact::of_integer(line_exact, line)),
            column: exact::of_integer(column_exact, column),
            address,
            inlined: exact::flag(facts.inlined, row) == Some(true),
            frame_type,
        })?;
    }
    Ok(())
}
