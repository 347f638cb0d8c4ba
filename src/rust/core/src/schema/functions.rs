//! `functions`: the functions that locations refer to.

use super::cells::exact_line;
use super::column;
use super::key::Key;
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::model::{Function, Names, UNKNOWN};
use std::borrow::Cow;

type Column = column::Column<Function, FunctionDraft>;

pub static FUNCTIONS: RowTable<Function, FunctionDraft> = RowTable {
    info: TableInfo {
        key: &["function_id"],
        merged: true,
        used_by: Some(("locations", "function_id")),
        ..TableInfo::new("functions", "a function in a file")
    },
    columns: &[
        Column::key(Key::Function, "its id"),
        Column::text(
            "name",
            "its name, as users know it",
            |_, f| Some(f.name),
            |f, name| f.function.name = name,
        )
        .not_na()
        .not_empty(),
        Column::text(
            "system_name",
            "its name in the machine code; for R functions it equals `name`",
            |_, f| Some(f.system_name),
            |f, name| f.function.system_name = name,
        )
        .not_na()
        .not_empty(),
        Column::text(
            "filename",
            "the file it is in; empty if unknown",
            |_, f| Some(f.filename),
            |f, name| f.function.filename = name,
        ),
        Column::line(
            "start_line",
            "the line where it starts; 0 if unknown",
            |_, f| Some(f.start_line),
            |f, line| f.function.start_line = line,
        )
        .not_na(),
        Column::exact_line(
            ".start_line_exact",
            "`start_line`, if an integer cannot represent it",
            |_, f| Some(f.start_line),
            |f, line| f.function.start_line = exact_line(line, f.function.start_line),
        )
        .optional(),
        Column::flag(
            ".has_name",
            "`FALSE` if the file does not contain it: `name` is then `system_name` or `<unknown>`",
            |_, f| Some(has_name(f)),
            |f, has| f.has_name = Some(has),
        )
        .optional_where(|_, f| !has_name(f)),
        // If the names differ, both were recorded; if they are equal, only `name` was recorded by default.
        Column::flag(
            ".has_system_name",
            "the same for `system_name`; without this column, a `system_name` that equals `name` is not written",
            |_, f| Some(has_system_name(f)),
            |f, has| f.has_system_name = Some(has),
        )
        .optional_where(|_, f| has_system_name(f) && f.name == f.system_name),
        Column::native_id(
            ".native_id",
            "the id in the file, unless ids are 1, 2, 3, ...",
            |_, f| f.native_id,
            |f, id| f.function.native_id = Some(id),
        )
        .optional(),
        Column::text(
            ".package",
            "the package that it belongs to, see `add_packages()`",
            |_, f| f.package,
            |f, name| f.function.package = Some(name),
        )
        .not_empty()
        .optional(),
        Column::text(
            ".package_from",
            "how `.package` is known, or, with `process`, that there is none",
            |_, f| f.package_from,
            |f, from| f.function.package_from = Some(from),
        )
        .optional(),
    ],
    rows: |profile| Ok(Cow::Borrowed(profile.functions.iter().as_slice())),
    blank: || FunctionDraft {
        function: Function::named(EMPTY, EMPTY),
        has_name: None,
        has_system_name: None,
    },
    rules: &[],
    store: |reading, rows| {
        let profile = &mut reading.profile;
        for draft in rows {
            let is_unknown = profile.strings.get(draft.function.name) == UNKNOWN;
            profile.functions.push(draft.finish(is_unknown))?;
        }
        Ok(())
    },
};

/// A function while it is read, and which names were recorded.
pub struct FunctionDraft {
    function: Function,
    has_name: Option<bool>,
    has_system_name: Option<bool>,
}

impl FunctionDraft {
    fn finish(self, is_unknown: bool) -> Function {
        let differ = self.function.name != self.function.system_name;
        let has_name = self.has_name != Some(false) || differ;
        let has_system_name = self.has_system_name == Some(true) || differ;
        let recorded = match (has_name, has_system_name) {
            (true, true) => Names::Both,
            (true, false) => Names::Name,
            (false, true) => Names::SystemName,
            (false, false) if is_unknown => Names::Neither,
            (false, false) => Names::Name,
        };
        Function {
            recorded,
            ..self.function
        }
    }
}

fn has_name(function: &Function) -> bool {
    matches!(function.recorded, Names::Name | Names::Both)
}

fn has_system_name(function: &Function) -> bool {
    matches!(function.recorded, Names::SystemName | Names::Both)
}
