//! R's memory as it was at known stops in some versions of R (`images/`): every frame has the name, the file and the
//! line that R itself reported there. Damaged images have no other frames, and while a process goes from one stop to
//! the next, its stack is that of one of them.

use crate::fake::process::frames_in;
use crate::fake::{FakeMemory, Space};
use crate::fuzz::Random;
use crate::image::processor::{DIFFERENT, VERSIONS};
use crate::image::{Image, Stop};
use profile_core::error::Result;
use profile_reader::running_r::Named;
use profile_reader::stack::reader::{Motion, StackReader};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

fn space(image: &Image, stop: &Stop) -> Space {
    let mut space = Space::default();
    for (start, bytes) in image.regions(stop) {
        space.add_bytes(start, bytes);
    }
    space
}

/// How a stack is read.
#[derive(Debug, Clone, Copy)]
struct Way {
    motion: Motion,
    shortest_collection: Duration,
}

const WAYS: [Way; 3] = [
    Way {
        motion: Motion::Free,
        shortest_collection: Duration::ZERO,
    },
    Way {
        motion: Motion::Free,
        shortest_collection: Duration::MAX,
    },
    Way {
        motion: Motion::Still,
        shortest_collection: Duration::ZERO,
    },
];

fn open(image: &Image, memory: &FakeMemory, way: Way) -> Result<StackReader<FakeMemory>> {
    let mut reader = StackReader::open(memory.clone(), &image.mappings, &Named::default())?;
    reader.shortest_collection = way.shortest_collection;
    Ok(reader)
}

fn frames(reader: &mut StackReader<FakeMemory>, way: Way) -> Option<Vec<String>> {
    frames_in(way.motion, reader)
}

#[test]
fn every_frame_is_the_one_that_r_reported() {
    for &(version, layout) in VERSIONS {
        let image = Image::for_version(version);
        for stop in &image.stops {
            let space = space(&image, stop);
            for way in WAYS {
                let memory = FakeMemory::new(space.clone());
                let mut reader = open(&image, &memory, way).unwrap();
                assert_eq!(reader.r().layout, Some(layout));
                reader.prepare_with(|| {}).unwrap();
                let read = frames(&mut reader, way).unwrap();
                assert_eq!(read, stop.frames, "R {version}, {}, {way:?}", stop.name);
            }
        }
    }
}

/// Whether these are the frames of a stop, or its outer ones. The place of the innermost function is unknown if it is
/// byte code and no such function was read before.
fn are_of(read: &[String], stop: &Stop) -> bool {
    let Some((first, outer)) = read.split_first() else {
        return false;
    };
    let Some((innermost, others)) = stop.frames.split_first() else {
        return false;
    };
    let is_innermost = first == innermost || innermost.starts_with(&format!("{first} "));
    is_innermost && outer == others || first == "..." && stop.frames.ends_with(outer)
}

/// A process goes from one stop to the next one, before each of the reads that a stack takes. Between two stops, R may
/// have collected garbage, and used the memory of objects for others.
#[test]
fn while_a_process_goes_on_its_stack_is_that_of_one_stop() {
    let mut of_both = [0, 0];
    for version in DIFFERENT {
        let image = Image::for_version(version);
        let stops: Vec<_> = image.stops.iter().collect();
        for pair in stops.windows(2) {
            {
                let way = WAYS[0];
                let [from, to] = [pair[0], pair[1]];
                let memory = FakeMemory::new(space(&image, from));
                let later = Rc::new(RefCell::new(space(&image, to)));
                let mut reader = open(&image, &memory, way).unwrap();
                reader.prepare_with(|| {}).unwrap();
                for number in 0.. {
                    let before = memory.reads();
                    assert_eq!(frames(&mut reader, way).as_ref(), Some(&from.frames));
                    if number > memory.reads() - before {
                        break;
                    }
                    let now = later.clone();
                    memory.before_read(move |space, reads| {
                        if reads == number {
                            std::mem::swap(space, &mut now.borrow_mut());
                        }
                    });
                    let start = memory.reads();
                    match frames(&mut reader, way) {
                        None => {}
                        Some(read) if are_of(&read, from) => of_both[0] += 1,
                        Some(read) if are_of(&read, to) => of_both[1] += 1,
                        Some(read) => {
                            panic!("R {version}, {}, {way:?}, {number}: {read:?}", from.name)
                        }
                    }
                    memory.leave_alone();
                    if memory.reads() - start > number {
                        memory.change(|space| std::mem::swap(space, &mut later.borrow_mut()));
                    }
                }
            }
        }
    }
    let least = 50 * DIFFERENT.len();
    assert!(of_both.iter().all(|&count| count > least), "{of_both:?}");
}

/// The function of a frame, without its place.
fn name(frame: &str) -> &str {
    frame.split(' ').next().unwrap()
}

/// A frame without its place, without the place where its function was defined, without either, and itself.
fn less(frame: &str) -> [String; 4] {
    let without = |frame: &str, is_out: fn(&str) -> bool| {
        let words: Vec<_> = frame.split(' ').filter(|word| !is_out(word)).collect();
        words.join(" ")
    };
    let is_definition = |word: &str| word.starts_with('(');
    let placeless = without(frame, |word| word.contains('#'));
    [
        without(&placeless, is_definition),
        placeless,
        without(frame, is_definition),
        frame.to_owned(),
    ]
}

