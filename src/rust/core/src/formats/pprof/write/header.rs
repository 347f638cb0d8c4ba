//! Encodes the fields of the profile as a whole: period, times, comments and so on.

use crate::analysis::cpu_clock::CpuTime;
use crate::analysis::recorded::memory_comments;
use crate::analysis::sample_types::{WrittenType, is_rprof};
use crate::analysis::source_facts::{
    InexactFacts, default_type, durations, period, provenance, time, total_duration,
};
use crate::analysis::threads::thread_comments;
use crate::error::Result;
use crate::formats::losses::{LossKind, Losses};
use crate::formats::pprof::proto::{ValueType, profile as field};
use crate::limits::memory::TryGrow;
use crate::model::{Profile, Source};
use crate::protobuf::tables::StringTableBuilder;
use crate::protobuf::{encode, messages};

/// The last fields of the message. If several sources become one, their values are merged as in Go:
/// the earliest time, the longest period, the sum of the durations, and each text from the first
/// source.
pub fn encode<'a>(
    profile: &'a Profile,
    types: &[&WrittenType<'a>],
    aggregate: bool,
    texts: &mut StringTableBuilder<'a>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let sources = &profile.sources;
    let first = sources.first();
    for (number, text) in [
        (
            field::DROP_FRAMES,
            first.and_then(|s| s.drop_frames.as_deref()),
        ),
        (
            field::KEEP_FRAMES,
            first.and_then(|s| s.keep_frames.as_deref()),
        ),
    ] {
        put_text(&mut out, number, text, texts)?;
    }
    put_known(
        &mut out,
        field::TIME_NANOS,
        sources.iter().filter_map(time).min(),
    );
    put_known(
        &mut out,
        field::DURATION_NANOS,
        total_duration(&durations(profile)?),
    );
    if let Some((value, type_)) = longest_period(sources) {
        if let Some((name, unit)) = type_ {
            let type_ = value_type(texts, name, unit)?;
            encode::put_bytes(&mut out, field::PERIOD_TYPE, &type_)?;
        }
        put_known(&mut out, field::PERIOD, Some(value));
    }
    let comments = comments(profile, aggregate, texts)?;
    out.try_reserve((comments.len() + 3) * encode::MAX_VARINT_FIELD)?;
    encode::put_repeated(&mut out, field::COMMENT, comments.into_iter());
    let default = texts.index(first_type(profile, types)?)?;
    encode::put_uint(&mut out, field::DEFAULT_SAMPLE_TYPE, default);
    let doc_url = sources.iter().find_map(|source| source.doc_url.as_deref());
    put_text(&mut out, field::DOC_URL, doc_url, texts)?;
    Ok(out)
}

/// A value of 0 means unknown, and is not written.
fn put_known(out: &mut Vec<u8>, number: u32, value: Option<i64>) {
    if let Some(value) = value.filter(|value| *value != 0) {
        encode::put_int(out, number, value);
    }
}

fn put_text<'a>(
    out: &mut Vec<u8>,
    number: u32,
    text: Option<&'a str>,
    texts: &mut StringTableBuilder<'a>,
) -> Result<()> {
    if let Some(text) = text {
        encode::put_uint(out, number, texts.index(text)?);
    }
    Ok(())
}

/// The sample types.
pub fn types<'a>(
    types: &[&WrittenType<'a>],
    texts: &mut StringTableBuilder<'a>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for type_ in types {
        let type_ = value_type(texts, type_.name, type_.unit_of_value())?;
        encode::put_bytes(&mut out, field::SAMPLE_TYPE, &type_)?;
    }
    Ok(out)
}

fn value_type<'a>(
    texts: &mut StringTableBuilder<'a>,
    type_: &'a str,
    unit: &'a str,
) -> Result<Vec<u8>> {
    let value_type = ValueType {
        r#type: Some(texts.index(type_)? as i64),
        unit: Some(texts.index(unit)? as i64),
    };
    let mut out = Vec::new();
    messages::encode(&mut out, &value_type)?;
    Ok(out)
}

/// The longest period, if all sources have a period of the same type.
fn longest_period(sources: &[Source]) -> Option<(i64, Option<(&str, &str)>)> {
    let (first, others) = sources.split_first()?;
    let (mut longest, type_) = period(first)?;
    for source in others {
        let (value, _) = period(source).filter(|(_, other)| *other == type_)?;
        longest = longest.max(value);
    }
    Some((longest, type_))
}

/// The losses of information about sources. With `labels`, periods are stored in labels of samples.
pub fn losses(profile: &Profile, labels: bool) -> Result<Losses> {
    let durations = durations(profile)?;
    let inexact = InexactFacts::new(profile, &durations);
    let mut losses = Losses::default();
    if !labels {
        losses.add(LossKind::Period, inexact.periods);
    }
    losses.add(LossKind::Time, inexact.times);
    losses.add(LossKind::Duration, inexact.durations);
    if total_duration(&durations).is_none() {
        losses.add(LossKind::Duration, durations.iter().flatten().count());
    }
    Ok(losses)
}

/// The comments of the sources, the options of `Rprof()`, and the CPU time by the clock. Each is written once, except in a
/// file that is written as it was read.
fn comments<'a>(
    profile: &'a Profile,
    aggregate: bool,
    texts: &mut StringTableBuilder<'a>,
) -> Result<Vec<u64>> {
    let mut comments = Vec::new();
    for source in &profile.sources {
        for &comment in &source.comments {
            let text = texts.index_of_id(comment, profile.strings.get(comment))?;
            comments.try_push(text)?;
        }
        if is_rprof(source) {
            comments.try_push(texts.index(provenance(source)?)?)?;
        }
    }
    // The file has no attributes.
    let cpu = CpuTime::of(profile)?.and_then(|time| time.comments());
    for comment in cpu.into_iter().flatten() {
        comments.try_push(texts.index(comment)?)?;
    }
    for comment in memory_comments(profile) {
        comments.try_push(texts.index(comment)?)?;
    }
    for comment in thread_comments(profile)? {
        comments.try_push(texts.index(comment)?)?;
    }
    if !aggregate && profile.sources.len() == 1 {
        return Ok(comments);
    }
    let mut seen = Vec::new();
    seen.try_fill(texts.strings.len(), false)?;
    comments.retain(|&comment| !std::mem::replace(&mut seen[comment as usize], true));
    Ok(comments)
}

/// The sample type that a viewer should show first. Without it, pprof shows the last type.
fn first_type<'a>(profile: &'a Profile, types: &[&WrittenType<'a>]) -> Result<&'a str> {
    let rprof = profile.sources.iter().find(|source| is_rprof(source));
    let mut sources = rprof.into_iter().chain(&profile.sources);
    let type_ = sources.find_map(|source| default_type(source, types));
    Ok(type_.unwrap_or(""))
}
