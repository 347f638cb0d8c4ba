//! The current stack of a process, its state and its system call.

use crate::apart;
use crate::places::Place;
use crate::process::{Process, ProcessMemory, State, Stops, Thread, system_call_name};
use crate::reading::read;
use crate::recorder::of_process;
use crate::stack::{Reader, Stack};
use profile_core::analysis::label_frames;
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::message;
use profile_core::model::Strings;
use std::time::{Duration, Instant};

/// The maximum number of attempts to read a stack of a process that cannot be stopped.
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
pub fn dump(pid: i32, stop: Stop) -> Result<Dump> {
    apart::run(stop, |_| dump_here(pid)).0
}

fn dump_here(pid: i32) -> Result<Dump> {
    let process = Process::find(pid)?;
    let mappings = process.mappings()?;
    let reader = Reader::open(ProcessMemory::new(pid), &mappings);
    let mut reader = reader.map_err(|error| of_process(pid, error))?;
    let mut thread = Thread::open(&process, Stops::IfItRuns)?;
    reader.prepare()?;
    let begin = Instant::now();
    let mut last = None;
    for _ in 0..TRIES {
        let Some(activity) = thread.activity() else {
            return Err(Error::Process(message!(
                "Process {pid} ended while it was read."
            )));
        };
        let system_call = process.system_call().and_then(system_call_name);
        if read(
            &mut thread,
            activity.state,
            &mut reader,
            None,
            &mut Vec::new(),
        )?
        .is_some()
        {
            last = Some((activity.state, system_call));
            break;
        }
        if begin.elapsed() > LONGEST {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let Some((state, system_call)) = last else {
        return Err(Error::Process(message!(
            "The stack of process {pid} changed whenever it was read; try again."
        )));
    };
    let mut stack = reader.stack().clone();
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
