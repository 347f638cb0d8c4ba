//! Appends fields to a message, except those with default values.

use crate::error::Result;
use crate::protobuf::encode;

/// Appends a number; 0 is the default and is not written.
pub fn put_unless_0(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        encode::put_uint(out, number, value);
    }
}

/// Appends a list of indices, packed; an empty list is not written.
pub fn put_indices(out: &mut Vec<u8>, number: u32, indices: &[u64]) -> Result<()> {
    if indices.is_empty() {
        return Ok(());
    }
    out.try_reserve(encode::MAX_VARINT_FIELD * (indices.len() + 1))?;
    let size = indices.iter().map(|&index| encode::varint_len(index)).sum();
    encode::put_length_header(out, number, size);
    for &index in indices {
        encode::put_varint(out, index);
    }
    Ok(())
}
