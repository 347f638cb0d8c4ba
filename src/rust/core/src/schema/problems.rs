//! `.problems`: irregularities of the input. The table is written, but not read.

use super::columns::columns;
use super::row_table::RowTable;
use super::table::TableInfo;
use std::borrow::Cow;

/// A row of the table.
#[derive(Debug, Clone, Default)]
pub struct ProblemRow {
    /// The row of the source. `None` for version "1.0", which has no sources, omits the column.
    pub source: Option<Option<usize>>,
    pub line: Option<f64>,
    pub byte: Option<f64>,
    pub problem: &'static str,
    pub lost: bool,
    pub description: &'static str,
    pub text: String,
}

pub static PROBLEMS: RowTable<ProblemRow> = RowTable {
    info: TableInfo {
        about_input: true,
        ..TableInfo::new(
            ".problems",
            "an irregularity of the input, see [profile_problems()]",
        )
    },
    columns: columns! {
        (p, r: ProblemRow, r: ProblemRow)
        Id "source_id" (r.source?, _) "the first source of the input" .optional_where(|_, r| r.source.is_some());
        Double "line" (r.line) "the line, in text";
        Double "byte" (r.byte) "the offset, in binary data" .unit("bytes");
        OwnText "problem" (Some(r.problem), _) "the kind of problem";
        Flag "lost" (r.lost) "whether data were lost";
        OwnText "description" (Some(r.description), _) "what was found and how it was read";
        OwnText "text" (r.text) "the start of the text";
    },
    // Problems are not in the model; readers return them in addition to it.
    rows: |_| Ok(Cow::Borrowed(&[])),
    blank: ProblemRow::default,
    rules: &[],
    store: |_, _| Ok(()),
};
