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
            let unit = unit(&event.recorded);
            if event.has_periods && unit != Unit::Count {
                values.type_.unit = owned("nanoseconds")?;
            }
            let source = file.source();
            if at == 0 {
                source.default_type = Some(owned(&values.type_.name)?);
            }
            let is_period = is_only && unit != Unit::Duration;
            if let Some(period) = event.period.filter(|_| is_period) {
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

/// What the period of a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Count,
    /// The time between two samples of a clock, in nanoseconds.
    Clock,
    /// How long what was sampled took, in nanoseconds.
    Duration,
}

/// Names of events whose periods are times; all others are counted. Sources: the kernel's `perf_swevent_init_hrtimer()`,
/// perf's `off_cpu.c`, and the trace points of `trace/events/sched.h` whose argument is a `__perf_count()`.
const TIMES: [(&[u8], Unit); 8] = [
    (b"cpu-clock", Unit::Clock),
    (b"task-clock", Unit::Clock),
    (b"offcpu-time", Unit::Duration),
    (b"sched:sched_stat_blocked", Unit::Duration),
    (b"sched:sched_stat_iowait", Unit::Duration),
    (b"sched:sched_stat_runtime", Unit::Duration),
    (b"sched:sched_stat_sleep", Unit::Duration),
    (b"sched:sched_stat_wait", Unit::Duration),
];

/// The unit of an event, which may have modifiers, such as `cpu-clock:u` and `cpu-clock/period=1000/`.
fn unit(event: &[u8]) -> Unit {
    let is_end = |rest: &[u8]| matches!(rest.first(), None | Some(b':' | b'/'));
    let mut times = TIMES.iter();
    let found = times.find(|(name, _)| event.strip_prefix(*name).is_some_and(is_end));
    found.map_or(Unit::Count, |(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_names() {
        let names: [(Unit, &[&str]); 3] = [
            (
                Unit::Clock,
                &[
                    "cpu-clock",
                    "cpu-clock:u",
                    "cpu-clock/period=1/",
                    "task-clock:ppp",
                ],
            ),
            (
                Unit::Duration,
                &[
                    "offcpu-time",
                    "offcpu-time:u",
                    "sched:sched_stat_sleep",
                    "sched:sched_stat_wait:k",
                    "sched:sched_stat_iowait",
                    "sched:sched_stat_blocked",
                    "sched:sched_stat_runtime",
                ],
            ),
            (
                Unit::Count,
                &[
                    "",
                    "cycles",
                    "cpu-clocks",
                    "my-cpu-clock",
                    "offcpu-time2",
                    "sched:sched_switch",
                    "sched:sched_stat",
                    "sched:sched_stat_sleepy",
                    "page-faults:u",
                ],
            ),
        ];
        for (expected, names) in names {
            for name in names {
                assert_eq!(unit(name.as_bytes()), expected, "{name}");
            }
        }
    }
}
