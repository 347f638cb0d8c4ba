//! The metadata of a message: all fields of profiles except the samples, and scopes and resources.

use super::attributes::{AttributeList, AttributeTable, model_value};
use super::fields::{put_indices, put_unless_0};
use super::forms::{Form, WrittenPeriod};
use super::samples::Observed;
use crate::analysis::sample_types::is_rprof;
use crate::analysis::source_facts::{options_text, period, time};
use crate::attribute_value::AnyValue;
use crate::error::{Error, Result};
use crate::formats::losses::LossKind;
use crate::formats::message::LARGEST;
use crate::formats::otlp::any_value;
use crate::formats::otlp::proto::{
    entity_ref, keys, profile as field, resource, scope, value_type,
};
use crate::limits::memory::{TryAdd, TryCollect, TryGrow, owned};
use crate::message;
use crate::model::{Attribute, Profile, Resource, Scope, Source, StringId};
use crate::protobuf::encode::{self, put_bytes, put_message};
use crate::text::decoded;
use data_encoding::HEXLOWER_PERMISSIVE;
use foldhash::fast::RandomState;
use std::collections::HashSet;

const PROFILE_ID: usize = 16;

/// What all profiles of a source have in common, unless its [`Form`] has something else.
pub struct Common<'a> {
    /// All other fields, except the sample type and the samples.
    fields: Vec<u8>,
    period: Option<WrittenPeriod<'a>>,
    attributes: Vec<u64>,
}

impl<'a> Common<'a> {
    /// Appends it to a profile.
    pub fn put(
        &self,
        form: Option<&Form<'a>>,
        body: &mut Vec<u8>,
        table: &mut AttributeTable<'a>,
    ) -> Result<()> {
        body.try_extend(&self.fields)?;
        if let Some((value, type_)) = form.and_then(|form| form.period).or(self.period) {
            if let Some((name, unit)) = type_ {
                put_type(body, field::PERIOD_TYPE, name, unit, table)?;
            }
            put_unless_0(body, field::PERIOD, value as u64);
        }
        let mut list = AttributeList::default();
        for (key, value) in form.iter().flat_map(|form| &form.attributes) {
            list.add(table, key, value)?;
        }
        list.indices.try_extend(&self.attributes)?;
        put_indices(body, field::ATTRIBUTE_INDICES, &list.indices)
    }
}

/// Collects what the profiles of a source have in common. `row`: the index of the source; `duration`: its duration in
/// nanoseconds.
pub fn common<'a>(
    profile: &'a Profile,
    row: usize,
    duration: Option<i64>,
    observed: &Observed,
    table: &mut AttributeTable<'a>,
    has_payload: bool,
) -> Result<Common<'a>> {
    let source = &profile.sources[row];
    let mut out = Vec::new();
    let (time, duration, widened) = times(source, row, duration, observed, has_payload)?;
    table
        .losses
        .add(LossKind::WidenedTime, usize::from(widened));
    if time != 0 {
        encode::put_fixed64(&mut out, field::TIME_UNIX_NANO, time);
    }
    put_unless_0(&mut out, field::DURATION_NANO, duration);
    if let Some(digits) = &source.profile_id {
        let id = decoded(&HEXLOWER_PERMISSIVE, digits.as_bytes())?;
        let id = id.filter(|id| id.len() == PROFILE_ID).ok_or_else(|| {
            Error::Lossy(message!(
                "Source {} has the profile id `{digits}`; OpenTelemetry has ids of {PROFILE_ID} \
                 bytes.",
                row + 1
            ))
        })?;
        put_bytes(&mut out, field::PROFILE_ID, &id)?;
    }
    let dropped = u64::from(source.dropped_attributes);
    put_unless_0(&mut out, field::DROPPED_ATTRIBUTES_COUNT, dropped);
    let comments = source.comments.iter().map(|&id| profile.strings.get(id));
    if comments.map(str::len).sum::<usize>() > LARGEST {
        return Err(Error::Lossy(message!(
            "The comments of source {} exceed 2 GiB, the limit of protocol buffer \
             messages.",
            row + 1
        )));
    }
    Ok(Common {
        fields: out,
        period: period(source),
        attributes: attributes(profile, source, table)?,
    })
}

