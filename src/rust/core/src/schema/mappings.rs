//! `.mappings`: files that were mapped into memory.

use super::column;
use super::key::Key;
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::model::Mapping;
use std::borrow::Cow;

type Column = column::Column<Mapping>;

pub static MAPPINGS: RowTable<Mapping> = RowTable {
    info: TableInfo {
        key: &["mapping_id"],
        merged: true,
        attributes: Some(".mapping_attributes"),
        used_by: Some(("locations", ".mapping_id")),
        ..TableInfo::new(
            ".mappings",
            "a part of a file that was mapped into memory; the first row is the program itself",
        )
    },
    columns: &[
        Column::key(Key::Mapping, "its id"),
        Column::hexadecimal(
            "memory_start",
            "its first address",
            |_, m| Some(m.start),
            |m, address| m.start = address,
        ),
        Column::hexadecimal(
            "memory_limit",
            "the address after its last",
            |_, m| Some(m.limit),
            |m, address| m.limit = address,
        ),
        Column::hexadecimal(
            "file_offset",
            "where in the file it starts",
            |_, m| Some(m.offset),
            |m, offset| m.offset = offset,
        ),
        Column::text(
            "filename",
            "the file; empty if unknown",
            |_, m| Some(m.filename),
            |m, name| m.filename = name,
        )
        .not_na(),
        Column::text(
            "build_id",
            "what identifies this build of the file; empty if unknown",
            |_, m| Some(m.build_id),
            |m, id| m.build_id = id,
        )
        .not_na(),
        Column::flag(
            "has_functions",
            "whether the names of functions are final, so that they need not be looked up",
            |_, m| Some(m.symbols.functions),
            |m, has| m.symbols.functions = has,
        ),
        Column::flag(
            "has_filenames",
            "the same for the names of files",
            |_, m| Some(m.symbols.filenames),
            |m, has| m.symbols.filenames = has,
        ),
        Column::flag(
            "has_line_numbers",
            "the same of lines",
            |_, m| Some(m.symbols.line_numbers),
            |m, has| m.symbols.line_numbers = has,
        ),
        Column::flag(
            "has_inline_frames",
            "the same for inlined frames",
            |_, m| Some(m.symbols.inline_frames),
            |m, has| m.symbols.inline_frames = has,
        ),
        Column::native_id(
            "native_id",
            "the id in the file, unless ids are 1, 2, 3, ...",
            |_, m| m.native_id,
            |m, id| m.native_id = Some(id),
        )
        .optional(),
    ],
    rows: |profile| Ok(Cow::Borrowed(&profile.mappings)),
    blank: || Mapping::of_file(EMPTY, EMPTY),
    rules: &[],
    store: |reading, rows| {
        for mapping in rows {
            reading.profile.add_mapping(mapping)?;
        }
        Ok(())
    },
};
