//! Whole numbers, which formats have with 64 bits and R only as doubles; times
//! among them.

/// Whole numbers up to here are exact as a double.
const PRECISE: u64 = 1 << 53;
const A_SECOND: i64 = 1_000_000_000;

/// Whether a double is exactly this number.
#[inline]
pub fn is_exact(number: i64) -> bool {
    number.unsigned_abs() <= PRECISE || number as f64 as i128 == i128::from(number)
}

/// The number, where a double is not exactly it.
pub fn inexact(number: i64) -> Option<i64> {
    (!is_exact(number)).then_some(number)
}

/// The number of a line or column as R's integer, 0 where that cannot hold it.
pub fn integer_for_r(number: i64) -> i32 {
    i32::try_from(number).map_or(0, |number| number.max(0))
}

/// The number as an integer, when it is one.
#[inline]
pub fn whole(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    ((-END..END).contains(&value) && value.trunc() == value).then_some(value as i64)
}

/// Whether a number that was computed is an integer, but for the error of computing it.
pub fn is_nearly_whole(value: f64) -> bool {
    (value - value.round()).abs() <= value.abs() * 4.0 * f64::EPSILON
}

/// The nearest integer, where there is one.
pub fn nearest(value: f64) -> Option<i64> {
    whole(value.round())
}

/// Seconds in nanoseconds. Their product as it stands would be off by hundreds.
pub fn nanoseconds(seconds: f64) -> Option<i64> {
    let full = seconds.floor();
    let rest = ((seconds - full) * A_SECOND as f64).round();
    whole(full)?
        .checked_mul(A_SECOND)?
        .checked_add(whole(rest)?)
}

/// Nanoseconds in seconds, and themselves where those hold them nearly only.
pub fn recorded_time(time: i64) -> (f64, Option<i64>) {
    let timestamp = seconds(time);
    let nearly = nanoseconds(timestamp) != Some(time);
    (timestamp, nearly.then_some(time))
}

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
