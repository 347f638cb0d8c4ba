//! Inserts native frames into the stacks of samples of running processes.
//!
//! For such a sample, R's stack and the native stack were read from memory while the process was stopped. Both
//! therefore show the same moment, and each of R's calls has an address on the stack. The rest is as in
//! [`merge`](super::merge()).

use super::interleave::{Interleaver, StackPart};
use super::native::NativeFrames;
use super::r_tables::RTables;
use super::recording::{Recording, Tick};
use super::symbols::Files;
use crate::error::{Position, Result};
use crate::formats::problems::{ProblemKind, Problems};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{LocationId, NATIVE, Profile, StackId};
use std::ops::Range;

/// The native stack of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeStack {
    /// The stack begins at this word of this recording. Each recording belongs to one process.
    At {
        recording: usize,
        word: usize,
    },
    /// The stack was not read, because the memory for native stacks was used up.
    Full,
    Unknown,
}

/// Inserts native frames into the stacks of a profile. `natives` has one for each sample.
pub fn insert_native(
    profile: &mut Profile,
    recordings: &[Recording],
    natives: &[NativeStack],
    problems: &mut Problems,
    stop: Stop,
) -> Result<()> {
    let files = Files::default();
    let mut processes = Vec::new();
    for recording in recordings {
        let process = Process {
            recording,
            natives: NativeFrames::new(&recording.modules, &files, profile)?,
            interleaver: Interleaver::new(recording)?,
        };
        processes.try_push(process)?;
    }
    let mut inserter = Inserter {
        r: RTables::take(profile, true)?,
        items: Vec::new(),
        calls: Vec::new(),
        stack: Vec::new(),
    };
    let mut stacks = Vec::new();
    for row in 0..profile.samples.len() {
        cancel::at_row(row, stop)?;
        inserter.begin(row, profile)?;
        let native = natives.get(row).copied().unwrap_or(NativeStack::Unknown);
        let tick = match native {
            NativeStack::At { recording, word } => {
                let process = processes.get_mut(recording);
                process.and_then(|process| Some((process.recording.tick_at(word)?, process)))
            }
            _ => None,
        };
        let mut is_whole = false;
        let joint = match tick {
            Some((tick, process)) => {
                is_whole = tick.has_whole_stack();
                inserter.joint_stack(process, &tick, profile)?
            }
            None => None,
        };
        let sample = row as u64 + 1;
        let problem = match joint {
            Some(_) if is_whole => None,
            Some(_) => Some(ProblemKind::NativeCut),
            None if native == NativeStack::Full => Some(ProblemKind::NativeFull),
            None => Some(ProblemKind::NativeUnmatched),
        };
        if let Some(problem) = problem {
            let text = message!("sample {sample}");
            problems.note(problem, Position::Sample(sample), text.as_bytes());
        }
        let stack = match joint {
            Some(stack) => stack,
            None => inserter.stack_of_r(profile)?,
        };
        stacks.try_push(stack)?;
    }
    for process in processes {
        process.natives.finish(profile)?;
    }
    profile.samples.stack = stacks;
    Ok(())
}

struct Process<'a> {
    recording: &'a Recording<'a>,
    natives: NativeFrames<'a>,
    interleaver: Interleaver<'a>,
}

struct Inserter {
    r: RTables,
    /// R's items of the current sample, and all its frames, innermost first.
    items: Vec<LocationId>,
    stack: Vec<LocationId>,
    /// The index of the item of each context. Items without a context precede the item of the call that contains them.
    calls: Vec<usize>,
}

impl Inserter {
    fn begin(&mut self, row: usize, profile: &Profile) -> Result<()> {
        self.items.clear();
        let stack = self.r.stacks.get(profile.samples.stack[row]);
        stack.append_to(&mut self.items)
    }

    fn stack_of_r(&mut self, profile: &mut Profile) -> Result<StackId> {
        self.stack.clear();
        for item in &self.items {
            let location = self.r.location(*item, profile)?;
            self.stack.try_push(location)?;
        }
        profile.stacks.intern(&self.stack)
    }

    /// `None` if the order of R's and native frames is uncertain.
    fn joint_stack(
        &mut self,
        process: &mut Process,
        tick: &Tick,
        profile: &mut Profile,
    ) -> Result<Option<StackId>> {
        self.stack.clear();
        self.calls.clear();
        let mut count = 0;
        for has_context in tick.items() {
            if has_context {
                self.calls.try_push(count)?;
            }
            count += 1;
        }
        // The numbers differ if outer calls were omitted. Builtins at top level are not inside any call.
        if !tick.has_whole_contexts() || count != self.items.len() {
            return Ok(None);
        }
        let is_call = |call: usize| self.r.is_call(self.items[self.calls[call]], profile);
        let parts = process
            .interleaver
            .interleave(tick, self.calls.len(), is_call)?;
        let Some(parts) = parts else {
            return Ok(None);
        };
        // The first item after the item of the outermost call.
        let outer = self.calls.last().map_or(0, |last| last + 1);
        for part in parts.iter().rev() {
            match part {
                StackPart::Item(call) => {
                    let inner = call.checked_sub(1);
                    let inner = inner.map_or(0, |inner| self.calls[inner] + 1);
                    self.push(inner..self.calls[*call] + 1, profile)?;
                }
                StackPart::Native(frame) => {
                    let locations = process.natives.locations(*frame, profile)?;
                    self.stack.try_extend(locations)?;
                }
                StackPart::Copy => self.stack.try_push(self.r.copying(profile)?)?,
            }
        }
        self.push(outer..count, profile)?;
        profile.stacks.intern(&self.stack).map(Some)
    }

    /// Adds items of R: a call and the builtins inside it.
    fn push(&mut self, items: Range<usize>, profile: &mut Profile) -> Result<()> {
        let native = profile.frame_type(NATIVE)?;
        for item in &self.items[items] {
            let inner = self.stack.last().map(|&inner| profile.locations.get(inner));
            // A builtin that calls native code is replaced by what it called.
            let is_replaced = inner.is_some_and(|inner| inner.frame_type == native)
                && self.r.is_call(*item, profile);
            if !is_replaced {
                let location = self.r.location(*item, profile)?;
                self.stack.try_push(location)?;
            }
        }
        Ok(())
    }
}
