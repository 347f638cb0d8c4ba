//! `sources`, the recorded runs, and what a run has several of: `.sample_types`, `.files` and
//! `.comments`.

use super::cells::exact_double;
use super::column::Column;
use super::input::NA;
use super::key::Key;
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::{
    Payload, Period, Profile, RprofOptions, SampleType, ScopeId, Source, SourceFile, SourceKind,
    StringId, Strings, ValueType, inexact, nearest, seconds,
};
use std::borrow::Cow;

type SourceColumn = Column<Source, SourceDraft>;
type TypeColumn = Column<Owned<SampleType>>;
type FileColumn = Column<Owned<SourceFile>, FileDraft>;
type CommentColumn = Column<Owned<StringId>, Owned<Option<StringId>>>;

const WHAT: &str = "sources";

/// A source as it is read: several columns make one fact of the model.
#[derive(Default)]
pub struct SourceDraft {
    source: Source,
    period: Option<f64>,
    period_exact: Option<i64>,
    period_type: Option<String>,
    period_unit: Option<String>,
    duration: Option<f64>,
    payload_format: Option<String>,
    payload: Option<Vec<u8>>,
}

pub static SOURCES: RowTable<Source, SourceDraft> = RowTable {
    info: TableInfo {
        key: &["source_id"],
        used_by: Some(("samples", "source_id")),
        ..TableInfo::new(
            "sources",
            "a recorded run: a file, or a block of an Rprof file written with `append = TRUE`",
        )
    },
    columns: &[
        SourceColumn::key(Key::Source, "its id"),
        SourceColumn::own_text(
            "source_type",
            "what recorded it: `rprof`, `pprof`, `otlp`, or another word",
            |s| Some(s.kind.as_str()),
            |s, kind| s.source.kind = SourceKind::of_owned(kind),
        )
        .not_na()
        .not_empty(),
        SourceColumn::own_text(
            "source_uri",
            "the path of the file",
            |s| s.uri.as_deref(),
            |s, uri| s.source.uri = Some(uri),
        ),
        SourceColumn::double(
            "source_timestamp",
            "when the run began; of an Rprof file, which does not say so, the latest time at \
             which it can have begun, see [read_rprof()]",
            |_, s| s.timestamp,
            |s, time| s.source.timestamp = Some(time),
        )
        .unit("seconds since 1970"),
        SourceColumn::decimal(
            ".time_nanos",
            "the time stamp, if seconds cannot represent it exactly",
            |_, s| s.time,
            // Seconds that were edited count.
            |s, time| {
                s.source.time = Some(time).filter(|_| s.source.timestamp == Some(seconds(time)))
            },
        )
        .unit("nanoseconds since 1970")
        .optional(),
        SourceColumn::double(
            ".period",
            "the interval between two samples, such as 20000",
            |_, s| s.period.as_ref().map(|p| p.value),
            |s, period| s.period = Some(period),
        )
        .unit("`.period_unit`")
        .optional(),
        SourceColumn::decimal(
            ".period_exact",
            "`.period`, if a double cannot represent it",
            |_, s| s.period.as_ref()?.exact,
            |s, exact| s.period_exact = s.period.and_then(|period| exact_double(exact, period)),
        )
        .optional(),
        SourceColumn::own_text(
            ".period_type",
            "what the period counts, such as `cpu`",
            |s| Some(&s.period.as_ref()?.type_.as_ref()?.name),
            |s, type_| s.period_type = Some(type_),
        )
        .optional_where(|_, s| s.period.is_some()),
        SourceColumn::own_text(
            ".period_unit",
            "the unit of the period, such as `microseconds`",
            |s| Some(&s.period.as_ref()?.type_.as_ref()?.unit),
            |s, unit| s.period_unit = Some(unit),
        )
        .optional_where(|_, s| s.period.is_some()),
        SourceColumn::double(
            ".duration_nanos",
            "how long the run took, below 2^63",
            |_, s| s.duration.map(|duration| duration as f64),
            |s, duration| {
                s.duration = Some(duration);
                s.source.duration = nearest(duration);
            },
        )
        .unit("nanoseconds")
        .optional(),
        SourceColumn::decimal(
            ".duration_nanos_exact",
            "`.duration_nanos`, if a double cannot represent it",
            |_, s| s.duration.and_then(inexact),
            |s, exact| {
                let exact = s.duration.and_then(|plain| exact_double(exact, plain));
                s.source.duration = exact.or(s.source.duration);
            },
        )
        .optional(),
        SourceColumn::own_text(
            ".default_type",
            "the type of values that a viewer shows first",
            |s| s.default_type.as_deref(),
            |s, type_| s.source.default_type = Some(type_),
        )
        .optional(),
        SourceColumn::own_text(
            ".drop_frames",
            "a regular expression for [drop_frames()]",
            |s| s.drop_frames.as_deref(),
            |s, expression| s.source.drop_frames = Some(expression),
        )
        .optional(),
        SourceColumn::own_text(
            ".keep_frames",
            "a regular expression of exceptions from `.drop_frames`",
            |s| s.keep_frames.as_deref(),
            |s, expression| s.source.keep_frames = Some(expression),
        )
        .optional(),
        SourceColumn::own_text(
            ".doc_url",
            "where such profiles are documented",
            |s| s.doc_url.as_deref(),
            |s, url| s.source.doc_url = Some(url),
        )
        .optional(),
        SourceColumn::hex_digits(
            ".profile_id",
            "what identifies the profile, in OpenTelemetry",
            |s| s.profile_id.as_deref(),
            |s, id| s.source.profile_id = Some(id),
        )
        .optional(),
        SourceColumn::reference(
            ".scope_id",
            Key::Scope,
            "what recorded it",
            |_, s| s.scope.map(|scope| scope.row()),
            |s, row| s.source.scope = Some(ScopeId(row as u32)),
        )
        .or_na()
        .optional(),
        SourceColumn::count(
            ".dropped_attributes_count",
            "the number of attributes that the recorder omitted",
            |_, s| Some(s.dropped_attributes),
            |s, count| s.source.dropped_attributes = count,
        )
        .optional_where(|_, s| s.dropped_attributes > 0),
        SourceColumn::own_text(
            ".original_payload_format",
            "the format of `.original_payload`, such as `pprof`",
            |s| Some(&s.payload.as_ref()?.format),
            |s, format| s.payload_format = Some(format),
        )
        .optional(),
        SourceColumn::bytes(
            ".original_payload",
            "the file from which the profile was made, in base64",
            |s| Some(&s.payload.as_ref()?.bytes),
            |s, bytes| s.payload = Some(bytes),
        )
        .optional(),
        SourceColumn::flag(
            ".memory_profiling",
            "an option of `Rprof()`",
            |_, s| Some(s.options?.memory),
            |s, on| options(s).memory = on,
        )
        .optional(),
        SourceColumn::flag(
            ".gc_profiling",
            "an option of `Rprof()`",
            |_, s| Some(s.options?.gc),
            |s, on| options(s).gc = on,
        )
        .optional(),
        SourceColumn::flag(
            ".line_profiling",
            "an option of `Rprof()`",
            |_, s| Some(s.options?.line),
            |s, on| options(s).line = on,
        )
        .optional(),
    ],
    rows: |profile| Ok(Cow::Borrowed(&profile.sources)),
    blank: SourceDraft::default,
    rules: &[duration_fits, payload_and_format],
    store: |reading, rows| {
        for draft in rows {
            reading.profile.add_source(draft.finish())?;
        }
        Ok(())
    },
};

