//! Reads the stack of a running process at one moment.

use crate::process::apart;
use crate::process::{Process, ProcessMemory, Watched, system_call_name};
use crate::record::follow::{self, Followed};
use crate::record::source::of_process;
use crate::record::stop_and_read::{Outcome, Which, read};
use crate::recorded::dump::{Dump, take_labels};
use crate::recorded::states::Stops;
use crate::recorded::waits::{self, Wait};
use crate::stack::reader::StackReader;
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::{self, Stop};
use profile_core::message;
use std::time::{Duration, Instant};

/// The maximum number of attempts to read a stack of a process that cannot be stopped.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_micros(500);
/// The maximum time for all attempts. They take long if the memory of the process is damaged.
const LONGEST: Duration = Duration::from_secs(2);

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
            let wait = if thread.notice_wait() {
                Some(thread.explain_wait()?)
            } else {
                None
            };
            let reading = read(
                &mut thread,
                activity.state,
                Which::All,
                &mut reader,
                None,
                &mut Vec::new(),
            )?;
            if matches!(reading, Outcome::Stack { .. }) {
                last = Some((activity.state, system_call, wait));
                break;
            }
        }
        if begin.elapsed() > LONGEST {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let Some((state, system_call, wait)) = last else {
        let why = reader.why_missing()?;
        return Err(Error::Process(message!(
            "The stack of process {pid} could not be read. In the last attempt, {why}."
        )));
    };
    let mut stack = reader.stack().clone();
    let labels = take_labels(&mut stack, reader.texts())?;
    let texts = reader.texts();
    let names = stack.frames.iter().map(|frame| texts.get(frame.called));
    let has_span = stack.span.is_some();
    let by_r = waits::of_r(has_span, names);
    let wait = wait.map(|wait| by_r.map_or(wait, Wait::of));
    Ok(Dump {
        pid,
        command: process.command()?,
        start: process.start(),
        children: process.children()?,
        stack,
        labels,
        unknown: reader.r().unknown(),
        texts: reader.into_texts(),
        state: state.in_a_word(),
        system_call,
        wait,
        signal: None,
    })
}
