//! Damaged and malicious files: addresses may have no symbol, but there is no other effect.

use crate::symbols::build::*;
use profile_core::joint::Module;
use std::fs;
use std::path::Path;

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// Looks up addresses in a damaged file.
fn survive(module: &Module, addresses: &[u64], what: &str) {
    for symbols in ask(module, addresses) {
        assert!(!symbols.is_empty(), "{what}");
    }
}

/// The sections of a file: their names and positions.
fn sections(library: &Path) -> Vec<(String, usize, usize)> {
    let text = tool("readelf", &["-SW"], library);
    let rows = text.lines().filter_map(|line| line.split_once(']'));
    rows.filter_map(|(_, row)| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [name, _, _, offset, size, ..] = fields[..] else {
            return None;
        };
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((name.to_owned(), number(offset)?, number(size)?))
    })
    .collect()
}

#[test]
fn damaged_files_do_no_harm() {
    damage(15, 5);
}

#[test]
#[ignore = "thorough"]
fn files_with_much_damage_do_no_harm() {
    damage(300, 125);
}

/// Truncates libraries at this number of places, and changes each of their sections this number of times.
fn damage(cuts: usize, changes: usize) {
    let folder = Folder::new();
    let mut libraries = vec![
        folder.compile("cc", &folder.write("five.c", C), &["-O2", "-g"]),
        folder.compile(
            "cc",
            &folder.write("four.c", C),
            &["-O2", "-gdwarf-4", "-gz=zlib"],
        ),
    ];
    if there("c++") {
        let source = folder.write("words.cpp", CXX);
        libraries.push(folder.compile("c++", &source, &["-O2", "-g"]));
    }
    let mut random = Random(7);
    for library in libraries {
        // Without a build id and a range of code, the changed file is not recognised as another one.
        let mut module = module(&library);
        module.build_id.clear();
        module.code = 0..0;
        let all = nm(&[], &library);
        let mut addresses: Vec<u64> = all.iter().map(|known| known.range.start + 1).collect();
        addresses.push(0);
        addresses.push(u64::MAX - BIAS);
        let sound = fs::read(&library).unwrap();
        let path = folder.0.join("damaged.so");
        module.path = path.to_str().unwrap().to_owned();

        for round in 0..cuts {
            let length = random.below(sound.len());
            fs::write(&path, &sound[..length]).unwrap();
            survive(&module, &addresses, &format!("{round}: cut at {length}"));
        }
        // Most bits of a file belong to code, so random changes are made in each section in turn, and in the section
        // headers.
        let mut parts = sections(&library);
        parts.retain(|(name, ..)| {
            name.contains("debug") || name.contains("tab") || name.contains("sym")
        });
        parts.push(("header".to_owned(), 0, 64));
        let table = u64::from_le_bytes(sound[40..48].try_into().unwrap()) as usize;
        parts.push(("sections".to_owned(), table, sound.len() - table));
        for (name, offset, size) in parts {
            if size == 0 {
                continue;
            }
            for round in 0..changes {
                let mut bytes = sound.clone();
                for _ in 0..1 + round % 5 {
                    let at = offset + random.below(size);
                    match random.below(4) {
                        0 => bytes[at] = 0xff,
                        1 => bytes[at] = 0,
                        _ => bytes[at] ^= 1 << random.below(8),
                    }
                }
                fs::write(&path, &bytes).unwrap();
                survive(&module, &addresses, &format!("{name}, {round}"));
            }
        }
    }
}

/// Half a million functions, each inlined into the previous one. An algorithm of quadratic time would not end.
#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let folder = Folder::new();
    let abbreviations = ".section .debug_abbrev\n\
        .byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0\n\
        .byte 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 6, 0, 0\n\
        .byte 3, 0x1d, 1, 0, 0\n\
        .byte 4, 0x1d, 1, 0x11, 1, 0x12, 6, 0, 0\n\
        .byte 5, 0x11, 1, 0, 0\n.byte 0\n";
    // A unit with its own address ranges, and a unit of which only the functions have address ranges.
    for top in [".byte 1\n.quad start\n.long 64", ".byte 5"] {
        let source = folder.write(
            "deep.s",
            format!(
                ".text\nstart: .skip 64, 0x90\n{abbreviations}.section .debug_info\n\
                 .long end - begin\nbegin: .short 4\n.long 0\n.byte 8\n\
                 {top}\n\
                 .byte 2\n.asciz \"deep\"\n.quad start\n.long 64\n\
                 .fill 500000, 1, 3\n\
                 .byte 4\n.quad start\n.long 64\n\
                 .fill 500003, 1, 0\nend:\n"
            ),
        );
        let library = folder.compile("cc", &source, &["-nostdlib"]);
        let all = sections(&library);
        let text = all.iter().find(|(name, ..)| name == ".text").unwrap().1 as u64;
        let found = ask(&module(&library), &[text + 1]).remove(0);
        assert_eq!(found.len(), 500_002);
        assert_eq!(found[found.len() - 1].name, "deep");
    }
}

/// Sections that claim to be larger than their file, inflated or not.
#[test]
fn claimed_sizes_are_not_believed() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2", "-g", "-gz=zlib"]);
    let address = inside(&library, "c_sum");
    let sound = fs::read(&library).unwrap();
    let all = sections(&library);
    let (_, offset, _) = all.iter().find(|(name, ..)| name == ".debug_info").unwrap();
    let module = module(&library);
    assert!(ask(&module, &[address])[0][0].line > 0);
    for claim in [1u64 << 31, (1 << 32) - 1, 1 << 40, u64::MAX] {
        let mut bytes = sound.clone();
        // The size follows the kind of compression.
        bytes[offset + 8..offset + 16].copy_from_slice(&claim.to_le_bytes());
        fs::write(&library, bytes).unwrap();
        let found = ask(&module, &[address]).remove(0);
        assert_eq!(found[0].name, "c_sum");
        assert_eq!(found[0].line, 0);
    }
}
