//! `.mappings`: files that were mapped into memory.

use super::columns::columns;
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::model::Mapping;
use std::borrow::Cow;

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
    columns: columns! {
        (p, m: Mapping, m: Mapping)
        Key "mapping_id" () "its id";
        Hexadecimal "memory_start" (m.start) "its first address";
        Hexadecimal "memory_limit" (m.limit) "the address after its last";
        Hexadecimal "file_offset" (m.offset) "where in the file it starts";
        Text "filename" (m.filename) "the file; empty if unknown" .not_na();
        Text "build_id" (m.build_id) "what identifies this build of the file; empty if unknown" .not_na();
        Flag "has_functions" (m.symbols.functions)
            "whether the names of functions are final, so that they need not be looked up";
        Flag "has_filenames" (m.symbols.filenames) "the same for the names of files";
        Flag "has_line_numbers" (m.symbols.line_numbers) "the same of lines";
        Flag "has_inline_frames" (m.symbols.inline_frames) "the same for inlined frames";
        NativeId "native_id" (m.native_id) "the id in the file, unless ids are 1, 2, 3, ..." .optional();
    },
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
