//! Where the memory of a running process is that is in RAM, from `smaps` and `pagemap` of `/proc`.

use super::pages::Pages;
use super::regions::{self, Region};
use super::{Divided, Malloc, Pool, Resident, malloc};
use crate::process::{Process, page_size};
use profile_core::error::Result;
use profile_core::limits::memory::filled;
use std::os::unix::fs::FileExt;

/// The most pages whose state is read, those of 32 GiB: it takes some milliseconds for a GiB, and a process is stopped
/// meanwhile.
const MOST_PAGES: u64 = 8 << 20;
/// How often to try to read regions, which may change meanwhile.
const TRIES: u32 = 10;
/// The bytes of `pagemap` for a page, and how many pages are read at once.
const WORD: u64 = 8;
const AT_ONCE: u64 = 1 << 13;

/// The resident memory of this process.
pub fn own_resident(process: &Process, pools: Vec<Pool>) -> Result<Resident> {
    // What is needed to look at it is allocated afterwards.
    let malloc = malloc::figures()?;
    resident_of(process, malloc, pools)
}

/// The resident memory of a process, with the figures of its allocators, if they are known.
pub fn resident_of(process: &Process, malloc: Malloc, pools: Vec<Pool>) -> Result<Resident> {
    let mut regions = None;
    for _ in 0..TRIES {
        regions = regions::parse(&process.smaps())?;
        if regions.is_some() {
            break;
        }
    }
    // A system without this file, or with another one, tells only the size.
    let Some(regions) = regions else {
        return Ok(process.resident().map_or(Resident::Unknown, Resident::Size));
    };
    let pages = pages(process, &regions)?;
    let mut divided = Divided {
        regions,
        pages,
        malloc,
        pools,
    };
    malloc::find_arenas(process.pid, &mut divided)?;
    Ok(Resident::Divided(divided))
}

/// The pages of regions without names that are resident in part, as far as the system permits to read them.
fn pages(process: &Process, regions: &[Region]) -> Result<Pages> {
    let size = page_size();
    let mut pages = Pages::new(size);
    let Some(file) = process.pagemap() else {
        return Ok(pages);
    };
    let mut left = MOST_PAGES;
    let mut buffer = filled((AT_ONCE * WORD) as usize, 0_u8)?;
    let in_part = |region: &&Region| region.resident > 0 && region.resident < region.size();
    let regions = regions.iter().filter(in_part);
    for region in regions.filter(|region| region.is_unnamed()) {
        let (first, count) = (region.addresses.start / size, region.size() / size);
        if count > left {
            continue;
        }
        left -= count;
        let mut part = pages.begin(region.addresses.clone())?;
        let mut done = 0;
        while done < count {
            let next = AT_ONCE.min(count - done);
            let bytes = buffer.get_mut(..(next * WORD) as usize).unwrap_or_default();
            let read = file.read_exact_at(bytes, (first + done) * WORD);
            if read.is_err() {
                break;
            }
            part.add(bytes);
            done += next;
        }
        if done == count {
            pages.end(part)?;
        }
    }
    Ok(pages)
}
