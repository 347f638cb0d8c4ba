//! Reads all fields of profiles except the samples, and creates sources from them.

use super::budget::Budget;
use super::dictionary::Dictionary;
use super::recorded::{Recorded, copy_of, period_of, take_recorded};
use crate::analysis::source_facts::options_of_text;
use crate::attribute_value::AnyValue;
use crate::formats::format::Format;
use crate::formats::otlp::proto::{keys, profile as field, value_type};
use crate::formats::problems::Problems;
use crate::formats::string_table::NumberField;
use crate::limits::cancel::Watch;
use crate::limits::memory::{TryGrow, copied, owned, sort_by_key};
use crate::model::known_types::{CPU, SAMPLES};
use crate::model::{
    Attribute, Payload, Period, Profile, SampleType, ScopeId, Source, SourceKind, Strings,
    ValueType, recorded_time,
};
use crate::protobuf::decode::{Message, Result};
use crate::text::encoded;
use data_encoding::HEXLOWER;

/// The fields of a profile, without its samples.
pub struct Header<'a> {
    pub message: Message<'a>,
    pub type_: Named,
    pub recorded: Recorded,
    pub payload: Option<Payload>,
    /// The fields that are equal in all profiles of a source.
    pub common: Common,
}

#[derive(Debug, Default, PartialEq)]
pub struct Common {
    time: u64,
    duration: u64,
    period: Option<Period>,
    profile_id: Vec<u8>,
    dropped: u32,
    attributes: Vec<u64>,
}

/// The type and unit of a value, as indices of the string table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Named {
    type_: u64,
    unit: u64,
}

/// Fields of a profile whose meaning depends on others.
#[derive(Default)]
struct Rest<'a> {
    period_type: Named,
    period: i64,
    format: Option<Message<'a>>,
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    pub fn read(
        message: Message<'a>,
        dictionary: &mut Dictionary,
        strings: &Strings,
        problems: &mut Problems,
        watch: &mut Watch,
    ) -> Result<Header<'a>> {
        let mut header = Header {
            message,
            type_: Named::default(),
            recorded: Recorded::Itself,
            payload: None,
            common: Common::default(),
        };
        let rest = header.fields(watch)?;
        let format = match rest.format {
            Some(text) => dictionary.texts.decode(text, problems)?,
            None => String::new(),
        };
        if !format.is_empty() || !rest.payload.is_empty() {
            let bytes = copied(rest.payload)?;
            header.payload = Some(Payload { format, bytes });
        }
        let at = message.at();
        let period_type = rest.period_type.read(dictionary, at, problems)?;
        let type_ = header.type_.read(dictionary, at, problems)?;
        let counts_cpu = SAMPLES == type_ && CPU == period_type && rest.period > 0;
        let common = &mut header.common;
        let taken = take_recorded(
            &mut common.attributes,
            at,
            dictionary,
            strings,
            counts_cpu.then_some(rest.period),
        )?;
        header.recorded = taken.recorded;
        common.period = match taken.period {
            Some(period) => period,
            None => period_of(rest.period, period_type),
        };
        if let Some(value) = common.period.as_ref().and_then(|period| period.exact) {
            problems.nearly(value, at);
        }
        Ok(header)
    }

    /// Sets the fields that stand for themselves, and returns the others.
    fn fields(&mut self, watch: &mut Watch) -> Result<Rest<'a>> {
        let common = &mut self.common;
        let mut rest = Rest::default();
        let mut message = self.message;
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            match found.number {
                field::SAMPLE_TYPE => self.type_ = named(found.message()?)?,
                field::TIME_UNIX_NANO => common.time = found.fixed64()?,
                field::DURATION_NANO => common.duration = found.uint()?,
                field::PERIOD_TYPE => rest.period_type = named(found.message()?)?,
                field::PERIOD => rest.period = found.int()?,
                field::PROFILE_ID => common.profile_id = copied(found.message()?.bytes())?,
                field::DROPPED_ATTRIBUTES_COUNT => common.dropped = found.uint()? as u32,
                field::ORIGINAL_PAYLOAD_FORMAT => rest.format = Some(found.message()?),
                field::ORIGINAL_PAYLOAD => rest.payload = found.message()?.bytes(),
                field::ATTRIBUTE_INDICES => {
                    found.each(|index| common.attributes.try_push(index))?;
                }
                _ => {}
            }
        }
        Ok(rest)
    }

    /// Whether it has no samples and no sample type.
    pub fn is_silent(&self) -> Result<bool> {
        let mut message = self.message;
        while let Some(found) = message.field()? {
            if found.number == field::SAMPLES {
                return Ok(false);
            }
        }
        Ok(self.type_ == Named::default())
    }

    fn payload(&self) -> Result<Option<Payload>> {
        Ok(match &self.payload {
            Some(Payload { format, bytes }) => Some(Payload {
                format: owned(format)?,
                bytes: copied(bytes)?,
            }),
            None => None,
        })
    }

    /// Whether another profile may belong to the same source.
    pub fn agrees(&self, other: &Header) -> bool {
        self.common == other.common && other.payload.is_none()
    }
}

