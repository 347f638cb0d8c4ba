//! Converts whole numbers of 64 bits, which formats use, to doubles of R and back, times among
//! them.

/// Whole numbers up to this one are exact as a double.
const PRECISE: u64 = 1 << 53;
const A_SECOND: i64 = 1_000_000_000;

/// Whether a double is exactly this number.
#[inline]
pub fn is_exact(number: i64) -> bool {
    number.unsigned_abs() <= PRECISE || number as f64 as i128 == i128::from(number)
}

/// The number, if a double cannot represent it exactly.
pub fn inexact(number: i64) -> Option<i64> {
    (!is_exact(number)).then_some(number)
}

/// The number of a line or column as an R integer; 0 if it is negative or too large.
pub fn integer_for_r(number: i64) -> i32 {
    i32::try_from(number).map_or(0, |number| number.max(0))
}

/// The number as an integer, if it is one.
#[inline]
pub fn whole(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    ((-END..END).contains(&value) && value.trunc() == value).then_some(value as i64)
}

/// Whether a computed number is an integer, apart from rounding errors.
pub fn is_nearly_whole(value: f64) -> bool {
    (value - value.round()).abs() <= value.abs() * 4.0 * f64::EPSILON
}

/// The nearest integer, if it has 64 bits.
pub fn nearest(value: f64) -> Option<i64> {
    whole(value.round())
}

/// The number of nanoseconds in a unit, if it is a unit of time.
pub fn unit_of_time(unit: &str) -> Option<f64> {
    match unit {
        "nanoseconds" => Some(1.0),
        "microseconds" => Some(1e3),
        "milliseconds" => Some(1e6),
        "seconds" => Some(1e9),
        _ => None,
    }
}

/// Converts seconds to nanoseconds. Whole and fractional seconds are converted separately: the
/// product of a time stamp and 1e9 would have an error of hundreds of nanoseconds.
pub fn nanoseconds(seconds: f64) -> Option<i64> {
    let full = seconds.floor();
    let rest = ((seconds - full) * A_SECOND as f64).round();
    whole(full)?
        .checked_mul(A_SECOND)?
        .checked_add(whole(rest)?)
}

/// Converts nanoseconds to seconds. If these do not represent the nanoseconds exactly, the second
/// result contains the nanoseconds.
pub fn recorded_time(time: i64) -> (f64, Option<i64>) {
    let timestamp = seconds(time);
    let is_rounded = nanoseconds(timestamp) != Some(time);
    (timestamp, is_rounded.then_some(time))
}

/// Converts nanoseconds to seconds.
pub fn seconds(nanoseconds: i64) -> f64 {
    let full = nanoseconds.div_euclid(A_SECOND);
    let rest = nanoseconds.rem_euclid(A_SECOND);
    full as f64 + rest as f64 / A_SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_2_to_the_53_may_be_exact() {
        for exact in [0, -1, 1 << 53, -(1 << 53), 1 << 62, i64::MIN] {
            assert!(is_exact(exact), "{exact}");
            assert_eq!(whole(exact as f64), Some(exact));
        }
        for nearly in [(1 << 53) + 1, i64::MAX, i64::MIN + 1] {
            assert_eq!(inexact(nearly), Some(nearly));
        }
        assert_eq!(whole(0.5), None);
        assert_eq!(whole(f64::NAN), None);
        assert_eq!(whole(i64::MAX as f64), None);
    }

    #[test]
    fn times_are_exact() {
        for time in [0.0, 0.25, -1.5, 1_732_170_000.0, 1_732_169_999.999_999_8] {
            assert_eq!(nanoseconds(time).map(seconds), Some(time));
        }
        assert_eq!(nanoseconds(1_732_170_000.0), Some(1_732_170_000 * A_SECOND));
        for time in [1e10, -1e10, 1e300, f64::INFINITY, f64::NAN] {
            assert_eq!(nanoseconds(time), None);
        }
    }
}
