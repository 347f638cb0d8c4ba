//! The samples of a source: merges equal samples if requested, and encodes samples and their values.

use super::attributes::model_value;
use super::dictionary::Tables;
use super::fields::{put_indices, put_unless_0};
use crate::analysis::aggregate::{self, Groups, LeftOut, is_zero, values_of};
use crate::analysis::sample_types::WrittenType;
use crate::attribute_value::AnyValue;
use crate::error::{Error, Result};
use crate::formats::otlp::proto::{profile, sample as field};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, owned, sort_by_key, with_room};
use crate::message;
use crate::model::{Label, Profile, SourceId, StringId};
use crate::protobuf::encode;
use crate::protobuf::tables::EncodedTable;

/// The index of the empty set of attributes.
const NO_ATTRIBUTES: u32 = 0;

/// Describes a sample of the message: samples with equal identities can be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    stack: u32,
    /// The index of a set of attributes.
    set: u32,
    link: u32,
    /// Whether the sample has times. Samples with and without times are not merged, since either
    /// all observations of a sample have a time or none has.
    timed: bool,
}

impl aggregate::Identity for Identity {
    fn stack(&self) -> u32 {
        self.stack
    }

    fn is_summed(&self) -> bool {
        !self.timed
    }
}

/// The samples of a source, each with one or more observations.
#[derive(Default)]
pub struct Observed {
    identities: Vec<Identity>,
    /// For each sample, the end of its observations. Observation `i` has the values from
    /// `i * types` in `values`.
    ends: Vec<usize>,
    /// The times of all observations that have one.
    times: Vec<i64>,
    values: Vec<i64>,
    types: usize,
    /// The first and the last time.
    pub span: Option<(i64, i64)>,
}

/// Collects the samples of sources, one source at a time.
pub struct Observer<'t, 'a> {
    pub profile: &'a Profile,
    pub tables: &'t mut Tables<'a>,
    pub aggregate: bool,
    /// Whether the message has an original payload, which contains what attributes cannot store.
    pub payload: bool,
    /// The distinct sets of attributes, as encoded lists of indices.
    sets: &'t mut EncodedTable,
    pub stop: Stop<'t>,
}

impl<'t, 'a> Observer<'t, 'a> {
    pub fn new(
        profile: &'a Profile,
        tables: &'t mut Tables<'a>,
        sets: &'t mut EncodedTable,
        aggregate: bool,
        payload: bool,
        stop: Stop<'t>,
    ) -> Result<Observer<'t, 'a>> {
        if sets.is_empty() {
            sets.push(&[])?;
        }
        Ok(Observer {
            profile,
            tables,
            aggregate,
            payload,
            sets,
            stop,
        })
    }

    /// Collects the samples in `rows` with their values for `types`. Returns `None` if there were
    /// merged samples with values of zero, which are then in `left_out`.
    pub fn observe(
        &mut self,
        source: SourceId,
        rows: &[u32],
        types: &[&WrittenType],
        left_out: &mut LeftOut,
    ) -> Result<Option<Observed>> {
        if self.aggregate {
            self.aggregated(source, rows, types, left_out)
        } else {
            self.recorded(source, rows, types).map(Some)
        }
    }

    /// Collects the samples without merging them.
    fn recorded(
        &mut self,
        source: SourceId,
        rows: &[u32],
        types: &[&WrittenType],
    ) -> Result<Observed> {
        let mut observed = Observed::new(types.len());
        let mut values = Vec::new();
        for (i, row) in rows.iter().map(|&row| row as usize).enumerate() {
            cancel::at_row(i, self.stop)?;
            values_of(types, row, source, &mut values)?;
            let time = self.time(row);
            let identity = self.identity(row, time.is_some())?;
            observed.push(identity, &values, time)?;
        }
        Ok(observed)
    }

