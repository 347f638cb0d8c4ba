//! Samples of R's profiler as amounts of time, by readings of clocks that another process has taken meanwhile.
//!
//! A recording of several processes has one unit for all of them, and the time of each sample. R's profiler counts ticks,
//! at equal distances of its clock, and notes no times: these follow from the readings. It loses ticks if all processors
//! are busy, so one factor brings their sum to the CPU clock, as in recordings from outside.

use super::cpu_clock::{CLOCK, FACTOR, TICKS, factor};
use super::recorded::RowKinds;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, owned};
use crate::message;
use crate::model::known_types::{CPU, KnownType, SAMPLES};
use crate::model::{
    Attribute, AttributeValue, Period, Profile, SourceId, ValueKind, ValueType, Values,
};

/// If a tick stood for more intervals, the profiler did not run all the time.
const MOST: f64 = 3.0;

/// Readings of the clocks, in order: the time, in nanoseconds since 1970, and the CPU time of the process, in nanoseconds.
#[derive(Debug)]
pub struct Readings {
    dates: Vec<f64>,
    cpu: Vec<f64>,
}

impl Readings {
    /// Those between two dates, with the dates themselves. None if there are fewer than two.
    pub fn between(dates: &[f64], cpu: &[f64], from: f64, to: f64) -> Result<Option<Readings>> {
        if dates.len() < 2 || dates.len() != cpu.len() || to.partial_cmp(&from).is_none() {
            return Ok(None);
        }
        let end = |date| (date, interpolated(date, dates, cpu));
        let within = dates.iter().copied().zip(cpu.iter().copied());
        let within = within.filter(|(date, _)| *date > from && *date < to);
        let mut readings = Readings {
            dates: Vec::new(),
            cpu: Vec::new(),
        };
        let mut last = (f64::MIN, 0.0);
        for (date, cpu) in [end(from)].into_iter().chain(within).chain([end(to)]) {
            // Unless a clock was set back.
            if date > last.0 && cpu >= last.1 {
                last = (date, cpu);
                readings.dates.try_push(date)?;
                readings.cpu.try_push(cpu)?;
            }
        }
        Ok(Some(readings))
    }

    /// The CPU time between the first and the last one.
    fn used(&self) -> f64 {
        self.cpu.last().copied().unwrap_or(0.0) - self.cpu.first().copied().unwrap_or(0.0)
    }

    /// When so many samples were taken, at equal distances of a clock.
    fn times(&self, count: usize, by_cpu: bool) -> Result<Vec<i64>> {
        let passed = if by_cpu { &self.cpu } else { &self.dates };
        let (first, last) = (passed.first(), passed.last());
        let (first, last) = (first.copied().unwrap_or(0.0), last.copied().unwrap_or(0.0));
        let times = (1..=count).map(|number| {
            let at = first + (last - first) * number as f64 / count as f64;
            interpolated(at, passed, &self.dates) as i64
        });
        times.try_vec()
    }
}

/// The value of `to` where `from`, which does not decrease, first has this one: a process that begins to wait has stopped to
/// compute then, not when it goes on.
fn interpolated(at: f64, from: &[f64], to: &[f64]) -> f64 {
    let next = from.partition_point(|&one| one < at);
    let value = |of: &[f64], row: usize| of.get(row).copied();
    let before = next.checked_sub(1);
    let before = before.and_then(|row| Some((value(from, row)?, value(to, row)?)));
    let after = value(from, next).zip(value(to, next));
    match (before, after) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (at - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some((_, y))) => y,
        (None, None) => 0.0,
    }
}

/// Gives samples of the first source, which are counts of ticks of this clock, amounts of time and times. `duration`: of
/// the recording, in nanoseconds.
pub fn by_clock(
    profile: &mut Profile,
    clock: &KnownType,
    duration: i64,
    dates: &[f64],
    cpu: &[f64],
) -> Result<()> {
    let Some(source) = profile.source_ids().next() else {
        return Ok(());
    };
    let about = &mut profile.sources[source.row()];
    // Periods are whole numbers of microseconds.
    let interval = about
        .period
        .as_ref()
        .and_then(Period::plausible_nanoseconds);
    let interval = interval.unwrap_or(0.0).round();
    about.period = Some(Period {
        value: interval,
        exact: None,
        type_: Some(ValueType {
            name: owned(clock.name)?,
            unit: owned(clock.unit)?,
        }),
    });
    about.default_type = Some(owned(clock.name)?);
    about.duration = Some(duration);
    let from = about.timestamp.unwrap_or(f64::NAN) * 1e9;
    let readings = Readings::between(dates, cpu, from, from + duration as f64)?;
    let by_cpu = *clock == CPU;
    set_times(profile, source, readings.as_ref(), by_cpu)?;
    let Some(ticks) = set_amounts(profile, source, clock, interval)? else {
        return Ok(());
    };
    match readings {
        Some(readings) if by_cpu => scale(profile, source, &ticks, interval, readings.used()),
        _ => Ok(()),
    }
}

