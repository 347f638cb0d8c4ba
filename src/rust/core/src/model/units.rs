//! Units of one quantity, which can be converted into each other.
//!
//! Other tools record the same quantity in different units: CPU time in nanoseconds or milliseconds, memory in bytes or
//! kilobytes. Profiles keep the unit that was recorded; where values of several units meet, they are converted into the
//! first one.

use super::numbers::{inexact, is_exact, whole};
use super::{Profile, Values};
use crate::error::Result;
use crate::limits::memory::TryGrow;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    Time,
    Memory,
}

/// The size of a unit: its nanoseconds, or its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    pub dimension: Dimension,
    size: u64,
}

const KIB: u64 = 1 << 10;
const SECOND: u64 = 1_000_000_000;

/// Names of units, in lower case and without a plural, and their sizes. Those of memory are as in pprof, for which a
/// kilobyte has 1,024 bytes (`internal/measurement` of pprof), and as in OpenTelemetry (UCUM), which tells `kBy` and `KiBy`
/// apart.
const UNITS: [(&[&str], Dimension, u64); 16] = [
    (&["nanosecond", "ns"], Dimension::Time, 1),
    (
        &["microsecond", "us", "\u{b5}s", "\u{3bc}s"],
        Dimension::Time,
        1000,
    ),
    (&["millisecond", "ms"], Dimension::Time, 1_000_000),
    (&["second", "sec", "s"], Dimension::Time, SECOND),
    (&["minute", "min"], Dimension::Time, 60 * SECOND),
    (&["hour", "hr", "h"], Dimension::Time, 3600 * SECOND),
    (&["byte", "b", "by"], Dimension::Memory, 1),
    (&["kby"], Dimension::Memory, 1000),
    (&["mby"], Dimension::Memory, 1_000_000),
    (&["gby"], Dimension::Memory, 1_000_000_000),
    (
        &["kilobyte", "kb", "kbyte", "kib", "kibibyte", "kiby"],
        Dimension::Memory,
        KIB,
    ),
    (
        &["megabyte", "mb", "mbyte", "mib", "mebibyte", "miby"],
        Dimension::Memory,
        KIB * KIB,
    ),
    (
        &["gigabyte", "gb", "gbyte", "gib", "gibibyte", "giby"],
        Dimension::Memory,
        KIB * KIB * KIB,
    ),
    (
        &["terabyte", "tb", "tbyte", "tib", "tebibyte", "tiby"],
        Dimension::Memory,
        KIB * KIB * KIB * KIB,
    ),
    (
        &["petabyte", "pb", "pbyte", "pib", "pebibyte", "piby"],
        Dimension::Memory,
        KIB * KIB * KIB * KIB * KIB,
    ),
    (&["day", "d"], Dimension::Time, 86_400 * SECOND),
];

impl Scale {
    /// The size of a unit, if it can be converted.
    pub fn from_unit(unit: &str) -> Option<Scale> {
        let is = |name: &str| {
            let rest = unit.get(name.len()..);
            let start = unit.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
                && (rest == Some("") || name.len() > 2 && rest == Some("s"))
        };
        let found = UNITS
            .iter()
            .find(|(names, ..)| names.iter().copied().any(is));
        found.map(|&(_, dimension, size)| Scale { dimension, size })
    }

    /// The conversion of values in this unit into another one, if both are of one quantity.
    pub fn to(self, other: Scale) -> Option<Conversion> {
        (self.dimension == other.dimension).then_some(Conversion {
            from: self.size,
            to: other.size,
        })
    }
}

/// The conversion of values in a unit into another unit; `None` if that is not possible, or the units are the same.
pub fn conversion(from: &str, to: &str) -> Option<Conversion> {
    if from == to {
        return None;
    }
    Scale::from_unit(from)?.to(Scale::from_unit(to)?)
}

/// The number of nanoseconds in a unit of time, under any of its names.
pub fn nanoseconds_in(unit: &str) -> Option<f64> {
    let scale = Scale::from_unit(unit)?;
    (scale.dimension == Dimension::Time).then_some(scale.size as f64)
}

/// How values are converted from one unit into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    from: u64,
    to: u64,
}

impl Conversion {
    /// The result is exact if a double can represent it.
    #[inline]
    pub fn convert(self, value: f64) -> f64 {
        match self.from >= self.to {
            // The quotient is a whole number, except for some of memory.
            true if self.from % self.to == 0 => value * (self.from / self.to) as f64,
            _ if self.to % self.from == 0 => value / (self.to / self.from) as f64,
            _ => value * self.from as f64 / self.to as f64,
        }
    }

    /// Whether the result is not rounded, and is a whole number if `value` is.
    pub fn is_exact(self, value: f64) -> bool {
        match whole(value) {
            Some(number) => self.convert_whole(number).is_some_and(is_exact),
            None => {
                let back = Conversion {
                    from: self.to,
                    to: self.from,
                };
                back.convert(self.convert(value)) == value
            }
        }
    }

