//! Combines a recording and R's own file into one profile: the native frames of a tick are inserted
//! into the R stack of its sample, and frames without a line get that of their position in byte code.
//!
//! Calls get their titles.
//!
//! A sample whose tick is uncertain keeps R's stack and is counted as a problem. If native stacks were not recorded,
//! nothing is inserted.

use super::align::{Aligned, align};
use super::distinct::{Distinct, Line};
use super::interleave::{Interleaver, StackPart};
use super::native::NativeFrames;
use super::r_tables::RTables;
use super::recording::{Recording, Title};
use super::symbols::Files;
use crate::analysis::label_frames::take_labels;
use crate::error::{Error, Position, Result};
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::{self, Input, rprof};
use crate::io::input::Origin;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::known_types::SAMPLES;
use crate::model::{LocationId, Profile, StackId, seconds};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What is wanted of a run.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Whether to keep memory figures, which are recorded in every run.
    pub memory: bool,
    /// The positions in byte code, and their lines as far as these are known.
    pub positions: &'a Distinct,
    pub lines: &'a [Option<Line<'a>>],
}

/// Creates the profile of a run whose R stacks are in the file at `path`.
pub fn merge(
    path: &Path,
    origin: Origin,
    recording: &Recording,
    wanted: Wanted,
    stop: Stop,
) -> Result<(Profile, Problems)> {
    let file = read_file(path)?;
    if file.is_empty() {
        // R writes at least a header, and does not report if that fails.
        let reason = "R's profiler could not write to it; is the disk full?";
        return Err(Error::Write {
            path: PathBuf::from(path),
            source: io::Error::other(reason),
        });
    }
    let input = Input::Bytes(&file);
    let (mut profile, mut problems) =
        formats::read(input, Some(&rprof::AS_RECORDED), origin, stop)?;
    let source = profile.sources.first_mut();
    if let Some(source) = source.filter(|_| recording.is_native) {
        source.timestamp = Some(seconds(recording.start));
        source.duration = Some(recording.duration);
    }
    let (aligned, silent) = align(&file, &profile, recording)?;
    drop(file);
    if recording.is_native {
        for _ in 0..silent {
            let end = Position::Sample(aligned.len() as u64);
            problems.note(ProblemKind::SilentTick, end, b"");
        }
        insert_frames(
            &mut profile,
            &aligned,
            recording,
            wanted,
            &mut problems,
            stop,
        )?;
    } else {
        insert_items(&mut profile, &aligned, wanted, stop)?;
    }
    take_labels(&mut profile, stop)?;
    if !wanted.memory {
        forget_memory(&mut profile);
    }
    Ok((profile, problems))
}

/// Inserts native frames, lines and titles.
fn insert_frames(
    profile: &mut Profile,
    aligned: &[Option<Aligned>],
    recording: &Recording,
    wanted: Wanted,
    problems: &mut Problems,
    stop: Stop,
) -> Result<()> {
    let mut stacks = Vec::new();
    let files = Files::default();
    let mut merger = Merger {
        items: Items::take(profile, true, wanted)?,
        natives: NativeFrames::new(&recording.modules, &files, profile)?,
        interleaver: Interleaver::new(recording)?,
        stack: Vec::new(),
    };
    let recorded = (aligned.len() as u64).saturating_sub(recording.lost);
    for (row, aligned) in aligned.iter().enumerate() {
        cancel::at_row(row, stop)?;
        let joint = match aligned {
            Some(aligned) => merger.joint_stack(row, aligned, profile)?,
            None => None,
        };
        let stack = match joint {
            Some(stack) => stack,
            None => merger.stack_of_r(row, aligned.as_ref(), profile)?,
        };
        stacks.try_push(stack)?;
        let problem = match (joint, aligned) {
            (Some(_), Some(aligned)) if aligned.tick.has_whole_stack() => continue,
            (Some(_), _) => ProblemKind::NativeCut,
            (None, None) if row as u64 >= recorded => ProblemKind::NativeFull,
            (None, _) => ProblemKind::NativeUnmatched,
        };
        let sample = row as u64 + 1;
        let mut text = message!("sample {sample}");
        if let (ProblemKind::NativeCut, Some(aligned)) = (problem, aligned) {
            text = message!("{text}{}", where_it_ends(aligned, recording));
        }
        problems.note(problem, Position::Sample(sample), text.as_bytes());
    }
    merger.natives.finish(profile)?;
    profile.samples.stack = stacks;
    Ok(())
}

/// Inserts lines and titles only.
fn insert_items(
    profile: &mut Profile,
    aligned: &[Option<Aligned>],
    wanted: Wanted,
    stop: Stop,
) -> Result<()> {
    let mut items = Items::take(profile, false, wanted)?;
    let (mut stacks, mut stack) = (Vec::new(), Vec::new());
    for (row, aligned) in aligned.iter().enumerate() {
        cancel::at_row(row, stop)?;
        items.begin(row, aligned.as_ref(), profile)?;
        stack.clear();
        for item in 0..items.items.len() {
            stack.try_push(items.location(item, profile)?)?;
        }
        stacks.try_push(profile.stacks.intern(&stack)?)?;
    }
    profile.samples.stack = stacks;
    Ok(())
}

