//! Mappings, addresses, ids and numbers of any size are read and written without loss.

use super::build::*;
use profile_core::formats::problems::ProblemKind;
use profile_core::model::{Names, Profile};

fn mapping(id: u64, start: u64, limit: u64, file: u64) -> Bytes {
    new()
        .uint(1, id)
        .uint(2, start)
        .uint(3, limit)
        .uint(5, file)
}

/// A file with a value in every field.
fn whole() -> Bytes {
    let line =
        |function: u64, line: i64, column: i64| new().uint(1, function).int(2, line).int(3, column);
    new()
        .strings(&[
            "", "cpu", "ns", "f", "_Zf", "a.c", "prog", "lib.so", "b1", "drop", "keep",
        ])
        .strings(&["https://example.org", "k"])
        .message(1, value_type(1, 2))
        .message(3, mapping(9, 1 << 63, u64::MAX, 6).uint(4, 4096).uint(7, 1))
        .message(3, mapping(3, 0x1000, 0x2000, 7).uint(6, 8).uint(10, 1))
        .message(
            5,
            new().uint(1, 7).uint(2, 3).uint(3, 4).uint(4, 5).int(5, -4),
        )
        .message(5, new().uint(1, 2).uint(3, 4))
        .message(5, new().uint(1, u64::MAX).uint(2, 3).uint(3, 3))
        // A function that is inlined twice into itself, each time with a column.
        .message(
            4,
            new()
                .uint(1, 40)
                .uint(2, 3)
                .uint(3, 0x1010)
                .message(4, line(7, 10, 1))
                .message(4, line(7, 10, 1))
                .message(4, line(2, 1 << 40, 0))
                .uint(5, 1),
        )
        // A location that differs only in its id, one without a symbol, and one that no sample
        // uses.
        .message(4, new().uint(1, 41).uint(2, 3).uint(3, 0x1020))
        .message(4, new().uint(1, 5).uint(2, 77).uint(3, u64::MAX))
        .message(4, new().uint(1, 1).message(4, line(7, 1, 0)))
        .message(
            2,
            sample(&[40, 41, 40], &[i64::MAX]).message(3, new().uint(1, 12).int(3, i64::MIN + 1)),
        )
        .message(2, sample(&[5], &[0]))
        .uint(7, 9)
        .uint(8, 10)
        .int(9, 1_732_169_999_123_456_789)
        .int(12, -7)
        .uint(15, 11)
}

fn whole_profile() -> Profile {
    let (profile, problems) = try_read(&whole().0).unwrap();
    let mut kinds: Vec<_> = problems.counts().to_vec();
    kinds.sort();
    let expected = [
        (ProblemKind::ImpreciseValue, 1),
        (ProblemKind::OddLineNumber, 2),
    ];
    assert_eq!(kinds, expected);
    profile
}

#[test]
fn all_of_it_is_kept() {
    let profile = whole_profile();
    let text = |id| profile.strings.get(id);
    let [program, library] = &profile.mappings[..] else {
        panic!("{:?}", profile.mappings)
    };
    assert_eq!(
        (program.start, program.limit, program.offset),
        (1 << 63, u64::MAX, 4096)
    );
    assert!(program.symbols.functions && library.symbols.inline_frames);
    assert_eq!(
        (text(library.filename), text(library.build_id)),
        ("lib.so", "b1")
    );

    let functions: Vec<_> = profile.functions.iter().collect();
    let names: Vec<_> = functions
        .iter()
        .map(|f| (text(f.name), f.recorded))
        .collect();
    let expected = [
        ("f", Names::Both),
        ("_Zf", Names::SystemName),
        ("f", Names::Both),
    ];
    assert_eq!(names, expected);
    assert_eq!(functions[0].start_line, -4);

    let stack = profile.stacks.get(profile.samples.stack[0]);
    let stack = stack.to_vec().unwrap();
    let locations: Vec<_> = stack.iter().map(|&l| profile.locations.get(l)).collect();
    let inlined: Vec<_> = locations.iter().map(|l| l.inlined).collect();
    assert_eq!(inlined, [true, true, false, false, true, true, false]);
    assert_eq!((locations[0].column, locations[2].line), (1, Some(1 << 40)));
    let address = profile.address_of(&locations[0]);
    assert!(address.is_folded && address.address == 0x1010);
    assert_eq!(address.native_id.map(u64::from), Some(40));
    // A reference to a missing mapping is read as no mapping.
    let lone = profile.stacks.get(profile.samples.stack[1]);
    let lone = lone.first().unwrap();
    let lone = profile.address_of(&profile.locations.get(lone));
    assert_eq!((lone.mapping, lone.address), (None, u64::MAX));

    assert_eq!(profile.values[0].exact, [(0, i64::MAX)]);
    assert_eq!(profile.labels[0].num, Some(i64::MIN + 1));
    let source = &profile.sources[0];
    assert_eq!(source.time, Some(1_732_169_999_123_456_789));
    assert_eq!(source.drop_frames.as_deref(), Some("drop"));
    assert_eq!(source.keep_frames.as_deref(), Some("keep"));
    assert_eq!(source.doc_url.as_deref(), Some("https://example.org"));
    let period = source.period.as_ref().unwrap();
    assert!(period.value == -7.0 && period.type_.is_none());
}