/// The samples of a source, without allocations that were recorded beside them.
fn rows_of(profile: &Profile, source: SourceId) -> Result<Vec<usize>> {
    let kinds = RowKinds::new(profile)?;
    let rows = profile.samples.source.iter().enumerate();
    let rows = rows.filter(|(row, of)| **of == source && !kinds.is_allocation(*row));
    rows.map(|(row, _)| row).try_vec()
}

fn set_times(
    profile: &mut Profile,
    source: SourceId,
    readings: Option<&Readings>,
    by_cpu: bool,
) -> Result<()> {
    let rows = rows_of(profile, source)?;
    let Some(readings) = readings else {
        return Ok(());
    };
    let times = readings.times(rows.len(), by_cpu)?;
    let samples = &mut profile.samples;
    let sources = &samples.source;
    samples.times.retain(|(row, _)| sources[*row] != source);
    samples.times.try_extend_from(rows.into_iter().zip(times))?;
    samples.times.sort_unstable_by_key(|(row, _)| *row);
    Ok(())
}

/// Moves counts of samples to a column of time, and returns their rows; `None` if there are none.
fn set_amounts(
    profile: &mut Profile,
    source: SourceId,
    clock: &KnownType,
    interval: f64,
) -> Result<Option<Vec<usize>>> {
    let rows = rows_of(profile, source)?;
    let is = |known: &KnownType| {
        let (name, unit) = known.key();
        move |values: &Values| values.type_.name == name && values.type_.unit == unit
    };
    let Some(at) = profile.values.iter().position(is(&SAMPLES)) else {
        return Ok(None);
    };
    let mut time = Values::absent_known(clock, profile.samples.len())?;
    let mut ticks = Vec::new();
    let counts = profile.values[at].column.each()?;
    let amounts = time.column.each()?;
    for row in rows {
        if !counts[row].is_nan() {
            amounts[row] = counts[row] * interval;
            counts[row] = f64::NAN;
            ticks.try_push(row)?;
        }
    }
    if counts.iter().all(|count| count.is_nan()) {
        profile.values[at] = time;
    } else {
        profile.values.try_push(time)?;
        let last = profile.values.len() - 1;
        profile.values.swap(at, last);
    }
    Ok((!ticks.is_empty()).then_some(ticks))
}

