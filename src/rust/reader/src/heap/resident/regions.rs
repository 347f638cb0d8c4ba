//! Reads the text of `/proc/PID/smaps`: for each part of the address space a line as in `/proc/PID/maps`, and lines such
//! as `Rss: 4 kB`.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::text::decode;
use std::ops::Range;

/// A part of the address space. Sizes are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Region {
    pub addresses: Range<u64>,
    pub may_read: bool,
    pub may_write: bool,
    pub may_execute: bool,
    /// Whether changes are seen by other processes that have mapped the same.
    pub is_shared: bool,
    /// The path of a file, a name that the kernel gives, such as `[heap]`, or nothing.
    pub name: String,
    pub resident: u64,
    /// The part of it that other processes have mapped as well.
    pub with_others: u64,
    /// The part of it that is not, or not any more, what the file contains.
    pub anonymous: u64,
    pub swapped: u64,
    /// Whether it never has huge pages, as the kernel maps the stacks of threads from Linux 6.7 on (`MAP_STACK`).
    pub is_never_huge: bool,
}

impl Region {
    pub fn size(&self) -> u64 {
        self.addresses.end - self.addresses.start
    }

    /// Whether it is memory of no file, and has no other use that the kernel knows.
    pub fn is_plain(&self) -> bool {
        // The C library may have named it, see `prctl(PR_SET_VMA_ANON_NAME)`.
        self.name.is_empty() || self.name.starts_with("[anon:")
    }

    /// Whether it is the memory that a process has by `brk()`.
    pub fn is_heap(&self) -> bool {
        self.name == "[heap]"
    }

    /// Whether the system does not say what it contains.
    pub fn is_unnamed(&self) -> bool {
        self.is_plain() || self.is_heap()
    }

    /// Whether no access is permitted, as before a stack.
    pub fn is_guard(&self) -> bool {
        self.is_plain() && !self.may_read && !self.may_write && !self.may_execute
    }

    /// The name of its file, without folders.
    pub fn file(&self) -> &str {
        let path = self.name.strip_suffix(" (deleted)").unwrap_or(&self.name);
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// The regions, in the order of their addresses. `None` if the text is not whole, if regions overlap, which the system
/// may report of a process that is running, or if it is not of this kind.
pub fn parse(text: &[u8]) -> Result<Option<Vec<Region>>> {
    let mut regions: Vec<Region> = Vec::new();
    // Each region has these; the last line of a region tells nothing that is needed here.
    let mut has_size = true;
    for line in text.split(|&byte| byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let line = decode(line)?.text;
        let first = line.split(' ').next().unwrap_or_default();
        if let Some(key) = first.strip_suffix(':') {
            let Some(region) = regions.last_mut() else {
                return Ok(None);
            };
            if key == "VmFlags" {
                region.is_never_huge |= line.split_ascii_whitespace().any(|flag| flag == "nh");
            }
            let Some(sum) = field(region, key) else {
                continue;
            };
            let Some(size) = size(&line) else {
                return Ok(None);
            };
            has_size |= key == RESIDENT;
            *sum = sum.saturating_add(size);
        } else {
            let Some(region) = header(&line)?.filter(|_| has_size) else {
                return Ok(None);
            };
            // While the text is read, the system may add a region to the one before it, and repeats both as one.
            while regions.last().is_some_and(|last| is_part(last, &region)) {
                regions.pop();
            }
            let end = regions.last().map_or(0, |last| last.addresses.end);
            if region.addresses.start < end {
                return Ok(None);
            }
            regions.try_push(region)?;
            has_size = false;
        }
    }
    let is_possible = regions
        .iter()
        .all(|region| region.resident <= region.size());
    let is_whole = text.ends_with(b"\n") && has_size && is_possible;
    Ok((is_whole && !regions.is_empty()).then_some(regions))
}

fn is_part(part: &Region, whole: &Region) -> bool {
    let (part, whole) = (&part.addresses, &whole.addresses);
    whole.start <= part.start && part.end <= whole.end
}

const RESIDENT: &str = "Rss";

fn field<'r>(region: &'r mut Region, key: &str) -> Option<&'r mut u64> {
    match key {
        RESIDENT => Some(&mut region.resident),
        "Shared_Clean" | "Shared_Dirty" => Some(&mut region.with_others),
        "Anonymous" => Some(&mut region.anonymous),
        "Swap" => Some(&mut region.swapped),
        _ => None,
    }
}

/// "Rss:      4 kB".
fn size(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let size: u64 = fields.next()?.parse().ok()?;
    let is_known = fields.next() == Some("kB") && fields.next().is_none();
    size.checked_mul(1024).filter(|_| is_known)
}

/// "start-end rwxp offset device inode path".
fn header(line: &str) -> Result<Option<Region>> {
    let mut rest = line;
    // The path follows after blanks, and may contain blanks itself.
    let mut part = || {
        let (part, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind.trim_start_matches(' ');
        Some(part).filter(|part| !part.is_empty())
    };
    let parts = [part(), part(), part(), part(), part()];
    let [Some(addresses), Some(rights), Some(_), Some(_), Some(_)] = parts else {
        return Ok(None);
    };
    let addresses = addresses.split_once('-').and_then(|(start, end)| {
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(number(start)?..number(end)?)
    });
    let (Some(addresses), Some(&[read, write, execute, shared])) =
        (addresses, rights.as_bytes().first_chunk())
    else {
        return Ok(None);
    };
    if addresses.is_empty() {
        return Ok(None);
    }
    Ok(Some(Region {
        addresses,
        may_read: read == b'r',
        may_write: write == b'w',
        may_execute: execute == b'x',
        is_shared: shared == b's',
        name: owned(rest.trim_end_matches(' '))?,
        ..Region::default()
    }))
}