    /// Merges equal samples: values are summed, unless samples have times, which become observations
    /// of one sample.
    fn aggregated(
        &mut self,
        source: SourceId,
        rows: &[u32],
        types: &[&WrittenType],
        left_out: &mut LeftOut,
    ) -> Result<Option<Observed>> {
        let mut groups = Groups::new(types);
        let mut values = Vec::new();
        for (i, row) in rows.iter().map(|&row| row as usize).enumerate() {
            cancel::at_row(i, self.stop)?;
            if left_out.contains(row) {
                continue;
            }
            values_of(types, row, source, &mut values)?;
            let timed = self.time(row).is_some();
            if !timed && is_zero(&values) {
                left_out.add(row);
                continue;
            }
            groups.add(row, self.identity(row, timed)?, &values)?;
        }
        if groups.leave_out_zeros(left_out)? {
            return Ok(None);
        }
        let mut observed = Observed::new(types.len());
        let samples = groups.samples()?;
        for ((identity, sums), samples) in groups.iter().zip(samples.iter()) {
            if !identity.timed {
                observed.push(identity, sums, None)?;
                continue;
            }
            for row in samples.iter().map(|&sample| groups.row(sample)) {
                values_of(types, row, source, &mut values)?;
                observed.values.try_extend(&values)?;
                if let Some(time) = self.time(row) {
                    observed.time(time)?;
                }
            }
            observed.identities.try_push(identity)?;
            observed.end(samples.len())?;
        }
        Ok(Some(observed))
    }

    fn time(&self, row: usize) -> Option<i64> {
        let times = &self.profile.samples.times;
        if times.is_empty() {
            return None;
        }
        let at = times.binary_search_by_key(&row, |(row, _)| *row).ok()?;
        Some(times[at].1)
    }

    fn identity(&mut self, row: usize, timed: bool) -> Result<Identity> {
        let samples = &self.profile.samples;
        let link = samples.links.binary_search_by_key(&row, |(row, _)| *row);
        let link = link.ok().map(|at| samples.links[at].1);
        Ok(Identity {
            stack: self.tables.stack(samples.stack[row])?,
            set: self.set(row)?,
            link: match link {
                Some(link) => self.tables.link(link)?,
                None => 0,
            },
            timed,
        })
    }

    /// Returns the index of a sample's set of attributes.
    fn set(&mut self, row: usize) -> Result<u32> {
        let labels = &self.profile.labels;
        let start = labels.partition_point(|label| label.sample < row);
        let left = labels.get(start..).unwrap_or_default();
        let count = left.iter().take_while(|label| label.sample == row).count();
        if count == 0 {
            return Ok(NO_ATTRIBUTES);
        }
        let indices = self.attributes(&left[..count])?;
        let mut encoded = Vec::new();
        put_indices(&mut encoded, field::ATTRIBUTE_INDICES, &indices)?;
        self.sets.intern(&encoded)
    }

    /// Converts labels to attributes, one for each key, and returns the indices of the attributes.
    fn attributes(&mut self, labels: &[Label]) -> Result<Vec<u64>> {
        // Groups of labels with the same key, in the order of their first labels.
        let mut order: Vec<usize> = Vec::new();
        order.try_extend_from(0..labels.len())?;
        sort_by_key(&mut order, |&i| labels[i].key)?;
        let mut groups = Vec::new();
        for group in order.chunk_by(|&a, &b| labels[a].key == labels[b].key) {
            groups.try_push(group)?;
        }
        groups.sort_unstable_by_key(|group| group.first());
        let (profile, payload) = (self.profile, self.payload);
        let mut indices = Vec::new();
        let mut own = Vec::new();
        for group in groups {
            own.clear();
            for &i in group {
                let sample = 0;
                let label = Label {
                    sample,
                    ..labels[i]
                };
                own.try_push(label)?;
            }
            let index = self.tables.attributes.labels(&own, || {
                let value = value(&own, profile, payload);
                value.map_err(|why| match why {
                    NoValue::Lossy(what) => lossy(labels, &own, profile, what),
                    NoValue::Failed(error) => error,
                })
            })?;
            indices.try_push(u64::from(index))?;
        }
        if self.aggregate {
            // The order of attributes does not matter, so equal sets get the same index.
            indices.sort_unstable();
        }
        Ok(indices)
    }
}

/// Returns the value and unit for labels with the same key, or the reason why there is none.
/// `payload`: whether an original payload contains what cannot be stored.
fn value(
    labels: &[Label],
    profile: &Profile,
    payload: bool,
) -> Outcome<(AnyValue, Option<StringId>)> {
    let one = |label: &Label| match (label.str, label.num, label.other) {
        (Some(_), Some(_), _) if !payload => Err(NoValue::Lossy("both a text and a number")),
        (Some(text), ..) => Ok(AnyValue::String(owned(profile.strings.get(text))?)),
        (None, Some(number), _) => Ok(AnyValue::Int(number)),
        (None, None, Some(value)) => Ok(model_value(profile, value)?),
        (None, None, None) => Ok(AnyValue::Empty),
    };
    // A key may have both texts and numbers; only the numbers have a unit.
    let number = labels.iter().find(|label| label.num.is_some());
    let unit = number.or(labels.first()).and_then(|label| label.unit);
    let is_other =
        |label: &Label| label.unit != unit && (label.str.is_none() || label.unit.is_some());
    let value = match labels {
        [label] => one(label)?,
        several if !payload && several.iter().any(is_other) => {
            return Err(NoValue::Lossy("values of several units"));
        }
        several if !payload && several.iter().any(|label| label.other.is_some()) => {
            return Err(NoValue::Lossy("several values, not all texts or numbers"));
        }
        several => {
            let mut all = with_room(several.len())?;
            for label in several {
                all.try_push(one(label)?)?;
            }
            AnyValue::Array(all)
        }
    };
    Ok((value, unit))
}

