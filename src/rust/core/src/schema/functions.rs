//! `functions`: the functions that locations refer to.

use super::cells::exact_line;
use super::columns::columns;
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::model::{Function, Names, UNKNOWN};
use std::borrow::Cow;

pub static FUNCTIONS: RowTable<Function, FunctionDraft> = RowTable {
    info: TableInfo {
        key: &["function_id"],
        merged: true,
        used_by: Some(("locations", "function_id")),
        ..TableInfo::new("functions", "a function in a file")
    },
    columns: columns! {
        (p, f: Function, f.function: FunctionDraft)
        Key "function_id" () "its id";
        Text "name" (f.name) "its name, as users know it" .not_na().not_empty();
        Text "system_name" (f.system_name)
            "its name in the machine code; for R functions what the call says, such as `self$run` for `Counter$run`" .not_na().not_empty();
        Text "filename" (f.filename) "the file it is in; empty if unknown";
        Line "start_line" (f.start_line) "the line where it starts; 0 if unknown" .not_na();
        ExactLine ".start_line_exact"
            (Some(f.start_line), |line| f.function.start_line = exact_line(line, f.function.start_line))
            "`start_line`, if an integer cannot represent it" .optional();
        Flag ".has_name" (Some(has_name(f)), |has| f.has_name = Some(has))
            "`FALSE` if the file does not contain it: `name` is then `system_name` or `<unknown>`"
            .optional_where(|_, f| !has_name(f));
        // If the names differ, both were recorded; if they are equal, only `name` was recorded by default.
        Flag ".has_system_name" (Some(has_system_name(f)), |has| f.has_system_name = Some(has))
            "the same for `system_name`; without this column, a `system_name` that equals `name` is not written"
            .optional_where(|_, f| has_system_name(f) && f.name == f.system_name);
        NativeId ".native_id" (f.native_id) "the id in the file, unless ids are 1, 2, 3, ..." .optional();
        Text ".package" (f.package) "the package that it belongs to, see `add_packages()`" .not_empty().optional();
        Text ".package_from" (f.package_from)
            "how `.package` is known, or, with `process`, that there is none" .optional();
    },
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
