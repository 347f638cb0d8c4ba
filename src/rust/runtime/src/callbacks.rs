//! The callbacks that `addTaskCallback()` registers. R lists them in structures outside of its heap, which its header
//! `R_ext/Callbacks.h` describes: the addresses of a function, of its data, of the function that frees the data, of the
//! name, and of the next callback.
//!
//! The list is recognised by its functions: for callbacks of R code, both are functions of R, near `R_ReleaseObject()`, and
//! the data is an object of R. Up to R 4.5, that function frees the data; later another one does, which is not exported.
//! Callbacks of C code have other data.

use crate::cycle::Cycle;
use crate::memory::{self, MEMORY_PAGE, Memory, at};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::text::decode;

/// The size of a callback, and the places of its addresses.
const CALLBACK: usize = 40;
const ROUTINE: usize = 0;
const DATA: usize = 8;
const FREES: usize = 16;
const NAME: usize = 24;
const NEXT: usize = 32;

/// R's library is smaller.
const LIBRARY: u64 = 16 << 20;
/// More callbacks than anybody registers.
const MOST: usize = 10_000;
const LONGEST_NAME: usize = 64;

/// A callback of R code.
pub struct Callback {
    pub name: String,
    /// The address of its data.
    pub data: u64,
}

/// Whether these bytes may be a callback of R code.
pub fn is_callback(bytes: &[u8], release: u64) -> bool {
    let is_of_r = |field| at(bytes, field).abs_diff(release) < LIBRARY;
    release != 0 && is_of_r(ROUTINE) && is_of_r(FREES)
}

/// The callbacks of R code in the list that starts at an address; none if there is no such list. `release` is the address
/// of `R_ReleaseObject()`, or 0.
pub fn callbacks(
    memory: &mut impl Memory,
    start: u64,
    release: u64,
    is_object: impl Fn(u64) -> bool,
) -> Result<Vec<Callback>> {
    let mut found = Vec::new();
    let mut others = 0;
    let mut address = start;
    let mut cycle = Cycle::default();
    while found.len() + others < MOST && !cycle.has(address) {
        let Some(callback) = memory::array::<CALLBACK>(memory, address) else {
            break;
        };
        let data = at(&callback, DATA);
        if is_callback(&callback, release) && is_object(data) {
            let name = text_at(memory, at(&callback, NAME))?;
            found.try_push(Callback { name, data })?;
        } else if found.is_empty() {
            // Another structure.
            break;
        } else {
            others += 1;
        }
        address = at(&callback, NEXT);
    }
    Ok(found)
}

/// A text that ends with a zero; its start, if it is long, and nothing of a page that cannot be read.
fn text_at(memory: &mut impl Memory, address: u64) -> Result<String> {
    let mut bytes = [0; LONGEST_NAME];
    let mut done = 0;
    while done < LONGEST_NAME && !bytes[..done].contains(&0) {
        let start = address.saturating_add(done as u64);
        let step = ((MEMORY_PAGE - start % MEMORY_PAGE) as usize).min(LONGEST_NAME - done);
        if !memory.read(start, &mut bytes[done..done + step]) {
            break;
        }
        done += step;
    }
    let end = bytes.iter().position(|byte| *byte == 0);
    owned(&decode(&bytes[..end.unwrap_or(done)])?.text)
}