/// Returns the start and the duration of a source. The timestamps of samples must lie in that
/// range, so it is widened if necessary; also returns whether recorded values were changed.
fn times(
    source: &Source,
    row: usize,
    duration: Option<i64>,
    observed: &Observed,
    has_payload: bool,
) -> Result<(u64, u64, bool)> {
    let lossy = |what: &str, value: i64| {
        Error::Lossy(message!(
            "Source {} has the {what} {value} ns; OpenTelemetry cannot store times before 1970 or negative durations.",
            row + 1
        ))
    };
    let unsigned = |what, value: i64| match u64::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) if has_payload => Ok(0),
        Err(_) => Err(lossy(what, value)),
    };
    let mut from = unsigned("time", time(source).unwrap_or(0))?;
    let mut duration = unsigned("duration", duration.unwrap_or(0))?;
    let recorded = (from, duration);
    if let Some((first, last)) = observed.span {
        let (first, last) = (unsigned("time", first)?, unsigned("time", last)?);
        let end = from + duration;
        if first < from || last >= end {
            // A start of 0 means that it is unknown.
            from = if from == 0 { first } else { from.min(first) };
            // Readers may store times as signed 64-bit integers.
            duration = (end.max(last + 1) - from).min(i64::MAX as u64);
        }
    }
    let widened = recorded.0 != 0 && recorded.0 != from
        || source.duration.is_some() && recorded.1 != duration;
    Ok((from, duration, widened))
}

fn attributes<'a>(
    profile: &'a Profile,
    source: &'a Source,
    table: &mut AttributeTable<'a>,
) -> Result<Vec<u64>> {
    let mut list = AttributeList::default();
    if !source.comments.is_empty() {
        let texts = source.comments.iter().map(|&id| profile.strings.get(id));
        let comments = texts.map(|text| Ok(AnyValue::String(owned(text)?)));
        let comments = comments.try_vec_of()?;
        list.add(table, keys::COMMENT, &AnyValue::Array(comments))?;
    }
    let options = source.options.filter(|_| is_rprof(source));
    let rprof = is_rprof(source).then(|| options_text(options.unwrap_or_default()));
    let file = source.uri.as_deref().filter(|_| is_rprof(source));
    for (key, text) in [
        (keys::DROP_FRAMES, source.drop_frames.as_deref()),
        (keys::KEEP_FRAMES, source.keep_frames.as_deref()),
        (keys::DOC_URL, source.doc_url.as_deref()),
        (keys::RPROF_OPTIONS, rprof),
        (keys::RPROF_FILE, file),
    ] {
        if let Some(text) = text {
            list.add(table, key, &AnyValue::String(owned(text)?))?;
        }
    }
    for attribute in &source.attributes {
        // These keys have a meaning in messages.
        if [keys::SAMPLE_TYPES, keys::PERIOD].contains(&profile.strings.get(attribute.key)) {
            table.losses.add(LossKind::RepeatedAttribute, 1);
            continue;
        }
        list.add_of_model(table, attribute)?;
    }
    Ok(list.indices)
}

/// The `sample_type` field of a profile: the name and the unit of its values.
pub fn sample_type<'a>(form: &Form<'a>, table: &mut AttributeTable<'a>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    put_type(&mut out, field::SAMPLE_TYPE, form.name, form.unit, table)?;
    Ok(out)
}

fn put_type<'a>(
    out: &mut Vec<u8>,
    number: u32,
    name: &'a str,
    unit: &'a str,
    table: &mut AttributeTable<'a>,
) -> Result<()> {
    let mut type_ = Vec::new();
    let (name, unit) = (table.texts.index(name)?, table.texts.index(unit)?);
    put_unless_0(&mut type_, value_type::TYPE_STRINDEX, name);
    put_unless_0(&mut type_, value_type::UNIT_STRINDEX, unit);
    if type_.is_empty() {
        return Ok(());
    }
    put_bytes(out, number, &type_)
}

/// Fields of a pprof file that a profile does not have. They are stored as attributes of the scope
/// that contains the profiles of the file.
pub struct PprofFields<'a> {
    pub default_type: Option<&'a str>,
    /// The number of sample types.
    pub types: usize,
    /// The mappings to which no location refers.
    pub unused_mappings: Option<&'a AnyValue>,
}

