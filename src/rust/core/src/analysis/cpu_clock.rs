//! Compares the time that samples show with the CPU time that R's thread used by the clock of the system.
//!
//! R's profiler loses ticks if all processors are busy or its interval is shorter than that of the system's timer, and
//! gets more of them if other threads compute. Shares hold nevertheless, but amounts do not. So recorders of this package
//! store the number of ticks and the clock, as attributes of the source, and whatever shows an amount says so if it differs.
//!
//! Samples that were removed were not lost. So the comparison is made only while a source has as many samples as ticks.

use super::source_facts::{attribute, counts};
use crate::error::Result;
use crate::message;
use crate::model::{Period, Profile, Source};

/// The number of ticks at which R computed, and the CPU time of its thread in nanoseconds.
pub const TICKS: &str = "profile.cpu.ticks";
pub const CLOCK: &str = "profile.cpu.clock";
/// How long R's thread waited for a processor, and how long its cgroup was throttled meanwhile, in nanoseconds.
pub const DELAY: &str = "profile.cpu.delay";
pub const THROTTLED: &str = "profile.cpu.throttled";
/// What a tick stands for, in intervals, if the values of the samples were already multiplied by it.
pub const FACTOR: &str = "profile.cpu.factor";

/// What a tick stands for, in intervals, if the clock shows so many nanoseconds. A process that had no processor at all may
/// have been met where it computes. A tick stands for a nanosecond at least, so that no share is lost.
pub fn factor(clock: u64, ticks: u64, interval: f64) -> f64 {
    clock.max(ticks) as f64 / (ticks as f64 * interval)
}

/// The time of samples differs from the clock if it does by more than this part of it,
const TOLERANCE: f64 = 0.1;
/// and by more than this number of intervals: the first and the last one are not complete.
const INTERVALS: f64 = 2.0;

/// The CPU time of all sources with counts of samples, if it is known and no sample was removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// The counted samples.
    pub ticks: f64,
    /// What they stand for, and the CPU time by the clock, in nanoseconds.
    pub sampled: f64,
    pub clock: f64,
    /// The longest interval, in nanoseconds.
    interval: f64,
    /// Whether each sample stands for the same time.
    is_uniform: bool,
    /// Whether all numbers are attributes, not comments.
    are_attributes: bool,
}

impl CpuTime {
    pub fn of(profile: &Profile) -> Result<Option<CpuTime>> {
        let mut all: Option<CpuTime> = None;
        for (source, count) in profile.sources.iter().zip(counts(profile)?) {
            match CpuTime::of_source(profile, source, count) {
                Some(one) => all = Some(all.map_or(one, |all| all.and(one))),
                // Allocations that were recorded one by one have no counts.
                None if count == 0.0 => {}
                None => return Ok(None),
            }
        }
        Ok(all)
    }

    /// `count`: of the samples of this source.
    pub fn of_source(profile: &Profile, source: &Source, count: f64) -> Option<CpuTime> {
        let period = source.period.as_ref();
        let period = period.and_then(Period::plausible_nanoseconds)?;
        let number = |key| stored(profile, source, key)?.parse::<f64>().ok();
        let (ticks, clock) = (number(TICKS)?, number(CLOCK)?);
        let is_whole = (count - ticks).abs() < 0.5 && clock.is_finite() && clock >= 0.0;
        let is_whole = is_whole && stored(profile, source, FACTOR).is_none();
        is_whole.then_some(CpuTime {
            ticks,
            sampled: count * period,
            clock,
            interval: period,
            is_uniform: true,
            are_attributes: attribute(profile, source, CLOCK).is_some(),
        })
    }

    fn and(self, other: CpuTime) -> CpuTime {
        CpuTime {
            ticks: self.ticks + other.ticks,
            sampled: self.sampled + other.sampled,
            clock: self.clock + other.clock,
            interval: self.interval.max(other.interval),
            is_uniform: self.is_uniform && other.is_uniform && self.interval == other.interval,
            are_attributes: self.are_attributes && other.are_attributes,
        }
    }

    /// Whether amounts of time are so wrong that users should know.
    pub fn differs(&self) -> bool {
        let by = (self.sampled - self.clock).abs();
        by > TOLERANCE * self.clock && by > INTERVALS * self.interval
    }

    /// Comments that store this for formats without attributes, in which the sources become one.
    pub fn comments(&self) -> Option<[String; 2]> {
        let Self { ticks, clock, .. } = self;
        (self.is_uniform && self.are_attributes).then(|| {
            [
                message!("{TICKS}: {ticks:.0}"),
                message!("{CLOCK}: {clock:.0}"),
            ]
        })
    }
}

/// The CPU time that R's thread used, in seconds, if the time of the samples differs from it.
pub fn used_seconds(profile: &Profile) -> Result<Option<f64>> {
    let time = CpuTime::of(profile)?.filter(CpuTime::differs);
    Ok(time.map(|time| time.clock / 1e9))
}

