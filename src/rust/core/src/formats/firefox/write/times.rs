//! Times in the unit of the format.

use crate::model::{Period, Source};

/// Milliseconds between samples, if that is unknown.
pub const INTERVAL: f64 = 1.0;

pub fn milliseconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// The longest time between two moments that is written, in nanoseconds: 146 years. Times are the sum of a start and of
/// differences, which must have 64 bits also after rounding.
const LONGEST: u64 = i64::MAX as u64 / 2;

/// Milliseconds from `start` to `time`, in nanoseconds; `None` if they are too far apart.
pub fn elapsed(start: i64, time: i64) -> Option<f64> {
    let elapsed = time.checked_sub(start)?;
    (elapsed.unsigned_abs() <= LONGEST).then_some(milliseconds(elapsed))
}

/// The sampling period in milliseconds, if it is a time.
pub fn period(source: &Source) -> Option<f64> {
    let period = source.period.as_ref().and_then(Period::nanoseconds)?;
    Some(period / 1e6).filter(|&period| period > 0.0 && period.is_finite())
}