/// The content of the file. It must be regular, since a device such as `/dev/zero` is endless.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    let failed = |source| Error::open(path, source);
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(failed(not_regular(&about)));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(about.len() as usize)?;
    let mut file = file.take(about.len());
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Checks that R's profiler can write to `path` and the result can be read: it must be a regular file
/// or not exist.
pub fn check_target(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => Err(Error::Write {
            path: PathBuf::from(path),
            source: not_regular(&about),
        }),
        _ => Ok(()),
    }
}

fn not_regular(about: &Metadata) -> io::Error {
    if about.is_dir() {
        io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")
    } else {
        let reason = "it is a device, a pipe or a socket, not a regular file";
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    }
}

/// The module of the outermost known frame, as text.
fn where_it_ends(aligned: &Aligned, recording: &Recording) -> String {
    let Some(last) = aligned.tick.frames().next_back() else {
        return String::new();
    };
    match last.module.and_then(|module| recording.modules.get(module)) {
        Some(module) => {
            let name = module.path.rsplit('/').next().unwrap_or_default();
            message!(", in {name}")
        }
        None => message!(", in code without a file"),
    }
}

fn forget_memory(profile: &mut Profile) {
    profile.values.retain(|values| SAMPLES == values.type_);
    for source in &mut profile.sources {
        if let Some(options) = &mut source.options {
            options.memory = false;
        }
    }
}

/// The items of R's stacks, with lines and titles.
struct Items<'a> {
    r: RTables,
    wanted: Wanted<'a>,
    /// The items of the current sample, innermost first.
    items: Vec<LocationId>,
    /// The titles of these items, by their numbers.
    titles: Vec<(usize, Title)>,
}

impl<'a> Items<'a> {
    /// `is_native`: whether frames of R have a type, since there are others.
    fn take(profile: &mut Profile, is_native: bool, wanted: Wanted<'a>) -> Result<Items<'a>> {
        Ok(Items {
            r: RTables::take(profile, is_native)?,
            wanted,
            items: Vec::new(),
            titles: Vec::new(),
        })
    }

    fn begin(
        &mut self,
        row: usize,
        aligned: Option<&Aligned>,
        profile: &mut Profile,
    ) -> Result<()> {
        self.items.clear();
        self.titles.clear();
        let stack = self.r.stacks.get(profile.samples.stack[row]);
        stack.append_to(&mut self.items)?;
        let Some(Aligned { tick, gc }) = aligned else {
            return Ok(());
        };
        let mark = usize::from(*gc);
        let items = self.items.iter_mut().skip(mark);
        for (item, position) in items.zip(tick.positions()) {
            let row = position.and_then(|position| self.wanted.positions.row(position));
            let line = row.and_then(|row| self.wanted.lines.get(row).copied().flatten());
            if let Some(line) = line {
                *item = self.r.with_line(*item, line, profile)?;
            }
        }
        for (number, title) in tick.titles() {
            self.titles.try_push((mark + number, title))?;
        }
        Ok(())
    }

    fn location(&mut self, item: usize, profile: &mut Profile) -> Result<LocationId> {
        let mut titles = self.titles.iter();
        let title = titles.find(|(number, _)| *number == item);
        let title = title.map(|(_, title)| title);
        self.r.location_of(self.items[item], title, profile)
    }
}

/// Creates the stacks of the joint profile.
struct Merger<'a> {
    items: Items<'a>,
    natives: NativeFrames<'a>,
    interleaver: Interleaver<'a>,
    /// All frames of the current sample, innermost first.
    stack: Vec<LocationId>,
}

impl Merger<'_> {
    fn stack_of_r(
        &mut self,
        row: usize,
        aligned: Option<&Aligned>,
        profile: &mut Profile,
    ) -> Result<StackId> {
        self.begin(row, aligned, profile)?;
        self.push_items(0..self.items.items.len(), profile)?;
        profile.stacks.intern(&self.stack)
    }

    /// `None` if the order of R's and native frames is uncertain.
    fn joint_stack(
        &mut self,
        row: usize,
        aligned: &Aligned,
        profile: &mut Profile,
    ) -> Result<Option<StackId>> {
        self.begin(row, Some(aligned), profile)?;
        let mark = usize::from(aligned.gc);
        self.push_items(0..mark, profile)?;
        let Items { r, items, .. } = &self.items;
        let items = &items[mark..];
        let is_call = |item: usize| r.is_call(items[item], profile);
        let Some(parts) = self
            .interleaver
            .interleave(&aligned.tick, items.len(), is_call)?
        else {
            return Ok(None);
        };
        for part in parts.iter().rev() {
            match part {
                StackPart::Item(item) => {
                    let location = self.items.location(mark + item, profile)?;
                    self.stack.try_push(location)?;
                }
                StackPart::Native(frame) => {
                    let locations = self.natives.locations(*frame, profile)?;
                    self.stack.try_extend(locations)?;
                }
                StackPart::Copy if aligned.gc => {}
                StackPart::Copy => {
                    let location = self.items.r.copying(profile)?;
                    self.stack.try_push(location)?;
                }
            }
        }
        profile.stacks.intern(&self.stack).map(Some)
    }

    fn begin(
        &mut self,
        row: usize,
        aligned: Option<&Aligned>,
        profile: &mut Profile,
    ) -> Result<()> {
        self.stack.clear();
        self.items.begin(row, aligned, profile)
    }

    fn push_items(&mut self, items: Range<usize>, profile: &mut Profile) -> Result<()> {
        for item in items {
            let location = self.items.location(item, profile)?;
            self.stack.try_push(location)?;
        }
        Ok(())
    }
}