    /// The converted number, if it is a whole one.
    fn convert_whole(self, value: i64) -> Option<i64> {
        let product = i128::from(value) * i128::from(self.from);
        let to = i128::from(self.to);
        (product % to == 0).then(|| i64::try_from(product / to).ok())?
    }
}

impl Profile {
    /// Converts values of a type that has several units into the first one. No sample has values in two units of a type.
    pub fn unify_units(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.values.len() {
            let Values { type_, .. } = &self.values[at];
            let found = self.values[..at]
                .iter()
                .enumerate()
                .find_map(|(row, known)| {
                    let is_same = known.type_.name == type_.name;
                    let conversion = conversion(&type_.unit, &known.type_.unit);
                    Some((row, conversion.filter(|_| is_same)?))
                });
            match found {
                None => at += 1,
                Some((into, conversion)) => {
                    let values = self.values.remove(at);
                    self.values[into].add_converted(&values, conversion)?;
                }
            }
        }
        Ok(())
    }
}

impl Values {
    /// Adds values for samples that have none.
    fn add_converted(&mut self, other: &Values, conversion: Conversion) -> Result<()> {
        let column = self.column.each()?;
        for (row, (own, &value)) in column.iter_mut().zip(other.column.iter()).enumerate() {
            if !own.is_nan() || value.is_nan() {
                continue;
            }
            *own = conversion.convert(value);
            let number = other.exact(row).or_else(|| whole(value));
            let converted = number.and_then(|number| conversion.convert_whole(number));
            if let Some(number) = converted {
                *own = number as f64;
                if inexact(number).is_some() {
                    self.exact.try_push((row, number))?;
                }
            }
        }
        self.exact.sort_unstable();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_many_names() {
        let one = |unit, other| conversion(unit, other).map(|conversion| conversion.convert(1.0));
        for (unit, other, factor) in [
            ("ms", "nanoseconds", 1e6),
            ("Milliseconds", "ns", 1e6),
            ("nanoseconds", "seconds", 1e-9),
            ("\u{b5}s", "ns", 1e3),
            ("\u{3bc}s", "us", 1.0),
            ("hours", "min", 60.0),
            ("days", "h", 24.0),
            ("kilobytes", "bytes", 1024.0),
            ("kB", "B", 1024.0),
            ("MiB", "KB", 1024.0),
            ("kBy", "By", 1000.0),
            ("KiBy", "kBy", 1.024),
            ("GB", "MBy", 1073.741824),
        ] {
            assert_eq!(one(unit, other), Some(factor), "{unit} {other}");
        }
        for (unit, other) in [
            ("ns", "bytes"),
            ("count", "bytes"),
            ("objects", "samples"),
            ("bytes", "bytes"),
            ("sss", "s"),
            ("", "s"),
            ("m", "s"),
            ("mss", "s"),
            ("\u{e9}", "s"),
        ] {
            assert_eq!(one(unit, other), None, "{unit} {other}");
        }
        assert_eq!(nanoseconds_in("us"), Some(1e3));
        assert_eq!(nanoseconds_in("kB"), None);
    }

    #[test]
    fn values_of_a_quantity_get_the_first_unit() {
        let mut profile = Profile::default();
        let mut add = |name, unit, values: [f64; 4]| {
            let mut column = Values::absent(name, unit, 4).unwrap();
            column.column.each().unwrap().copy_from_slice(&values);
            profile.values.push(column);
        };
        const NO: f64 = f64::NAN;
        let large = 9_007_199_254_740_993_i64;
        add("cpu", "nanoseconds", [5.0, NO, NO, NO]);
        add("cpu", "milliseconds", [NO, 0.25, NO, NO]);
        add("wall", "seconds", [NO, 1.0, NO, NO]);
        add("cpu", "count", [NO, NO, 7.0, NO]);
        add("cpu", "microseconds", [NO, NO, NO, large as f64]);
        add("wall", "ms", [1.0, NO, 1500.0, NO]);
        profile.values[4].exact = vec![(3, large)];
        profile.unify_units().unwrap();
        let types = profile.values.iter();
        let types: Vec<_> = types
            .map(|values| (&*values.type_.name, &*values.type_.unit))
            .collect();
        assert_eq!(
            types,
            [
                ("cpu", "nanoseconds"),
                ("wall", "seconds"),
                ("cpu", "count")
            ]
        );
        let cpu = &profile.values[0];
        assert_eq!([cpu.column[0], cpu.column[1]], [5.0, 250_000.0]);
        assert!(cpu.column[2].is_nan());
        let exact = large * 1000;
        assert_eq!(cpu.column[3], exact as f64);
        assert_eq!(cpu.exact(3), inexact(exact));
        let wall = &profile.values[1].column;
        assert_eq!([wall[0], wall[1], wall[2]], [0.001, 1.0, 1.5]);
    }
}
