//! Numbers in text, for what R's own cannot hold.

use super::checks::invalid;
use super::{NA, Text};
use crate::error::Result;
use crate::model::{NativeId, integer_for_r, is_exact};

/// A whole number in decimal.
pub fn decimal(
    table: &'static str,
    column: &'static str,
    text: Option<&Text>,
    row: usize,
) -> Result<Option<i64>> {
    let Some(text) = text.and_then(|text| text.get(row)) else {
        return Ok(None);
    };
    let number = text.parse().ok();
    number.map(Some).ok_or_else(|| {
        let rule = "must be a whole number of 64 bits, in decimal, or NA";
        invalid(table, column, row, rule)
    })
}

/// The number that `value` holds nearly only, while it does.
pub fn of_double(exact: Option<i64>, value: f64) -> Option<i64> {
    exact.filter(|exact| !is_exact(*exact) && *exact as f64 == value)
}

/// The number of a line or column that `value` does not hold, while it is 0 for
/// that reason.
pub fn of_integer(exact: Option<i64>, value: i32) -> i64 {
    match exact {
        Some(exact) if value == 0 && integer_for_r(exact) == 0 => exact,
        _ => i64::from(value),
    }
}

/// An address, such as `0x7f00`; NA is 0.
pub fn hexadecimal(
    table: &'static str,
    column: &'static str,
    text: Option<&Text>,
    row: usize,
) -> Result<u64> {
    let Some(text) = text.and_then(|text| text.get(row)) else {
        return Ok(0);
    };
    let digits = text
        .strip_prefix("0x")
        .filter(|digits| !digits.starts_with('+'));
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| {
            let rule = "must be \"0x\" and hexadecimal digits, below 2^64, or NA";
            invalid(table, column, row, rule)
        })
}

/// The id that a row had in its file.
pub fn native_id(
    table: &'static str,
    column: &'static str,
    text: Option<&Text>,
    row: usize,
) -> Result<Option<NativeId>> {
    let Some(text) = text.and_then(|text| text.get(row)) else {
        return Ok(None);
    };
    let id = text.parse().ok().and_then(NativeId::new);
    id.map(Some).ok_or_else(|| {
        let rule = "must be a whole number from 1 to 2^64 - 1, in decimal, or NA";
        invalid(table, column, row, rule)
    })
}

/// A logical column, where it is there and not NA.
pub fn flag(column: Option<&[i32]>, row: usize) -> Option<bool> {
    column
        .map(|column| column[row])
        .filter(|&value| value != NA)
        .map(|value| value != 0)
}
