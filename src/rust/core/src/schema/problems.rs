//! `.problems`: irregularities of the input. The table is written, but not read.

use super::column;
use super::row_table::RowTable;
use super::table::TableInfo;
use std::borrow::Cow;

type Column = column::Column<ProblemRow>;

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
    columns: &[
        Column::id(
            "source_id",
            "the first source of the input",
            |_, p| p.source?,
            |_, _| {},
        )
        .optional_where(|_, p| p.source.is_some()),
        Column::double("line", "the line, in text", |_, p| p.line, |_, _| {}),
        Column::double(
            "byte",
            "the offset, in binary data",
            |_, p| p.byte,
            |_, _| {},
        )
        .unit("bytes"),
        Column::own_text(
            "problem",
            "the kind of problem",
            |p| Some(p.problem),
            |_, _| {},
        ),
        Column::flag(
            "lost",
            "whether data were lost",
            |_, p| Some(p.lost),
            |_, _| {},
        ),
        Column::own_text(
            "description",
            "what was found and how it was read",
            |p| Some(p.description),
            |_, _| {},
        ),
        Column::own_text(
            "text",
            "the start of the text",
            |p| Some(&p.text),
            |_, _| {},
        ),
    ],
    // Problems are not in the model; readers return them in addition to it.
    rows: |_| Ok(Cow::Borrowed(&[])),
    blank: ProblemRow::default,
    rules: &[],
    store: |_, _| Ok(()),
};
