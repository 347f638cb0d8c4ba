//! Core files, made of the recorded images of some versions of R (`images/`): each stop has the frames that R reported
//! there. Damaged core files are errors, or have fewer frames.

use crate::fuzz::Random;
use crate::image::core::{COMMAND, Core, Folder, PID};
use crate::image::processor::{LAST, MACHINE, SLEEP, VERSIONS};
use crate::image::{Image, Stop};
use profile_core::error::Result;
use profile_reader::live::dump_core;
use profile_reader::recorded::dump::Dump;
use profile_runtime::IS_LIVE;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

pub fn read(path: &Path) -> Result<Dump> {
    dump_core(path, "core.1234")
}

pub fn frames(dump: &Dump) -> Vec<String> {
    let text = |id| dump.texts.get(id);
    let frames = dump.stack.frames.iter();
    let frames = frames.map(|frame| match frame.place {
        Some(place) => format!("{} {}#{}", text(frame.name), text(place.file), place.line),
        None => text(frame.name).to_owned(),
    });
    frames.collect()
}

/// The frames of a stop. Those of labels are removed.
fn expected(stop: &Stop) -> Vec<String> {
    let of_labels = ["leaf stops.R#88", "run stops.R#247", "eval", "eval"];
    if stop.name == "labels" {
        of_labels.map(str::to_owned).to_vec()
    } else {
        stop.frames.clone()
    }
}

/// A core file of a stop with R's modules in it.
fn some_core() -> Core {
    let image = Image::for_version(LAST);
    Core::of(&image, &image.stops[0])
}

#[test]
fn every_frame_is_the_one_that_r_reported() {
    let folder = Folder::new("frames");
    for &(version, _) in VERSIONS {
        let image = Image::for_version(version);
        for stop in &image.stops {
            let whole = folder.write("whole", &Core::of(&image, stop).bytes());
            let dump =
                read(&whole).unwrap_or_else(|error| panic!("R {version}, {}: {error}", stop.name));
            assert_eq!(frames(&dump), expected(stop), "R {version}, {}", stop.name);
            assert_eq!(dump.labels.is_empty(), stop.name != "labels");
            assert_eq!((dump.pid, dump.command), (PID, COMMAND.join(" ")));
            assert_eq!((dump.state, dump.signal), ("killed", Some("SIGSEGV")));
            assert_eq!(dump.start, None);
        }
    }
}

#[test]
fn a_running_process_has_no_signal() {
    let folder = Folder::new("state");
    for (signal, system_call, state) in [
        (0, -1, "running"),
        (0, SLEEP, "sleeping"),
        (19, -1, "running"),
    ] {
        let mut core = some_core();
        core.set_thread(signal, system_call);
        let dump = read(&folder.write("core", &core.bytes())).unwrap();
        assert_eq!((dump.state, dump.signal), (state, None));
        if IS_LIVE {
            assert_eq!(
                dump.system_call,
                (system_call > 0).then_some("clock_nanosleep")
            );
        }
    }
}

#[test]
fn the_system_call_is_that_of_the_thread_that_ran_r() {
    let folder = Folder::new("thread");
    let mut core = some_core();
    core.set_thread(0, -1);
    let stack = core.segments.last().unwrap();
    let (low, high) = (stack.0 + 8, stack.0 + stack.1.len() as u64 - 8);
    // These threads have their stack pointers elsewhere, or above R's calls.
    for pointer in [0x1000, high, 0] {
        core.add_other_thread(pointer, SLEEP);
    }
    let state = |core: &Core| {
        let dump = read(&folder.write("core", &core.bytes())).unwrap();
        (dump.state, dump.system_call.is_some())
    };
    assert_eq!(state(&core), ("running", false));
    // This one has R's calls above its stack pointer.
    core.add_other_thread(low, SLEEP);
    assert_eq!(state(&core), ("sleeping", IS_LIVE));
    // And this one is closer to them.
    core.add_other_thread(low + 8, -1);
    assert_eq!(state(&core), ("running", false));
}