/// Checks that frames were read of this stop: some may be missing, have no place, or, instead of a name like
/// `object$name`, none.
fn expect_only_frames_of(stop: &Stop, read: &[String]) {
    let mut known = stop.frames.iter();
    for frame in read.iter().filter(|frame| *frame != "...") {
        let found = known.find(|known| {
            let has_member = name(known).contains(['$', ':', '[']);
            let anonymous = known.replacen(name(known), "<Anonymous>", 1);
            less(known).contains(frame) || has_member && less(&anonymous).contains(frame)
        });
        assert!(found.is_some(), "{}: {frame} of {read:?}", stop.name);
    }
}

/// Whatever cannot be read, there are no other frames than those of the stop.
#[test]
fn without_a_part_of_the_memory_there_are_fewer_frames_or_none() {
    let (mut whole, mut less, mut none) = (0, 0, 0);
    for &(version, _) in VERSIONS {
        let image = Image::for_version(version);
        for (number, stop) in image.stops.iter().enumerate() {
            let memory = FakeMemory::new(space(&image, stop));
            let way = WAYS[number % WAYS.len()];
            let mut reader = open(&image, &memory, way).unwrap();
            reader.prepare_with(|| {}).unwrap();
            let mut parts: Vec<_> = stop.memory.keys().map(|address| address & !127).collect();
            parts.dedup();
            // Some of the parts at each stop, every other one up to the end of its page.
            for (order, &part) in parts.iter().enumerate().skip(number % 10).step_by(10) {
                let end = if order % 2 == 0 {
                    part + 128
                } else {
                    (part | 0xfff) + 1
                };
                memory.change(|space| space.hide(part..end));
                match frames(&mut reader, way) {
                    Some(read) => {
                        expect_only_frames_of(stop, &read);
                        if read == stop.frames {
                            whole += 1
                        } else {
                            less += 1
                        }
                    }
                    None => none += 1,
                }
                if order % 8 == 0 {
                    if let Ok(mut reader) = open(&image, &memory, WAYS[0]) {
                        if let Some(read) = frames(&mut reader, WAYS[0]) {
                            expect_only_frames_of(stop, &read);
                        }
                    }
                }
                memory.change(|space| space.holes.clear());
            }
            let is_whole = frames(&mut reader, way)
                .unwrap()
                .iter()
                .map(|frame| name(frame))
                .eq(stop.frames.iter().map(|frame| name(frame)));
            assert!(is_whole, "R {version}, {}", stop.name);
        }
    }
    assert!(
        whole > 1000 && less > 30 && none > 100,
        "{whole}, {less}, {none}"
    );
}

/// Pointers may point anywhere, and other numbers may be wrong: this takes neither long nor much memory.
#[test]
fn with_wrong_words_it_ends() {
    let mut random = Random::new(36);
    let (mut read, mut unread, mut refused) = (0, 0, 0);
    for &(version, _) in VERSIONS {
        let image = Image::for_version(version);
        for (number, stop) in image.stops.iter().enumerate() {
            let memory = FakeMemory::new(space(&image, stop));
            let way = WAYS[number % WAYS.len()];
            let mut reader = open(&image, &memory, way).unwrap();
            let words: Vec<_> = stop
                .memory
                .iter()
                .map(|(&address, &word)| (address, word))
                .collect();
            let found = reader.r();
            let is_on_stack =
                |address: &u64| found.stack.contains(address) || found.node_stack.contains(address);
            let on_stack: Vec<_> = words
                .iter()
                .copied()
                .filter(|word| is_on_stack(&word.0))
                .collect();
            for round in 0..50 {
                let changed: Vec<_> = (0..1 + round % 4)
                    .map(|number| match number {
                        1 => random.pick(&words),
                        _ => random.pick(&on_stack),
                    })
                    .collect();
                for &(address, word) in &changed {
                    let other = random.pick(&words);
                    let wrong = match random.below(8) {
                        0 => 0,
                        1 => u64::MAX,
                        2 => word ^ 1 << random.below(64),
                        3 => word.wrapping_add(8),
                        4 => random.next(),
                        5 | 6 => other.0,
                        _ => other.1,
                    };
                    memory.change(|space| space.set(address, wrong));
                }
                let before = memory.reads();
                if round % 5 == 0 {
                    match open(&image, &memory, way) {
                        Ok(mut reader) => drop(frames(&mut reader, way)),
                        Err(_) => refused += 1,
                    }
                } else {
                    match frames(&mut reader, way) {
                        Some(frames) => {
                            assert!(frames.len() < 2000);
                            read += 1;
                        }
                        None => unread += 1,
                    }
                }
                assert!(memory.reads() - before < 3 << 20);
                for &(address, word) in &changed {
                    memory.change(|space| space.set(address, word));
                }
            }
        }
    }
    let least = VERSIONS.len();
    assert!(
        read > 300 * least && unread >= least && refused >= least,
        "{read}, {unread}, {refused}"
    );
}
