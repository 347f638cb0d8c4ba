//! `.sample_types`, `.files` and `.comments`: the information about a source that may have several
//! items.

use super::columns::columns;
use super::input::NA;
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::limits::memory::{TryGrow, owned};
use crate::model::{Profile, SampleType, Source, SourceFile, StringId, ValueType};
use std::borrow::Cow;

/// The row of a source, and one of its items.
type Owned<T> = (usize, T);

pub static SAMPLE_TYPES: RowTable<Owned<SampleType>> = RowTable {
    info: TableInfo::new(
        ".sample_types",
        "a sample type of a source, also of one without samples, in the order of its file",
    ),
    columns: columns! {
        (p, t: Owned<SampleType>, t: Owned<SampleType>)
        Reference "source_id" Source(t.0) "the source";
        OwnText "type" (t.1.type_.name) "the type, as in `sample_values`" .not_na().not_empty();
        OwnText "unit" (t.1.type_.unit) "the unit, as in `sample_values`" .not_na();
        OwnText "recorded" (t.1.recorded)
            "the name of the type in the file; if two types have the same name, the unit is added \
             to the `type` of the second one"
            .not_na();
    },
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
    columns: columns! {
        (p, f: Owned<SourceFile>, f: FileDraft)
        Reference "source_id" Source(Some(f.0), |row| f.source = row) "the run";
        Integer "number" (i32::try_from(f.1.number).ok(), |number| f.file.number = number.unsigned_abs())
            "the number that stands for the file in the run" .not_na();
        Text "filename" (Some(f.1.filename), |name| f.file.filename = name) "the file" .not_na();
        // If the sample was removed, the line belongs to the next one.
        Id "sample_id" (Some(f.1.before).filter(|&before| before < p.samples.len()), |id| f.before = id)
            "the sample that follows the line; `NA` at the end";
    },
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
    columns: columns! {
        (p, c: Owned<StringId>, c: Owned<Option<StringId>>)
        Reference "source_id" Source(c.0) "the source";
        Text "comment" (Some(c.1), |comment| c.1 = Some(comment)) "the comment";
    },
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
