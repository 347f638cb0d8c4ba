//! Parses numbers and strings in JSON.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::whole;

/// A number: exact if it is whole and fits in 64 bits, otherwise the nearest double.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    pub fn real(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        }
    }

    /// The number as an integer, if it is one.
    pub fn whole(self) -> Option<i64> {
        match self {
            Number::Whole(number) => Some(number),
            Number::Real(number) => whole(number),
        }
    }

    /// The number as a row of a table.
    pub fn index(self) -> Option<u32> {
        u32::try_from(self.whole()?).ok()
    }
}

/// Parses a number. `None` if it is not valid, or too large for a double.
pub fn number(token: &[u8]) -> Option<Number> {
    let text = std::str::from_utf8(token).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (digits, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (digits.get(..at)?, digits.get(at + 1..)),
        None => (digits, None),
    };
    let (integer, fraction) = match digits.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (digits, None),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let exponent_is_valid =
        exponent.is_none_or(|text| all_digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
    let is_valid = all_digits(integer)
        && (integer == "0" || !integer.starts_with('0'))
        && fraction.is_none_or(all_digits)
        && exponent_is_valid;
    if !is_valid {
        return None;
    }
    if fraction.is_none() && exponent.is_none() {
        if let Ok(number) = text.parse() {
            return Some(Number::Whole(number));
        }
    }
    let real: f64 = text.parse().ok().filter(|real: &f64| real.is_finite())?;
    Some(match whole(real) {
        // Above this limit, a double does not determine an integer.
        Some(number) if number.unsigned_abs() <= 1 << 53 => Number::Whole(number),
        _ => Number::Real(real),
    })
}

/// What is wrong with an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// JSON does not define it.
    Unknown,
    /// It is one half of a character of two 16-bit units, without the other half. It is read as U+FFFD.
    Half,
}

/// Appends a string to `out`, with its escape sequences replaced. Calls `report` with the offset of each irregular
/// sequence; `report` returns an error if the string cannot be read.
pub fn unescape(
    mut string: &[u8],
    out: &mut Vec<u8>,
    mut report: impl FnMut(usize, Escape) -> Result<()>,
) -> Result<()> {
    let length = string.len();
    while let Some(at) = memchr::memchr(b'\\', string) {
        let (plain, escape) = string.split_at(at);
        out.try_extend(plain)?;
        let offset = length - escape.len();
        let (simple, size) = match escape.get(1) {
            Some(&c @ (b'"' | b'\\' | b'/')) => (Some(c), 2),
            Some(b'b') => (Some(8), 2),
            Some(b'f') => (Some(12), 2),
            Some(b'n') => (Some(b'\n'), 2),
            Some(b'r') => (Some(b'\r'), 2),
            Some(b't') => (Some(b'\t'), 2),
            Some(b'u') => (None, 6),
            _ => {
                report(offset, Escape::Unknown)?;
                (Some(b'\\'), 1)
            }
        };
        let mut rest = escape.get(size..).unwrap_or_default();
        if let Some(byte) = simple {
            out.try_push(byte)?;
            string = rest;
            continue;
        }
        let c = match unit(escape) {
            None => {
                report(offset, Escape::Unknown)?;
                rest = escape.get(2..).unwrap_or_default();
                None
            }
            Some(high @ 0xd800..=0xdbff) => match unit(rest) {
                Some(low @ 0xdc00..=0xdfff) => {
                    rest = rest.get(6..).unwrap_or_default();
                    let pair = (u32::from(high) - 0xd800) << 10 | (u32::from(low) - 0xdc00);
                    char::from_u32(0x10000 + pair)
                }
                _ => None,
            },
            Some(unit) => char::from_u32(u32::from(unit)),
        };
        let c = match c {
            Some(c) => c,
            None => {
                report(offset, Escape::Half)?;
                char::REPLACEMENT_CHARACTER
            }
        };
        out.try_extend(c.encode_utf8(&mut [0; 4]).as_bytes())?;
        string = rest;
    }
    out.try_extend(string)
}

/// The 16 bits of an escape sequence such as `\u00e9` at the start of the text.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let are_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| are_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_json() {
        let valid = [
            "0",
            "-0",
            "7",
            "-12",
            "1.5",
            "-0.25",
            "1e3",
            "1E+3",
            "25e-1",
            "0.0",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "1e300",
            "5e-324",
            "123456789012345678901234567890",
            "0.1",
            "1e-400",
        ];
        for text in valid {
            let expected: f64 = serde_json::from_str(text).unwrap();
            assert_eq!(number(text.as_bytes()).unwrap().real(), expected, "{text}");
        }
        for text in [
            "", "-", "01", "+1", "1.", ".5", "1e", "1e+", "--1", "1-2", "1e999", "0x1", "1.2.3",
        ] {
            assert!(serde_json::from_str::<f64>(text).is_err(), "{text}");
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            number(b"9223372036854775807"),
            Some(Number::Whole(i64::MAX))
        );
        assert_eq!(number(b"2.50e1"), Some(Number::Whole(25)));
        assert_eq!(number(b"0.5").unwrap().whole(), None);
        assert_eq!(number(b"-1").unwrap().index(), None);
        assert_eq!(number(b"4294967295").unwrap().index(), Some(u32::MAX));
    }

    #[test]
    fn escapes_are_replaced() {
        let of = |text: &str| {
            let (mut out, mut reports) = (Vec::new(), Vec::new());
            unescape(text.as_bytes(), &mut out, |at, what| {
                reports.push((at, what));
                Ok(())
            })
            .unwrap();
            (String::from_utf8(out).unwrap(), reports)
        };
        for text in [
            r#"a\"\\\/\b\f\n\r\tz"#,
            r"\u00e9\u20AC",
            r"x\ud83d\ude00y",
            r"\u0000",
            "plain",
        ] {
            let expected: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            assert_eq!(of(text), (expected, vec![]));
        }
        let half = |at| vec![(at, Escape::Half)];
        assert_eq!(of(r"a\ud83d"), ("a\u{fffd}".into(), half(1)));
        assert_eq!(of(r"\ude00b"), ("\u{fffd}b".into(), half(0)));
        assert_eq!(of(r"\ud83d\u0041"), ("\u{fffd}A".into(), half(0)));
        let unknown = of(r"a\x\u12g4").1;
        assert_eq!(unknown[0], (1, Escape::Unknown));
        assert_eq!(unknown[1], (3, Escape::Unknown));
    }
}