/// The reason why labels cannot be stored as one value.
enum NoValue {
    Lossy(&'static str),
    Failed(Error),
}

impl From<Error> for NoValue {
    fn from(error: Error) -> NoValue {
        NoValue::Failed(error)
    }
}

type Outcome<T> = std::result::Result<T, NoValue>;

#[cold]
fn lossy(labels: &[Label], of: &[Label], profile: &Profile, what: &str) -> Error {
    let [sample, key] = [labels, of].map(|all| all.first());
    Error::Lossy(message!(
        "Sample {} has {what} under the label `{}`; an attribute of OpenTelemetry has one value.",
        sample.map_or(0, |label| label.sample + 1),
        key.map_or("", |label| profile.strings.get(label.key)),
    ))
}

impl Observed {
    fn new(types: usize) -> Observed {
        Observed {
            types,
            ..Observed::default()
        }
    }

    fn push(&mut self, identity: Identity, values: &[i64], time: Option<i64>) -> Result<()> {
        self.identities.try_push(identity)?;
        self.values.try_extend(values)?;
        if let Some(time) = time {
            self.time(time)?;
        }
        self.end(1)
    }

    fn time(&mut self, time: i64) -> Result<()> {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        self.times.try_push(time)
    }

    fn end(&mut self, count: usize) -> Result<()> {
        let before = self.ends.last().copied().unwrap_or(0);
        self.ends.try_push(before + count)
    }

    /// The shapes that occur: whether samples have times. The shape of the first sample comes first.
    pub fn shapes(&self) -> impl Iterator<Item = bool> {
        let first = self.identities.first().is_some_and(|first| first.timed);
        let other = self.identities.iter().any(|sample| sample.timed != first);
        [Some(first), other.then_some(!first)].into_iter().flatten()
    }

    /// The values of each observation.
    pub fn rows(&self) -> impl Iterator<Item = &[i64]> {
        self.values.chunks_exact(self.types.max(1))
    }

    /// Appends the samples of a shape to a profile, with their values of one type, divided by a number.
    pub fn put(
        &self,
        (type_, divisor): (usize, i64),
        timed: bool,
        sets: &EncodedTable,
        out: &mut Vec<u8>,
        stop: Stop,
    ) -> Result<()> {
        let mut sample = Vec::new();
        let (mut start, mut first_time) = (0, 0);
        for (i, (identity, &end)) in self.identities.iter().zip(&self.ends).enumerate() {
            cancel::at_row(i, stop)?;
            let count = end - start;
            if identity.timed != timed {
                start = end;
                continue;
            }
            sample.clear();
            sample.try_reserve((2 * count + 4) * encode::MAX_VARINT_FIELD)?;
            put_unless_0(&mut sample, field::STACK_INDEX, identity.stack.into());
            sample.try_extend(sets.get(identity.set))?;
            put_unless_0(&mut sample, field::LINK_INDEX, identity.link.into());
            let value = |at: usize| {
                let value = self.values[at * self.types + type_];
                (value / divisor) as u64
            };
            encode::put_length_header(
                &mut sample,
                field::VALUES,
                (start..end).map(|at| encode::varint_len(value(at))).sum(),
            );
            (start..end).for_each(|at| encode::put_varint(&mut sample, value(at)));
            if identity.timed {
                let times = &self.times[first_time..first_time + count];
                encode::put_length_header(&mut sample, field::TIMESTAMPS_UNIX_NANO, 8 * count);
                for time in times {
                    sample.try_extend(&time.to_le_bytes())?;
                }
                first_time += count;
            }
            encode::put_bytes(out, profile::SAMPLES, &sample)?;
            start = end;
        }
        Ok(())
    }
}
