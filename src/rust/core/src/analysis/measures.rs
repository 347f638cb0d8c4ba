//! The data for viewers that show one number for each sample: for each sample type the values of the samples of a
//! source, either in order or summed by stack.

use super::sample_types::{WrittenType, check_sums, written_types};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::model::known_types::{ALLOC_SIZE, Role, SAMPLES, known_type};
use crate::model::{Profile, SourceId, StackId, is_summable, unit_of_time};

/// A sample type, or the count of samples of a profile without values.
pub struct Measure<'a>(Option<WrittenType<'a>>);

impl<'a> Measure<'a> {
    /// The count of samples.
    pub const NONE: Measure<'static> = Measure(None);

    /// The types whose sums are meaningful, in the order in which they are written.
    pub fn all(profile: &'a Profile) -> Result<Vec<Measure<'a>>> {
        check_sums(profile)?;
        let mut all = Vec::new();
        for type_ in written_types(profile, true)? {
            if is_summable(type_.key, type_.unit) {
                all.try_push(Measure(Some(type_)))?;
            }
        }
        if all.is_empty() && profile.values.is_empty() {
            all.try_push(Measure(None))?;
        }
        Ok(all)
    }

    pub fn name(&self) -> &'a str {
        self.0.as_ref().map_or(SAMPLES.name, |type_| type_.name)
    }

    /// Its name where nothing else says how it was recorded: a lower bound must not have the name of exact memory there.
    pub fn own_name(&self) -> &'a str {
        match &self.0 {
            Some(type_) if type_.is_sampled_memory() => ALLOC_SIZE.name,
            _ => self.name(),
        }
    }

    /// Its name in the profile.
    pub fn key(&self) -> &'a str {
        self.0.as_ref().map_or(SAMPLES.name, |type_| type_.key)
    }

    pub fn unit(&self) -> &'a str {
        self.0.as_ref().map_or(SAMPLES.unit, |type_| type_.unit)
    }

    pub fn as_type(&self) -> Option<&WrittenType<'a>> {
        self.0.as_ref()
    }

    /// The number of nanoseconds in its unit, if it is a unit of time.
    pub fn nanoseconds(&self) -> Option<f64> {
        unit_of_time(self.unit())
    }

    /// The same, if it is the time of samples and not a share of other times.
    pub fn nanoseconds_of_samples(&self) -> Option<f64> {
        let known = known_type(self.key(), self.unit());
        let is_share = known.is_some_and(|known| known.role == Role::Share);
        self.nanoseconds().filter(|_| !is_share)
    }

    /// The value of a sample; NaN if it has none.
    #[inline]
    pub fn value(&self, row: usize, source: SourceId) -> f64 {
        match &self.0 {
            Some(type_) => type_.number(row, source),
            None => 1.0,
        }
    }
}

/// The samples of a source with the values of a type.
#[derive(Clone, Copy)]
pub struct Measured<'m, 'a> {
    pub profile: &'m Profile,
    pub source: SourceId,
    pub rows: &'m [usize],
    pub measure: &'m Measure<'a>,
}

impl Measured<'_, '_> {
    /// Calls `each` with the samples in their order; consecutive samples with equal stacks are merged. Samples
    /// without a value, or with 0, are omitted. Values that are negative or infinite are also omitted; returns their
    /// number.
    pub fn runs(
        self,
        stop: Stop,
        mut each: impl FnMut(StackId, f64) -> Result<()>,
    ) -> Result<usize> {
        let mut run: Option<(StackId, f64)> = None;
        let left_out = self.each(stop, |stack, value| {
            match &mut run {
                Some((last, sum)) if *last == stack => *sum += value,
                _ => {
                    if let Some((stack, sum)) = run.replace((stack, value)) {
                        each(stack, sum)?;
                    }
                }
            }
            Ok(())
        })?;
        if let Some((stack, sum)) = run {
            each(stack, sum)?;
        }
        Ok(left_out)
    }

    /// Passes the sum of each stack to `each`, with all samples of equal stacks merged, in the order of their first samples.
    /// `sums` has a zero for each stack of the profile, and has zeros again afterwards: zeros of its own for each source
    /// would take the product of sources and stacks.
    pub fn sums(
        self,
        sums: &mut [f64],
        stop: Stop,
        mut each: impl FnMut(StackId, f64) -> Result<()>,
    ) -> Result<usize> {
        let mut order = Vec::new();
        let left_out = self.each(stop, |stack, value| {
            let sum = &mut sums[stack.row()];
            if *sum == 0.0 {
                order.try_push(stack)?;
            }
            *sum += value;
            Ok(())
        })?;
        for (row, &stack) in order.iter().enumerate() {
            cancel::at_row(row, stop)?;
            each(stack, std::mem::take(&mut sums[stack.row()]))?;
        }
        Ok(left_out)
    }

    fn each(self, stop: Stop, mut each: impl FnMut(StackId, f64) -> Result<()>) -> Result<usize> {
        let mut left_out = 0;
        for (count, &row) in self.rows.iter().enumerate() {
            cancel::at_row(count, stop)?;
            let value = self.measure.value(row, self.source);
            if value > 0.0 && value.is_finite() {
                each(self.profile.samples.stack[row], value)?;
            } else if value != 0.0 && !value.is_nan() {
                left_out += 1;
            }
        }
        Ok(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Source, Values};

    const GO_ON: Stop = &|| false;

    #[test]
    fn sums_of_sources_share_their_space() {
        let mut profile = Profile::default();
        let all: Vec<_> = (0..2)
            .map(|_| profile.add_source(Source::default()).unwrap())
            .collect();
        let mut values = Values::absent("time", "nanoseconds", 0).unwrap();
        let file = profile.strings.intern("a.R").unwrap();
        let stacks = ["f", "g"].map(|name| {
            let frame = profile.frame(name, file, 1).unwrap();
            profile.stacks.intern(&[frame]).unwrap()
        });
        for (row, (source, stack)) in [(0, 0), (0, 1), (0, 0), (1, 1), (1, 0)]
            .into_iter()
            .enumerate()
        {
            profile.samples.source.try_push(all[source]).unwrap();
            profile.samples.stack.push(stacks[stack]);
            values
                .column
                .try_fill(row + 1, f64::from(1 << row))
                .unwrap();
        }
        profile.values.push(values);
        let measures = Measure::all(&profile).unwrap();
        let mut sums = vec![0.0; profile.stacks.len()];
        let mut of = |source: usize, rows: &[usize]| {
            let measured = Measured {
                profile: &profile,
                source: all[source],
                rows,
                measure: &measures[0],
            };
            let mut found = Vec::new();
            let each = |stack, value| found.try_push((stack, value));
            measured.sums(&mut sums, GO_ON, each).unwrap();
            assert!(sums.iter().all(|&sum| sum == 0.0));
            found
        };
        assert_eq!(of(0, &[0, 1, 2]), [(stacks[0], 5.0), (stacks[1], 2.0)]);
        assert_eq!(of(1, &[3, 4]), [(stacks[1], 8.0), (stacks[0], 16.0)]);
    }
}