/// Brings the time of the ticks to that of the clock.
fn scale(
    profile: &mut Profile,
    source: SourceId,
    ticks: &[usize],
    interval: f64,
    clock: f64,
) -> Result<()> {
    let factor = factor(clock as u64, ticks.len() as u64, interval);
    if !factor.is_finite() || factor > MOST {
        return Ok(());
    }
    let (name, unit) = CPU.key();
    let mut values = profile.values.iter_mut();
    if let Some(values) = values.find(|v| v.type_.name == name && v.type_.unit == unit) {
        let amounts = values.column.each()?;
        for &row in ticks {
            amounts[row] = (amounts[row] * factor).round();
        }
    }
    let about = [
        (TICKS, ValueKind::Int, message!("{}", ticks.len())),
        (CLOCK, ValueKind::Int, message!("{clock:.0}")),
        (FACTOR, ValueKind::Double, message!("{factor}")),
    ];
    for (key, kind, text) in about {
        let key = profile.strings.intern(key)?;
        let text = profile.strings.intern(&text)?;
        let attribute = Attribute::new(key, AttributeValue { kind, text });
        profile.sources[source.row()]
            .attributes
            .try_push(attribute)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing;
    use crate::model::known_types::WALL;

    const MS: f64 = 1e6;
    /// 10 ms of CPU time in the first 10 ms, then 20 ms of waiting, then 30 ms of CPU time.
    const DATES: [f64; 4] = [0.0, 10.0 * MS, 30.0 * MS, 60.0 * MS];
    const USED: [f64; 4] = [0.0, 10.0 * MS, 10.0 * MS, 40.0 * MS];

    /// Four samples of one source, which began at 0, and one of another source.
    fn recorded() -> Profile {
        let mut profile = testing::profile(&[("f", 1.0); 5]);
        let ids: Vec<_> = profile.source_ids().collect();
        let sources = profile.samples.source.each().unwrap();
        sources.copy_from_slice(&[ids[0], ids[0], ids[1], ids[0], ids[0]]);
        profile.sources[0].timestamp = Some(0.0);
        profile.sources[0].period = Some(Period::from_rprof(10_000).unwrap());
        profile
    }

    fn milliseconds(profile: &Profile) -> Vec<(usize, i64)> {
        let times = profile.samples.times.iter();
        times
            .map(|(row, time)| (*row, (*time as f64 / MS).round() as i64))
            .collect()
    }

    fn attributes(profile: &Profile) -> Vec<&str> {
        let attributes = profile.sources[0].attributes.iter();
        attributes
            .map(|one| profile.strings.get(one.value.text))
            .collect()
    }

    fn values(profile: &Profile, (name, unit): (&str, &str)) -> Vec<f64> {
        profile
            .value(name, unit)
            .unwrap()
            .column
            .iter()
            .copied()
            .collect()
    }

    #[test]
    fn samples_get_the_times_and_the_amounts_of_the_cpu_clock() {
        let mut profile = recorded();
        by_clock(&mut profile, &CPU, 60_000_000, &DATES, &USED).unwrap();
        assert_eq!(milliseconds(&profile), [(0, 10), (1, 40), (3, 50), (4, 60)]);
        let amounts = values(&profile, CPU.key());
        assert_eq!(amounts[..2], [10.0 * MS, 10.0 * MS]);
        assert!(amounts[2].is_nan());
        // The other source keeps its counts.
        let counts = values(&profile, SAMPLES.key());
        assert_eq!(counts[2], 1.0);
        assert!(counts[0].is_nan());
        assert_eq!(attributes(&profile), ["4", "40000000", "1"]);
        let source = &profile.sources[0];
        assert_eq!(source.default_type.as_deref(), Some("cpu"));
        assert_eq!(source.duration, Some(60_000_000));
        let period = source.period.as_ref().unwrap();
        assert_eq!(period.nanoseconds(), Some(10.0 * MS));
    }

    #[test]
    fn lost_ticks_are_made_up_for_by_one_factor() {
        let mut profile = recorded();
        // The part between 5 and 50 ms: four ticks in 25 ms of CPU time.
        profile.sources[0].timestamp = Some(0.005);
        by_clock(&mut profile, &CPU, 45_000_000, &DATES, &USED).unwrap();
        assert_eq!(values(&profile, CPU.key())[0], 6.25 * MS);
        assert_eq!(attributes(&profile), ["4", "25000000", "0.625"]);
        // The code has stopped the profiler after a tick.
        let mut profile = recorded();
        let all = [0.0, 40.0, 80.0, 400.0].map(|ms| ms * MS);
        by_clock(&mut profile, &CPU, 400_000_000, &all, &all).unwrap();
        assert_eq!(values(&profile, CPU.key())[0], 10.0 * MS);
        assert!(attributes(&profile).is_empty());
    }

    #[test]
    fn by_the_wall_clock_samples_are_at_equal_distances() {
        let mut profile = recorded();
        by_clock(&mut profile, &WALL, 60_000_000, &DATES, &USED).unwrap();
        assert_eq!(milliseconds(&profile), [(0, 15), (1, 30), (3, 45), (4, 60)]);
        assert_eq!(values(&profile, WALL.key())[0], 10.0 * MS);
        assert!(attributes(&profile).is_empty());
    }

    #[test]
    fn without_readings_a_tick_stands_for_an_interval() {
        for (dates, used) in [(&[][..], &[][..]), (&[1.0], &[1.0])] {
            let mut profile = recorded();
            by_clock(&mut profile, &CPU, 60_000_000, dates, used).unwrap();
            assert!(profile.samples.times.is_empty());
            assert_eq!(values(&profile, CPU.key())[0], 10.0 * MS);
            assert!(attributes(&profile).is_empty());
        }
    }

    #[test]
    fn a_clock_that_is_set_back_is_not_believed() {
        let readings = [
            ([0.0, 40.0, 20.0, 60.0], [0.0, 20.0, 10.0, 40.0]),
            ([0.0, 40.0, 50.0, 60.0], [0.0, 20.0, 10.0, 40.0]),
        ];
        for (dates, used) in readings {
            let mut profile = recorded();
            let [dates, used] = [dates, used].map(|all| all.map(|ms| ms * MS));
            by_clock(&mut profile, &CPU, 60_000_000, &dates, &used).unwrap();
            let times = [(0, 20), (1, 40), (3, 50), (4, 60)];
            assert_eq!(milliseconds(&profile), times);
        }
    }
}
