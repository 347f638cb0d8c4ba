//! Differences of two profiles: the values of one minus those of another one, its base. Values and
//! their sums may be negative, and the sum of all values may be 0 although functions have changed.
//!
//! Shares are therefore not relative to the sum of the values but to the sum of their absolute
//! values. `go tool pprof -diff_base` labels the samples of the base; if there are any, shares are
//! relative to them only, as in pprof (`computeTotal()` in `internal/report/report.go`).

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::Profile;

/// The label of samples of the base.
const LABEL: (&str, &str) = ("pprof::base", "true");

/// Which samples are those of the base of a difference.
pub struct BaseSamples(
    /// By sample; empty if there are none.
    Vec<bool>,
);

impl BaseSamples {
    pub fn new(profile: &Profile) -> Result<BaseSamples> {
        let text = |id| profile.strings.get(id);
        let mut is_base = Vec::new();
        for label in &profile.labels {
            if text(label.key) == LABEL.0 && label.str.map(text) == Some(LABEL.1) {
                is_base.try_fill(profile.samples.len(), false, "labels")?;
                is_base[label.sample] = true;
            }
        }
        Ok(BaseSamples(is_base))
    }

    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.0.get(row).copied().unwrap_or(false)
    }
}

/// The sum of absolute values, to which shares are relative.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Whole {
    pub all: f64,
    /// The part of samples of the base.
    pub base: f64,
}

impl Whole {
    #[inline]
    pub fn add(&mut self, value: f64, is_base: bool) {
        self.all += value.abs();
        if is_base {
            self.base += value.abs();
        }
    }

    pub fn get(self) -> f64 {
        if self.base > 0.0 { self.base } else { self.all }
    }
}
