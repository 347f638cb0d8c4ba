//! Reads the stack of a thread that is kept where it is meanwhile, if that is possible.
//!
//! ```text
//! sleeps ──► read, and see whether it still does ──┐
//! runs ──► stop ──► read ──► let it go on          ├──► or else read while it goes on
//! runs, and belongs to this process ──► hold ──► ──┘
//! ```

use crate::memory::Memory;
use crate::process::{Activity, Held, NativeReader, State, Thread, WhyFree};
use crate::stack::{Motion, Reader};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

/// What the system knows and does about the thread that is recorded.
pub trait Watched {
    /// Its CPU time in nanoseconds, if it is known.
    fn cpu_time(&self) -> Option<u64>;

    /// Its state and its processor; `None` if it has ended.
    fn activity(&self) -> Option<Activity>;

    /// Keeps it where it is, given its state.
    fn hold(&mut self, state: State) -> Held;

    /// Whether it has been where it was since then.
    fn is_still(&self, held: &Held) -> bool;
}

impl Watched for Thread {
    fn cpu_time(&self) -> Option<u64> {
        self.cpu_time()
    }

    fn activity(&self) -> Option<Activity> {
        self.activity()
    }

    fn hold(&mut self, state: State) -> Held {
        self.hold(state)
    }

    fn is_still(&self, held: &Held) -> bool {
        self.is_still(held)
    }
}

/// Reads the stack of a thread in this state. Returns why it was not kept where it was, if it should have been; `None` if
/// its stack could not be read. Adds how long it was stopped, in nanoseconds, to `pauses`.
pub fn read<M: Memory>(
    thread: &mut impl Watched,
    state: State,
    reader: &mut Reader<M>,
    mut native: Option<&mut NativeReader>,
    pauses: &mut Vec<u32>,
) -> Result<Option<Option<WhyFree>>> {
    reader.plan()?;
    let mut why = WhyFree::Slow;
    // A thread that has woken up meanwhile is stopped.
    for state in [state, State::Running] {
        let held = match thread.hold(state) {
            Held::Free(found) => {
                why = found;
                break;
            }
            Held::Waits(hold) => match reader.read_held(|| hold.end())? {
                Some(_) => return Ok(Some(None)),
                None => break,
            },
            held => held,
        };
        if let (Some(native), Held::Stopped(pause)) = (&mut native, &held) {
            native.copy(pause)?;
        }
        let is_read = reader.read(Motion::Still)?.is_some();
        if let (Some(native), true) = (&mut native, is_read) {
            native.copy_nodes(reader.target(), reader.stack())?;
        }
        let is_still = thread.is_still(&held);
        if let Held::Stopped(pause) = held {
            let duration = pause.end().as_nanos();
            pauses.try_push(u32::try_from(duration).unwrap_or(u32::MAX))?;
        }
        match is_read {
            true if is_still => return Ok(Some(None)),
            // It takes too long to read it while it is stopped.
            false if is_still => break,
            _ => {}
        }
    }
    // What was copied of its native stack is of another moment.
    if let Some(native) = native {
        native.discard();
    }
    let is_read = reader.read(Motion::Free)?.is_some();
    let why = Some(why).filter(|why| *why != WhyFree::Unwanted);
    Ok(is_read.then_some(why))
}
