//! The current stack of a process, its state and its system call; or those in a core file.

use crate::memory::core_file::CoreFile;
use crate::process::apart;
use crate::process::{Process, ProcessMemory, Stops, system_call_name};
use crate::record::follow::{self, Followed};
use crate::record::samples::in_a_word;
use crate::record::source::of_process;
use crate::record::stop_and_read::{Reading, Wanted, read};
use crate::running_r::Named;
use crate::running_r::c_stack::Whereabouts;
use crate::stack::frames::{Place, Stack};
use crate::stack::reader::{Motion, StackReader};
use profile_core::analysis::label_frames;
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::{self, Stop};
use profile_core::message;
use profile_core::model::Strings;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum number of attempts to read a stack of a process that cannot be stopped.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_micros(500);
/// The maximum time for all attempts. They take long if the memory of the process is damaged.
const LONGEST: Duration = Duration::from_secs(2);

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
    /// See [`crate::running_r::RunningR::unknown()`].
    pub unknown: Option<String>,
    /// The signal that ended it.
    pub signal: Option<&'static str>,
}

/// Reads the current stack of R in a process.
pub fn dump(pid: i32, stop: Stop) -> Result<Dump> {
    apart::run(stop, |stop| dump_here(pid, stop)).0
}

fn dump_here(pid: i32, stop: Stop) -> Result<Dump> {
    let process = Process::find(pid)?;
    let mappings = process.mappings()?;
    let reader = StackReader::open(ProcessMemory::new(pid), &mappings, &process.named()?);
    let mut reader = reader.map_err(|error| of_process(pid, error))?;
    let mut thread =
        reader.locate(|r, memory| follow::open(&process, r, memory, Stops::IfItRuns))?;
    reader.prepare()?;
    let begin = Instant::now();
    let mut last = None;
    for _ in 0..TRIES {
        cancel::check(stop)?;
        let followed = reader.locate(|r, memory| follow::follow(&mut thread, r, memory))?;
        let Some(activity) = thread.activity() else {
            return Err(Error::Process(message!(
                "Process {pid} ended while it was read."
            )));
        };
        if followed == Followed::Lost {
            reader.lose_thread();
        } else {
            let system_call = thread.system_call().and_then(system_call_name);
            let reading = read(
                &mut thread,
                activity.state,
                Wanted::All,
                &mut reader,
                None,
                &mut Vec::new(),
            )?;
            if matches!(reading, Reading::Stack { .. }) {
                last = Some((activity.state, system_call));
                break;
            }
        }
        if begin.elapsed() > LONGEST {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let Some((state, system_call)) = last else {
        let why = reader.why_missing()?;
        return Err(Error::Process(message!(
            "The stack of process {pid} could not be read. In the last attempt, {why}."
        )));
    };
    let mut stack = reader.stack().clone();
    let labels = take_labels(&mut stack, &reader.texts)?;
    Ok(Dump {
        pid,
        command: process.command()?,
        start: process.start(),
        children: process.children()?,
        stack,
        labels,
        unknown: reader.r().unknown(),
        texts: reader.texts,
        state: in_a_word(state),
        system_call,
        signal: None,
    })
}

/// Reads the stack of R in a core file. `shown` is its path in messages.
pub fn dump_core(path: &Path, shown: &str) -> Result<Dump> {
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
        system_call: system_call.and_then(system_call_name),
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
    let labels = take_labels(&mut stack, &reader.texts)?;
    let place = reader.locate(|r, memory| r.whereabouts(memory));
    Ok(InCore {
        stack,
        labels,
        unknown: reader.r().unknown(),
        c_stack: reader.r().stack.clone(),
        address: place.map(Whereabouts::address),
        texts: reader.texts,
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
        stack.records[to] = stack.records[from];
    }
    stack.frames.truncate(clean.kept.len());
    stack.records.truncate(clean.kept.len());
    Ok(clean.labels)
}
