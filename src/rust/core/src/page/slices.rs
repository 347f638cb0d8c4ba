//! Slices of an order: neighbouring samples, sorted by node and set of labels. Their size can be doubled.

use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, with_room};

/// A node and a set of labels, and the number of samples with them.
pub type Run = ((u32, u32), u32);

#[derive(Debug, Default)]
pub struct Slices {
    /// The numbers of slices that have samples, in ascending order. Two neighbours become the slice with half their number.
    numbers: Vec<u64>,
    /// The end of the runs of each slice.
    ends: Vec<usize>,
    runs: Vec<Run>,
}

impl Slices {
    /// `number`: the number of the slice of a sample.
    pub fn new(
        keys: impl Iterator<Item = (u32, u32)>,
        number: impl Fn(usize) -> u64,
        stop: Stop,
    ) -> Result<Slices> {
        let mut slices = Slices::default();
        let mut open = Vec::new();
        let mut current = number(0);
        for (at, key) in keys.enumerate() {
            cancel::at_row(at, stop)?;
            if number(at) != current {
                slices.add(current, &mut open)?;
                current = number(at);
            }
            open.try_push(key)?;
        }
        slices.add(current, &mut open)?;
        Ok(slices)
    }

    fn add(&mut self, number: u64, keys: &mut Vec<(u32, u32)>) -> Result<()> {
        keys.sort_unstable();
        for same in keys.chunk_by(|a, b| a == b) {
            self.runs.try_push((same[0], same.len() as u32))?;
        }
        keys.clear();
        self.numbers.try_push(number)?;
        self.ends.try_push(self.runs.len())
    }

    /// The number of slices.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    pub fn all_runs(&self) -> &[Run] {
        &self.runs
    }

    fn of(&self, slice: usize) -> &[Run] {
        let start = slice.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.runs[start..self.ends[slice]]
    }

    /// Slices of twice the size.
    pub fn halved(&self) -> Result<Slices> {
        let mut halved = Slices {
            numbers: Vec::new(),
            ends: Vec::new(),
            runs: with_room(self.runs.len())?,
        };
        let mut slice = 0;
        while slice < self.len() {
            let number = self.numbers[slice] / 2;
            let has_other = self
                .numbers
                .get(slice + 1)
                .is_some_and(|next| next / 2 == number);
            let other = if has_other { self.of(slice + 1) } else { &[] };
            merge(self.of(slice), other, &mut halved.runs)?;
            halved.numbers.try_push(number)?;
            halved.ends.try_push(halved.runs.len())?;
            slice += 1 + usize::from(has_other);
        }
        Ok(halved)
    }

    /// The first sample of each slice.
    pub fn firsts(&self) -> Result<Vec<u32>> {
        let mut firsts = with_room(self.len())?;
        let mut reached = 0;
        for slice in 0..self.len() {
            firsts.try_push(reached)?;
            reached += count(self.of(slice));
        }
        Ok(firsts)
    }

    /// About how many bits they take.
    pub fn bits(&self, sets: usize) -> f64 {
        bits_of_runs(&self.runs, sets)
    }

    pub fn finder(&self) -> Finder<'_> {
        let first = if self.len() > 0 { self.of(0) } else { &[] };
        Finder {
            slices: self,
            slice: 0,
            end: count(first) as usize,
        }
    }
}

fn count(runs: &[Run]) -> u32 {
    runs.iter().map(|(_, run)| run).sum()
}

/// Adds the runs of both slices, which are sorted.
fn merge(mut a: &[Run], mut b: &[Run], merged: &mut Vec<Run>) -> Result<()> {
    while let (Some((&one, rest_a)), Some((&two, rest_b))) = (a.split_first(), b.split_first()) {
        let run = match one.0.cmp(&two.0) {
            std::cmp::Ordering::Less => one,
            std::cmp::Ordering::Greater => two,
            std::cmp::Ordering::Equal => (one.0, one.1 + two.1),
        };
        if one.0 <= two.0 {
            a = rest_a;
        }
        if two.0 <= one.0 {
            b = rest_b;
        }
        merged.try_push(run)?;
    }
    merged.try_extend(a)?;
    merged.try_extend(b)
}

/// Finds the runs of samples in their recorded order.
pub struct Finder<'s> {
    slices: &'s Slices,
    slice: usize,
    /// The number of samples up to the end of the slice.
    end: usize,
}

impl Finder<'_> {
    pub fn run_of(&mut self, sample: usize, key: (u32, u32)) -> Option<usize> {
        while sample >= self.end && self.slice + 1 < self.slices.len() {
            self.slice += 1;
            self.end += count(self.slices.of(self.slice)) as usize;
        }
        let runs = self.slices.of(self.slice);
        let found = runs.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(self.slices.ends[self.slice] - runs.len() + found)
    }
}

/// About how many bits runs take in the compressed data: a digit and a comma are cheap if they repeat.
pub fn bits_of_runs(runs: &[Run], sets: usize) -> f64 {
    let bits_of_set = (sets as f64 + 1.0).log2();
    let mut last = (0, 0);
    let mut bits = 0.0;
    for &((node, set), run) in runs {
        bits += 2.0 + bits_of(u64::from(node.abs_diff(last.0))) + bits_of(u64::from(run) - 1);
        if set != last.1 {
            bits += bits_of_set;
        }
        last = (node, set);
    }
    bits
}

/// About how many bits a value takes.
pub fn bits_of_value(value: f64) -> f64 {
    let all_digits = 56.0;
    if value.fract() == 0.0 {
        4.0 + (1.0 + value.abs()).log2().min(all_digits)
    } else {
        all_digits
    }
}

fn bits_of(number: u64) -> f64 {
    f64::from(u64::BITS - number.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_ON: Stop = &|| false;

    fn runs(keys: &[u32]) -> Vec<Run> {
        let same = keys.chunk_by(|a, b| a == b);
        same.map(|keys| ((keys[0], 0), keys.len() as u32)).collect()
    }

    #[test]
    fn slices_of_twice_the_size_have_all_samples() {
        let keys = [3, 1, 3, 2, 5, 5, 1, 4, 2, 2];
        // Slices 4, 5 and 8, of four, three and three samples.
        let number = |at: usize| [4, 5, 8][[4, 7, 10].partition_point(|&end| end <= at)];
        let slices = Slices::new(keys.iter().map(|&key| (key, 0)), number, GO_ON).unwrap();
        assert_eq!(slices.firsts().unwrap(), [0, 4, 7]);
        assert_eq!(slices.all_runs()[..3], runs(&[1, 2, 3, 3]));
        let mut finder = slices.finder();
        let found = (0..10).map(|at| finder.run_of(at, (keys[at], 0)).unwrap());
        let found: Vec<_> = found.map(|run| slices.all_runs()[run].0.0).collect();
        assert_eq!(found, keys);
        let halved = slices.halved().unwrap();
        assert_eq!(halved.firsts().unwrap(), [0, 7]);
        assert_eq!(
            halved.all_runs()[..5],
            runs(&[1, 1, 2, 3, 3, 5, 5])[..4]
                .iter()
                .copied()
                .chain(runs(&[2, 2]))
                .collect::<Vec<_>>()[..5]
        );
        assert_eq!(halved.all_runs()[5..], runs(&[4]));
        let whole = halved.halved().unwrap().halved().unwrap().halved().unwrap();
        assert_eq!(whole.all_runs(), runs(&[1, 1, 2, 2, 2, 3, 3, 4, 5, 5]));
        assert_eq!(whole.len(), 1);
    }
}
