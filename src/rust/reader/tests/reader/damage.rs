//! Damaged memory: each part of it is unreadable, all of it is gone at some moment, or there are many random errors.

use crate::fake::Space;
use crate::fake::module::{Hash, Module};
use crate::fake::process::{At, FakeR, MODULE, as_text};
use crate::fuzz::{self, Random};
use profile_reader::running_r::Named;
use profile_reader::stack::frames::Cut;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::contexts::Layout;
use profile_runtime::objects::{CDR, ENVSXP};

#[test]
fn anything_may_be_unreadable() {
    for layout in Layout::ALL {
        let r = fuzz::process(layout, &mut Random::new(1));
        let (memory, mut reader) = r.reader();
        let whole = reader.read(Motion::Free).unwrap().cloned();
        assert!(whole.is_some());
        let parts = r.space.regions.iter().flat_map(|region| {
            let size = region.bytes.len() as u64;
            (region.start..region.start + size).step_by(32)
        });
        for part in parts {
            let mut damaged = r.clone();
            damaged.space.hide(part..part + 32);
            if let (_, Ok(mut reader)) = damaged.open() {
                reader.read(Motion::Free).unwrap();
            }
            memory.change(|space| space.hide(part..part + 32));
            reader.read(Motion::Free).unwrap();
            memory.change(|space| space.holes.clear());
            assert!(reader.read(Motion::Free).unwrap().is_some());
        }
    }
}

#[test]
fn the_memory_may_be_gone_at_any_moment() {
    let r = fuzz::process(Layout::R_4_4, &mut Random::new(2));
    for number in 0..1000 {
        let memory = r.memory();
        memory.before_read(move |space, reads| {
            if reads == number {
                space.regions.clear();
            }
        });
        let reader = profile_reader::stack::reader::StackReader::open(
            memory,
            &r.mappings(),
            &Named::default(),
        );
        if let Ok(mut reader) = reader {
            reader.prepare_with(|| {}).unwrap();
            reader.read(Motion::Free).unwrap();
        }
    }
}

#[test]
fn random_changes_are_survived() {
    let rounds = 4000;
    let mut outcomes = fuzz::Outcomes::default();
    for round in 0..rounds {
        outcomes.add(fuzz::round(round).unwrap());
    }
    // The changes are neither too many nor too few to be of interest.
    assert!(outcomes.opened > rounds / 4, "{outcomes:?}");
    assert!(outcomes.refused > rounds / 20, "{outcomes:?}");
    assert!(outcomes.read > rounds / 4, "{outcomes:?}");
    assert!(outcomes.failed > rounds / 20, "{outcomes:?}");
}

#[test]
fn what_would_take_too_long_is_read_later() {
    // Places whose file is in a table of circular lists.
    let mut r = FakeR::with(Layout::R_4_4, Hash::Gnu, 500);
    let (f, x, nil) = (r.call_of("f"), r.symbol("x"), r.nil);
    let circle = r.pairlist(&[(x, x)]);
    r.space.set(circle + CDR as u64, circle);
    let table = r.list(&[circle; 7]);
    let file = r.cell(ENVSXP, [nil, nil, table]);
    for line in 1..300 {
        let srcref = r.srcref(line, file);
        r.enter(f, At::Srcref(srcref));
    }
    for (motion, most, cut) in [
        (Motion::Free, 1 << 17, None),
        (Motion::Still, 12_000, Some(Cut::Late)),
    ] {
        let (memory, mut reader) = r.reader();
        let before = memory.reads();
        assert_eq!(reader.read(motion).unwrap().unwrap().cut, cut);
        assert!(memory.reads() - before <= most);
        reader.finish().unwrap();
        assert_eq!(as_text(reader.stack(), &reader), ["f"; 299]);
        let before = memory.reads();
        reader.prepare_with(|| {}).unwrap();
        assert!(memory.reads() - before <= 2 << 20);
    }
}

#[test]
fn many_files_without_r_do_not_take_long() {
    let mut space = Space::default();
    let mut module = Module::new(MODULE, Hash::SystemV);
    for number in 0..40 {
        module.variable("x", number);
    }
    module.lay_out(&mut space);
    let r = FakeR::in_space_of(space);
    let memory = r.memory();
    let file = r.mappings().into_iter().find(|mapping| mapping.starts_file);
    let mappings = vec![file.unwrap(); 1_000_000];
    assert!(StackReader::open(memory.clone(), &mappings, &Named::default()).is_err());
    assert!(memory.reads() <= 2 << 20);
}
