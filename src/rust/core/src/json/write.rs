//! Writes JSON value by value, in pieces.
//!
//! Values that are written often, such as the text of a stack, can be prepared once and appended
//! ([`Json::prepared`]).

use crate::error::Result;
use crate::io::save;
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::{Growing, TryGrow, with_room};
use crate::text::{Escaped, push_integer};
use std::fmt;
use std::io::Write;

const CHUNK: usize = 1 << 16;
/// Doubles represent all whole numbers up to this one.
const WHOLE: f64 = (1_u64 << 53) as f64;

pub struct Json<'o, 's> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    written: usize,
    watch: Watch<'s>,
    /// Whether a comma precedes the next element.
    comma: bool,
}

impl<'o, 's> Json<'o, 's> {
    pub fn new(out: &'o mut dyn Write, stop: Stop<'s>) -> Result<Json<'o, 's>> {
        Ok(Json {
            out,
            buffer: with_room(2 * CHUNK)?,
            written: 0,
            watch: Watch::new(stop),
            comma: false,
        })
    }

    /// Writes an object or array, whose content `content` writes.
    fn enclosed(
        &mut self,
        [start, end]: [u8; 2],
        content: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.element()?;
        self.buffer.try_push(start)?;
        self.comma = false;
        content(self)?;
        self.buffer.try_push(end)?;
        self.comma = true;
        Ok(())
    }

    pub fn object(&mut self, content: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.enclosed(*b"{}", content)
    }

    pub fn array(&mut self, content: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.enclosed(*b"[]", content)
    }

    /// Writes the name of the field that follows.
    pub fn field(&mut self, name: &str) -> Result<&mut Self> {
        self.element()?;
        self.put(format_args!("\"{name}\":"))?;
        self.comma = false;
        Ok(self)
    }

    pub fn text(&mut self, text: &str) -> Result<()> {
        self.formatted(format_args!("\"{}\"", Escaped(text)))
    }

    pub fn flag(&mut self, flag: bool) -> Result<()> {
        self.formatted(format_args!("{flag}"))
    }

    pub fn null(&mut self) -> Result<()> {
        self.prepared(b"null")
    }

    /// Writes a value that is already JSON.
    #[inline]
    pub fn prepared(&mut self, value: &[u8]) -> Result<()> {
        self.element()?;
        self.buffer.try_extend(value)?;
        self.comma = true;
        Ok(())
    }

    #[inline]
    pub fn integer(&mut self, number: i64) -> Result<()> {
        self.element()?;
        push_integer(&mut self.buffer, number)?;
        self.comma = true;
        Ok(())
    }

    /// Writes a number; `null` if it is not finite, which JSON cannot represent.
    pub fn number(&mut self, number: f64) -> Result<()> {
        if number.abs() < WHOLE && number.fract() == 0.0 {
            self.integer(number as i64)
        } else if number.is_finite() {
            self.formatted(format_args!("{number:?}"))
        } else {
            self.formatted(format_args!("null"))
        }
    }

    pub fn texts<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Result<()> {
        self.array(|json| {
            let mut texts = texts;
            texts.try_for_each(|text| json.text(text))
        })
    }

    pub fn integers(&mut self, numbers: impl Iterator<Item = i64>) -> Result<()> {
        self.array(|json| {
            let mut numbers = numbers;
            numbers.try_for_each(|number| json.integer(number))
        })
    }

    /// Writes each number as the difference to the previous one; for the first, that is 0.
    pub fn deltas(&mut self, numbers: impl Iterator<Item = u32>) -> Result<()> {
        let mut last = 0;
        self.integers(numbers.map(|number| {
            let number = i64::from(number);
            number - std::mem::replace(&mut last, number)
        }))
    }

    pub fn numbers(&mut self, numbers: impl Iterator<Item = f64>) -> Result<()> {
        self.array(|json| {
            let mut numbers = numbers;
            numbers.try_for_each(|number| json.number(number))
        })
    }

    /// Writes the rest of the buffer.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn element(&mut self) -> Result<()> {
        if self.buffer.len() > CHUNK {
            self.flush()?;
        }
        if self.comma {
            self.buffer.try_push(b',')?;
        }
        Ok(())
    }

    /// Writes a value that is formatted as JSON.
    pub fn formatted(&mut self, text: fmt::Arguments) -> Result<()> {
        self.element()?;
        self.put(text)?;
        self.comma = true;
        Ok(())
    }

    fn put(&mut self, text: fmt::Arguments) -> Result<()> {
        let mut out = Growing(&mut self.buffer);
        out.write_fmt(text).map_err(save::failed)
    }

    fn flush(&mut self) -> Result<()> {
        self.watch.reach(self.written)?;
        self.out.write_all(&self.buffer).map_err(save::failed)?;
        self.written += self.buffer.len();
        self.buffer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(content: impl FnOnce(&mut Json) -> Result<()>) -> String {
        let mut out = Vec::new();
        let mut json = Json::new(&mut out, &|| false).unwrap();
        content(&mut json).unwrap();
        json.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn elements_are_separated() {
        let text = written(|json| {
            json.object(|json| {
                json.field("a")?.integers([1, -2].into_iter())?;
                json.field("b")?.array(|json| {
                    json.object(|_| Ok(()))?;
                    json.object(|json| json.field("c")?.flag(true))
                })?;
                json.field("d")?.deltas([3, 5, 1].into_iter())?;
                json.field("e")?
                    .texts(["\"\n</script>", "\u{2028}é"].into_iter())
            })
        });
        let expected = "{\"a\":[1,-2],\"b\":[{},{\"c\":true}],\"d\":[3,2,-4],\
                        \"e\":[\"\\\"\\n</script>\",\"\u{2028}é\"]}";
        assert_eq!(text, expected);
    }

    #[test]
    fn numbers_are_exact() {
        let numbers = [
            0.0,
            -0.0,
            1e7,
            0.1,
            -1.5,
            9_007_199_254_740_991.0,
            9_007_199_254_740_992.0,
            1e300,
            5e-324,
        ];
        let text = written(|json| json.numbers(numbers.into_iter()));
        assert_eq!(serde_json::from_str::<Vec<f64>>(&text).unwrap(), numbers);
        assert!(text.starts_with("[0,0,10000000,0.1,-1.5,"), "{text}");
        assert_eq!(written(|json| json.number(f64::INFINITY)), "null");
    }

    #[test]
    fn integers_are_written_with_all_digits() {
        for number in [0, 1, -1, 10, 99, -1234567890, i64::MAX, i64::MIN] {
            assert_eq!(written(|json| json.integer(number)), number.to_string());
        }
        let text = written(|json| {
            json.array(|json| {
                json.null()?;
                json.prepared(b"[1]")?;
                json.integer(2)
            })
        });
        assert_eq!(text, "[null,[1],2]");
    }

    #[test]
    fn it_stops_when_asked() {
        let mut out = Vec::new();
        let mut json = Json::new(&mut out, &|| true).unwrap();
        let result = json.integers(0..1_000_000);
        assert!(matches!(result, Err(crate::Error::Interrupted)));
    }
}
