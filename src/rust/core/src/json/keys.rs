//! Finds the names of fields at the start of a JSON text, which may be truncated anywhere.
//!
//! Searching the text for a name is not enough to recognise a format, since the name of a function may be the
//! same text.

use memchr::memchr2;

/// The names of the fields of the outermost object, or of the first object in the outermost array, as
/// they are written, without quotes.
pub fn outermost(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let first = text.trim_ascii_start();
    let wanted = match first.first() {
        Some(b'{') => 1,
        Some(b'[') => 2,
        _ => 0,
    };
    let (mut rest, mut depth) = (first, 0);
    std::iter::from_fn(move || {
        if wanted == 0 {
            return None;
        }
        loop {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= wanted => return None,
                b'}' | b']' => depth -= 1,
                b'"' => {
                    let end = end_of_string(rest)?;
                    let (name, after) = (rest.get(..end)?, rest.get(end + 1..)?);
                    rest = after;
                    if depth == wanted && rest.trim_ascii_start().first() == Some(&b':') {
                        return Some(name);
                    }
                }
                _ => {}
            }
        }
    })
}

/// Whether the outermost object has a field with one of these names, as far as the text goes.
pub fn has_any(text: &[u8], names: &[&str]) -> bool {
    outermost(text).any(|key| names.iter().any(|name| name.as_bytes() == key))
}

/// The position of the quote that ends a string.
fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_outermost_names_are_found() {
        let found = |text: &'static str| {
            let keys = outermost(text.as_bytes()).map(|key| std::str::from_utf8(key).unwrap());
            keys.collect::<Vec<_>>()
        };
        assert_eq!(
            found("\u{feff} {\"a\": [\"x\", {\"b\": 1}], \"c\\\"\" : \"d\", \"e\":"),
            ["a", "c\\\"", "e"]
        );
        assert_eq!(
            found("[{\"a\": {\"b\": 1}, \"c\": []}, {\"d\": 1}]"),
            ["a", "c"]
        );
        for none in [
            "", "1", "\"a\": 1", "[]", "{}", "{\"a", "{\"a\"", "]}", "[1, 2]",
        ] {
            assert_eq!(found(none), [""; 0], "{none}");
        }
        assert!(has_any(b"{\"a\": 1, \"b\": 2}", &["x", "b"]));
        assert!(!has_any(b"{\"a\": {\"b\": 2}}", &["b"]));
    }
}
