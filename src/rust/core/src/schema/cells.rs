//! Parses the texts in cells, and the numbers that are stored in a plain and an `_exact` column.

use crate::error::Result;
use crate::limits::memory::{TryCollect, TryText, ensure, owned};
use crate::model::{NativeId, StringId, Strings, integer_for_r, is_exact};

/// A static, since decoders borrow the encoding.
pub static ENCODING: data_encoding::Encoding = data_encoding::BASE64;

pub const DECIMAL: &str = "must be a whole number of 64 bits, in decimal, or NA";
pub const HEXADECIMAL: &str = "must be \"0x\" and hexadecimal digits, below 2^64, or NA";
pub const NATIVE_ID: &str = "must be a whole number from 1 to 2^64 - 1, in decimal, or NA";
pub const HEX_DIGITS: &str = "must be hexadecimal digits, two for each byte, or NA";
pub const BASE64: &str = "must be bytes in base64, or NA";
pub const TEXTS: &str = "must be a JSON array of strings, such as [\"a\", \"b\"], or NA";
pub const COUNT: &str = "must be a whole number from 0 to 2^32 - 1, or NA";
pub const WHOLE: &str = "must be a whole number of 64 bits";

pub fn decimal(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// An address, such as `0x7f00`.
pub fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    // Rust's parser would accept a sign.
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

pub fn native_id(text: &str) -> Option<NativeId> {
    text.parse().ok().and_then(NativeId::new)
}

/// The digits of bytes in hexadecimal, two for each byte, converted to lower case.
pub fn hex_digits(text: &str) -> Result<Option<String>> {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    if text.len() % 2 != 0 || !text.bytes().all(is_digit) {
        return Ok(None);
    }
    let mut digits = owned(text)?;
    digits.make_ascii_lowercase();
    Ok(Some(digits))
}

/// The strings of a JSON array.
#[expect(clippy::disallowed_methods, reason = "memory was ensured")]
pub fn texts(text: &str, strings: &mut Strings) -> Result<Option<Vec<StringId>>> {
    // A string takes three bytes at least, with its quotes and a comma.
    ensure((text.len() / 3 + 1) * size_of::<String>() + text.len())?;
    let Ok(texts) = serde_json::from_str::<Vec<String>>(text) else {
        return Ok(None);
    };
    let ids = texts.iter().map(|text| strings.intern(text));
    ids.try_vec_of().map(Some)
}

/// Whether a double is the approximation of a whole number of 64 bits.
pub fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= 9.3e18
}

pub fn count(number: f64) -> Option<u32> {
    let is_count = (0.0..=f64::from(u32::MAX)).contains(&number) && number.fract() == 0.0;
    is_count.then_some(number as u32)
}

/// The number of an `_exact` column, if the plain column contains the nearest double and that is not
/// exactly the number.
pub fn exact_double(exact: i64, plain: f64) -> Option<i64> {
    (!is_exact(exact) && exact as f64 == plain).then_some(exact)
}

/// The line of an `_exact` column if the plain column contains 0, as it does for lines that are too large for an R
/// integer; otherwise the line of the plain column.
pub fn exact_line(exact: i64, plain: i64) -> i64 {
    if plain == 0 && integer_for_r(exact) == 0 {
        exact
    } else {
        plain
    }
}

/// The line, if it is too large for an R integer.
pub fn line_beyond_integer(line: i64) -> Option<i64> {
    (i64::from(integer_for_r(line)) != line).then_some(line)
}

/// The texts as a JSON array, `None` for none.
pub fn json_texts(texts: &[StringId], strings: &Strings) -> Result<Option<String>> {
    if texts.is_empty() {
        return Ok(None);
    }
    let texts = texts.iter().map(|&text| strings.get(text));
    crate::text::json_array(texts).map(Some)
}

/// Appends one cell to a text that contains all cells of a column.
pub fn put(all: &mut String, cell: impl std::fmt::Display) -> Result<()> {
    all.try_write(format_args!("{cell}"))
}

pub const KIND: &str = "must be one of string, bool, int, double, bytes, array, kvlist, empty";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ValueKind;

    #[test]
    fn all_kinds_are_named() {
        let names = ValueKind::ALL.map(ValueKind::name).join(", ");
        assert_eq!(KIND, format!("must be one of {names}"));
    }
}
