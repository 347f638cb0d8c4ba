//! Protocol buffers on the wire: varints, and fields made of them.
//!
//! A message is a sequence of fields, each a tag (number and wire type) and a value. Small
//! messages are declared as structs of prost (`rows.rs`). The long streams of samples, stacks
//! and tables are decoded here, straight into columns: prost does not know the byte at which
//! a value stands, which errors name.

use crate::error::{Error, Result as CoreResult};
use crate::limits::memory::TryGrow;
use crate::message;

/// Why a message cannot be read.
#[derive(Debug)]
pub enum Fault {
    /// The content is wrong at this byte.
    At {
        at: usize,
        message: String,
    },
    Other(Error),
}

pub type Result<T> = std::result::Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Other(error)
    }
}

/// The content is wrong at byte `at`.
#[cold]
pub fn fault<T>(at: usize, message: impl Into<String>) -> Result<T> {
    Err(Fault::At {
        at,
        message: message.into(),
    })
}

/// The part of a message that is not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    rest: &'a [u8],
    /// Where `rest` stands in the whole input.
    at: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    pub number: u32,
    /// Where the field starts in the whole input.
    pub at: usize,
    value: Value<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Varint(u64),
    Bytes(Message<'a>),
    Fixed64(u64),
    /// Nothing that is read here is stored in four bytes.
    Fixed32,
}

impl<'a> Message<'a> {
    pub fn new(bytes: &'a [u8]) -> Message<'a> {
        Message { rest: bytes, at: 0 }
    }

    /// The message that is a part of a file; `None` where that ends before it.
    pub fn part(bytes: &'a [u8], start: usize, length: usize) -> Option<Message<'a>> {
        let rest = bytes.get(start..start.checked_add(length)?)?;
        Some(Message { rest, at: start })
    }

    /// Where the next field starts in the whole input.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field, `None` at the end.
    // What it gives is large: passing it on through memory costs more than finding it.
    #[inline(always)]
    pub fn field(&mut self) -> Result<Option<Field<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        let tag = self.varint()?;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => number,
            _ => return fault(at, message!("There is no field number {}.", tag >> 3)),
        };
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.fixed64()?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Value::Fixed32
            }
            other => return fault(at, message!("There is no wire type {other}.")),
        };
        Ok(Some(Field { number, at, value }))
    }

    /// Leaves out bytes.
    pub fn skip(&mut self, length: u64) -> Result<()> {
        self.take(length).map(|_| ())
    }

    #[inline(always)]
    fn take(&mut self, length: u64) -> Result<Message<'a>> {
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let Some((taken, rest)) = split else {
            return fault(
                self.at,
                message!(
                    "A field of {length} bytes starts here, but only {} follow. \
                     Is the file cut off?",
                    self.rest.len()
                ),
            );
        };
        let message = Message {
            rest: taken,
            at: self.at,
        };
        self.rest = rest;
        self.at += taken.len();
        Ok(message)
    }

    fn fixed64(&mut self) -> Result<u64> {
        let bytes = self.take(8)?.rest;
        Ok(bytes
            .first_chunk()
            .map_or(0, |eight| u64::from_le_bytes(*eight)))
    }

    /// Seven bits a byte, the lowest first; at most ten bytes, of which those
    /// bits count that fit.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        if let [byte @ 0..=0x7f, rest @ ..] = self.rest {
            self.rest = rest;
            self.at += 1;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    /// All numbers of a packed list, each with the byte at which it starts. They are
    /// expected to be short, as ids are: no branch depends on how long each of them
    /// is, which could not be foreseen, and two are found in one step.
    #[inline]
    pub fn each_short(mut self, mut found: impl FnMut(u64, usize) -> Result<()>) -> Result<()> {
        while !self.rest.is_empty() {
            let mut at = 0;
            while let Some(word) = self.rest.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
                let word = u64::from_le_bytes(*word);
                // The highest bits of bytes that are the last of a number.
                let lasts = !word & 0x8080_8080_8080_8080;
                let first = lasts.trailing_zeros() + 1;
                if first > 32 {
                    break;
                }
                let second = (lasts >> first).trailing_zeros() + 1;
                if second > 32 {
                    break;
                }
                let next = at + first as usize / 8;
                let both = [
                    (short(word, first), at),
                    (short(word >> first, second), next),
                ];
                for (number, at) in both {
                    found(number, self.at + at)?;
                }
                at = next + second as usize / 8;
            }
            self.rest = self.rest.get(at..).unwrap_or_default();
            self.at += at;
            if !self.rest.is_empty() {
                let at = self.at;
                found(self.varint()?, at)?;
            }
        }
        Ok(())
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for (i, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                self.at += i + 1;
                return Ok(value);
            }
        }
        if self.rest.len() < 10 {
            fault(self.at, "A number breaks off here. Is the file cut off?")
        } else {
            fault(self.at, "A number of more than ten bytes starts here.")
        }
    }
}

