//! What is written about the profile as a whole: period, times, comments.

use super::columns::{Column, is_rprof, whole};
use super::numbers::Texts;
use super::proto::{profile as field, value_type as value};
use super::sources;
use super::wire;
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::model::{Period, Profile, Source};

const OUTPUT: &str = "the output";

/// The last fields of the message.
pub fn encode<'a>(
    profile: &'a Profile,
    columns: &[Column<'a>],
    texts: &mut Texts<'a>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let first = profile.sources.first();
    let time = first.and_then(|source| integer(source.timestamp? * 1e9));
    if let Some(time) = time {
        wire::put_int(&mut out, field::TIME_NANOS, time);
    }
    if let Some(duration) = duration(profile) {
        wire::put_int(&mut out, field::DURATION_NANOS, duration);
    }
    if let Some((value, type_, unit)) = period(&profile.sources) {
        let type_ = value_type(texts, type_, unit)?;
        wire::put_head(&mut out, field::PERIOD_TYPE, type_.len());
        out.try_extend(&type_, OUTPUT)?;
        wire::put_int(&mut out, field::PERIOD, value);
    }
    let comments = comments(&profile.sources, texts)?;
    out.try_reserve((comments.len() + 2) * wire::LONGEST_FIELD)
        .map_err(|_| Error::Memory(OUTPUT))?;
    wire::put_repeated(&mut out, field::COMMENT, comments.into_iter());
    let default = texts.of(default_type(profile, columns))?;
    wire::put_uint(&mut out, field::DEFAULT_SAMPLE_TYPE, default);
    Ok(out)
}

pub fn value_type<'a>(texts: &mut Texts<'a>, type_: &'a str, unit: &'a str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(2 * wire::LONGEST_FIELD);
    wire::put_uint(&mut out, value::TYPE, texts.of(type_)?);
    wire::put_uint(&mut out, value::UNIT, texts.of(unit)?);
    Ok(out)
}

/// The nearest integer, where there is one.
fn integer(value: f64) -> Option<i64> {
    whole(value.round())
}

/// The period on which all sources agree. Rprof counts microseconds, pprof's
/// own profiles nanoseconds.
fn period(sources: &[Source]) -> Option<(i64, &str, &str)> {
    fn of(source: &Source) -> Option<(i64, &str, &str)> {
        let period = source.period.as_ref()?;
        match period.nanoseconds() {
            Some(time) if is_rprof(source) => Some((integer(time)?, &period.type_, "nanoseconds")),
            _ => Some((integer(period.value)?, &period.type_, &period.unit)),
        }
    }
    let (first, others) = sources.split_first()?;
    let first = of(first)?;
    let agree = others.iter().all(|source| of(source) == Some(first));
    agree.then_some(first)
}

/// The sum over the sources; for Rprof, which does not record it, the time that
/// its samples stand for.
pub fn duration(profile: &Profile) -> Option<i64> {
    let mut counts = vec![0.0; profile.sources.len()];
    if let Some(values) = profile.counts() {
        for (value, source) in values.column.iter().zip(&profile.samples.source) {
            counts[source.row()] += if value.is_nan() { 0.0 } else { *value };
        }
    }
    let mut durations = profile.sources.iter().zip(counts).filter_map(|(s, count)| {
        let period = s.period.as_ref().filter(|_| is_rprof(s));
        s.duration
            .or_else(|| integer(count * period?.nanoseconds()?))
    });
    let first = durations.next()?;
    Some(durations.fold(first, i64::saturating_add))
}

/// The comments of the sources, each once, and what `Rprof()` was asked for.
fn comments<'a>(sources: &'a [Source], texts: &mut Texts<'a>) -> Result<Vec<u64>> {
    let mut comments = Vec::new();
    for source in sources {
        for comment in &source.comments {
            comments.try_push(texts.of(comment.as_str())?, OUTPUT)?;
        }
        if is_rprof(source) {
            comments.try_push(texts.of(provenance(source))?, OUTPUT)?;
        }
    }
    let mut seen = Vec::new();
    seen.try_fill(texts.texts.len(), false, OUTPUT)?;
    comments.retain(|&comment| !std::mem::replace(&mut seen[comment as usize], true));
    Ok(comments)
}

/// Such as `Rprof: Rprof.out, 20000 us, memory gc line`.
pub fn provenance(source: &Source) -> String {
    let mut parts = Vec::new();
    parts.extend(source.uri.clone());
    if let Some(time) = source.period.as_ref().and_then(Period::nanoseconds) {
        parts.push(format!("{} us", time / 1e3));
    }
    let options = sources::words(source.options.unwrap_or_default());
    if !options.is_empty() {
        parts.push(options);
    }
    format!("Rprof: {}", parts.join(", "))
}

/// What a viewer should show first. Without it pprof shows the last type.
fn default_type<'a>(profile: &'a Profile, columns: &[Column<'a>]) -> &'a str {
    if profile.sources.iter().any(is_rprof) {
        let time = columns.iter().find(|column| column.name == "cpu");
        return time.or(columns.first()).map_or("", |column| column.name);
    }
    let mut defaults = profile.sources.iter().map(|s| s.default_type.as_deref());
    defaults.find_map(|default| default).unwrap_or("")
}
