//! The headers of a module.

use crate::Image;
use crate::image::{HEAD, build_id, extent};

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const EH_FRAME_HDR: u32 = 0x6474_e550;

/// The start of a file with these segments: kind, flags, offset, address, size.
fn head(segments: &[(u32, u32, u64, u64, u64)]) -> Vec<u8> {
    let mut head = b"\x7fELF\x02\x01\x01".to_vec();
    head.resize(64, 0);
    head[32..40].copy_from_slice(&64_u64.to_le_bytes());
    head[54..56].copy_from_slice(&56_u16.to_le_bytes());
    head[56..58].copy_from_slice(&(segments.len() as u16).to_le_bytes());
    for (kind, flags, offset, address, size) in segments {
        head.extend(kind.to_le_bytes());
        head.extend(flags.to_le_bytes());
        for word in [offset, address, &0, size, size, &HEAD] {
            head.extend(word.to_le_bytes());
        }
    }
    head.resize(HEAD as usize, 0);
    head
}

#[test]
fn parts_of_a_module_are_where_its_headers_say() {
    let segments = [
        (LOAD, 4, 0, 0x1_0000, 0x800),
        (LOAD, 5, 0x1000, 0x1_1040, 0x900),
        (LOAD, 4, 0x2000, 0x1_2000, 0x500),
        (EH_FRAME_HDR, 4, 0x2100, 0x1_2100, 0x80),
        (NOTE, 4, 0x300, 0x1_0300, 0x24),
    ];
    let head = head(&segments);
    let base = 0x7f00_0000;
    assert_eq!(extent(base, &head), Some(base..base + 0x2500));
    let image = Image::read(&(base..base + 0x3000), &head, 0x1000).unwrap();
    assert_eq!(image.bias, base - 0x1_0000);
    assert_eq!(image.code, base + 0x1000..base + 0x1940);
    assert_eq!(image.offset, 0x1000 - 0x40);
    assert_eq!(image.unwind, base + 0x2100..base + 0x2180);
    assert_eq!(image.unwind_end, base + 0x2500);
    assert_eq!(image.notes[0], base + 0x300..base + 0x324);
    // Where pages are larger, the code is mapped from further ahead.
    let large = Image::read(&(base..base + 0x3000), &head, 0x1_0000).unwrap();
    assert_eq!((large.code, large.offset), (base..base + 0x1940, 0));
    // A mapping that ends before the tables, and a page that is not the start of an ELF file.
    let image = Image::read(&(base..base + 0x2000), &head, 0x1000).unwrap();
    assert!(image.unwind.is_empty());
    assert!(!image.code.is_empty());
    assert!(Image::read(&(base..base + 0x3000), &head[1..], 0x1000).is_none());
}

#[test]
fn a_build_id_is_found_among_notes() {
    let note = |kind: u32, name: &[u8], content: &[u8]| {
        let mut bytes = Vec::new();
        for number in [name.len() as u32, content.len() as u32, kind] {
            bytes.extend(number.to_ne_bytes());
        }
        for part in [name, content] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    };
    let mut notes = note(1, b"GNU\0", b"12345");
    notes.extend(note(3, b"Go\0", b"abcdef"));
    let before = notes.len() as u64;
    notes.extend(note(3, b"GNU\0", b"0123456789"));
    assert_eq!(build_id(1000, &notes), Some(1016 + before..1026 + before));
    assert_eq!(build_id(1000, &notes[..before as usize]), None);
    assert_eq!(build_id(1000, &notes[..notes.len() - 4]), None);
}
