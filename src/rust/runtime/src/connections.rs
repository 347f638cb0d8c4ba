//! The connections of R, which may hold objects: what was written to `rawConnection()` and `textConnection()`.
//!
//! R has a table of the addresses of its connections, among its variables or, since version 4.4, in memory of its own.
//! Its header `R_ext/Connections.h` describes a connection (`struct Rconn`). The table is recognised by its first three
//! connections, the standard ones, which are never closed. The objects are parts of private structures, and only taken
//! if they have the expected types.

use crate::memory::{self, MEMORY_PAGE, Memory, at};
use crate::objects::{EXTPTRSXP, RAWSXP, STRSXP, Type};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, written};

/// The number of connections that every version of R has room for.
pub const CONNECTIONS: usize = 128;
/// The standard connections are in memory that is allocated in sequence.
const NEAR: u64 = 1 << 16;
/// The class of the standard connections.
const STANDARD: &str = "terminal";
/// The places in a connection: the address of the name of its class, of the external pointer that identifies it, and of
/// its private structure.
const CLASS: usize = 0;
const POINTER: usize = 432;
const PRIVATE: usize = 440;
const CONNECTION: usize = 448;
const PRIVATE_SIZE: usize = 24;

/// Classes of connections with an object, its place in the private structure, and its type.
const HOLDERS: [(&str, usize, Type); 2] =
    [("rawConnection", 0, RAWSXP), ("textConnection", 16, STRSXP)];

/// A connection that holds an object.
pub struct Connection {
    /// Such as `3 <rawConnection>`.
    pub name: String,
    pub object: u64,
}

/// Whether these words may be the start of the table: three different addresses that are close together, as of memory
/// that was allocated in sequence.
pub fn is_table(words: &[u64]) -> bool {
    let Some(&[one, two, three]) = words.first_chunk() else {
        return false;
    };
    let is_address = |word: &u64| *word >= MEMORY_PAGE && word % 8 == 0;
    let (first, last) = (one.min(two).min(three), one.max(two).max(three));
    [one, two, three].iter().all(is_address)
        && last - first < NEAR
        && one != two
        && two != three
        && one != three
}

/// The first words of these bytes.
pub fn first_words(bytes: &[u8]) -> [u64; 3] {
    [0, 8, 16].map(|place| at(bytes, place))
}

/// The words of the table that may start at an address.
pub fn table_at(memory: &mut impl Memory, address: u64) -> Option<[u64; CONNECTIONS]> {
    let bytes = memory::array::<{ 8 * CONNECTIONS }>(memory, address)?;
    Some(std::array::from_fn(|row| at(&bytes, 8 * row)))
}

/// The connections with objects in a table; none if the table is not R's. `has_type` is whether an address is that of an
/// object of this type.
pub fn connections(
    memory: &mut impl Memory,
    table: &[u64],
    has_type: impl Fn(u64, Type) -> bool,
) -> Result<Vec<Connection>> {
    let mut found = Vec::new();
    for (number, &address) in table.iter().take(CONNECTIONS).enumerate() {
        if number < 3 {
            if !is_standard(memory, address) {
                break;
            }
            continue;
        }
        if address == 0 {
            continue;
        }
        let Some(connection) = memory::array::<CONNECTION>(memory, address) else {
            continue;
        };
        let class = at(&connection, CLASS);
        let holder = HOLDERS
            .iter()
            .find(|(name, ..)| has_text(memory, class, name));
        let Some((name, place, type_)) = holder else {
            continue;
        };
        let private = memory::array::<PRIVATE_SIZE>(memory, at(&connection, PRIVATE));
        let object = private.map_or(0, |private| at(&private, *place));
        if has_type(at(&connection, POINTER), EXTPTRSXP) && has_type(object, *type_) {
            let name = written(format_args!("{number} <{name}>"))?;
            found.try_push(Connection { name, object })?;
        }
    }
    Ok(found)
}

fn is_standard(memory: &mut impl Memory, address: u64) -> bool {
    let class = memory::word(memory, address);
    class.is_some_and(|class| has_text(memory, class, STANDARD))
}

fn has_text(memory: &mut impl Memory, address: u64, text: &str) -> bool {
    let mut bytes = [0; 16];
    // With the zero at its end.
    let bytes = bytes.get_mut(..text.len() + 1).unwrap_or_default();
    memory.read(address, bytes) && bytes.strip_suffix(&[0]) == Some(text.as_bytes())
}
