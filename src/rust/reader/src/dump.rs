//! The stack of a process at this moment, and what the process does.

use crate::process::{Process, ProcessMemory, State, system_call_name};
use crate::recorder::of_process;
use crate::stack::{Reader, Stack};
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Strings;
use std::thread;
use std::time::{Duration, Instant};

/// How often a stack that changes is read.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_micros(500);
/// How long that may take. Attempts take long if the memory of the process is damaged.
const LONGEST: Duration = Duration::from_secs(2);

pub struct Dump {
    pub process: Process,
    pub stack: Stack,
    /// The names of functions and files.
    pub texts: Strings,
    pub state: State,
    /// The system call that its thread is in.
    pub system_call: Option<&'static str>,
}

/// Reads the present stack of R in a process.
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
            break;
        }
        if begin.elapsed() > LONGEST {
            break;
        }
        thread::sleep(PAUSE);
    }
    let Some((stack, Some(state), system_call)) = last else {
        return Err(match process.state() {
            None => Error::Process(message!("Process {pid} ended while it was read.")),
            Some(_) => Error::Process(message!(
                "The stack of process {pid} changed whenever it was read; try again."
            )),
        });
    };
    Ok(Dump {
        process,
        stack,
        texts: reader.texts,
        state,
        system_call,
    })
}
