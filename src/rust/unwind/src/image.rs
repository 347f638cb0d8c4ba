//! The parts of a module in memory, as described by the ELF headers at its start.

use std::ops::Range;

/// The number of bytes at the start of a module that contain its headers, in practice. No system has smaller pages.
pub const HEAD: u64 = 4096;

/// The fields of ELF headers, for 64 bits: <https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.pheader.html>.
const HEADER: usize = 64;
const SEGMENT: u64 = 56;
const LOAD: u32 = 1;
const NOTE: u32 = 4;
const EH_FRAME_HDR: u32 = 0x6474_e550;
const EXECUTABLE: u32 = 1;
const READABLE: u32 = 4;
/// More segments with notes than a module has.
const MOST_NOTES: usize = 4;

/// The addresses of the parts of a module in memory.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// The difference between addresses in memory and those in the file.
    pub bias: u64,
    pub code: Range<u64>,
    /// The offset of the code in the file.
    pub offset: u64,
    /// `.eh_frame_hdr`, and the end of the segment that contains it.
    pub unwind: Range<u64>,
    pub unwind_end: u64,
    /// The segments that may contain the build id; unused entries are empty.
    pub notes: [Range<u64>; MOST_NOTES],
}

/// A program header.
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Segment {
    /// Its addresses in memory.
    fn at(&self, bias: u64) -> Option<Range<u64>> {
        let start = bias.wrapping_add(self.address);
        Some(start..start.checked_add(self.size)?)
    }
}

/// The program headers at the start of a module; `None` if it is not the start of an ELF file.
fn segments(head: &[u8]) -> Option<impl Iterator<Item = Segment> + Clone> {
    let word = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u16::from_le_bytes(*head.get(at..)?.first_chunk()?));
    // 64 bits, little-endian.
    if head.len() < HEADER || !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (start, size, count) = (word(32)?, half(54)?, half(56)?);
    let end = start.checked_add(SEGMENT * u64::from(count))?;
    if u64::from(size) != SEGMENT || end > HEAD.min(head.len() as u64) {
        return None;
    }
    let headers = head.get(start as usize..end as usize)?;
    Some(headers.chunks_exact(SEGMENT as usize).map(|header| {
        let word = |at: usize| {
            let bytes = header.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        Segment {
            kind: word(0) as u32,
            flags: (word(0) >> 32) as u32,
            offset: word(8),
            address: word(16),
            size: word(40),
        }
    }))
}

/// The difference between addresses in memory and in the file, of a module that begins at `start`.
fn bias(start: u64, mut segments: impl Iterator<Item = Segment>) -> Option<u64> {
    let first = segments.find(|segment| segment.kind == LOAD)?;
    // Linkers align this address to the largest page of any system with the processor.
    Some(start.wrapping_sub(first.address / HEAD * HEAD))
}

/// The extent in memory of the module that begins at `start` with these bytes.
pub fn extent(start: u64, head: &[u8]) -> Option<Range<u64>> {
    let segments = segments(head)?;
    let bias = bias(start, segments.clone())?;
    let loaded = segments.filter(|segment| segment.kind == LOAD);
    let end = loaded
        .filter_map(|segment| Some(segment.at(bias)?.end))
        .max()?;
    (start < end).then_some(start..end)
}

impl Image {
    /// Reads the headers of a module that is mapped at `map` and begins with `head`; `None` if they are not ELF
    /// headers. `page` is the size of a page of this system, which maps whole pages.
    pub fn read(map: &Range<u64>, head: &[u8], page: u64) -> Option<Image> {
        let segments = segments(head)?;
        let bias = bias(map.start, segments.clone())?;
        let memory_of = |segment: &Segment| {
            let range = segment.at(bias)?;
            (map.start <= range.start && range.end <= map.end).then_some(range)
        };
        let loaded = |range: &Range<u64>| {
            segments
                .clone()
                .filter(|segment| segment.kind == LOAD && segment.flags & READABLE != 0)
                .filter_map(|segment| memory_of(&segment))
                .find(|segment| segment.start <= range.start && range.end <= segment.end)
        };
        let mut image = Image {
            bias,
            ..Image::default()
        };
        for segment in segments.clone() {
            let Some(range) = memory_of(&segment) else {
                continue;
            };
            match segment.kind {
                LOAD if segment.flags & EXECUTABLE != 0 && image.code.is_empty() => {
                    let before = range.start % page;
                    image.code = range.start - before..range.end;
                    image.offset = segment.offset.saturating_sub(before);
                }
                EH_FRAME_HDR => {
                    if let Some(segment) = loaded(&range) {
                        image.unwind = range;
                        image.unwind_end = segment.end;
                    }
                }
                NOTE if loaded(&range).is_some() => {
                    let free = image.notes.iter_mut().find(|notes| notes.is_empty());
                    if let Some(slot) = free {
                        *slot = range;
                    }
                }
                _ => {}
            }
        }
        Some(image)
    }
}

/// Finds the build id in the notes of a module, `bytes`, which are at `start`. A note consists of three numbers of
/// four bytes (length of the name, length of the content, type), the name and the content, both padded to
/// a multiple of four bytes.
pub fn build_id(start: u64, bytes: &[u8]) -> Option<Range<u64>> {
    const GNU_BUILD_ID: u32 = 3;
    let mut at = 0;
    loop {
        let note = bytes.get(at..)?;
        let number = |i: usize| {
            let four = note.get(i * 4..i * 4 + 4)?;
            Some(u32::from_ne_bytes(four.try_into().ok()?))
        };
        let (name, content, kind) = (number(0)? as usize, number(1)? as usize, number(2)?);
        let first = 12 + name.next_multiple_of(4);
        let end = first.checked_add(content)?;
        if end > note.len() {
            return None;
        }
        if kind == GNU_BUILD_ID && note.get(12..12 + name) == Some(b"GNU\0") {
            let base = start.checked_add(at as u64)?;
            return Some(base + first as u64..base.checked_add(end as u64)?);
        }
        at += end.next_multiple_of(4);
    }
}
