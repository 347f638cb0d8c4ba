//! Compares the reader with serde_json, for random and damaged JSON, in pieces of any size.

use super::*;
use crate::formats::json_file::skip::DEEPEST;
use crate::formats::rprof;
use crate::io::gzip::Content;
use crate::io::input::{Origin, Source};
use crate::json::token::{self, Number};
use serde_json::{Map, Value};

fn with<T>(
    bytes: &[u8],
    size: usize,
    work: impl FnOnce(&mut Reader) -> Result<T>,
) -> Result<(T, Problems)> {
    let opened = Opened {
        content: Content::new(Source::Bytes(bytes)).unwrap(),
        origin: Origin::default(),
        format: &rprof::FORMAT,
        look: Look::Unknown,
    };
    in_pieces(opened, size, &|| false, work)
}

impl Reader<'_, '_, '_> {
    /// The next value if it is `true` or `false`. Any other value is skipped.
    fn flag(&mut self) -> Result<Option<bool>> {
        let flag = match self.next_byte()? {
            b't' => Some(true),
            b'f' => Some(false),
            _ => None,
        };
        self.skip()?;
        Ok(flag)
    }
}

/// The next value, as serde_json represents it.
fn value(json: &mut Reader) -> Result<Value> {
    Ok(match json.peek()? {
        JsonKind::Text => Value::String(json.text()?.to_owned()),
        JsonKind::Number => match json.number()? {
            Number::Whole(number) => Value::from(number),
            Number::Real(number) => Value::from(number),
        },
        JsonKind::Word => match json.flag()? {
            Some(flag) => Value::Bool(flag),
            None => Value::Null,
        },
        JsonKind::Array => {
            let mut array = Vec::new();
            json.begin_array()?;
            while json.element()? {
                array.push(value(json)?);
            }
            Value::Array(array)
        }
        JsonKind::Object => {
            let mut object = Map::new();
            json.begin_object()?;
            while let Some(key) = json.key()? {
                object.insert(key.as_str().to_owned(), value(json)?);
            }
            Value::Object(object)
        }
    })
}

fn read(bytes: &[u8], size: usize) -> Result<(Value, Problems)> {
    with(bytes, size, |json| {
        let value = value(json)?;
        json.finish()?;
        Ok(value)
    })
}

/// The same value with whole numbers as our reader returns them.
fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) => match token::number(number.to_string().as_bytes()).unwrap() {
            Number::Whole(number) => Value::from(number),
            Number::Real(number) => Value::from(number),
        },
        Value::Array(array) => array.into_iter().map(normal).collect(),
        Value::Object(object) => object.into_iter().map(|(k, v)| (k, normal(v))).collect(),
        other => other,
    }
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn json(&mut self, depth: usize, out: &mut String) {
        const TEXTS: [&str; 6] = [
            "",
            "a",
            "\\u00e9\\n",
            "f\\\"g",
            "\\ud83d\\ude00",
            "длинный текст",
        ];
        const NUMBERS: [&str; 7] = [
            "0",
            "-1",
            "12345678901234567890",
            "1.5e-3",
            "2.0",
            "-0.0",
            "1e22",
        ];
        const BLANKS: [&str; 4] = ["", "", " ", "\n\t "];
        let count = self.below(5);
        let blank = BLANKS[self.below(4)];
        out.push_str(blank);
        match self.below(if depth > 4 { 3 } else { 6 }) {
            0 => out.push_str(["true", "false", "null"][self.below(3)]),
            1 => out.push_str(&format!("\"{}\"", TEXTS[self.below(6)].repeat(count))),
            2 => out.push_str(NUMBERS[self.below(7)]),
            3 => {
                out.push('{');
                for i in 0..count {
                    out.push_str(if i > 0 { "," } else { blank });
                    out.push_str(&format!("\"k{i}\"{blank}:"));
                    self.json(depth + 1, out);
                }
                out.push('}');
            }
            _ => {
                out.push('[');
                for i in 0..count {
                    out.push_str(if i > 0 { "," } else { blank });
                    self.json(depth + 1, out);
                }
                out.push(']');
            }
        }
        out.push_str(blank);
    }
}

