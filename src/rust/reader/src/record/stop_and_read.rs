//! Reads the stack of a thread that is kept where it is meanwhile, if that is possible.
//!
//! ```text
//! sleeps ──► read, and see whether it still does ──┐
//! runs ──► stop ──► read ──► let it go on          ├──► or else read while it goes on
//! runs, and belongs to this process ──► hold ──► ──┘
//! ```

use crate::process::computing::Evidence;
use crate::process::{Held, NativeReader, Watched};
use crate::recorded::states::{State, WhyFree};
use crate::stack::reader::{Motion, StackReader};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::memory::Memory;

/// What was read of a thread at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Stack {
        /// Whether the thread computes.
        computes: bool,
        /// Whether it had a processor, if it could run and that is known.
        on_processor: Option<bool>,
        /// Why it was not kept where it was, if it should have been.
        free: Option<WhyFree>,
    },
    /// Nothing, since it does not compute, and only that was of interest.
    Idle,
    /// Its stack could not be read.
    Nothing,
}

/// Which stacks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    /// Those of threads that compute.
    Computing,
}

/// Reads the stack of a thread in this state. Adds how long it was stopped, in nanoseconds, to `pauses`.
pub fn read<M: Memory>(
    thread: &mut impl Watched,
    state: State,
    which: Which,
    reader: &mut StackReader<M>,
    mut native: Option<&mut NativeReader>,
    pauses: &mut Vec<u32>,
) -> Result<Outcome> {
    reader.plan()?;
    let (mut why, mut at_tick) = (WhyFree::Slow, None);
    // A thread that has woken up meanwhile is stopped.
    for stage in [state, State::Running] {
        let held = thread.hold(stage);
        let is_running = state == State::Running;
        let (computes, on_processor) = *at_tick.get_or_insert_with(|| {
            let evidence = is_running.then(|| thread.evidence(&held));
            let computes = evidence.is_some_and(Evidence::computes);
            (
                computes,
                evidence.and_then(|evidence| evidence.on_processor),
            )
        });
        if !computes && which == Which::Computing {
            release(held, pauses)?;
            return Ok(Outcome::Idle);
        }
        let stack = Outcome::Stack {
            computes,
            on_processor,
            free: None,
        };
        let held = match held {
            Held::Free(found) => {
                why = found;
                break;
            }
            Held::InHandler(hold) => match reader.read_held(|| hold.end())? {
                Some(_) => return Ok(stack),
                None => break,
            },
            held => held,
        };
        if let (Some(native), Held::Stopped(pause)) = (&mut native, &held) {
            native.copy(pause, reader.r())?;
        }
        let motion = match held {
            Held::Asleep(_) => Motion::Asleep,
            _ => Motion::Still,
        };
        let is_read = reader
            .read_while(motion, || thread.is_still(&held))?
            .is_some();
        if let (Some(native), true) = (&mut native, is_read) {
            native.copy_nodes(reader.r(), reader.stack())?;
        }
        release(held, pauses)?;
        if is_read {
            reader.finish()?;
            return Ok(stack);
        }
        // Otherwise its memory is damaged, or its list of calls was just being changed.
        if !reader.has_moved() {
            break;
        }
    }
    // What was copied of its native stack is of another moment.
    if let Some(native) = native {
        native.discard();
    }
    let free = Some(why).filter(|why| *why != WhyFree::Unwanted);
    Ok(match reader.read(Motion::Free)? {
        Some(_) => Outcome::Stack {
            computes: at_tick.is_some_and(|(computes, _)| computes),
            on_processor: at_tick.and_then(|(_, on_processor)| on_processor),
            free,
        },
        None => Outcome::Nothing,
    })
}

/// Lets a thread go on.
fn release(held: Held, pauses: &mut Vec<u32>) -> Result<()> {
    match held {
        Held::Stopped(pause) => {
            let duration = pause.end().as_nanos();
            pauses.try_push(u32::try_from(duration).unwrap_or(u32::MAX))
        }
        Held::InHandler(hold) => {
            hold.end();
            Ok(())
        }
        Held::Asleep(_) | Held::Free(_) => Ok(()),
    }
}
