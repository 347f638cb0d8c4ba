//! Messages that are declared once: as structs, which prost encodes and decodes, and by the
//! numbers of their fields, by which code of our own reads them.
//!
//! Structs are for what is small or rare. The tables of a file are read by number: prost
//! knows no byte at which a field stands, which errors name, and the structs read a file of
//! 300,000 functions and as many locations 13 % slower. They write it 16 % faster.

use super::wire::{Fault, Result, fault};
use crate::error::{Error, Result as CoreResult};
use crate::message;
use prost::Message;

/// Declares messages: for each field its name, the name of the constant that holds its
/// number, that number, how it is encoded, and its type.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $field:ident $number:ident $tag:tt ($($kind:tt)*) $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, ::prost::Message)]
        pub struct $name {
            $($(#[$about])* #[prost($($kind)*, tag = $tag)] pub $field: $type,)*
        }

        #[allow(dead_code, reason = "not every field is read by its number")]
        impl $name {
            $(pub const $number: u32 = $tag;)*
        }
    )*};
}

pub(crate) use messages;

/// The largest message that is decoded to a struct: prost gets the memory for what repeats in
/// it and does not ask whether there is so much.
const LARGEST: usize = 1 << 20;

/// Appends the fields of a message. Those that are 0 or empty are left out.
pub fn put(out: &mut Vec<u8>, row: &impl Message) -> CoreResult<()> {
    out.try_reserve(row.encoded_len())
        .map_err(|_| Error::Memory("the output"))?;
    row.encode(out).map_err(|_| Error::Memory("the output"))
}

/// A message as a struct.
pub fn get<Row: Message + Default>(bytes: &[u8]) -> Result<Row> {
    if bytes.len() > LARGEST {
        return fault(
            0,
            message!("A message of {} bytes is too large.", bytes.len()),
        );
    }
    Row::decode(bytes).map_err(|error| Fault::At {
        at: 0,
        message: message!("{error}"),
    })
}
