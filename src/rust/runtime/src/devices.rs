//! R's graphics devices, which hold what was drawn on them: a display list, from which they draw it anew, and a snapshot
//! of its state.
//!
//! R has a table of the addresses of its devices among its variables (`R_Devices` in `devices.c`), which it does not
//! export. Its header `R_ext/GraphicsEngine.h` describes a device (`GEDevDesc`), and `R_ext/GraphicsDevice.h` the part that
//! a driver of devices fills (`DevDesc`). The table is recognised by its first device, the null device, which is a
//! variable of R, and by the objects of the others.

use crate::memory::{self, MEMORY_PAGE, Memory, at, half_at};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

/// The number of devices that R has room for.
pub const DEVICES: usize = 64;
/// The places in a device: the driver's part, whether there is a display list, the list, its last element, and the
/// snapshot.
const DRIVER: usize = 0;
const HAS_LIST: usize = 8;
const LIST: usize = 16;
const LAST: usize = 24;
const SNAPSHOT: usize = 32;
const DEVICE: usize = 40;
/// The place of the environment with the handlers of events in the driver's part.
const EVENTS: u64 = 424;

/// A device, and the objects that it holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Device {
    /// As `dev.cur()` returns it.
    pub number: u32,
    pub objects: [u64; 4],
}

/// Whether these words may be the start of the table, with at least one device that is open. `is_variable` is whether an
/// address is among R's variables.
pub fn is_table(words: &[u64], is_variable: impl Fn(u64) -> bool) -> bool {
    let Some((&null, devices)) = words.get(..DEVICES).and_then(<[u64]>::split_first) else {
        return false;
    };
    let may_be_device =
        |&word: &u64| word == 0 || (word >= MEMORY_PAGE && word % 8 == 0 && !is_variable(word));
    is_variable(null) && devices.iter().any(|word| *word != 0) && devices.iter().all(may_be_device)
}

/// The devices of a table; none if the table is not R's. `is_object` is whether there is an object at an address.
pub fn devices(
    memory: &mut impl Memory,
    table: &[u64],
    is_object: impl Fn(u64) -> bool,
) -> Result<Vec<Device>> {
    let mut found = Vec::new();
    for (number, &address) in (1..).zip(table.iter().take(DEVICES)) {
        // The null device has no objects.
        if number == 1 || address == 0 {
            continue;
        }
        let Some(device) = memory::array::<DEVICE>(memory, address) else {
            return Ok(Vec::new());
        };
        let [list, last, snapshot] = [LIST, LAST, SNAPSHOT].map(|place| at(&device, place));
        let is_device =
            half_at(&device, HAS_LIST) <= 1 && [list, last, snapshot].into_iter().all(&is_object);
        if !is_device {
            return Ok(Vec::new());
        }
        let events = at(&device, DRIVER).wrapping_add(EVENTS);
        let events = memory::word(memory, events).filter(|&events| is_object(events));
        let objects = [list, last, snapshot, events.unwrap_or(list)];
        found.try_push(Device { number, objects })?;
    }
    Ok(found)
}
