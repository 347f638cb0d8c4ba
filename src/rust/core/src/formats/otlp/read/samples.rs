//! Reads the samples of profiles. The model has a row for each observation.
//!
//! A sample has a stack, attributes, a link, and for each observation a value, a timestamp, or both.
//! Profiles of the same scope may have the same samples with values of different types; whether
//! they do is determined by reading two profiles in parallel.

use super::attributes::{AttributeTable, value};
use super::budget::Budget;
use super::dictionary::Dictionary;
use crate::attribute_value::AnyValue;
use crate::error::Position;
use crate::formats::otlp::layout::SampleFields;
use crate::formats::otlp::proto::profile as field;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::samples::next_row;
use crate::limits::cancel::{self, ROWS, Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{Attribute, AttributeValue, Label, Profile, SourceId, Strings};
use crate::protobuf::decode::{Message, Result, error_at};

/// A sample as it is in the message, with indices of tables of the dictionary.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sample {
    stack: u64,
    link: u64,
    attributes: Vec<u64>,
    values: Vec<i64>,
    times: Vec<u64>,
}

impl Sample {
    #[inline]
    fn read(&mut self, mut message: Message, fields: SampleFields) -> Result<()> {
        self.stack = 0;
        self.link = 0;
        self.attributes.clear();
        self.values.clear();
        self.times.clear();
        while let Some(found) = message.field()? {
            let number = found.number;
            if number == fields.stack_index {
                self.stack = found.uint()?;
            } else if number == fields.values {
                let values = &mut self.values;
                found.each(|value| values.try_push(value as i64))?;
            } else if number == fields.attribute_indices {
                let attributes = &mut self.attributes;
                found.each(|index| attributes.try_push(index))?;
            } else if number == fields.link_index {
                self.link = found.uint()?;
            } else if number == fields.timestamps {
                let times = &mut self.times;
                found.each_fixed64(|time| times.try_push(time))?;
            }
        }
        Ok(())
    }

    /// The number of observations.
    fn count(&self) -> usize {
        self.values.len().max(self.times.len())
    }

    /// The value of an observation, which is 1 if the sample has only timestamps.
    fn value(&self, i: usize) -> i64 {
        self.values.get(i).copied().unwrap_or(1)
    }

    /// Whether both samples are of the same observations, with values that may differ.
    fn is_aligned(&self, other: &Sample) -> bool {
        self.count() == other.count()
            && self.stack == other.stack
            && self.link == other.link
            && same(&self.attributes, &other.attributes)
            && same(&self.times, &other.times)
    }
}

/// Whether two lists are equal. Most are empty, and on some processors, comparing the dangling
/// pointers of empty lists takes longer than everything else for a sample.
fn same(one: &[u64], other: &[u64]) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

/// The samples of a profile.
struct Samples<'a> {
    profile: Message<'a>,
    fields: SampleFields,
}

impl Samples<'_> {
    /// Reads the next sample, and returns its byte offset.
    #[inline]
    fn next(&mut self, sample: &mut Sample) -> Result<Option<usize>> {
        while let Some(found) = self.profile.field()? {
            if found.number == field::SAMPLES {
                let message = found.message()?;
                sample.read(message, self.fields)?;
                return Ok(Some(message.at()));
            }
        }
        Ok(None)
    }
}

/// The labels for each entry of the attribute table, created when a sample first refers to it.
#[derive(Default)]
pub struct LabelForms(Vec<Option<Vec<Label>>>);

impl LabelForms {
    /// The labels for an attribute. A string or an integer becomes one label, and an array of them
    /// becomes several labels with the same key. Other types are stored in `Label::other`.
    fn labels(
        &mut self,
        index: u64,
        at: usize,
        table: &AttributeTable,
        strings: &mut Strings,
    ) -> Result<&[Label]> {
        let Some(entry) = table.get(index, at)? else {
            return Ok(&[]);
        };
        self.0.try_fill(table.len(), None)?;
        let slot = &mut self.0[index as usize];
        if slot.is_none() {
            let mut labels = Vec::new();
            let several = match &entry.value {
                AnyValue::Array(all) if all.len() > 1 && all.iter().all(is_plain) => all.as_slice(),
                one => std::slice::from_ref(one),
            };
            // If an array contains numbers, the unit applies only to them.
            let of_numbers = several.iter().any(|any| matches!(any, AnyValue::Int(_)));
            for any in several {
                let is_text = matches!(any, AnyValue::String(_));
                let unit = entry.kept.unit.filter(|_| !(of_numbers && is_text));
                let label = label(Attribute { unit, ..entry.kept }, any, strings)?;
                labels.try_push(label)?;
            }
            *slot = Some(labels);
        }
        Ok(slot.as_deref().unwrap_or_default())
    }
}

fn is_plain(any: &AnyValue) -> bool {
    matches!(any, AnyValue::String(_) | AnyValue::Int(_))
}

/// The label for the value of an attribute, or for an element of an array.
fn label(of: Attribute, any: &AnyValue, strings: &mut Strings) -> Result<Label> {
    let (mut str, mut num, mut other): (_, _, Option<AttributeValue>) = (None, None, None);
    match any {
        AnyValue::String(text) => str = Some(strings.intern(text)?),
        AnyValue::Int(number) => num = Some(*number),
        _ => other = Some(value(any, strings)?),
    }
    Ok(Label {
        str,
        num,
        unit: of.unit,
        other,
        ..Label::new(0, of.key)
    })
}

