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
            let has_other = self.numbers.get(slice + 1).is_some_and(|next| next / 2 == number);
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