/// A random array or object.
fn random(seed: u64) -> String {
    let mut random = Random(seed);
    loop {
        let mut text = String::new();
        random.json(0, &mut text);
        if text.trim_start().starts_with(['[', '{']) {
            return text;
        }
    }
}

#[test]
fn values_are_those_of_serde_json() {
    for seed in 0..200 {
        let text = random(seed);
        let expected = normal(serde_json::from_str(&text).unwrap());
        for size in [1, 7, 64, PIECE] {
            let (value, problems) = read(text.as_bytes(), size).unwrap();
            assert_eq!(value, expected, "{text}");
            assert!(problems.is_empty());
        }
        // Skipping ends at the same position as reading.
        let both = format!("[{text},{text}]");
        for size in [1, 16, PIECE] {
            let second = with(both.as_bytes(), size, |json| {
                json.begin_array()?;
                assert!(json.element()?);
                json.skip()?;
                assert!(json.element()?);
                let second = value(json)?;
                assert!(!json.element()?);
                json.finish()?;
                Ok(second)
            });
            assert_eq!(second.unwrap().0, expected, "{text}");
        }
    }
}

#[test]
fn damaged_json_is_accepted_where_serde_json_accepts_it() {
    const BYTES: &[u8] = b"{}[]\",:0-.e\\nu \n";
    let mut accepted = 0;
    for seed in 0..200 {
        let text = random(seed).into_bytes();
        let mut random = Random(seed + 1000);
        for _ in 0..20 {
            let mut bytes = text.clone();
            let at = random.below(bytes.len());
            let byte = BYTES[random.below(BYTES.len())];
            match random.below(3) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
            let theirs = serde_json::from_slice::<Value>(&bytes);
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            match (theirs, read(&bytes, 16)) {
                (Ok(theirs), Ok((ours, problems))) => {
                    accepted += 1;
                    assert_eq!(ours, normal(theirs), "{shown}");
                    assert!(problems.is_empty(), "{shown}");
                }
                (Ok(_), Err(Error::Parse { message, .. })) if message.contains("twice") => {}
                (Ok(_), Err(Error::Parse { message, .. })) => {
                    // A number outside of objects and arrays, which may have more digits.
                    assert!(message.contains("ends here"), "{shown}: {message}");
                    assert!(shown.trim().parse::<f64>().is_ok(), "{shown}");
                }
                (Ok(_), Err(error)) => panic!("{shown}: {error}"),
                // Not errors are line feeds in strings, bytes that are not UTF-8, halves of characters, and text
                // after the value. Names of fields are not checked.
                (Err(error), Ok((_, problems))) => {
                    let error = error.to_string();
                    let lenient = [
                        "control character",
                        "surrogate",
                        "escape",
                        "unicode",
                        "UTF-8",
                    ];
                    let is_lenient = lenient.iter().any(|word| error.contains(word));
                    assert!(is_lenient || !problems.is_empty(), "{shown}: {error}");
                }
                (Err(_), Err(_)) => {}
            }
        }
    }
    assert!(accepted > 500, "{accepted}");
}

#[test]
fn every_truncated_text_is_recognised() {
    truncate_texts(25);
}

#[test]
#[ignore = "thorough"]
fn each_of_many_truncated_texts_is_recognised() {
    truncate_texts(1000);
}

fn truncate_texts(seeds: u64) {
    for seed in 0..seeds {
        let text = random(seed);
        let text = text.trim();
        for end in (1..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let is_cut = |skip: bool| {
                let result = with(&text.as_bytes()[..end], 16, |json| {
                    let result = if skip {
                        json.skip()
                    } else {
                        value(json).map(drop)
                    };
                    json.accept_end(result)
                });
                result.unwrap().1.has(ProblemKind::CutJson)
            };
            assert!(is_cut(false) && is_cut(true), "{}", &text[..end]);
        }
    }
}

#[test]
fn deep_nesting_is_skipped_up_to_a_limit() {
    let nested = |depth: usize| format!("[{}{},7]", "[".repeat(depth), "]".repeat(depth));
    let skip = |text: &str| {
        with(text.as_bytes(), PIECE, |json| {
            json.begin_array()?;
            json.element()?;
            json.skip()?;
            json.element()?;
            json.number()
        })
    };
    assert_eq!(skip(&nested(1_000_000)).unwrap().0, Number::Whole(7));
    let error = skip(&nested(DEEPEST + 1)).unwrap_err();
    assert!(error.to_string().contains("levels deep"), "{error}");
    assert!(skip("[[{]},7]").is_err());
}