#[test]
fn all_of_it_is_written_as_it_was() {
    let profile = whole_profile();
    let bytes = write(&profile, false);
    let (again, _) = try_read(&bytes).unwrap();
    assert_eq!(show(&again), show(&profile));
    let tables = |profile: &Profile| {
        let locations = profile.locations.iter();
        let addresses: Vec<_> = locations.clone().map(|l| profile.address_of(l)).collect();
        let lines: Vec<_> = locations
            .map(|l| (l.function, l.line, l.column, l.inlined))
            .collect();
        let functions: Vec<_> = profile
            .functions
            .iter()
            .map(|f| (f.recorded, f.native_id))
            .collect();
        (addresses, lines, functions, sources(profile))
    };
    assert_eq!(tables(&again), tables(&profile));
    assert_eq!(write(&again, false), bytes);
}

#[test]
fn a_frame_that_was_filtered_away_leaves_the_rest_of_its_location() {
    let mut profile = whole_profile();
    let stack = profile.stacks.get(profile.samples.stack[0]);
    let stack = stack.to_vec().unwrap();
    // The caller of the first location and the innermost frame of the last one are removed.
    let stack = [&stack[..2], &stack[3..4], &stack[5..]].concat();
    profile.samples.stack[0] = profile.stacks.push(&stack).unwrap();
    let (again, _) = try_read(&write(&profile, false)).unwrap();
    let stack = again.stacks.get(again.samples.stack[0]);
    let stack = stack.to_vec().unwrap();
    let inlined: Vec<_> = stack
        .iter()
        .map(|&l| again.locations.get(l).inlined)
        .collect();
    assert_eq!(inlined, [true, false, false, true, false]);
    let id = |row: usize| again.address_of(&again.locations.get(stack[row])).native_id;
    let ids = [id(0), id(2), id(3)].map(|id| id.map(u64::from));
    assert_eq!(ids[1], Some(41));
    assert!(ids[0] != ids[2] && ids[0] != Some(41), "{ids:?}");
}

#[test]
fn merging_joins_what_is_loaded_elsewhere() {
    let location = |id: u64, mapping: u64, address: u64| {
        new()
            .uint(1, id)
            .uint(2, mapping)
            .uint(3, address)
            .message(4, new().uint(1, 1).int(2, 5))
    };
    let message = base()
        .strings(&["lib.so"])
        .message(3, mapping(1, 0x1000, 0x1800, 0))
        .message(3, mapping(2, 0x10_0000, 0x10_0f00, 7))
        .message(3, mapping(3, 0x20_0000, 0x20_1000, 7))
        .message(4, location(3, 2, 0x10_0010))
        .message(4, location(4, 3, 0x20_0010))
        .message(2, sample(&[3], &[2]))
        .message(2, sample(&[4], &[3]))
        .message(2, sample(&[1], &[0]))
        .message(2, sample(&[2], &[4]))
        .message(2, sample(&[2], &[-4]));
    let (merged, _) = try_read(&write(&read(&message), true)).unwrap();
    // Samples whose values are 0 or sum to 0 are omitted, together with the rows that only they
    // use.
    assert_eq!(show(&merged)[1..], ["5 : f:5 "]);
    assert_eq!((merged.locations.len(), merged.functions.len()), (1, 1));
    // The program remains the first mapping, even if no sample is in it.
    assert_eq!(merged.mappings.len(), 2);
    assert_eq!(merged.mappings[1].start, 0x10_0000);
    let location = *merged.locations.iter().next().unwrap();
    assert_eq!(merged.address_of(&location).address, 0x10_0010);
}
