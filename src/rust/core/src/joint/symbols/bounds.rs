//! Where functions without a name begin and end.
//!
//! Compilers make an entry in the unwind tables (`.eh_frame`) for each function, also
//! of a stripped library. So all addresses of a function can have one name, though
//! nobody knows how it is called. A function whose rarely used parts the compiler put
//! elsewhere has several entries.

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
                    ranges.try_push((start..end, ()), "unwind tables")?;
                }
            }
        }
        Ok(Bounds(Ranges::new(ranges)?))
    }

    /// Where the function begins that an address is in.
    pub fn start(&self, address: u64) -> Option<u64> {
        self.0.containing(address).next().map(|(start, ())| start)
    }
}
