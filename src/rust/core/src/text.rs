//! Converts bytes to text that R strings can contain, and text to JSON strings.
//!
//! R writes names in its native encoding and does not record which one that is. Bytes that are
//! not valid UTF-8 are assumed to be Windows-1252, the superset of Latin-1 that R itself means
//! by "latin1". A NUL, which R strings cannot contain, is replaced by `<00>`, as R's
//! `iconv(sub = "byte")` does.

use crate::error::Result;
use crate::limits::memory::{TryGrow, TryText, ensure, owned};
use crate::message;
use data_encoding::Encoding;
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    pub text: Cow<'a, str>,
    pub was: Was,
}

/// The irregularity of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    Utf8,
    Latin1,
    /// UTF-8 that is truncated inside a character: R <= 4.2 truncates names at 498 bytes.
    CutUtf8,
    Nul,
}

pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>> {
    let (text, was) = match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), Was::Utf8),
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            // A Latin-1 "é" at the end of ASCII text looks like a truncated character too. Only
            // text that contains complete UTF-8 characters before it is taken for UTF-8.
            let cut = error.error_len().is_none() && !valid.is_ascii();
            if cut {
                debug_assert!(rest.len() < 4);
                let mut text = String::new();
                for chunk in valid.utf8_chunks() {
                    text.try_push_str(chunk.valid())?;
                }
                text.try_push_char(char::REPLACEMENT_CHARACTER)?;
                (Cow::Owned(text), Was::CutUtf8)
            } else {
                let mut text = String::new();
                for &byte in bytes {
                    text.try_push_char(windows_1252(byte))?;
                }
                (Cow::Owned(text), Was::Latin1)
            }
        }
    };
    if text.contains('\0') {
        return Ok(Decoded {
            text: Cow::Owned(without_nul(&text)?),
            was: Was::Nul,
        });
    }
    Ok(Decoded { text, was })
}

/// The text with each NUL replaced by `<00>`.
pub fn without_nul(text: &str) -> Result<String> {
    let mut out = String::new();
    for (i, part) in text.split('\0').enumerate() {
        out.try_push_str(if i > 0 { "<00>" } else { "" })?;
        out.try_push_str(part)?;
    }
    Ok(out)
}

/// Bytes as text for a message, in which those that are not UTF-8 become `<e9>`, as R's `iconv(sub = "byte")` writes them.
pub fn shown_bytes(bytes: &[u8]) -> Result<String> {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.try_push_str(chunk.valid())?;
        for byte in chunk.invalid() {
            out.try_push_str(&message!("<{byte:02x}>"))?;
        }
    }
    Ok(out)
}

/// Encodes bytes as text, such as hexadecimal digits or base64.
#[expect(clippy::disallowed_methods, reason = "memory was ensured")]
pub fn encoded(encoding: &Encoding, bytes: &[u8]) -> Result<String> {
    ensure(encoding.encode_len(bytes.len()))?;
    Ok(encoding.encode(bytes))
}

/// Decodes text such as hexadecimal digits or base64; `None` if it is not valid.
#[expect(clippy::disallowed_methods, reason = "memory was ensured")]
pub fn decoded(encoding: &Encoding, digits: &[u8]) -> Result<Option<Vec<u8>>> {
    // Decoding does not produce more bytes than it consumes.
    ensure(digits.len())?;
    Ok(encoding.decode(digits).ok())
}

/// Appends the decimal digits of a number. This takes a fifth of the time of formatting it.
#[inline]
pub fn push_number(out: &mut Vec<u8>, mut number: u64) -> Result<()> {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.try_extend(&digits[at..])
}

/// Appends a number with its sign, if it is negative.
#[inline]
pub fn push_integer(out: &mut Vec<u8>, number: i64) -> Result<()> {
    if number < 0 {
        out.try_push(b'-')?;
    }
    push_number(out, number.unsigned_abs())
}

/// Texts as a JSON array, such as `["a","b"]`.
pub fn json_array<'t>(texts: impl Iterator<Item = &'t str>) -> Result<String> {
    let mut out = owned("[")?;
    for (i, text) in texts.enumerate() {
        out.try_push_str(if i > 0 { "," } else { "" })?;
        put_json(&mut out, text)?;
    }
    out.try_push_char(']')?;
    Ok(out)
}

/// Appends a text as a JSON string, with quotes.
pub fn put_json(out: &mut String, text: &str) -> Result<()> {
    out.try_write(format_args!("\"{}\"", Escaped(text)))
}

/// A text with the escapes of a JSON string, without quotes.
pub struct Escaped<'t>(pub &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            let (plain, from) = rest.split_at(at);
            f.write_str(plain)?;
            let mut chars = from.chars();
            match chars.next() {
                Some('\u{8}') => f.write_str("\\b")?,
                Some('\t') => f.write_str("\\t")?,
                Some('\n') => f.write_str("\\n")?,
                Some('\u{c}') => f.write_str("\\f")?,
                Some('\r') => f.write_str("\\r")?,
                Some(c @ ('"' | '\\')) => write!(f, "\\{c}")?,
                Some(c) => write!(f, "\\u{:04x}", u32::from(c))?,
                None => {}
            }
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

fn windows_1252(byte: u8) -> char {
    // Windows-1252 has 27 characters in the range of Latin-1's control codes.
    const C1: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => C1[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_shown_by_their_digits() {
        assert_eq!(shown_bytes("a.\u{fc}".as_bytes()).unwrap(), "a.\u{fc}");
        assert_eq!(shown_bytes(b".\xe9\xc3x").unwrap(), ".<e9><c3>x");
    }

    #[test]
    fn bytes_of_any_encoding_become_text() {
        let of = |bytes: &[u8]| {
            let d = decode(bytes).unwrap();
            (d.text.into_owned(), d.was)
        };
        assert_eq!(of("grüße".as_bytes()), ("grüße".into(), Was::Utf8));
        assert_eq!(of(b"gr\xfc\xdfe"), ("grüße".into(), Was::Latin1));
        assert_eq!(of(b"caf\xe9"), ("café".into(), Was::Latin1));
        assert_eq!(of(b"\x80"), ("€".into(), Was::Latin1));
        assert_eq!(of(b"a\0b"), ("a<00>b".into(), Was::Nul));
        assert_eq!(of(b"\xc3\xbc\xc3"), ("ü\u{fffd}".into(), Was::CutUtf8));
    }
}
