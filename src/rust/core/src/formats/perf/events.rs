//! The events of a file, which are its sample types, with the periods of samples as values.

use crate::error::Result;
use crate::formats::text_file::File;
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::known_types::SAMPLES;
use crate::model::{Period, ValueType, Values};

/// The maximum number of events, more than anybody records at once. Each adds a value to every sample.
const MOST_EVENTS: usize = 1000;

#[derive(Default)]
pub struct Events {
    all: Vec<Event>,
}

struct Event {
    recorded: Vec<u8>,
    values: Values,
    /// Whether samples have periods, and the period that all of them have.
    has_periods: bool,
    period: Option<u64>,
}

impl Events {
    /// The row of an event, which is added if it is new.
    pub fn row(&mut self, recorded: &[u8], file: &mut File) -> Result<usize> {
        let mut events = self.all.iter();
        if let Some(at) = events.position(|event| event.recorded == recorded) {
            return Ok(at);
        }
        if self.all.len() == MOST_EVENTS {
            let what = message!("more than {MOST_EVENTS} events.");
            return Err(file.unsupported(&what));
        }
        let name = file.decode(recorded)?;
        let mut copy = Vec::new();
        copy.try_extend(recorded)?;
        let event = Event {
            recorded: copy,
            values: Values::absent(&name, "count", 0)?,
            has_periods: false,
            period: None,
        };
        self.all.try_push(event)?;
        Ok(self.all.len() - 1)
    }

    /// Adds the value of the sample in row `sample`: its period, or 1 if it has none.
    pub fn add(
        &mut self,
        at: usize,
        sample: usize,
        period: Option<u64>,
        file: &mut File,
    ) -> Result<()> {
        let Some(event) = self.all.get_mut(at) else {
            return Ok(());
        };
        let is_first = event.values.column.is_empty() || !event.has_periods;
        if let Some(period) = period {
            event.period = if is_first {
                Some(period)
            } else {
                event.period.filter(|same| *same == period)
            };
            event.has_periods = true;
        }
        event.values.column.try_fill(sample, f64::NAN)?;
        let value = period.unwrap_or(1);
        match i64::try_from(value) {
            Ok(value) => file.push_value(&mut event.values, value),
            Err(_) => event.values.column.try_push(value as f64),
        }
    }

    /// Adds the sample types to the profile. The first event is the default.
    pub fn finish(self, file: &mut File) -> Result<()> {
        let samples = file.profile.samples.len();
        if self.all.len() < 2 {
            let mut counts = Values::absent_known(&SAMPLES, 0)?;
            counts.column.try_fill(samples, 1.0)?;
            file.add_values(counts)?;
        }
        let is_only = self.all.len() == 1;
        for (at, event) in self.all.into_iter().enumerate() {
            let mut values = event.values;
            if event.has_periods && is_clock(&event.recorded) {
                values.type_.unit = owned("nanoseconds")?;
            }
            let source = file.source();
            if at == 0 {
                source.default_type = Some(owned(&values.type_.name)?);
            }
            if let Some(period) = event.period.filter(|_| is_only) {
                source.period = Some(Period {
                    value: period as f64,
                    exact: i64::try_from(period).ok().and_then(crate::model::inexact),
                    type_: Some(ValueType {
                        name: owned(&values.type_.name)?,
                        unit: owned(&values.type_.unit)?,
                    }),
                });
            }
            file.add_values(values)?;
        }
        Ok(())
    }
}

/// Whether the periods of an event are nanoseconds.
fn is_clock(event: &[u8]) -> bool {
    let end = event.iter().position(|byte| matches!(byte, b':' | b'/'));
    let name = &event[..end.unwrap_or(event.len())];
    name == b"cpu-clock" || name == b"task-clock"
}
