//! `sources`: the recorded runs. Lists of information about a run, such as its sample types, are in `source_lists.rs`.

use super::cells::exact_double;
use super::column::Column;
use super::key::Key;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::message;
use crate::model::{
    Payload, Period, RprofOptions, ScopeId, Source, SourceKind, Strings, ValueType, inexact,
    nearest, seconds,
};
use std::borrow::Cow;

type SourceColumn = Column<Source, SourceDraft>;

/// A source while it is read: some fields of the model are composed of several columns.
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
            |s, kind| s.source.kind = SourceKind::from_owned(kind),
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
            "when the run began; for an Rprof file, which does not record this, the latest possible \
             time, see [read_rprof()]",
            |_, s| s.timestamp,
            |s, time| s.source.timestamp = Some(time),
        )
        .unit("seconds since 1970"),
        SourceColumn::decimal(
            ".time_nanos",
            "the time stamp, if seconds cannot represent it exactly",
            |_, s| s.time,
            // If the seconds were edited, they are used.
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
            "a regular expression for `drop` of [filter_profile()]",
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