/// The fields of a scope; empty if nothing is known about it.
pub fn scope(
    profile: &Profile,
    of: Option<&Scope>,
    pprof: &PprofFields,
    table: &mut AttributeTable,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(of) = of {
        put_text(&mut out, profile, scope::NAME, of.name)?;
        put_text(&mut out, profile, scope::VERSION, of.version)?;
    }
    let mut pairs = Pairs::new(table);
    if let Some(type_) = pprof.default_type {
        let type_ = AnyValue::String(owned(type_)?);
        pairs.put(
            &mut out,
            scope::ATTRIBUTES,
            keys::DEFAULT_SAMPLE_TYPE,
            &type_,
        )?;
    }
    if pprof.types > 1 {
        let order = (0..pprof.types as i64).map(AnyValue::Int).try_vec()?;
        let order = AnyValue::Array(order);
        pairs.put(&mut out, scope::ATTRIBUTES, keys::SAMPLE_TYPE_ORDER, &order)?;
    }
    if let Some(unused) = pprof.unused_mappings {
        pairs.put(&mut out, scope::ATTRIBUTES, keys::UNUSED_MAPPINGS, unused)?;
    }
    if let Some(of) = of {
        pairs.put_all(&mut out, scope::ATTRIBUTES, profile, &of.attributes, |_| {
            false
        })?;
        let dropped = u64::from(of.dropped_attributes);
        put_unless_0(&mut out, scope::DROPPED_ATTRIBUTES_COUNT, dropped);
    }
    Ok(out)
}

/// The fields of a resource; empty if nothing is known about it. `further`: attributes from the
/// user, which replace attributes of the resource with the same keys.
pub fn resource(
    profile: &Profile,
    of: Option<&Resource>,
    further: &[(String, String)],
    table: &mut AttributeTable,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut pairs = Pairs::new(table);
    for (key, text) in further {
        let text = AnyValue::String(owned(text)?);
        pairs.put(&mut out, resource::ATTRIBUTES, key, &text)?;
    }
    let Some(of) = of else { return Ok(out) };
    let replaced = |key: &str| further.iter().any(|(own, _)| own == key);
    pairs.put_all(
        &mut out,
        resource::ATTRIBUTES,
        profile,
        &of.attributes,
        replaced,
    )?;
    let dropped = u64::from(of.dropped_attributes);
    put_unless_0(&mut out, resource::DROPPED_ATTRIBUTES_COUNT, dropped);
    for entity in &of.entities {
        put_message(&mut out, resource::ENTITY_REFS, |out| {
            put_text(
                out,
                profile,
                entity_ref::SCHEMA_URL,
                Some(entity.schema_url),
            )?;
            put_text(out, profile, entity_ref::TYPE, Some(entity.type_))?;
            for (number, keys) in [
                (entity_ref::ID_KEYS, &entity.id_keys),
                (entity_ref::DESCRIPTION_KEYS, &entity.description_keys),
            ] {
                for &key in keys {
                    put_bytes(out, number, profile.strings.get(key).as_bytes())?;
                }
            }
            Ok(())
        })?;
    }
    Ok(out)
}

/// Writes attributes inline, as scopes and resources have them, instead of by index. Keys are
/// unique: of several attributes with the same key the first is kept.
struct Pairs<'k, 't, 'a> {
    keys: HashSet<&'k str, RandomState>,
    table: &'t mut AttributeTable<'a>,
}

impl<'k, 't, 'a> Pairs<'k, 't, 'a> {
    fn new(table: &'t mut AttributeTable<'a>) -> Pairs<'k, 't, 'a> {
        let keys = HashSet::default();
        Pairs { keys, table }
    }

    fn put(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        key: &'k str,
        value: &AnyValue,
    ) -> Result<()> {
        if !self.keys.try_add(key)? {
            self.table.losses.add(LossKind::RepeatedAttribute, 1);
            return Ok(());
        }
        let texts = &mut self.table.texts;
        put_message(out, number, |pair| {
            any_value::put_pair(pair, key, value, texts)
        })
    }

    /// Appends the attributes of a scope or resource. `replaced`: whether an attribute from the user
    /// has this key.
    fn put_all(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        profile: &'k Profile,
        attributes: &[Attribute],
        replaced: impl Fn(&str) -> bool,
    ) -> Result<()> {
        for attribute in attributes {
            let key = profile.strings.get(attribute.key);
            if replaced(key) {
                continue;
            }
            let value = model_value(profile, attribute.value)?;
            self.put(out, number, key, &value)?;
        }
        Ok(())
    }
}

/// Appends a string; a missing or empty string is not written.
pub fn put_text(
    out: &mut Vec<u8>,
    profile: &Profile,
    number: u32,
    text: Option<StringId>,
) -> Result<()> {
    let text = text.map_or("", |text| profile.strings.get(text));
    match text {
        "" => Ok(()),
        text => put_bytes(out, number, text.as_bytes()),
    }
}
