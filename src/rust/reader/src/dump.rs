//! The current stack of a process, its state and its system call.

use crate::places::Place;
use crate::process::{Process, ProcessMemory, State, system_call_name};
use crate::recorder::of_process;
use crate::stack::{Reader, Stack};
use profile_core::analysis::label_frames;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Strings;
use std::thread;
use std::time::{Duration, Instant};

/// The maximum number of attempts to read a stack that keeps changing.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_micros(500);
/// The maximum time for all attempts. They take long if the memory of the process is damaged.
const LONGEST: Duration = Duration::from_secs(2);

pub struct Dump {
    pub process: Process,
    /// Without the frames of labels.
    pub stack: Stack,
    /// Keys and values.
    pub labels: Vec<(String, String)>,
    /// The names of functions and files.
    pub texts: Strings,
    pub state: State,
    /// The system call that its thread is in.
    pub system_call: Option<&'static str>,
}

/// Reads the current stack of R in a process.
pub fn dump(pid: i32) -> Result<Dump> {
    let process = Process::find(pid)?;
    let mappings = process.mappings()?;
    let reader = Reader::open(ProcessMemory::new(pid), &mappings, true);
    let mut reader = reader.map_err(|error| of_process(pid, error))?;
    reader.prepare()?;
    let mut last = None;
    let begin = Instant::now();
    for _ in 0..TRIES {
        let state = process.state();
        let system_call = process.system_call().and_then(system_call_name);
        if let Some(stack) = reader.read()? {
            last = Some((stack.clone(), state, system_call));
            if !stack.lacks_inner {
                break;
            }
        }
        if begin.elapsed() > LONGEST {
            break;
        }
        thread::sleep(PAUSE);
    }
    let Some((mut stack, Some(state), system_call)) = last else {
        return Err(match process.state() {
            None => Error::Process(message!("Process {pid} ended while it was read.")),
            Some(_) => Error::Process(message!(
                "The stack of process {pid} changed whenever it was read; try again."
            )),
        });
    };
    let labels = take_labels(&mut stack, &reader.texts)?;
    Ok(Dump {
        process,
        stack,
        labels,
        texts: reader.texts,
        state,
        system_call,
    })
}

/// Removes the frames of labels from a stack, and returns the labels.
fn take_labels(stack: &mut Stack, texts: &Strings) -> Result<Vec<(String, String)>> {
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
    }
    stack.frames.truncate(clean.kept.len());
    Ok(clean.labels)
}
