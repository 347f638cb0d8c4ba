//! The start and end addresses of functions without a symbol.
//!
//! Compilers create an entry in the unwind tables (`.eh_frame`) for each function, and stripped
//! libraries contain these entries too. Therefore all addresses of a function get the same name,
//! even if its real name is unknown. A function has several entries if the compiler moved rarely
//! used parts of it elsewhere.

use super::elf::Elf;
use super::ranges::Ranges;
use crate::error::Result;
use crate::limits::memory::TryGrow;
use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};

pub struct Bounds(Ranges<()>);

impl Bounds {
    pub fn read(elf: &Elf) -> Result<Bounds> {
        let mut ranges = Vec::new();
        if let Some((address, bytes)) = elf.section_at(".eh_frame")? {
            let table = EhFrame::from(EndianSlice::new(bytes, LittleEndian));
            let bases = BaseAddresses::default().set_eh_frame(address);
            let mut entries = table.entries(&bases);
            // A damaged entry ends the table.
            while let Ok(Some(entry)) = entries.next() {
                let CieOrFde::Fde(entry) = entry else {
                    continue;
                };
                let Ok(entry) = entry.parse(EhFrame::cie_from_offset) else {
                    continue;
                };
                let start = entry.initial_address();
                if let Some(end) = start.checked_add(entry.len()) {
                    ranges.try_push((start..end, ()))?;
                }
            }
        }
        Ok(Bounds(Ranges::new(ranges)?))
    }

    /// The start of the function that contains an address.
    pub fn start(&self, address: u64) -> Option<u64> {
        self.0.containing(address).next().map(|(start, ())| start)
    }
}
