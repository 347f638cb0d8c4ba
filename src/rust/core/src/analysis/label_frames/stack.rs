//! Determines the frames of a stack that remain without the frames of labels, and the labels.

use super::mark::{ANY, Mark};
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut, TryText, owned};
use std::collections::HashMap;

/// The functions that call marks.
const LABELLED: &str = ".profile_labelled";
const FORWARDED: &str = ".profile_forwarded";
/// The outermost frame of a stack whose outer calls were not recorded.
pub const OUTER_CALLS: &str = "<outer calls not read>";
/// The key of the label that replaces labels that exceeded the limit.
pub const OVERFLOW_KEY: &str = "profile.overflow";
/// The key of the label with the name of the active span, which recorders get from a record of the process.
pub const SPAN_NAME: &str = "span.name";

/// The role of a frame with respect to labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Mark {
        /// The index in the caller's list of marks.
        number: usize,
        has_line: bool,
    },
    Caller {
        forwarded: bool,
    },
    OuterCalls,
    Other,
}

impl Role {
    /// Determines the role of a function name, and adds it to `marks` if it is a mark. Whether the frame has a line
    /// is not known yet.
    pub fn parse(name: &str, marks: &mut Vec<Mark>) -> Result<Role> {
        // Most names take this early exit.
        if !name.starts_with(['.', '<']) {
            return Ok(Role::Other);
        }
        Ok(match name {
            LABELLED => Role::Caller { forwarded: false },
            FORWARDED => Role::Caller { forwarded: true },
            OUTER_CALLS => Role::OuterCalls,
            _ => match Mark::parse(name)? {
                Some(mark) => {
                    marks.try_push(mark)?;
                    Role::Mark {
                        number: marks.len() - 1,
                        has_line: false,
                    }
                }
                None => Role::Other,
            },
        })
    }

    /// The role of the frame if its line is known.
    pub fn with_line(self) -> Role {
        match self {
            Role::Mark { number, .. } => Role::Mark {
                number,
                has_line: true,
            },
            other => other,
        }
    }
}

/// A stack without the frames of labels. Frames are indices in the original stack, innermost first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Clean {
    /// The remaining frames.
    pub kept: Vec<usize>,
    /// The numbers of marks, innermost first.
    pub marks: Vec<usize>,
    /// The remaining frames that take over a line, each with the mark that has the line.
    pub moved: Vec<(usize, usize)>,
    /// The mark whose line is taken over by the place that called the outermost frame.
    pub toplevel: Option<usize>,
}

impl Clean {
    pub fn set(&mut self, roles: &[Role]) -> Result<()> {
        self.kept.clear();
        self.marks.clear();
        self.moved.clear();
        self.toplevel = None;
        let mut at = 0;
        while let Some(&role) = roles.get(at) {
            match role {
                Role::Mark { number, has_line } => {
                    self.marks.try_push(number)?;
                    let mut forwarded = false;
                    let mut next = at + 1;
                    if let Some(&Role::Caller { forwarded: passed }) = roles.get(next) {
                        forwarded = passed;
                        next += 1;
                        // The next frame is `with_labels()`, whatever its name is.
                        next += usize::from(roles.get(next) == Some(&Role::Other));
                    }
                    self.toplevel = if forwarded {
                        None
                    } else {
                        // The innermost of several marks has the most precise line.
                        self.toplevel.or(has_line.then_some(at))
                    };
                    at = next;
                }
                // The frame has not called the mark yet.
                Role::Caller { .. } => at += 1,
                Role::OuterCalls | Role::Other => {
                    if let Some(mark) = self.toplevel.take() {
                        self.moved.try_push((at, mark))?;
                    }
                    self.kept.try_push(at)?;
                    at += 1;
                }
            }
        }
        Ok(())
    }
}

/// The labels of a stack: inner ones replace outer ones with the same key.
#[derive(Debug, Default)]
pub struct Merged<'m> {
    /// Keys and values; `None` for labels that exceeded the limit.
    labels: Vec<(&'m str, Option<&'m str>)>,
    /// The index of each key. A damaged file may have very many keys.
    rows: HashMap<&'m str, usize>,
    any_overflow: bool,
}

impl<'m> Merged<'m> {
    /// Merges marks, given innermost first.
    pub fn new(marks: impl DoubleEndedIterator<Item = &'m Mark>) -> Result<Merged<'m>> {
        let mut merged = Merged::default();
        for mark in marks.rev() {
            match mark {
                Mark::Labels(labels) => {
                    for (key, value) in labels {
                        merged.set(key, Some(value))?;
                    }
                }
                Mark::Overflow(keys) if keys.is_empty() => {
                    merged.labels.clear();
                    merged.rows.clear();
                    merged.any_overflow = true;
                }
                Mark::Overflow(keys) => {
                    for key in keys {
                        merged.set(key, None)?;
                    }
                }
            }
        }
        Ok(merged)
    }

    fn set(&mut self, key: &'m str, value: Option<&'m str>) -> Result<()> {
        match self.rows.get(key) {
            Some(&row) => self.labels[row].1 = value,
            None => {
                self.rows.try_put(key, self.labels.len())?;
                self.labels.try_push((key, value))?;
            }
        }
        Ok(())
    }

    /// Calls `each` with keys and values, including the label that lists which labels are missing.
    pub fn for_each(&self, mut each: impl FnMut(&str, &str) -> Result<()>) -> Result<()> {
        let mut missing = String::new();
        if self.any_overflow {
            missing.try_push_str(ANY)?;
        }
        for &(key, value) in &self.labels {
            match value {
                Some(value) => each(key, value)?,
                None => {
                    let comma = if missing.is_empty() { "" } else { "," };
                    missing.try_push_str(comma)?;
                    missing.try_push_str(key)?;
                }
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            each(OVERFLOW_KEY, &missing)
        }
    }
}

/// A single stack without the frames of labels.
#[derive(Debug, Default)]
pub struct Frames {
    /// The indices of the remaining frames, innermost first.
    pub kept: Vec<usize>,
    /// The remaining frames that take over a line, each with the frame that has the line, if both are in the same
    /// file.
    pub moved: Vec<(usize, usize)>,
    /// The frame whose line is taken over by the place that called the outermost frame.
    pub toplevel: Option<usize>,
    pub labels: Vec<(String, String)>,
}

impl Frames {
    /// Processes a stack, given as the names of its frames, innermost first, and whether their lines are known.
    pub fn of<'n>(frames: impl Iterator<Item = (&'n str, bool)>) -> Result<Frames> {
        let mut marks = Vec::new();
        let mut roles = Vec::new();
        for (name, has_line) in frames {
            let role = Role::parse(name, &mut marks)?;
            let role = if has_line { role.with_line() } else { role };
            roles.try_push(role)?;
        }
        let mut clean = Clean::default();
        clean.set(&roles)?;
        let mut labels = Vec::new();
        Merged::new(clean.marks.iter().map(|&mark| &marks[mark]))?
            .for_each(|key, value| labels.try_push((owned(key)?, owned(value)?)))?;
        Ok(Frames {
            kept: clean.kept,
            moved: clean.moved,
            toplevel: clean.toplevel,
            labels,
        })
    }
}