fn options(draft: &mut SourceDraft) -> &mut RprofOptions {
    draft.source.options.get_or_insert_default()
}

type Broken = Option<(&'static str, String)>;

fn duration_fits(draft: &SourceDraft, _: &Strings) -> Result<Broken> {
    let broken = draft.duration.is_some() && draft.source.duration.is_none();
    let rule = || message!("must be nanoseconds below 2^63, or NA");
    Ok(broken.then(|| (".duration_nanos", rule())))
}

fn payload_and_format(draft: &SourceDraft, _: &Strings) -> Result<Broken> {
    let broken = draft.payload.is_some() != draft.payload_format.is_some();
    let rule = || message!("must be given if and only if `.original_payload_format` is");
    Ok(broken.then(|| (".original_payload", rule())))
}

impl SourceDraft {
    fn finish(self) -> Source {
        let unit = self.period_unit.unwrap_or_default();
        let type_ = self.period_type.map(|name| ValueType { name, unit });
        let payload = self.payload_format.zip(self.payload);
        Source {
            period: self.period.map(|value| Period {
                value,
                exact: self.period_exact,
                type_,
            }),
            payload: payload.map(|(format, bytes)| Payload { format, bytes }),
            ..self.source
        }
    }
}

/// What a source has several of, with the row of the source.
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
            "what the file calls the type: if it has two of one name, `type` of the second has \
             the unit added",
            |(_, t)| Some(&t.recorded),
            |(_, t), recorded| t.recorded = recorded,
        )
        .not_na(),
    ],
    rows: |profile| of_sources(profile, |source| &source.types, copy_of_type),
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
            types.try_push(type_, "sample types")?;
        }
        Ok(())
    },
};

/// A `#File` line as it is read, with the id of the sample that it stands before.
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
        // A sample that was filtered away leaves its file to the next.
        FileColumn::id(
            "sample_id",
            "the sample that the line stands before; `NA` at the end",
            |p, (_, f)| Some(f.before).filter(|&before| before < p.samples.len()),
            |f, id| f.before = id,
        ),
    ],
    rows: |profile| of_sources(profile, |source| &source.files, |file| Ok(*file)),
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
            files.try_push(file, "files")?;
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
    rows: |profile| of_sources(profile, |source| &source.comments, |&comment| Ok(comment)),
    blank: || (0, None),
    rules: &[],
    store: |reading, rows| {
        for (source, comment) in rows {
            if let Some(comment) = comment {
                let comments = &mut reading.profile.sources[source].comments;
                comments.try_push(comment, "comments")?;
            }
        }
        Ok(())
    },
};

/// What all sources have, one after the other.
fn of_sources<'p, T: Clone>(
    profile: &Profile,
    list: impl Fn(&Source) -> &Vec<T>,
    copy: fn(&T) -> Result<T>,
) -> Result<Cow<'p, [Owned<T>]>> {
    let mut rows = Vec::new();
    for (row, source) in profile.sources.iter().enumerate() {
        for item in list(source) {
            rows.try_push((row, copy(item)?), WHAT)?;
        }
    }
    Ok(Cow::Owned(rows))
}

fn copy_of_type(type_: &SampleType) -> Result<SampleType> {
    Ok(SampleType {
        type_: ValueType {
            name: owned(&type_.type_.name, WHAT)?,
            unit: owned(&type_.type_.unit, WHAT)?,
        },
        recorded: owned(&type_.recorded, WHAT)?,
    })
}