/// The value of an attribute of a source, or of a comment such as `profile.cpu.ticks: 170`.
pub(super) fn stored<'p>(profile: &'p Profile, source: &Source, key: &str) -> Option<&'p str> {
    let commented = || {
        let mut comments = source.comments.iter().map(|&id| profile.strings.get(id));
        comments.find_map(|comment| comment.strip_prefix(key)?.strip_prefix(": "))
    };
    attribute(profile, source, key).or_else(commented)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing;
    use crate::model::{Attribute, AttributeValue, SourceId, ValueKind, ValueType};

    /// Two sources, with counts that add up to 100 and 50, a sample every 10 ms, and these ticks and clocks.
    fn profile(about: [Option<(&str, &str)>; 2]) -> Profile {
        let mut profile = testing::profile(&[("f>g", 60.0), ("h", 50.0), ("f", 40.0)]);
        for (row, about) in about.into_iter().enumerate() {
            let mut attributes = Vec::new();
            if let Some((ticks, clock)) = about {
                for (key, text) in [(TICKS, ticks), (CLOCK, clock)] {
                    let [key, text] = [key, text].map(|text| profile.strings.intern(text).unwrap());
                    let kind = ValueKind::Int;
                    attributes.push(Attribute::new(key, AttributeValue { kind, text }));
                }
            }
            let source = &mut profile.sources[row];
            source.attributes = attributes;
            source.period = Some(Period {
                value: 1e4,
                exact: None,
                type_: Some(ValueType {
                    name: "cpu".to_owned(),
                    unit: "microseconds".to_owned(),
                }),
            });
        }
        profile
    }

    fn used(about: [Option<(&str, &str)>; 2]) -> Option<f64> {
        used_seconds(&profile(about)).unwrap()
    }

    #[test]
    fn more_or_less_than_a_tenth_is_said() {
        let second = Some(("50", "500000000"));
        for (clock, expected) in [
            ("1000000000", None),
            ("2000000000", Some(2.5)),
            // 1.5 s of samples differ from 1.667 s and from 1.363 s by a tenth.
            ("1166000000", None),
            ("1167000000", Some(1.667)),
            ("864000000", None),
            ("863000000", Some(1.363)),
            ("0", Some(0.5)),
        ] {
            assert_eq!(used([Some(("100", clock)), second]), expected, "{clock}");
        }
    }

    #[test]
    fn two_intervals_are_chance() {
        // 0.05 s by one source alone, in intervals of 10 ms.
        let mut few = profile([None, Some(("5", "0"))]);
        few.samples.source.each().unwrap().fill(SourceId(1));
        few.values[0]
            .column
            .each()
            .unwrap()
            .copy_from_slice(&[5.0, 0.0, 0.0]);
        for (clock, expected) in [
            ("70000000", None),
            ("71000000", Some(0.071)),
            ("30000000", None),
        ] {
            few.sources[1].attributes[1].value.text = few.strings.intern(clock).unwrap();
            assert_eq!(used_seconds(&few).unwrap(), expected, "{clock}");
        }
    }

    #[test]
    fn values_that_have_the_sum_of_the_clock_are_not_compared() {
        let mut scaled = profile([Some(("100", "2000000000")), Some(("50", "900000000"))]);
        assert_eq!(used_seconds(&scaled).unwrap(), Some(2.9));
        let comment = format!("{FACTOR}: 2");
        let comment = scaled.strings.intern(&comment).unwrap();
        scaled.sources[0].comments.push(comment);
        assert_eq!(used_seconds(&scaled).unwrap(), None);
    }

    #[test]
    fn only_whole_recordings_are_compared() {
        let known = Some(("50", "900000000"));
        // A source of which nothing is known, samples that were removed, and numbers that are none.
        for first in [
            None,
            Some(("101", "2000000000")),
            Some(("", "2000000000")),
            Some(("100", "inf")),
            Some(("100", "-1")),
        ] {
            assert_eq!(used([first, known]), None, "{first:?}");
        }
        let mut without_period = profile([Some(("100", "2000000000")), known]);
        without_period.sources[0].period = None;
        assert_eq!(used_seconds(&without_period).unwrap(), None);
        // A source without counts, as of allocations.
        let mut allocations = profile([None, known]);
        let counts = allocations.values[0].column.each().unwrap();
        counts.copy_from_slice(&[f64::NAN, 50.0, f64::NAN]);
        assert_eq!(used_seconds(&allocations).unwrap(), Some(0.9));
    }

    #[test]
    fn comments_store_the_same() {
        let mut profile = profile([Some(("100", "2000000000")), Some(("50", "500000000"))]);
        let time = CpuTime::of(&profile).unwrap().unwrap();
        let comments = time.comments().unwrap();
        assert_eq!(
            comments,
            ["profile.cpu.ticks: 150", "profile.cpu.clock: 2500000000"]
        );
        for source in &mut profile.sources {
            source.attributes.clear();
        }
        for sample in profile.samples.source.each().unwrap() {
            *sample = SourceId(0);
        }
        for comment in comments {
            let comment = profile.strings.intern(&comment).unwrap();
            profile.sources[0].comments.push(comment);
        }
        let time = CpuTime::of(&profile).unwrap().unwrap();
        assert_eq!((time.ticks, time.clock), (150.0, 2.5e9));
        // They are written as comments anyway.
        assert_eq!(time.comments(), None);
    }

    #[test]
    fn different_intervals_are_not_stored_as_comments() {
        let mut profile = profile([Some(("100", "2000000000")), Some(("50", "500000000"))]);
        profile.sources[1].period.as_mut().unwrap().value = 2e4;
        let time = CpuTime::of(&profile).unwrap().unwrap();
        assert_eq!(time.sampled, 2e9);
        assert_eq!(time.comments(), None);
    }
}
