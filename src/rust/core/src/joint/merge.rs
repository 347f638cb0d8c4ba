//! Combines a recording and R's own file into one profile: the native frames of a tick are inserted
//! into the R stack of its sample.
//!
//! A sample whose tick is uncertain keeps R's stack and is counted as a problem. If native stacks were not recorded, samples
//! keep R's stack, in which calls get their titles.

use super::align::{Aligned, align};
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
use std::path::{Path, PathBuf};

/// Creates the joint profile of a run whose R stacks are in the file at `path`. Memory figures,
/// which are recorded in every run, are kept only if `memory` is set.
pub fn merge(
    path: &Path,
    origin: Origin,
    recording: &Recording,
    memory: bool,
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
    if let Some(source) = profile.sources.first_mut() {
        source.timestamp = Some(seconds(recording.start));
        source.duration = Some(recording.duration);
    }
    let (aligned, silent) = align(&file, &profile, recording)?;
    drop(file);
    // R's profiler alone does not know of ticks without a sample either.
    let silent = if recording.is_native { silent } else { 0 };
    for _ in 0..silent {
        let end = Position::Sample(aligned.len() as u64);
        problems.note(ProblemKind::SilentTick, end, b"");
    }

    let mut stacks = Vec::new();
    let files = Files::default();
    let mut merger = Merger::new(&mut profile, recording, &files)?;
    let recorded = (aligned.len() as u64).saturating_sub(recording.lost);
    for (row, aligned) in aligned.iter().enumerate() {
        cancel::at_row(row, stop)?;
        let joint = match aligned {
            Some(aligned) if recording.is_native => {
                merger.joint_stack(row, aligned, &mut profile)?
            }
            _ => None,
        };
        let stack = match joint {
            Some(stack) => stack,
            None => merger.stack_of_r(row, aligned.as_ref(), &mut profile)?,
        };
        stacks.try_push(stack)?;
        if !recording.is_native {
            continue;
        }
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
    merger.natives.finish(&mut profile)?;
    profile.samples.stack = stacks;
    take_labels(&mut profile, stop)?;
    if !memory {
        forget_memory(&mut profile);
    }
    Ok((profile, problems))
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

/// Creates the stacks of the joint profile.
struct Merger<'a> {
    r: RTables,
    natives: NativeFrames<'a>,
    interleaver: Interleaver<'a>,
    /// R's items of the current sample, and all its frames, innermost first.
    items: Vec<LocationId>,
    stack: Vec<LocationId>,
    /// The titles of these items, by their numbers.
    titles: Vec<(usize, Title)>,
}

impl<'a> Merger<'a> {
    fn new(
        profile: &mut Profile,
        recording: &'a Recording,
        files: &'a Files,
    ) -> Result<Merger<'a>> {
        Ok(Merger {
            r: RTables::take(profile, recording.is_native)?,
            natives: NativeFrames::new(&recording.modules, files, profile)?,
            interleaver: Interleaver::new(recording)?,
            items: Vec::new(),
            stack: Vec::new(),
            titles: Vec::new(),
        })
    }

    fn stack_of_r(
        &mut self,
        row: usize,
        aligned: Option<&Aligned>,
        profile: &mut Profile,
    ) -> Result<StackId> {
        self.begin(row, aligned, profile)?;
        for item in 0..self.items.len() {
            self.push_item(item, profile)?;
        }
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
        for item in 0..mark {
            self.push_item(item, profile)?;
        }
        let items = &self.items[mark..];
        let is_call = |item: usize| self.r.is_call(items[item], profile);
        let Some(parts) = self
            .interleaver
            .interleave(&aligned.tick, items.len(), is_call)?
        else {
            return Ok(None);
        };
        for part in parts.iter().rev() {
            match part {
                StackPart::Item(item) => {
                    let location = self.r.location_of(
                        items[*item],
                        title(&self.titles, mark + item),
                        profile,
                    )?;
                    self.stack.try_push(location)?;
                }
                StackPart::Native(frame) => {
                    let locations = self.natives.locations(*frame, profile)?;
                    self.stack.try_extend(locations)?;
                }
                StackPart::Copy if aligned.gc => {}
                StackPart::Copy => self.stack.try_push(self.r.copying(profile)?)?,
            }
        }
        profile.stacks.intern(&self.stack).map(Some)
    }

    fn begin(&mut self, row: usize, aligned: Option<&Aligned>, profile: &Profile) -> Result<()> {
        self.items.clear();
        self.stack.clear();
        self.titles.clear();
        if let Some(Aligned { tick, gc }) = aligned {
            for (number, title) in tick.titles() {
                self.titles.try_push((usize::from(*gc) + number, title))?;
            }
        }
        let stack = self.r.stacks.get(profile.samples.stack[row]);
        stack.append_to(&mut self.items)
    }

    fn push_item(&mut self, item: usize, profile: &mut Profile) -> Result<()> {
        let title = title(&self.titles, item);
        let location = self.r.location_of(self.items[item], title, profile)?;
        self.stack.try_push(location)
    }
}

fn title(titles: &[(usize, Title)], item: usize) -> Option<&Title> {
    let mut titles = titles.iter();
    titles
        .find(|(number, _)| *number == item)
        .map(|(_, title)| title)
}
