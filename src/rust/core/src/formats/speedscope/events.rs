//! Evented profiles: frames are opened and closed at certain times.
//!
//! The time between two events becomes a sample with the frames that are open. If there are none, nothing was
//! recorded then, so there is no sample. Frames that are never closed are open until the end of the profile.

use super::recorded::Recorded;
use super::stacks::RawStacks;
use crate::error::Result;
use crate::formats::json_file::{Reader, fields};
use crate::formats::problems::ProblemKind;
use crate::json::Number;
use crate::limits::memory::TryGrow;
use crate::message;

/// The frames that are open after the last event, and its time.
pub struct Open {
    frames: Vec<u32>,
    last: Option<Number>,
}

impl Open {
    pub fn has_events(&self) -> bool {
        self.last.is_some()
    }

    /// Adds the sample between the last event and the end of the profile.
    pub fn close(
        &self,
        end: Option<Number>,
        json: &mut Reader,
        stacks: &mut RawStacks,
        recorded: &mut Recorded,
    ) -> Result<()> {
        let Some(last) = self.last.filter(|_| !self.frames.is_empty()) else {
            return Ok(());
        };
        let rest = end.map(|end| difference(end, last));
        match rest.filter(|rest| rest.real() >= 0.0) {
            Some(rest) => {
                json.note(ProblemKind::OpenFrame, b"");
                if rest.real() == 0.0 {
                    return Ok(());
                }
                let stack = stacks.intern(&self.frames, json)?;
                recorded.add(stack, stacks.depth(stack), json)?;
                recorded.weigh(rest, json)
            }
            None => {
                json.note(ProblemKind::UnknownEnd, b"");
                Ok(())
            }
        }
    }
}

/// Reads the array `events`, which is next.
pub fn read(json: &mut Reader, stacks: &mut RawStacks, recorded: &mut Recorded) -> Result<Open> {
    let mut open: Vec<u32> = Vec::new();
    let mut last = None;
    json.begin_array()?;
    while json.element()? {
        let start = json.position();
        let event = Event::read(json)?;
        let (Some(frame), Some(at), Some(opens)) = (event.frame, event.at, event.opens) else {
            let message = message!("An event needs `type` (\"O\" or \"C\"), `frame` and `at`.");
            return Err(json.error_at(start, message));
        };
        let passed = last.map_or(0.0, |last| difference(at, last).real());
        if passed < 0.0 {
            json.note(ProblemKind::TimeBackwards, b"");
        }
        if let Some(last) = last.filter(|_| passed > 0.0 && !open.is_empty()) {
            let stack = stacks.intern(&open, json)?;
            recorded.add(stack, stacks.depth(stack), json)?;
            recorded.weigh(difference(at, last), json)?;
        }
        if passed >= 0.0 {
            last = Some(at);
        }
        if opens {
            open.try_push(frame)?;
        } else if open.last() == Some(&frame) {
            open.pop();
        } else {
            json.note(ProblemKind::UnbalancedEvent, b"");
            // All frames that were called by this one end with it.
            if let Some(row) = open.iter().rposition(|&row| row == frame) {
                open.truncate(row);
            }
        }
    }
    Ok(Open { frames: open, last })
}

#[derive(Default)]
struct Event {
    frame: Option<u32>,
    at: Option<Number>,
    opens: Option<bool>,
}

impl Event {
    fn read(json: &mut Reader) -> Result<Event> {
        let mut event = Event::default();
        fields! { json,
            "frame" => event.frame = json.number()?.index(),
            "at" => event.at = Some(json.number()?),
            "type" => {
                event.opens = match json.text()? {
                    "O" => Some(true),
                    "C" => Some(false),
                    _ => None,
                }
            },
        }
        Ok(event)
    }
}

/// Exact if both are integers.
fn difference(one: Number, other: Number) -> Number {
    let whole = |one: i64| one.checked_sub(other.whole()?);
    match one.whole().and_then(whole) {
        Some(number) => Number::Whole(number),
        None => Number::Real(one.real() - other.real()),
    }
}
