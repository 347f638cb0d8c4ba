//! Sums of values, exact as long as the values are whole numbers.

use std::fmt;

/// A sum, or a value that can be added to one. Whole numbers and others are summed separately,
/// since whole numbers beyond 2^53 cannot be represented exactly as doubles.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Total {
    whole: i128,
    rest: f64,
    /// The number of values.
    count: u64,
}

impl Total {
    pub fn from_whole(value: i64) -> Total {
        Total {
            whole: i128::from(value),
            rest: 0.0,
            count: 1,
        }
    }

    /// A missing value counts as 0.
    pub fn from_value(value: f64) -> Total {
        match crate::model::whole(value) {
            Some(whole) => Total::from_whole(whole),
            None => Total {
                whole: 0,
                rest: if value.is_nan() { 0.0 } else { value },
                count: 1,
            },
        }
    }

    /// Adds a value. There are fewer than 2^31 values of 64 bits, so the sum of whole numbers fits.
    #[inline]
    pub fn add(&mut self, value: Total) {
        self.whole = self.whole.saturating_add(value.whole);
        self.rest += value.rest;
        self.count += value.count;
    }

    /// Whether nothing was added yet.
    pub fn is_new(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub fn is_zero(&self) -> bool {
        self.whole == 0 && self.rest == 0.0
    }

    pub fn is_negative(&self) -> bool {
        self.as_f64() < 0.0
    }

    pub fn as_f64(&self) -> f64 {
        self.whole as f64 + self.rest
    }
}

/// The shortest decimal number, without an exponent.
impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rest == 0.0 {
            write!(f, "{}", self.whole)
        } else {
            write!(f, "{}", self.as_f64())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_summed_exactly() {
        let mut sum = Total::default();
        assert!(sum.is_new() && sum.is_zero());
        for value in [i64::MAX, 1, i64::MAX] {
            sum.add(Total::from_whole(value));
        }
        assert_eq!(sum.to_string(), (2 * i128::from(i64::MAX) + 1).to_string());
        sum.add(Total::from_value(f64::NAN));
        let mut sum = Total::from_value(1.5);
        sum.add(Total::from_value(2.0));
        assert_eq!(sum.to_string(), "3.5");
        sum.add(Total::from_value(-10.0));
        assert!(sum.is_negative());
        assert_eq!(
            Total::from_value(1e22).to_string(),
            "10000000000000000000000"
        );
    }
}