impl<'a> Field<'a> {
    #[inline]
    pub fn uint(&self) -> Result<u64> {
        match self.value {
            Value::Varint(value) => Ok(value),
            _ => self.mistyped("a number"),
        }
    }

    /// A signed number: its two's complement in 64 bits.
    #[inline]
    pub fn int(&self) -> Result<i64> {
        Ok(self.uint()? as i64)
    }

    #[inline]
    pub fn message(&self) -> Result<Message<'a>> {
        match self.value {
            Value::Bytes(message) => Ok(message),
            _ => self.mistyped("a text or message"),
        }
    }

    /// The numbers of a repeated field when they are packed into one.
    #[inline]
    pub fn packed(&self) -> Option<Message<'a>> {
        match self.value {
            Value::Bytes(message) => Some(message),
            _ => None,
        }
    }

    /// The numbers of a repeated field, packed or a single one.
    #[inline]
    pub fn each(&self, mut found: impl FnMut(u64) -> CoreResult<()>) -> Result<()> {
        match self.value {
            Value::Varint(value) => found(value)?,
            Value::Bytes(mut packed) => {
                while !packed.rest.is_empty() {
                    found(packed.varint()?)?;
                }
            }
            Value::Fixed64(_) | Value::Fixed32 => return self.mistyped("numbers"),
        }
        Ok(())
    }

    #[inline]
    pub fn fixed64(&self) -> Result<u64> {
        match self.value {
            Value::Fixed64(value) => Ok(value),
            _ => self.mistyped("a number of eight bytes"),
        }
    }

    /// The numbers of eight bytes of a repeated field, packed or a single one.
    #[inline]
    pub fn each_fixed64(&self, mut found: impl FnMut(u64) -> CoreResult<()>) -> Result<()> {
        match self.value {
            Value::Fixed64(value) => found(value)?,
            Value::Bytes(mut packed) => {
                while !packed.rest.is_empty() {
                    found(packed.fixed64()?)?;
                }
            }
            Value::Varint(_) | Value::Fixed32 => {
                return self.mistyped("numbers of eight bytes");
            }
        }
        Ok(())
    }

    /// Whether it holds nothing but zeros.
    pub fn is_zero(&self) -> bool {
        match self.value {
            Value::Varint(value) | Value::Fixed64(value) => value == 0,
            Value::Bytes(message) => message.rest.iter().all(|&byte| byte == 0),
            Value::Fixed32 => true,
        }
    }

    /// Whether it is a text, a message or a packed list.
    pub fn has_bytes(&self) -> bool {
        matches!(self.value, Value::Bytes(_))
    }

    /// Whether it is a single number.
    pub fn is_number(&self) -> bool {
        matches!(self.value, Value::Varint(_))
    }

    #[cold]
    fn mistyped<T>(&self, wanted: &str) -> Result<T> {
        fault(
            self.at,
            message!("Field {} should hold {wanted} but does not.", self.number),
        )
    }
}

/// The number in the first `bits` of a word, 32 at most.
#[inline]
fn short(word: u64, bits: u32) -> u64 {
    let own = word & ((1 << bits) - 1);
    own & 0x7f | (own >> 1) & 0x3f80 | (own >> 2) & 0x1f_c000 | (own >> 3) & 0xfe0_0000
}

