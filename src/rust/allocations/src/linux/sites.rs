//! Whether a vector is new, a copy or a conversion. R's functions that copy and convert allocate from a few places, so this is
//! looked up once for each place that the allocator returns to.

use super::module::address_of;
use super::native::Frame;
use profile_runtime::variables::{CONVERT, COPY, EVAL};

const CACHED: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    New,
    Copy,
    /// To another type, such as from integers to numbers.
    Conversion,
}

#[derive(Debug)]
pub struct Sites {
    copying: [u64; 2],
    converting: u64,
    evaluating: u64,
    known: Vec<(u64, Kind)>,
}

impl Sites {
    pub fn new() -> Sites {
        Sites {
            copying: COPY.map(address_of),
            converting: address_of(CONVERT),
            evaluating: address_of(EVAL),
            known: Vec::new(),
        }
    }

    /// The functions that copy.
    pub fn copying(&self) -> [u64; 2] {
        self.copying
    }

    /// The kind of vectors that are allocated for this caller of the allocator, if it is known.
    pub fn known(&self, caller: u64) -> Option<Kind> {
        let known = self
            .known
            .get(place(caller))
            .filter(|known| known.0 == caller);
        known.map(|known| known.1)
    }

    pub fn keep(&mut self, caller: u64, kind: Kind) {
        if self.known.is_empty() && self.known.try_reserve_exact(CACHED).is_ok() {
            self.known.resize(CACHED, (0, Kind::New));
        }
        if let Some(slot) = self.known.get_mut(place(caller)) {
            *slot = (caller, kind);
        }
    }

    /// The kind of a vector by its native stack, from the allocator outwards.
    pub fn kind_of(&self, frames: &[Frame]) -> Kind {
        for frame in frames {
            if self.copying.contains(&frame.function) {
                return Kind::Copy;
            } else if frame.function == self.converting {
                return Kind::Conversion;
            } else if frame.function == self.evaluating {
                break;
            }
        }
        Kind::New
    }
}

/// Where an address is kept.
fn place(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
}
