//! Encodes the fields of protocol buffer messages.
//!
//! Small messages are structs (`messages.rs`), which prost encodes. Samples, stacks, labels
//! and attributes are encoded here, field by field.

use crate::error::Result as CoreResult;
use crate::limits::memory::TryGrow;

/// The maximum length of a field that contains a number, for field numbers below 16.
pub const MAX_VARINT_FIELD: usize = 11;

/// The number of values from which on a repeated field is packed, as in Go.
pub const PACKED: usize = 3;

/// Appends a number. Callers that append many reserve memory first.
#[expect(
    clippy::disallowed_methods,
    reason = "a few bytes; callers that append many reserve memory first"
)]
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field that contains an unsigned number.
#[inline]
pub fn put_uint(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// Appends a field that contains a signed number.
#[inline]
pub fn put_int(out: &mut Vec<u8>, number: u32, value: i64) {
    put_uint(out, number, value as u64);
}

/// Appends a field that contains a number of eight bytes.
#[expect(
    clippy::disallowed_methods,
    reason = "a few bytes; callers that append many reserve memory first"
)]
#[inline]
pub fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the tag and the length of a field of `length` bytes, which the caller appends.
#[inline]
pub fn put_length_header(out: &mut Vec<u8>, number: u32, length: usize) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, length as u64);
}

/// Appends a field of bytes: a string, a message or a packed list.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) -> CoreResult<()> {
    out.try_reserve(bytes.len() + MAX_VARINT_FIELD)?;
    put_length_header(out, number, bytes.len());
    out.try_extend(bytes)
}

/// Appends a field with the message that `content` appends.
pub fn put_message(
    out: &mut Vec<u8>,
    number: u32,
    content: impl FnOnce(&mut Vec<u8>) -> CoreResult<()>,
) -> CoreResult<()> {
    let mut message = Vec::new();
    content(&mut message)?;
    put_bytes(out, number, &message)
}

/// Appends a repeated field, packed if it has at least [`PACKED`] values. The caller reserves memory.
pub fn put_repeated(out: &mut Vec<u8>, number: u32, values: impl Iterator<Item = u64> + Clone) {
    if values.clone().nth(PACKED - 1).is_none() {
        values.for_each(|value| put_uint(out, number, value));
        return;
    }
    put_length_header(out, number, values.clone().map(varint_len).sum());
    values.for_each(|value| put_varint(out, value));
}

/// The length of a field with `length` bytes of content, for field numbers below 16.
#[inline]
pub fn bytes_field_len(length: usize) -> usize {
    1 + varint_len(length as u64) + length
}

/// The length of an encoded number.
#[inline]
pub fn varint_len(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

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