/// The most bytes of a number with its tag, for field numbers below 16.
pub const LONGEST_FIELD: usize = 11;

/// Appends a number. Whoever appends many reserves room for them.
#[expect(
    clippy::disallowed_methods,
    reason = "a few bytes, and room for many is reserved"
)]
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    if value < 1 << 28 {
        // How long it is decides no branch: a row of ids could not be foreseen.
        let bits = value as u32;
        let spread =
            bits & 0x7f | (bits & 0x3f80) << 1 | (bits & 0x1f_c000) << 2 | (bits & 0xfe0_0000) << 3;
        let length = length(value);
        let more = 0x0080_8080_u32 & ((1_u32 << (8 * (length as u32 - 1))) - 1);
        let end = out.len() + length;
        out.extend_from_slice(&(spread | more).to_le_bytes());
        out.truncate(end);
        return;
    }
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub fn put_uint(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

#[inline]
pub fn put_int(out: &mut Vec<u8>, number: u32, value: i64) {
    put_uint(out, number, value as u64);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a few bytes, and room for many is reserved"
)]
#[inline]
pub fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// The tag and length of `length` bytes that follow.
#[inline]
pub fn put_head(out: &mut Vec<u8>, number: u32, length: usize) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, length as u64);
}

/// A field that holds bytes.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) -> CoreResult<()> {
    out.try_reserve(bytes.len() + LONGEST_FIELD)
        .map_err(|_| Error::Memory("the output"))?;
    put_head(out, number, bytes.len());
    out.try_extend(bytes, "the output")
}

/// A repeated field. As Go does it: packed when there are more than two. The caller
/// reserves room.
pub fn put_repeated(out: &mut Vec<u8>, number: u32, values: impl Iterator<Item = u64> + Clone) {
    if values.clone().nth(2).is_none() {
        values.for_each(|value| put_uint(out, number, value));
        return;
    }
    put_head(out, number, values.clone().map(length).sum());
    values.for_each(|value| put_varint(out, value));
}

/// How many bytes a field takes whose content has so many, for field numbers below 16.
#[inline]
pub fn field_size(length: usize) -> usize {
    1 + self::length(length as u64) + length
}

/// How many bytes a number takes.
#[inline]
pub fn length(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            (1 << 21) - 1,
            (1 << 28) - 1,
            1 << 28,
            1 << 53,
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), length(value));
            assert_eq!(Message::new(&bytes).varint().unwrap(), value);
        }
        // Longer than needed, and with bits that do not fit.
        assert_eq!(Message::new(&[0x81, 0x00]).varint().unwrap(), 1);
        let mut wide = [0xff; 10];
        wide[9] = 0x7f;
        assert_eq!(Message::new(&wide).varint().unwrap(), u64::MAX);
        assert!(Message::new(&[0xff; 11]).varint().is_err());
        assert!(Message::new(&[0x80]).varint().is_err());
    }

    #[test]
    fn all_numbers_of_a_list_are_found() {
        let numbers = [
            1,
            300,
            1 << 27,
            1 << 28,
            u64::MAX,
            5,
            1 << 20,
            127,
            128,
            0,
            1 << 40,
            3,
        ];
        for start in 0..numbers.len() {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for &number in numbers[start..].iter().chain(&numbers) {
                expected.push((number, bytes.len()));
                put_varint(&mut bytes, number);
            }
            let mut found = Vec::new();
            let all = Message::new(&bytes).each_short(|number, at| {
                found.push((number, at));
                Ok(())
            });
            assert!(all.is_ok() && found == expected, "{found:?}");
            bytes.push(0x80);
            assert!(Message::new(&bytes).each_short(|_, _| Ok(())).is_err());
        }
    }

    #[test]
    fn repeated_numbers_are_packed_from_three_on() {
        let bytes = |values: &[u64]| {
            let mut out = Vec::new();
            put_repeated(&mut out, 1, values.iter().copied());
            out
        };
        assert!(bytes(&[]).is_empty());
        assert_eq!(bytes(&[5, 6]), [8, 5, 8, 6]);
        assert_eq!(bytes(&[5, 6, 300]), [10, 4, 5, 6, 0xac, 2]);
    }
}
