//! `.sample_types`, `.files` and `.comments`: the information about a source that may have several
//! items.

use super::column::Column;
use super::input::NA;
use super::key::Key;
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::limits::memory::{TryGrow, owned};
use crate::model::{Profile, SampleType, Source, SourceFile, StringId, ValueType};
use std::borrow::Cow;

type TypeColumn = Column<Owned<SampleType>>;
type FileColumn = Column<Owned<SourceFile>, FileDraft>;
type CommentColumn = Column<Owned<StringId>, Owned<Option<StringId>>>;

/// The row of a source, and one of its items.
type Owned<T> = (usize, T);

pub static SAMPLE_TYPES: RowTable<Owned<SampleType>> = RowTable {
    info: TableInfo::new(
        ".sample_types",
        "a sample type of a source, also of one without samples, in the order of its file",
    ),
    columns: &[
        TypeColumn::reference(
            "source_id",
            Key::Source,
            "the source",
            |_, (source, _)| Some(*source),
            |(source, _), row| *source = row,
        ),
        TypeColumn::own_text(
            "type",
            "the type, as in `sample_values`",
            |(_, t)| Some(&t.type_.name),
            |(_, t), name| t.type_.name = name,
        )
        .not_na()
        .not_empty(),
        TypeColumn::own_text(
            "unit",
            "the unit, as in `sample_values`",
            |(_, t)| Some(&t.type_.unit),
            |(_, t), unit| t.type_.unit = unit,
        )
        .not_na(),
        TypeColumn::own_text(
            "recorded",
            "the name of the type in the file; if two types have the same name, the unit is added \
             to the `type` of the second one",
            |(_, t)| Some(&t.recorded),
            |(_, t), recorded| t.recorded = recorded,
        )
        .not_na(),
    ],
    rows: |profile| rows_of_sources(profile, |source| &source.types, copy_of_type),
    blank: || {
        let type_ = SampleType {
            type_: ValueType::default(),
            recorded: String::new(),
        };
        (0, type_)
    },
    rules: &[],
    store: |reading, rows| {
        for (source, type_) in rows {
            let types = &mut reading.profile.sources[source].types;
            types.try_push(type_)?;
        }
        Ok(())
    },
};

/// A `#File` line while it is read, with the id of the sample that follows it.
pub struct FileDraft {
    source: usize,
    file: SourceFile,
    before: i32,
}

pub static FILES: RowTable<Owned<SourceFile>, FileDraft> = RowTable {
    info: TableInfo::new(".files", "a `#File` line of an Rprof run"),
    columns: &[
        FileColumn::reference(
            "source_id",
            Key::Source,
            "the run",
            |_, (source, _)| Some(*source),
            |f, row| f.source = row,
        ),
        FileColumn::integer(
            "number",
            "the number that stands for the file in the run",
            |_, (_, f)| i32::try_from(f.number).ok(),
            |f, number| f.file.number = number.unsigned_abs(),
        )
        .not_na(),
        FileColumn::text(
            "filename",
            "the file",
            |_, (_, f)| Some(f.filename),
            |f, name| f.file.filename = name,
        )
        .not_na(),
        // If the sample was removed, the line belongs to the next one.
        FileColumn::id(
            "sample_id",
            "the sample that follows the line; `NA` at the end",
            |p, (_, f)| Some(f.before).filter(|&before| before < p.samples.len()),
            |f, id| f.before = id,
        ),
    ],
    rows: |profile| rows_of_sources(profile, |source| &source.files, |file| Ok(*file)),
    blank: || FileDraft {
        source: 0,
        file: SourceFile {
            number: 0,
            filename: EMPTY,
            before: 0,
        },
        before: NA,
    },
    rules: &[],
    store: |reading, rows| {
        for draft in rows {
            let file = SourceFile {
                before: reading.sample_at_or_after(draft.before),
                ..draft.file
            };
            let files = &mut reading.profile.sources[draft.source].files;
            files.try_push(file)?;
        }
        Ok(())
    },
};

pub static COMMENTS: RowTable<Owned<StringId>, Owned<Option<StringId>>> = RowTable {
    info: TableInfo::new(".comments", "a comment of a source"),
    columns: &[
        CommentColumn::reference(
            "source_id",
            Key::Source,
            "the source",
            |_, (source, _)| Some(*source),
            |(source, _), row| *source = row,
        ),
        CommentColumn::text(
            "comment",
            "the comment",
            |_, (_, comment)| Some(*comment),
            |(_, own), comment| *own = Some(comment),
        ),
    ],
    rows: |profile| rows_of_sources(profile, |source| &source.comments, |&comment| Ok(comment)),
    blank: || (0, None),
    rules: &[],
    store: |reading, rows| {
        for (source, comment) in rows {
            if let Some(comment) = comment {
                let comments = &mut reading.profile.sources[source].comments;
                comments.try_push(comment)?;
            }
        }
        Ok(())
    },
};

/// The items that `list` returns, of all sources.
fn rows_of_sources<'p, T: Clone>(
    profile: &Profile,
    list: impl Fn(&Source) -> &Vec<T>,
    copy: fn(&T) -> Result<T>,
) -> Result<Cow<'p, [Owned<T>]>> {
    let mut rows = Vec::new();
    for (row, source) in profile.sources.iter().enumerate() {
        for item in list(source) {
            rows.try_push((row, copy(item)?))?;
        }
    }
    Ok(Cow::Owned(rows))
}

fn copy_of_type(type_: &SampleType) -> Result<SampleType> {
    Ok(SampleType {
        type_: ValueType {
            name: owned(&type_.type_.name)?,
            unit: owned(&type_.type_.unit)?,
        },
        recorded: owned(&type_.recorded)?,
    })
}
