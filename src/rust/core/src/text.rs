//! From the bytes of a name to text that R can hold.
//!
//! R writes names in its native encoding and says nowhere which one that was.
//! Bytes that are not UTF-8 are taken for Windows-1252, the superset of Latin-1
//! that R itself means by "latin1". A NUL, which R strings cannot hold, is shown
//! as R's `iconv(sub = "byte")` would show it: `<00>`.

use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    pub text: Cow<'a, str>,
    pub was: Was,
}

/// What was odd about the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    Utf8,
    Latin1,
    /// UTF-8 that breaks off in a character: R <= 4.2 cuts a name at 498 bytes.
    CutUtf8,
    Nul,
}

pub fn decode(bytes: &[u8]) -> Decoded<'_> {
    let (text, was) = match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), Was::Utf8),
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            // "é" alone at the end of ASCII text looks like a cut character too:
            // only text that has whole UTF-8 characters before is UTF-8.
            let cut = error.error_len().is_none() && !valid.is_ascii();
            if cut {
                debug_assert!(rest.len() < 4);
                let mut text = String::from_utf8_lossy(valid).into_owned();
                text.push(char::REPLACEMENT_CHARACTER);
                (Cow::Owned(text), Was::CutUtf8)
            } else {
                let text = bytes.iter().map(|&b| windows_1252(b)).collect();
                (Cow::Owned(text), Was::Latin1)
            }
        }
    };
    if text.contains('\0') {
        return Decoded {
            text: Cow::Owned(text.replace('\0', "<00>")),
            was: Was::Nul,
        };
    }
    Decoded { text, was }
}

/// Texts as a JSON array, such as `["a","b"]`.
pub fn json_array<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    serde_json::Value::from_iter(texts).to_string()
}

fn windows_1252(byte: u8) -> char {
    // The 27 characters that Windows put where Latin-1 has control codes.
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
    fn odd_bytes_become_text() {
        let of = |bytes: &[u8]| {
            let d = decode(bytes);
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
