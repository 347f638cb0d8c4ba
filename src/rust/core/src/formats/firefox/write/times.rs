//! Times in the unit of the format.

use crate::model::{Period, Source};

/// Milliseconds between samples, if that is unknown.
pub const INTERVAL: f64 = 1.0;

pub fn milliseconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// The sampling period in milliseconds, if it is a time.
pub fn period(source: &Source) -> Option<f64> {
    let period = source.period.as_ref().and_then(Period::nanoseconds)?;
    Some(period / 1e6).filter(|&period| period > 0.0 && period.is_finite())
}