impl Named {
    fn read(
        self,
        dictionary: &mut Dictionary,
        at: usize,
        problems: &mut Problems,
    ) -> Result<ValueType> {
        let mut text = |index| {
            let index = NumberField { value: index, at };
            dictionary.texts.string(index, problems)
        };
        Ok(ValueType {
            name: text(self.type_)?,
            unit: text(self.unit)?,
        })
    }
}

fn named(mut message: Message) -> Result<Named> {
    let mut named = Named::default();
    while let Some(found) = message.field()? {
        match found.number {
            value_type::TYPE_STRINDEX => named.type_ = found.uint()?,
            value_type::UNIT_STRINDEX => named.unit = found.uint()?,
            _ => {}
        }
    }
    Ok(named)
}

/// Creates sources from the headers of profiles.
pub struct SourceMaker<'r, 'a> {
    pub dictionary: &'r mut Dictionary<'a>,
    pub profile: &'r mut Profile,
    pub problems: &'r mut Problems,
    pub budget: &'r mut Budget,
    pub format: &'static Format,
}

impl SourceMaker<'_, '_> {
    /// Creates a source from the header of its first profile. `types` are the sample types of all
    /// its profiles.
    pub fn source(
        &mut self,
        header: &Header,
        types: Vec<SampleType>,
        uri: Option<String>,
        scope: Option<ScopeId>,
        default_type: Option<String>,
    ) -> Result<Source> {
        let at = header.message.at();
        let common = &header.common;
        // Each source has its own copies of these strings.
        let names = types
            .iter()
            .flat_map(|t| [&t.type_.name, &t.type_.unit, &t.recorded]);
        let texts = [&uri, &default_type].into_iter().flatten().chain(names);
        let bytes = size_of::<Source>() + texts.map(String::len).sum::<usize>();
        self.budget.take(bytes, at)?;
        let time = self
            .problems
            .time(common.time, at)
            .filter(|&time| time != 0);
        let time = time.map(recorded_time);
        let duration = self.problems.time(common.duration, at);
        let profile_id = encoded(&HEXLOWER, &common.profile_id)?;
        let mut source = Source {
            kind: SourceKind::named(self.format.name),
            uri,
            timestamp: time.map(|(timestamp, _)| timestamp),
            time: time.and_then(|(_, time)| time),
            duration: duration.filter(|&duration| duration != 0),
            period: copy_of(common.period.as_ref())?,
            types,
            default_type,
            scope,
            profile_id: (!profile_id.is_empty()).then_some(profile_id),
            dropped_attributes: common.dropped,
            payload: header.payload()?,
            ..Source::default()
        };
        self.attributes(&mut source, &common.attributes, at)?;
        Ok(source)
    }