/// A column of values, and the factor by which the values of the message are multiplied.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub column: usize,
    pub factor: i64,
}

/// Reads samples into the model.
pub struct SampleReader<'r, 'a> {
    pub dictionary: &'r Dictionary<'a>,
    pub fields: SampleFields,
    pub forms: &'r mut LabelForms,
    pub budget: &'r mut Budget,
    pub profile: &'r mut Profile,
    pub problems: &'r mut Problems,
    pub stop: Stop<'r>,
}

impl SampleReader<'_, '_> {
    /// Adds the samples of a profile to a source, and their values to columns.
    pub fn read(&mut self, message: Message, source: SourceId, columns: &[Column]) -> Result<()> {
        let mut samples = Samples {
            profile: message,
            fields: self.fields,
        };
        let mut sample = Sample::default();
        let mut labels = Vec::new();
        let mut watch = Watch::new(self.stop);
        while let Some(at) = samples.next(&mut sample)? {
            watch.reach(at)?;
            labels.clear();
            for &index in &sample.attributes {
                let (table, strings) = (&self.dictionary.attributes, &mut self.profile.strings);
                let own = self.forms.labels(index, at, table, strings)?;
                self.budget.take(size_of_val(own), at)?;
                labels.try_extend(own)?;
            }
            self.add(&sample, &labels, at, source, columns)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        sample: &Sample,
        labels: &[Label],
        at: usize,
        source: SourceId,
        columns: &[Column],
    ) -> Result<()> {
        let (values, times) = (sample.values.len(), sample.times.len());
        if values != times && values > 0 && times > 0 {
            return error_at(
                at,
                message!("This sample has {values} values, but {times} times."),
            );
        }
        let stack = self.dictionary.stack(sample.stack, at)?;
        let link = self.dictionary.link(sample.link, at)?;
        let depth = self.profile.stacks.get(stack).len();
        if sample.count() == 0 {
            let position = Position::Byte(at as u64);
            self.problems.note(ProblemKind::EmptySample, position, b"");
        }
        // Each row takes an element of every column of values, since all columns are filled up at
        // the end. The labels of the first observation have already been counted.
        let each = depth + size_of::<f64>() * self.profile.values.len();
        let further = sample.count().saturating_sub(1);
        let labelled = size_of_val(labels).saturating_mul(further);
        let rows = each.saturating_mul(sample.count());
        self.budget.take(rows.saturating_add(labelled), at)?;
        self.budget.samples(sample.count(), depth)?;
        let mut since = 0;
        for i in 0..sample.count() {
            since += 1 + labels.len();
            if since > ROWS {
                cancel::check(self.stop)?;
                since = 0;
            }
            let row = next_row(self.profile, self.budget.name())?;
            let own = labels.iter().map(|&label| Label {
                sample: row,
                ..label
            });
            self.profile.labels.try_extend_from(own)?;
            let samples = &mut self.profile.samples;
            if let Some(link) = link {
                samples.links.try_push((row, link))?;
            }
            if let Some(&time) = sample.times.get(i) {
                if let Some(time) = self.problems.time(time, at) {
                    samples.times.try_push((row, time))?;
                }
            }
            samples.source.try_push(source)?;
            samples.stack.try_push(stack)?;
            self.value(columns, sample.value(i), at)?;
        }
        Ok(())
    }

    #[inline]
    fn value(&mut self, columns: &[Column], value: i64, at: usize) -> Result<()> {
        for &Column { column, factor } in columns {
            let Some(value) = value.checked_mul(factor) else {
                return error_at(
                    at,
                    message!(
                        "The value {value}, multiplied by the period {factor}, is beyond 2^63."
                    ),
                );
            };
            if self.profile.values[column].push(value)? {
                self.problems.nearly(value, at);
            }
        }
        Ok(())
    }

    /// The values of `other` and their byte offsets, if it has the same samples as `first`.
    pub fn aligned(&self, first: Message, other: Message) -> Result<Option<Vec<(i64, usize)>>> {
        let fields = self.fields;
        let [mut first, mut other] = [first, other].map(|profile| Samples { profile, fields });
        let [mut one, mut two] = [Sample::default(), Sample::default()];
        let mut values = Vec::new();
        let mut watch = Watch::new(self.stop);
        loop {
            match (first.next(&mut one)?, other.next(&mut two)?) {
                (None, None) => return Ok(Some(values)),
                (Some(_), Some(at)) if one.is_aligned(&two) => {
                    watch.reach(at)?;
                    for i in 0..two.count() {
                        values.try_push((two.value(i), at))?;
                    }
                }
                _ => return Ok(None),
            }
        }
    }

    /// Whether the samples of a profile have times; `None` if only some have, or there are none.
    pub fn timed(&self, message: Message) -> Result<Option<bool>> {
        let fields = self.fields;
        let mut samples = Samples {
            profile: message,
            fields,
        };
        let mut sample = Sample::default();
        let mut timed = None;
        let mut watch = Watch::new(self.stop);
        while let Some(at) = samples.next(&mut sample)? {
            watch.reach(at)?;
            let own = !sample.times.is_empty();
            if *timed.get_or_insert(own) != own {
                return Ok(None);
            }
        }
        Ok(timed)
    }

    /// Appends values from `aligned` to columns. Their rows are those most recently added.
    pub fn add_values(&mut self, columns: &[Column], values: &[(i64, usize)]) -> Result<()> {
        for &(value, at) in values {
            self.value(columns, value, at)?;
        }
        Ok(())
    }
}
