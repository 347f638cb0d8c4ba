//! The parts of a module in memory, as the ELF headers at its start describe them.

use libc::{Elf64_Ehdr, Elf64_Phdr, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE};
use std::ops::Range;

/// The headers of a module are at its start, and in practice on its first page.
const PAGE: u64 = 4096;

/// Where the parts of a module are in memory.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// The difference between addresses in memory and those in the file.
    pub bias: u64,
    pub code: Range<u64>,
    /// The offset of the code in the file.
    pub offset: u64,
    /// `.eh_frame_hdr`, and the end of the segment that it is in.
    pub unwind: Range<u64>,
    pub unwind_end: u64,
    pub build_id: Range<u64>,
}

impl Image {
    /// Reads the headers of a module. `None` if they are not those of an ELF file.
    ///
    /// # Safety
    /// `map` is a module that is mapped and stays.
    pub unsafe fn read(map: &Range<u64>) -> Option<Image> {
        // SAFETY: a module has its first page mapped, and the ELF header fits.
        let header = unsafe { (map.start as *const Elf64_Ehdr).read_unaligned() };
        let size = size_of::<Elf64_Phdr>() as u64;
        let end = header
            .e_phoff
            .checked_add(size * u64::from(header.e_phnum))?;
        if header.e_ident[..4] != *b"\x7fELF" || u64::from(header.e_phentsize) != size || end > PAGE
        {
            return None;
        }
        let segments = (0..u64::from(header.e_phnum)).map(|i| {
            let at = map.start + header.e_phoff + i * size;
            // SAFETY: on the first page, as was checked.
            unsafe { (at as *const Elf64_Phdr).read_unaligned() }
        });
        let first = segments.clone().find(|s| s.p_type == PT_LOAD)?;
        let bias = map.start.wrapping_sub(first.p_vaddr / PAGE * PAGE);
        let memory_of = |s: &Elf64_Phdr| {
            let start = bias.wrapping_add(s.p_vaddr);
            let end = start.checked_add(s.p_memsz)?;
            (map.start <= start && end <= map.end).then_some(start..end)
        };
        let loaded = |range: &Range<u64>| {
            segments
                .clone()
                .filter(|s| s.p_type == PT_LOAD && s.p_flags & libc::PF_R != 0)
                .filter_map(|s| memory_of(&s))
                .find(|s| s.start <= range.start && range.end <= s.end)
        };
        let mut image = Image {
            bias,
            ..Image::default()
        };
        for segment in segments.clone() {
            let Some(range) = memory_of(&segment) else {
                continue;
            };
            match segment.p_type {
                PT_LOAD if segment.p_flags & libc::PF_X != 0 && image.code.is_empty() => {
                    let before = range.start % PAGE;
                    image.code = range.start - before..range.end;
                    image.offset = segment.p_offset.saturating_sub(before);
                }
                PT_GNU_EH_FRAME => {
                    if let Some(segment) = loaded(&range) {
                        image.unwind = range;
                        image.unwind_end = segment.end;
                    }
                }
                PT_NOTE if image.build_id.is_empty() && loaded(&range).is_some() => {
                    // SAFETY: in a segment that can be read.
                    image.build_id = unsafe { build_id(range) }.unwrap_or_default();
                }
                _ => {}
            }
        }
        Some(image)
    }

    /// The first bytes of the build id, 0 if there are too few.
    ///
    /// # Safety
    /// The module is mapped.
    pub unsafe fn id_start(&self) -> u64 {
        if self.build_id.end - self.build_id.start < size_of::<u64>() as u64 {
            return 0;
        }
        // SAFETY: inside the build id.
        unsafe { (self.build_id.start as *const u64).read_unaligned() }
    }
}

/// The bytes in a range of memory.
///
/// # Safety
/// The range is mapped and stays so.
pub unsafe fn bytes<'a>(range: &Range<u64>) -> &'a [u8] {
    if range.is_empty() {
        return b"";
    }
    // SAFETY: as promised.
    unsafe {
        std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
    }
}

/// Finds the build id in the notes of a module. A note consists of three numbers of four bytes
/// (length of the name, length of the content, type), the name and the content, both padded to
/// a multiple of four bytes.
///
/// # Safety
/// The range is mapped and stays so.
unsafe fn build_id(notes: Range<u64>) -> Option<Range<u64>> {
    const GNU_BUILD_ID: u32 = 3;
    // SAFETY: as promised.
    let notes_bytes = unsafe { bytes(&notes) };
    let mut at = 0;
    loop {
        let note = notes_bytes.get(at..)?;
        let number = |i: usize| {
            let four = note.get(i * 4..i * 4 + 4)?;
            Some(u32::from_ne_bytes(four.try_into().ok()?))
        };
        let (name, content, kind) = (number(0)? as usize, number(1)? as usize, number(2)?);
        let start = 12 + name.next_multiple_of(4);
        let end = start.checked_add(content)?;
        if end > note.len() {
            return None;
        }
        if kind == GNU_BUILD_ID && note.get(12..12 + name) == Some(b"GNU\0") {
            let base = notes.start + at as u64;
            return Some(base + start as u64..base + end as u64);
        }
        at += end.next_multiple_of(4);
    }
}
