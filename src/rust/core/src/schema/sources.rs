//! `sources`: the recorded runs. Lists of information about a run, such as its sample types, are in `source_lists.rs`.

use super::cells::exact_double;
use super::columns::columns;
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::message;
use crate::model::{
    Payload, Period, RprofOptions, Source, SourceKind, Strings, ValueType, inexact, nearest,
    seconds,
};
use std::borrow::Cow;

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
    columns: columns! {
        (p, s: Source, s.source: SourceDraft)
        Key "source_id" () "its id";
        OwnText "source_type" (Some(s.kind.as_str()), |kind| s.source.kind = SourceKind::from_owned(kind))
            "what recorded it: `rprof`, `pprof`, `otlp`, or another word" .not_na().not_empty();
        OwnText "source_uri" (s.uri) "the path of the file";
        Double "source_timestamp" (s.timestamp)
            "when the run began; for an Rprof file, which does not record this, the latest possible \
             time, see [read_rprof()]"
            .unit("seconds since 1970");
        // If the seconds were edited, they are used.
        Decimal ".time_nanos" (
            s.time, |time| s.source.time = Some(time).filter(|_| s.source.timestamp == Some(seconds(time)))
        )
            "the time stamp, if seconds cannot represent it exactly" .unit("nanoseconds since 1970").optional();
        Double ".period" (s.period.as_ref().map(|p| p.value), |period| s.period = Some(period))
            "the interval between two samples, such as 20000" .unit("`.period_unit`").optional();
        Decimal ".period_exact" (
            s.period.as_ref()?.exact,
            |exact| s.period_exact = s.period.and_then(|period| exact_double(exact, period))
        )
            "`.period`, if a double cannot represent it" .optional();
        OwnText ".period_type" (Some(&s.period.as_ref()?.type_.as_ref()?.name), |type_| s.period_type = Some(type_))
            "what the period counts, such as `cpu`" .optional_where(|_, s| s.period.is_some());
        OwnText ".period_unit" (Some(&s.period.as_ref()?.type_.as_ref()?.unit), |unit| s.period_unit = Some(unit))
            "the unit of the period, such as `microseconds`" .optional_where(|_, s| s.period.is_some());
        Double ".duration_nanos" (s.duration.map(|duration| duration as f64), |duration| {
            s.duration = Some(duration);
            s.source.duration = nearest(duration);
        })
            "how long the run took, below 2^63" .unit("nanoseconds").optional();
        Decimal ".duration_nanos_exact" (s.duration.and_then(inexact), |exact| {
            let exact = s.duration.and_then(|plain| exact_double(exact, plain));
            s.source.duration = exact.or(s.source.duration);
        })
            "`.duration_nanos`, if a double cannot represent it" .optional();
        OwnText ".default_type" (s.default_type) "the type of values that a viewer shows first" .optional();
        OwnText ".drop_frames" (s.drop_frames) "a regular expression for `drop` of [filter_profile()]" .optional();
        OwnText ".keep_frames" (s.keep_frames)
            "a regular expression of exceptions from `.drop_frames`" .optional();
        OwnText ".doc_url" (s.doc_url) "where such profiles are documented" .optional();
        HexDigits ".profile_id" (s.profile_id) "what identifies the profile, in OpenTelemetry" .optional();
        Reference ".scope_id" Scope(s.scope) "what recorded it" .or_na().optional();
        Count ".dropped_attributes_count" (s.dropped_attributes)
            "the number of attributes that the recorder omitted" .optional_where(|_, s| s.dropped_attributes > 0);
        OwnText ".original_payload_format" (
            Some(&s.payload.as_ref()?.format), |format| s.payload_format = Some(format)
        )
            "the format of `.original_payload`, such as `pprof`" .optional();
        Bytes ".original_payload" (Some(&s.payload.as_ref()?.bytes), |bytes| s.payload = Some(bytes))
            "the file from which the profile was made, in base64" .optional();
        Flag ".memory_profiling" (Some(s.options?.memory), |on| options(s).memory = on)
            "an option of `Rprof()`" .optional();
        Flag ".gc_profiling" (Some(s.options?.gc), |on| options(s).gc = on) "an option of `Rprof()`" .optional();
        Flag ".line_profiling" (Some(s.options?.line), |on| options(s).line = on) "an option of `Rprof()`" .optional();
    },
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
