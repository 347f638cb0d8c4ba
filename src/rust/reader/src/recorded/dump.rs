//! The stack of a process at one moment, its state and its system call; and how they are read from a core file.

use crate::memory::core_file::CoreFile;
use crate::recorded::waits::Wait;
use crate::running_r::Named;
use crate::running_r::c_stack::Whereabouts;
use crate::stack::frames::{Place, Stack};
use crate::stack::reader::{Motion, StackReader};
use profile_core::analysis::label_frames;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Strings;
use std::ops::Range;
use std::path::Path;

pub struct Dump {
    pub pid: i32,
    /// The program and its arguments.
    pub command: String,
    /// When it started, in seconds since 1970, if that is known.
    pub start: Option<f64>,
    /// The processes that it started and that still run.
    pub children: Vec<i32>,
    /// Without the frames of labels.
    pub stack: Stack,
    /// Keys and values.
    pub labels: Vec<(String, String)>,
    /// The names of functions and files.
    pub texts: Strings,
    /// The state of its thread, as a word.
    pub state: &'static str,
    /// The system call that its thread is in.
    pub system_call: Option<&'static str>,
    /// What it waits for, if it does.
    pub wait: Option<Wait>,
    /// See [`crate::running_r::RunningR::unknown()`].
    pub unknown: Option<String>,
    /// The signal that ended it.
    pub signal: Option<&'static str>,
}

/// Reads the stack of R in a core file. `shown` is its path in messages, `name` knows the names of system calls.
pub fn of_core_file(
    path: &Path,
    shown: &str,
    name: fn(i64) -> Option<&'static str>,
) -> Result<Dump> {
    let mut core = CoreFile::open(path, shown)?;
    let read = stack_in(&mut core);
    let InCore {
        stack,
        labels,
        unknown,
        texts,
        c_stack,
        address,
    } = read.map_err(|error| core.explained(error))?;
    let system_call = core.system_call(&c_stack, address);
    let state = match (core.signal, system_call) {
        (Some(_), _) => "killed",
        (None, Some(_)) => "sleeping",
        (None, None) => "running",
    };
    Ok(Dump {
        pid: core.pid,
        command: core.command()?,
        start: None,
        children: Vec::new(),
        stack,
        labels,
        unknown,
        texts,
        state,
        system_call: system_call.and_then(name),
        wait: None,
        signal: core.signal,
    })
}

/// What is found in a core file; see [`Dump`].
struct InCore {
    stack: Stack,
    labels: Vec<(String, String)>,
    unknown: Option<String>,
    texts: Strings,
    /// The C stack on which R ran, and an address on it, if R ran a function.
    c_stack: Range<u64>,
    address: Option<u64>,
}

fn stack_in(core: &mut CoreFile) -> Result<InCore> {
    let named = Named {
        modules: core.modules_of_r()?,
        version: None,
    };
    let mut reader = StackReader::open(&mut core.memory, &core.mappings, &named)?;
    reader.prepare_with(|| {})?;
    if reader.read(Motion::Free)?.is_none() {
        let why = reader.why_missing()?;
        return Err(Error::Process(message!("R's stack cannot be read: {why}.")));
    }
    let mut stack = reader.stack().clone();
    let labels = take_labels(&mut stack, reader.texts())?;
    let place = reader.locate(|r, memory| r.whereabouts(memory));
    Ok(InCore {
        stack,
        labels,
        unknown: reader.r().unknown(),
        c_stack: reader.r().stack.clone(),
        address: place.map(Whereabouts::address),
        texts: reader.into_texts(),
    })
}

/// Removes the frames of labels from a stack, and returns the labels.
pub(crate) fn take_labels(stack: &mut Stack, texts: &Strings) -> Result<Vec<(String, String)>> {
    let frames = stack.frames.iter();
    let frames = frames.map(|frame| (texts.get(frame.name), frame.place.is_some()));
    let clean = label_frames::Frames::of(frames)?;
    let same_file = |own: Option<Place>, of_mark: Option<Place>| match (own, of_mark) {
        (Some(own), Some(of_mark)) if own.file == of_mark.file => Some(of_mark),
        (own, _) => own,
    };
    let outermost = clean.toplevel.and_then(|mark| stack.frames[mark].place);
    stack.toplevel = stack
        .toplevel
        .and_then(|own| same_file(Some(own), outermost));
    for &(frame, mark) in &clean.moved {
        stack.frames[frame].place = same_file(stack.frames[frame].place, stack.frames[mark].place);
    }
    for (to, &from) in clean.kept.iter().enumerate() {
        stack.frames[to] = stack.frames[from];
        stack.records[to] = stack.records[from];
    }
    stack.frames.truncate(clean.kept.len());
    stack.records.truncate(clean.kept.len());
    Ok(clean.labels)
}
