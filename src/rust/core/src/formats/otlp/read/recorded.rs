//! What a profile was recorded as: types and periods are written as other tools know them, and attributes say what they
//! were, see `write/forms.rs`.

use super::dictionary::Dictionary;
use crate::attribute_value::AnyValue;
use crate::formats::otlp::proto::{keys, recorded};
use crate::limits::memory::{TryGrow, owned};
use crate::model::{Period, Strings, ValueType, inexact};
use crate::protobuf::decode::Result;

/// What the values of a profile were recorded as, see [`recorded`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Recorded {
    /// What its sample type says.
    #[default]
    Itself,
    /// CPU time: the value times this.
    Cpu(i64),
    /// The number of samples, and this much CPU time for each of them.
    SamplesAndCpu(i64),
}

impl Recorded {
    /// The factors by which values are multiplied, for each type.
    pub fn factors(self) -> ([i64; 2], usize) {
        match self {
            Recorded::Itself => ([1, 1], 1),
            Recorded::Cpu(period) => ([period, 1], 1),
            Recorded::SamplesAndCpu(period) => ([1, period], 2),
        }
    }
}

/// What attributes of a profile say about its source.
#[derive(Default)]
pub struct Taken {
    pub recorded: Recorded,
    /// The period of the source, if the profile has another one.
    pub period: Option<Option<Period>>,
}

/// Takes the attributes of a profile that say what was recorded. `cpu_period`: its period, if it counts samples of CPU time,
/// so that it may have been recorded as something else.
pub fn take_recorded(
    attributes: &mut Vec<u64>,
    at: usize,
    dictionary: &Dictionary,
    strings: &Strings,
    cpu_period: Option<i64>,
) -> Result<Taken> {
    let mut others = Vec::new();
    let mut taken = Taken::default();
    for &index in attributes.iter() {
        let entry = dictionary.attributes.get(index, at)?;
        let known = entry.map(|entry| (strings.get(entry.kept.key), &entry.value));
        match (known, cpu_period) {
            (Some((keys::SAMPLE_TYPES, AnyValue::String(text))), Some(period))
                if text == recorded::CPU =>
            {
                taken.recorded = Recorded::Cpu(period);
            }
            (Some((keys::SAMPLE_TYPES, AnyValue::String(text))), Some(period))
                if text == recorded::SAMPLES_AND_CPU =>
            {
                taken.recorded = Recorded::SamplesAndCpu(period);
            }
            (Some((keys::PERIOD, AnyValue::Array(parts))), _) => match period_in(parts)? {
                Some(period) => taken.period = Some(period),
                None => others.try_push(index)?,
            },
            _ => others.try_push(index)?,
        }
    }
    *attributes = others;
    Ok(taken)
}

/// The period of a profile. An empty type is equivalent to a missing one.
pub fn period_of(value: i64, type_: ValueType) -> Option<Period> {
    let type_ = Some(type_).filter(|type_| *type_ != ValueType::default());
    let is_known = value != 0 || type_.is_some();
    is_known.then_some(Period {
        value: value as f64,
        exact: inexact(value),
        type_,
    })
}

/// The period of a source in an attribute, see [`keys::PERIOD`]; `None` if it is not one.
fn period_in(parts: &[AnyValue]) -> Result<Option<Option<Period>>> {
    Ok(match parts {
        [] => Some(None),
        [AnyValue::Int(value)] => Some(period_of(*value, ValueType::default())),
        [
            AnyValue::Int(value),
            AnyValue::String(name),
            AnyValue::String(unit),
        ] => {
            let (name, unit) = (owned(name)?, owned(unit)?);
            Some(period_of(*value, ValueType { name, unit }))
        }
        _ => None,
    })
}

/// A copy of a period.
pub fn copy_of(period: Option<&Period>) -> Result<Option<Period>> {
    let Some(Period {
        value,
        exact,
        type_,
    }) = period
    else {
        return Ok(None);
    };
    let type_ = match type_ {
        Some(type_) => Some(ValueType {
            name: owned(&type_.name)?,
            unit: owned(&type_.unit)?,
        }),
        None => None,
    };
    Ok(Some(Period {
        value: *value,
        exact: *exact,
        type_,
    }))
}
