//! Images of R's memory at stops where its stack is known, and how they are stored. `tools/record-images` records
//! them, once for each version of R and processor.
//!
//! `images/VERSION.gz`, or `images/aarch64/VERSION.gz`, has one entry on each line, with numbers and bytes in hexadecimal:
//!
//! ```text
//! mapping START END file      a part of the address space; `file` if it is the start of a file, else `memory`
//! range START END             memory that can be read, and is zero except for the words below
//! stop NAME                   the program has stopped; the words that follow replace older ones from here on
//! words ADDRESS WORD...       what is in memory there, for all that a reader needs
//! gone ADDRESS                a word that cannot be read any more
//! ```
//!
//! The rest of a page with a word can be read as well, and is zero. A reader copies more than it needs, for example the
//! variables of C functions between the records of two calls.
//!
//! `images/VERSION.txt` has the stacks: after `stop NAME`, a line `frame FUNCTION FILE#LINE` for each frame, innermost
//! first. They come from R itself, see `images/stops.R`.

// The recorder and the tests do not use everything.
#![allow(unused)]

pub mod core;
#[cfg_attr(target_arch = "aarch64", path = "processor/aarch64.rs")]
#[cfg_attr(not(target_arch = "aarch64"), path = "processor/x86_64.rs")]
pub mod processor;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use profile_runtime::memory::Mapping;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

pub const WORD: u64 = 8;

/// Words of memory by their address.
pub type Words = BTreeMap<u64, u64>;

/// The memory of a process at a stop, and its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub name: String,
    /// Innermost first.
    pub frames: Vec<String>,
    pub memory: Words,
}

/// A process that has stopped several times.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub mappings: Vec<Mapping>,
    pub ranges: Vec<Range<u64>>,
    pub stops: Vec<Stop>,
}

/// A version is no extension of a file.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The start of a page.
fn page(address: u64) -> u64 {
    address & !0xfff
}

impl Image {
    /// The address space at a stop, as regions of memory. Sorted by address.
    pub fn regions(&self, stop: &Stop) -> Vec<(u64, Vec<u8>)> {
        let pages = stop.memory.keys().map(|&address| page(address));
        let ranges = self.ranges.iter();
        let mut starts: Vec<_> = ranges
            .flat_map(|range| (page(range.start)..range.end).step_by(0x1000))
            .chain(pages)
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let mut regions: Vec<(u64, Vec<u8>)> = Vec::new();
        for start in starts {
            match regions.last_mut() {
                Some((first, bytes)) if *first + bytes.len() as u64 == start => {
                    bytes.resize(bytes.len() + 0x1000, 0);
                }
                _ => regions.push((start, vec![0; 0x1000])),
            }
        }
        for (&address, word) in &stop.memory {
            let after = regions.partition_point(|region| region.0 <= address);
            let (start, bytes) = &mut regions[after - 1];
            let at = (address - *start) as usize;
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        regions
    }

    /// The image of a version of R, recorded on the processor of this machine.
    pub fn for_version(version: &str) -> Image {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(processor::FOLDER);
        Image::load(&folder.join(version)).unwrap()
    }

    pub fn load(path: &Path) -> io::Result<Image> {
        let mut text = String::new();
        let file = fs::File::open(with_suffix(path, ".gz"))?;
        GzDecoder::new(file).read_to_string(&mut text)?;
        let mut image = Image::default();
        for line in text.lines() {
            image.add(line).ok_or_else(|| io::Error::other(line))?;
        }
        let truth = fs::read_to_string(with_suffix(path, ".txt"))?;
        let mut stops = image.stops.iter_mut();
        let mut stop = None;
        for line in truth.lines() {
            match line.split_once(' ') {
                Some(("stop", _)) => stop = stops.next(),
                Some(("frame", frame)) => {
                    let stop = stop.as_mut().ok_or_else(|| io::Error::other(line))?;
                    stop.frames.push(frame.to_owned());
                }
                _ => return Err(io::Error::other(line)),
            }
        }
        Ok(image)
    }

    /// Adds an entry. `None` if it is invalid.
    fn add(&mut self, line: &str) -> Option<()> {
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "mapping" => {
                let mut fields = rest.split(' ');
                let mut number = || number(fields.next()?);
                let addresses = number()?..number()?;
                let starts_file = fields.next()? == "file";
                self.mappings.push(Mapping {
                    addresses,
                    starts_file,
                });
            }
            "range" => {
                let (start, end) = rest.split_once(' ')?;
                self.ranges.push(number(start)?..number(end)?);
            }
            "stop" => {
                let memory = self.stops.last().map(|stop| stop.memory.clone());
                self.stops.push(Stop {
                    name: rest.to_owned(),
                    frames: Vec::new(),
                    memory: memory.unwrap_or_default(),
                });
            }
            "words" => {
                let mut fields = rest.split(' ').map(number);
                let addresses = (fields.next()??..).step_by(WORD as usize);
                let memory = &mut self.stops.last_mut()?.memory;
                for (address, word) in addresses.zip(fields) {
                    memory.insert(address, word?);
                }
            }
            "gone" => {
                self.stops.last_mut()?.memory.remove(&number(rest)?)?;
            }
            _ => return None,
        }
        Some(())
    }

    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut truth = String::new();
        let mut text = String::new();
        for mapping in &self.mappings {
            let kind = if mapping.starts_file {
                "file"
            } else {
                "memory"
            };
            let addresses = &mapping.addresses;
            let _ = writeln!(
                text,
                "mapping {:x} {:x} {kind}",
                addresses.start, addresses.end
            );
        }
        for range in &self.ranges {
            let _ = writeln!(text, "range {:x} {:x}", range.start, range.end);
        }
        let mut before = &Words::new();
        for stop in &self.stops {
            let _ = write!(text, "stop {}", stop.name);
            let mut next = None;
            for (&address, &word) in &stop.memory {
                if before.get(&address) == Some(&word) {
                    continue;
                }
                if next != Some(address) {
                    let _ = write!(text, "\nwords {address:x}");
                }
                let _ = write!(text, " {word:x}");
                next = Some(address + WORD);
            }
            text.push('\n');
            for address in before
                .keys()
                .filter(|address| !stop.memory.contains_key(address))
            {
                let _ = writeln!(text, "gone {address:x}");
            }
            before = &stop.memory;
            let _ = writeln!(truth, "stop {}", stop.name);
            for frame in &stop.frames {
                let _ = writeln!(truth, "frame {frame}");
            }
        }
        let file = fs::File::create(with_suffix(path, ".gz"))?;
        let mut file = GzEncoder::new(file, Compression::best());
        file.write_all(text.as_bytes())?;
        file.finish()?;
        fs::write(with_suffix(path, ".txt"), truth)
    }
}
