//! How sample types are written, so that other tools recognise them.
//!
//! A profile of OpenTelemetry has one sample type, and one period. Tools name what they show after both: for Grafana
//! Pyroscope, CPU time is the type `samples/count` with a period of type `cpu/nanoseconds`, by which it multiplies the
//! values, as the profiler of OpenTelemetry itself writes it; elapsed time has a period of type `wall/nanoseconds`, and
//! memory one of type `space/bytes`. Attributes say what was recorded, so that [`crate::formats::otlp`] reads the same.

use super::samples::Observed;
use crate::analysis::sample_types::WrittenType;
use crate::analysis::source_facts::period;
use crate::attribute_value::AnyValue;
use crate::error::Result;
use crate::formats::otlp::proto::{keys, recorded};
use crate::limits::memory::{TryGrow, owned};
use crate::model::Source;
use crate::model::known_types::{CPU, SAMPLES, known_type};

/// A value, and its type and unit.
pub type WrittenPeriod<'a> = (i64, Option<(&'a str, &'a str)>);

/// How one of the types of a source is written, as a profile of its own.
pub struct Form<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    /// The index of the type, whose values are divided by this.
    pub type_: usize,
    pub divisor: i64,
    /// `None` for the period of the source.
    pub period: Option<WrittenPeriod<'a>>,
    /// Attributes for the reader.
    pub attributes: Vec<(&'static str, AnyValue)>,
}

/// The forms of the types of a source. CPU time is not written in addition to the counts of samples if it can be computed
/// from them, since tools would show it twice.
pub fn forms<'a>(
    source: &'a Source,
    types: &[&WrittenType<'a>],
    observed: &Observed,
) -> Result<Vec<Form<'a>>> {
    let own = period(source);
    let cpu_period = own.and_then(|(value, type_)| {
        let is_cpu = type_ == Some(CPU.key()) && value > 0;
        is_cpu.then_some(value)
    });
    let place = |key| types.iter().position(|t| (t.name, t.unit) == key);
    let (counts, cpu) = (place(SAMPLES.key()), place(CPU.key()));
    let is_computed = match (counts, cpu, cpu_period) {
        (Some(counts), Some(cpu), Some(period)) if cpu == counts + 1 => observed
            .rows()
            .all(|row| row[counts].checked_mul(period) == Some(row[cpu])),
        _ => false,
    };
    let mut forms = Vec::new();
    for (i, type_) in types.iter().enumerate() {
        let mut form = Form {
            name: type_.name,
            unit: type_.unit_of_value(),
            type_: i,
            divisor: 1,
            period: None,
            attributes: Vec::new(),
        };
        let mut note = |key, text| {
            let value = AnyValue::String(owned(text)?);
            form.attributes.try_push((key, value))
        };
        if is_computed && Some(i) == cpu {
            continue;
        }
        let mut wanted = known_type(type_.name, type_.unit).and_then(|known| known.period_type());
        if is_computed && Some(i) == counts {
            note(keys::SAMPLE_TYPES, recorded::SAMPLES_AND_CPU)?;
        } else if counts.is_none() && Some(i) == cpu {
            note(keys::SAMPLE_TYPES, recorded::CPU)?;
            (form.name, form.unit) = SAMPLES.key();
            let is_multiple = |period: &i64| observed.rows().all(|row| row[i] % period == 0);
            match cpu_period.filter(is_multiple) {
                Some(period) => form.divisor = period,
                // A nanosecond is a sample, with any other period of the source.
                None => form.period = Some((1, Some(CPU.key()))),
            }
            wanted = None;
        }
        if let Some(wanted) = wanted.filter(|&wanted| own.and_then(|own| own.1) != Some(wanted)) {
            form.period = Some((1, Some(wanted)));
        }
        if form.period.is_some() {
            let recorded = period_attribute(own)?;
            form.attributes.try_push((keys::PERIOD, recorded))?;
        }
        forms.try_push(form)?;
    }
    Ok(forms)
}

/// The period of a source as the value of an attribute: an array, which is empty if there is none.
fn period_attribute(period: Option<WrittenPeriod>) -> Result<AnyValue> {
    let mut parts = Vec::new();
    if let Some((value, type_)) = period {
        parts.try_push(AnyValue::Int(value))?;
        if let Some((name, unit)) = type_ {
            parts.try_push(AnyValue::String(owned(name)?))?;
            parts.try_push(AnyValue::String(owned(unit)?))?;
        }
    }
    Ok(AnyValue::Array(parts))
}
