//! The parts of a module in memory, as described by the ELF headers at its start.

use object::LittleEndian;
use object::elf::{
    ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID, PF_R, PF_X, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE,
    ProgramHeader64,
};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};
use std::ops::Range;

type Segment = ProgramHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// The number of bytes at the start of a module that contain its headers, in practice. No system has smaller pages.
pub const HEAD: u64 = 4096;

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

/// The program headers at the start of a module; `None` if it is not the start of an ELF file for 64 bits, little-endian.
fn segments(head: &[u8]) -> Option<&[Segment]> {
    let header = FileHeader64::<LittleEndian>::parse(head).ok()?;
    header.program_headers(header.endian().ok()?, head).ok()
}

/// The addresses of a segment in memory.
fn addresses(segment: &Segment, bias: u64) -> Option<Range<u64>> {
    let start = bias.wrapping_add(segment.p_vaddr(LE));
    Some(start..start.checked_add(segment.p_memsz(LE))?)
}

/// The segments of a module that are loaded.
fn loaded(segments: &[Segment]) -> impl Iterator<Item = &Segment> {
    let all = segments.iter();
    all.filter(|segment| segment.p_type(LE) == PT_LOAD)
}

/// The difference between addresses in memory and in the file, of a module that begins at `start`.
fn bias(start: u64, segments: &[Segment]) -> Option<u64> {
    let first = loaded(segments).next()?;
    // Linkers align this address to the largest page of any system with the processor.
    Some(start.wrapping_sub(first.p_vaddr(LE) / HEAD * HEAD))
}

/// The extent in memory of the module that begins at `start` with these bytes.
pub fn extent(start: u64, head: &[u8]) -> Option<Range<u64>> {
    let segments = segments(head)?;
    let bias = bias(start, segments)?;
    let ends = loaded(segments).filter_map(|segment| Some(addresses(segment, bias)?.end));
    let end = ends.max()?;
    (start < end).then_some(start..end)
}

impl Image {
    /// Reads the headers of a module that is mapped at `map` and begins with `head`; `None` if they are not ELF
    /// headers. `page` is the size of a page of this system, which maps whole pages.
    pub fn read(map: &Range<u64>, head: &[u8], page: u64) -> Option<Image> {
        let segments = segments(head)?;
        let bias = bias(map.start, segments)?;
        let memory_of = |segment: &Segment| {
            let range = addresses(segment, bias)?;
            (map.start <= range.start && range.end <= map.end).then_some(range)
        };
        // The loaded segment that contains a range.
        let around = |range: &Range<u64>| {
            loaded(segments)
                .filter(|segment| segment.p_flags(LE).contains(PF_R))
                .filter_map(memory_of)
                .find(|segment| segment.start <= range.start && range.end <= segment.end)
        };
        let mut image = Image {
            bias,
            ..Image::default()
        };
        for segment in segments {
            let Some(range) = memory_of(segment) else {
                continue;
            };
            match segment.p_type(LE) {
                PT_LOAD if segment.p_flags(LE).contains(PF_X) && image.code.is_empty() => {
                    let before = range.start % page;
                    image.code = range.start - before..range.end;
                    image.offset = segment.p_offset(LE).saturating_sub(before);
                }
                PT_GNU_EH_FRAME => {
                    if let Some(segment) = around(&range) {
                        image.unwind = range;
                        image.unwind_end = segment.end;
                    }
                }
                PT_NOTE if around(&range).is_some() => {
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

/// Finds the build id in the notes of a module, `bytes`, which are at `start`.
pub fn build_id(start: u64, bytes: &[u8]) -> Option<Range<u64>> {
    let mut notes = NoteIterator::<FileHeader64<LittleEndian>>::new(LE, 4, bytes).ok()?;
    while let Some(note) = notes.next().ok()? {
        if note.n_type(LE) == NT_GNU_BUILD_ID && note.name() == ELF_NOTE_GNU {
            let id = note.desc();
            let from = start.checked_add((id.as_ptr().addr() - bytes.as_ptr().addr()) as u64)?;
            return Some(from..from.checked_add(id.len() as u64)?);
        }
    }
    None
}