#[test]
fn irregular_texts_are_reported_with_their_position() {
    let (found, problems) = read(
        b"\xef\xbb\xbf[\"caf\xe9\", \"a\\u0000b\", \"\\ud800\"] x",
        16,
    )
    .unwrap();
    assert_eq!(found, serde_json::json!(["café", "a<00>b", "\u{fffd}"]));
    let kept: Vec<_> = problems
        .kept()
        .iter()
        .map(|p| (p.kind, p.position.clone()))
        .collect();
    let at = |kind, byte| (kind, Position::Byte(byte));
    assert_eq!(
        kept,
        [
            at(ProblemKind::ByteOrderMark, 0),
            at(ProblemKind::NotUtf8, 4),
            at(ProblemKind::NulByte, 12),
            at(ProblemKind::HalfCharacter, 25),
            at(ProblemKind::StrayText, 34),
        ]
    );
}

#[test]
fn a_field_that_occurs_twice_is_an_error() {
    for text in [
        r#"{"a":1,"a":2}"#,
        r#"[{"a":{"b":1},"c":[{}],"a":{"b":1}}]"#,
        r#"{"a":[{"b":"x","b":"y"}]}"#,
    ] {
        for size in [1, PIECE] {
            let error = read(text.as_bytes(), size).unwrap_err().to_string();
            assert!(error.contains("occurs twice in this object"), "{error}");
        }
    }
    assert!(read(br#"[{"a":1,"b":{"a":2}},{"a":3,"c":[{"a":4},{"a":5}]}]"#, 8).is_ok());
    // Those that are skipped are not compared, however many there are.
    let skipped = r#""a":[{"b":1,"b":2}],"#.repeat(50_000);
    let text = format!(r#"{{{skipped}"a":7}}"#);
    let last = with(text.as_bytes(), PIECE, |json| {
        let mut last = None;
        json.begin_object()?;
        while json.key()?.is_some() {
            last = json.number_if_any()?;
        }
        Ok(last)
    })
    .unwrap();
    assert_eq!(last.0, Some(Number::Whole(7)));
}

#[test]
fn errors_have_positions() {
    let position = |text: &str| read(text.as_bytes(), 8).unwrap_err().position().cloned();
    for (text, byte) in [
        ("[1, 2, x]", 7),
        ("{\"a\" 1}", 5),
        ("[1 2]", 3),
        ("[\"\\x\"]", 2),
        ("[01]", 1),
        ("[1,]", 3),
        ("{1: 2}", 1),
        ("[nul]", 1),
        ("", 0),
    ] {
        assert_eq!(position(text), Some(Position::Byte(byte)), "{text}");
    }
}

#[test]
fn arrays_of_numbers_are_returned_as_text() {
    let text = b"[[1, 2,3], [], [[1]], [\"a\"], [4]]";
    for size in [1, 8, PIECE] {
        let result = with(text, size, |json| {
            let mut found = Vec::new();
            json.begin_array()?;
            while json.element()? {
                let text = json.numbers_as_text()?.map(|text| text.to_vec());
                if text.is_none() {
                    json.skip()?;
                }
                found.push(text.map(|text| String::from_utf8(text).unwrap()));
            }
            Ok(found)
        });
        let found = result.unwrap().0;
        let texts = ["1, 2,3", "", "-", "-", "4"];
        let found: Vec<_> = found
            .iter()
            .map(|text| text.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(found, texts);
    }
}

#[test]
fn reading_stops_when_asked() {
    let text = format!("[{}1]", "1,".repeat(1 << 20));
    let opened = Opened {
        content: Content::new(Source::Bytes(text.as_bytes())).unwrap(),
        origin: Origin::default(),
        format: &rprof::FORMAT,
        look: Look::Unknown,
    };
    let checks = std::cell::Cell::new(0);
    let stop = || {
        checks.set(checks.get() + 1);
        checks.get() > 3
    };
    let result = in_pieces(opened, PIECE, &stop, |json| json.skip());
    assert!(matches!(result, Err(Error::Interrupted)));
}
