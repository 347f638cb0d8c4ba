//! Differences of two profiles: the values of a profile minus the values of its base. Values and
//! their sums may be negative, and the sum of all values may be 0 although functions have changed.
//!
//! Shares are therefore not relative to the sum of the values but to the sum of their absolute
//! values. `go tool pprof -diff_base` labels the samples of the base; if a profile has such
//! samples, shares are relative to them only, as in pprof (`computeTotal()` in
//! `internal/report/report.go`).

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::Profile;

/// The label of samples of the base.
const LABEL: (&str, &str) = ("pprof::base", "true");

/// Which samples belong to the base of a difference.
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
                is_base.try_fill(profile.samples.len(), false)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::profile;
    use crate::model::Label;

    #[test]
    fn the_base_counts_alone_if_it_is_labelled() {
        let mut whole = Whole::default();
        whole.add(5.0, false);
        whole.add(-7.0, false);
        assert_eq!(whole.get(), 12.0);
        whole.add(-3.0, true);
        assert_eq!(whole.get(), 3.0);
    }

    #[test]
    fn samples_of_the_base_have_a_label() {
        let mut profile = profile(&[("f", 1.0), ("g", -1.0), ("h", 2.0)]);
        assert!((0..3).all(|row| !BaseSamples::new(&profile).unwrap().contains(row)));
        let [key, other, value] =
            ["pprof::base", "base", "true"].map(|text| profile.strings.intern(text).unwrap());
        let label = |sample, key| Label {
            str: Some(value),
            ..Label::new(sample, key)
        };
        profile.labels = vec![label(0, other), label(1, key)];
        let base = BaseSamples::new(&profile).unwrap();
        assert_eq!(
            [0, 1, 2].map(|row| base.contains(row)),
            [false, true, false]
        );
    }
}