/// Without the auxiliary vector, the command line is the short one.
#[test]
fn a_command_line_that_is_not_found_is_short() {
    let folder = Folder::new("command");
    let mut core = some_core();
    let at = core
        .notes
        .windows(8)
        .position(|bytes| bytes == [33, 0, 0, 0, 0, 0, 0, 0]);
    core.notes[at.unwrap()] = 34;
    let dump = read(&folder.write("core", &core.bytes())).unwrap();
    assert_eq!(dump.command, "R --");
}

#[track_caller]
pub fn expect(error: Result<Dump>, class: &str, text: &str) {
    let error = error.err().unwrap();
    assert_eq!(error.class(), class, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn other_files_are_errors_with_the_reason() {
    let folder = Folder::new("other");
    let foreign = |bytes: &[u8], text: &str| {
        let error = read(&folder.write("core", bytes));
        expect(error, "profile_error_parse", text);
    };
    foreign(b"", "it is empty");
    foreign(b"\x7fEL", "it does not start with an ELF header");
    foreign(b"a script", "it does not start with an ELF header");
    foreign(b"\x7fELF\x02\x01\x01", "cut off after 7 bytes");
    foreign(b"\x28\xb5\x2f\xfd\x04\x00", "it is compressed with zstd");
    foreign(b"\x04\x22\x4d\x18\x04\x00", "it is compressed with lz4");
    foreign(b"\xfd7zXZ\0\0\x04", "it is compressed with xz");
    foreign(b"\x1f\x8b\x08", "it is compressed with gzip");
    foreign(b"BZh9", "it is compressed with bzip2");
    let mut core = some_core();
    core.kind = 3;
    foreign(&core.bytes(), "it is a program or a library");
    core.kind = 4;
    core.machine = MACHINE + 1;
    let path = folder.write("core", &core.bytes());
    expect(
        read(&path),
        "profile_error_unsupported",
        "only core files of ",
    );
    let mut bytes = some_core().bytes();
    bytes[4] = 1;
    let path = folder.write("core", &bytes);
    expect(
        read(&path),
        "profile_error_unsupported",
        "only core files of ",
    );
    expect(
        read(&folder.0.join("none")),
        "profile_error_open",
        "there is no such file",
    );
    expect(read(&folder.0), "profile_error_open", "it is not a file");
    let mut core = some_core();
    core.notes.clear();
    foreign(&core.bytes(), "no notes about the process");
}

#[test]
fn a_process_without_r_is_an_error() {
    let folder = Folder::new("without");
    let mut core = some_core();
    // Only the C stack is left.
    let stack = core.segments.pop();
    core.segments = stack.into_iter().collect();
    core.notes.clear();
    let mut process = vec![0; 136];
    process[24] = 7;
    core.note("CORE", 3, &process);
    let path = folder.write("core", &core.bytes());
    expect(read(&path), "profile_error_process", "does not run R");
}

/// Wherever a core file is cut off, there is an error that says so, or all frames are there.
#[test]
fn a_core_file_that_is_cut_off_says_so() {
    let folder = Folder::new("cut");
    for &(version, _) in VERSIONS {
        let image = Image::for_version(version);
        let stop = &image.stops[1];
        let core = Core::of(&image, stop);
        let bytes = core.bytes();
        let mut ends: Vec<_> = (1..core.offset()).step_by(97).collect();
        let mut offset = core.offset();
        for (_, content) in &core.segments {
            ends.extend([offset - 1, offset, offset + 1]);
            offset += content.len() as u64;
        }
        ends.extend([offset - 1, 63, 64, 65]);
        ends.sort_unstable();
        let path = folder.write("core", &bytes);
        let (mut whole, mut refused) = (0, 0);
        for end in ends.into_iter().rev() {
            OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(end)
                .unwrap();
            match read(&path) {
                Ok(dump) => {
                    assert_eq!(frames(&dump), expected(stop));
                    whole += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    let is_said =
                        text.contains("cut off") || end < 5 && text.contains("ELF header");
                    assert!(is_said, "{end}: {text}");
                    refused += 1;
                }
            }
        }
        assert!(whole > 0 && refused > 100, "{whole}, {refused}");
    }
}

/// Any number in the headers and notes may be wrong: reading ends with a stack or an error.
#[test]
fn wrong_numbers_are_harmless() {
    let folder = Folder::new("wrong");
    let mut random = Random::new(7);
    let (mut read_whole, mut refused) = (0, 0);
    for &(version, _) in VERSIONS {
        let image = Image::for_version(version);
        let core = Core::of(&image, &image.stops[2]);
        let bytes = core.bytes();
        let path = folder.write("core", &bytes);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        for round in 0..150 {
            let count = 1 + round % 3;
            let changed: Vec<_> = (0..count)
                .map(|_| match random.below(4) {
                    0 => 8 * random.below(8),
                    1 => 64 + 8 * random.below(40),
                    _ => 8 * random.below(core.offset() as usize / 8),
                })
                .collect();
            for &at in &changed {
                let word = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                let wrong = match random.below(6) {
                    0 => 0,
                    1 => u64::MAX,
                    2 => word ^ (1 << random.below(64)),
                    3 => word.wrapping_add(1),
                    4 => u64::MAX >> random.below(40),
                    _ => random.next(),
                };
                file.write_all_at(&wrong.to_le_bytes(), at as u64).unwrap();
            }
            match read(&path) {
                Ok(dump) => {
                    assert!(dump.stack.frames.len() < 2000);
                    read_whole += 1;
                }
                Err(_) => refused += 1,
            }
            for &at in &changed {
                file.write_all_at(&bytes[at..at + 8], at as u64).unwrap();
            }
        }
    }
    assert!(read_whole > 100 && refused > 100, "{read_whole}, {refused}");
}

/// More segments than the header can express: their number is in the first section header.
#[test]
fn many_segments_are_counted_in_a_section_header() {
    let folder = Folder::new("many");
    let image = Image::for_version(LAST);
    let core = Core::of(&image, &image.stops[0]);
    let mut bytes = core.bytes();
    let count = core.segments.len() as u32 + 1;
    let end = bytes.len() as u64;
    bytes[40..48].copy_from_slice(&end.to_le_bytes());
    bytes[56..58].copy_from_slice(&[0xff, 0xff]);
    let mut section = [0; 64];
    section[44..48].copy_from_slice(&count.to_le_bytes());
    bytes.extend(section);
    let path = folder.write("core", &bytes);
    assert_eq!(frames(&read(&path).unwrap()), expected(&image.stops[0]));
    let at = bytes.len() - 20;
    for (wrong, class) in [(u32::MAX, "cannot have"), (1 << 21, "cut off")] {
        bytes[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
        fs::write(&path, &bytes).unwrap();
        expect(read(&path), "profile_error_parse", class);
    }
}

/// Only what is needed is read, so a core file may be larger than memory and disk.
#[test]
fn a_large_core_file_is_not_loaded() {
    let folder = Folder::new("large");
    let image = Image::for_version(LAST);
    let core = Core::of(&image, &image.stops[0]);
    let mut bytes = core.bytes();
    let (_, stack) = core.segments.last().unwrap();
    // The program header of the last segment.
    let header = 64 + 56 * core.segments.len();
    let far = 1_u64 << 36;
    bytes[header + 8..header + 16].copy_from_slice(&far.to_le_bytes());
    bytes.truncate(bytes.len() - stack.len());
    let path = folder.write("core", &bytes);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(stack, far).unwrap();
    assert_eq!(frames(&read(&path).unwrap()), expected(&image.stops[0]));
}
