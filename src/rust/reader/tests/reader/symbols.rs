//! Variables that a module exports.

use crate::fake::module::{
    DYNAMIC, HASHES, Hash, Module as FakeModule, STRINGS, TABLE, VARIABLES, WRITABLE,
};
use crate::fake::{FakeMemory, Space};
use profile_reader::memory::symbols::Module;

const START: u64 = 0x7f00_0000_0000;
const NAMES: [&str; 7] = ["R_a", "R_b", "R_c", "R_GlobalContext", "x", "", "R_d"];

fn module(hash: Hash) -> FakeModule {
    let mut module = FakeModule::new(START, hash);
    module.undefined("environ");
    for (number, name) in NAMES.into_iter().enumerate() {
        module.variable(name, 8 * number as u64);
    }
    module.undefined("stdout");
    module
}

fn laid_out(module: FakeModule) -> FakeMemory {
    let mut space = Space::default();
    module.lay_out(&mut space);
    FakeMemory::new(space)
}

fn find(memory: &FakeMemory, name: &str) -> Option<u64> {
    let mut memory = memory.clone();
    let module = Module::at(&mut memory, START).unwrap()?;
    module.find(&mut memory, name)
}

#[test]
fn variables_are_found_by_both_tables_of_hashes() {
    for hash in [Hash::Gnu, Hash::SystemV] {
        for is_relocated in [true, false] {
            let mut module = module(hash);
            module.is_relocated = is_relocated;
            let memory = laid_out(module);
            for (number, name) in NAMES.into_iter().enumerate() {
                let address = START + VARIABLES + 8 * number as u64;
                assert_eq!(find(&memory, name), Some(address), "{name} {hash:?}");
            }
        }
    }
}

#[test]
fn variables_that_are_missing_or_not_defined_are_not_found() {
    for hash in [Hash::Gnu, Hash::SystemV] {
        let memory = laid_out(module(hash));
        let long = "R".repeat(1000);
        for name in [
            "environ",
            "stdout",
            "R_",
            "R_aa",
            "R_GlobalContex",
            "y",
            &long,
        ] {
            assert_eq!(find(&memory, name), None, "{name} {hash:?}");
        }
    }
}

#[test]
fn a_module_has_the_parts_that_it_may_write_to() {
    let mut module = module(Hash::Gnu);
    module.size = WRITABLE + 0x123;
    let mut memory = laid_out(module);
    let found = Module::at(&mut memory, START).unwrap().unwrap();
    let start = START + VARIABLES;
    assert_eq!(found.variables.len(), 1);
    assert_eq!(found.variables[0], start..start + WRITABLE + 0x123);
}

#[test]
fn other_files_are_no_modules() {
    let memory = laid_out(module(Hash::Gnu));
    // 32 bits, big-endian, another file.
    for (offset, byte) in [(4, 1), (5, 2), (0, b'#')] {
        let memory = FakeMemory::new(memory.change(|space| space.clone()));
        memory.change(|space| space.write(START + offset, &[byte]));
        assert!(Module::at(&mut memory.clone(), START).unwrap().is_none());
    }
    assert!(
        Module::at(&mut memory.clone(), START + 8)
            .unwrap()
            .is_none()
    );
    assert!(
        Module::at(&mut memory.clone(), u64::MAX - 8)
            .unwrap()
            .is_none()
    );
}

#[test]
fn modules_without_headers_or_tables_are_none() {
    // The number of headers; their kinds; tags of the dynamic section.
    let zeros: [(u64, usize); 5] = [
        (56, 1),
        (0x40, 56 * 4),
        (DYNAMIC, 16),
        (DYNAMIC + 16, 16),
        (DYNAMIC + 32, 16),
    ];
    for (offset, size) in zeros {
        let memory = laid_out(module(Hash::Gnu));
        memory.change(|space| space.write(START + offset, &vec![0; size]));
        assert_eq!(find(&memory, "R_a"), None, "{offset:#x}");
    }
}

#[test]
fn what_cannot_be_read_is_not_found() {
    for hash in [Hash::Gnu, Hash::SystemV] {
        for hidden in [0, 0x40, DYNAMIC, TABLE, STRINGS, HASHES] {
            let memory = laid_out(module(hash));
            memory.change(|space| space.hide(START + hidden..START + hidden + 0x100));
            assert_eq!(find(&memory, "R_GlobalContext"), None, "{hidden:#x}");
        }
    }
}

#[test]
fn chains_without_an_end_are_left() {
    // Symbols whose hashes match and whose names do not, without a mark of the last one.
    let memory = laid_out(module(Hash::Gnu));
    let hash = "R_e"
        .bytes()
        .fold(5381_u32, |hash, byte| hash * 33 + u32::from(byte))
        & !1;
    memory.change(|space| {
        space.write(
            START + HASHES,
            &[1_u32, 0, 0].map(u32::to_le_bytes).concat(),
        );
        space.write(START + HASHES + 16, &1_u32.to_le_bytes());
        for number in 1..100 {
            space.write(START + HASHES + 20 + 4 * number, &hash.to_le_bytes());
        }
    });
    assert_eq!(find(&memory, "R_e"), None);
    // A symbol that is followed by itself.
    let memory = laid_out(module(Hash::SystemV));
    memory.change(|space| {
        space.write(START + HASHES, &1_u32.to_le_bytes());
        for number in 0..20 {
            space.write(START + HASHES + 8 + 4 * number, &1_u32.to_le_bytes());
        }
    });
    assert_eq!(find(&memory, "R_e"), None);
    assert!(memory.reads() < 20_000);
}

#[test]
fn numbers_that_are_too_large_are_not_followed() {
    for hash in [Hash::Gnu, Hash::SystemV] {
        for word in [0, 1, 7, 1 << 31, u32::MAX] {
            for number in 0..24 {
                let memory = laid_out(module(hash));
                let at = START + HASHES + 4 * number;
                memory.change(|space| space.write(at, &word.to_le_bytes()));
                // The variable may be found nevertheless, but not at another address.
                let found = find(&memory, "R_b");
                assert!(found.is_none_or(|found| found == START + VARIABLES + 8));
            }
        }
    }
}