    /// Stores attributes in the fields of `source` for them, and all others in its attributes.
    fn attributes(&mut self, source: &mut Source, list: &[u64], at: usize) -> Result<()> {
        let comments = &mut source.comments;
        let mut numbered = Vec::new();
        for &index in list {
            let Some(entry) = self.dictionary.attributes.get(index, at)? else {
                continue;
            };
            let (kept, strings) = (entry.kept, &mut self.profile.strings);
            let [key, value] = [kept.key, kept.value.text].map(|text| strings.get(text));
            self.budget
                .take(size_of::<Attribute>() + key.len() + value.len(), at)?;
            let text = match &entry.value {
                AnyValue::String(text) => Some(text.as_str()),
                _ => None,
            };
            match (key, &entry.value, text) {
                (keys::COMMENT, _, Some(_)) => {
                    comments.try_push(kept.value.text)?;
                }
                (keys::COMMENT, AnyValue::Array(all), _) if all.iter().all(is_text) => {
                    for any in all {
                        if let AnyValue::String(text) = any {
                            comments.try_push(strings.intern(text)?)?;
                        }
                    }
                }
                (key, _, Some(_)) if number_of_comment(key).is_some() => {
                    numbered.try_push((number_of_comment(key), kept))?;
                }
                (keys::DROP_FRAMES, _, Some(text)) => source.drop_frames = non_empty(text)?,
                (keys::KEEP_FRAMES, _, Some(text)) => source.keep_frames = non_empty(text)?,
                (keys::DOC_URL, _, Some(text)) => source.doc_url = non_empty(text)?,
                (keys::RPROF_OPTIONS, _, Some(text)) if options_of_text(text).is_some() => {
                    source.kind = SourceKind::RPROF;
                    source.options = options_of_text(text);
                    source.period = source.period.take().map(in_microseconds).transpose()?;
                }
                (keys::RPROF_FILE, _, Some(text)) => source.uri = Some(owned(text)?),
                _ => source.attributes.try_push(kept)?,
            }
        }
        if comments.is_empty() {
            sort_by_key(&mut numbered, |(number, _)| *number)?;
            let texts = numbered.iter().map(|(_, kept)| kept.value.text);
            comments.try_extend_from(texts)?;
        } else {
            let others = numbered.into_iter().map(|(_, kept)| kept);
            source.attributes.try_extend_from(others)?;
        }
        Ok(())
    }

    /// The sample types of these profiles.
    pub fn types(&mut self, headers: &[&Header]) -> Result<Vec<SampleType>> {
        let mut types = Vec::new();
        for header in headers {
            let at = header.message.at();
            let (own, others) = match header.recorded {
                Recorded::Itself => {
                    let named = header.type_.read(self.dictionary, at, self.problems)?;
                    (named, None)
                }
                Recorded::Cpu(_) => (CPU.value_type()?, None),
                Recorded::SamplesAndCpu(_) => (SAMPLES.value_type()?, Some(CPU.value_type()?)),
            };
            for named in [Some(own), others].into_iter().flatten() {
                let type_ = SampleType::new(named.name, named.unit, &types)?;
                types.try_push(type_)?;
            }
        }
        Ok(types)
    }
}

fn is_text(any: &AnyValue) -> bool {
    matches!(any, AnyValue::String(_))
}

/// A copy of a text, `None` if it is empty.
pub fn non_empty(text: &str) -> Result<Option<String>> {
    Ok(if text.is_empty() {
        None
    } else {
        Some(owned(text)?)
    })
}

/// The number in the key of a comment, such as 7 in `pprof.profile.comment.7`.
fn number_of_comment(key: &str) -> Option<u64> {
    let digits = key.strip_prefix(keys::COMMENT)?.strip_prefix('.')?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| all_digits)
}

/// The period of an `Rprof()` profile in microseconds, its original unit. It is written in
/// nanoseconds for compatibility with other tools.
fn in_microseconds(period: Period) -> Result<Period> {
    let microseconds = period.value / 1e3;
    let whole = microseconds.fract() == 0.0 && (1.0..1e15).contains(&microseconds);
    if period.type_.as_ref().is_some_and(|type_| CPU == *type_) && whole {
        Ok(Period::from_rprof(microseconds as u64)?)
    } else {
        Ok(period)
    }
}
