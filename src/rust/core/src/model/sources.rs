//! Sources: one row for each recorded run.
//!
//! A file is one source. An Rprof file written with `append = TRUE` has several, one for
//! each block, because each block has its own options and file numbers.

use super::attributes::Attribute;
use super::column::Cell;
use super::functions::UNKNOWN;
use super::known_types::{CPU, ValueType};
use super::numbers::unit_of_time;
use super::resources::ScopeId;
use super::strings::StringId;
use crate::collections::id;
use crate::error::Result;
use crate::limits::memory::{TryText, owned};
use std::borrow::Cow;

id!(SourceId, "sources");

impl Cell for SourceId {
    #[inline]
    fn is(self, other: SourceId) -> bool {
        self == other
    }
}

/// The kind of a source: the name of a format, or a text that a user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceKind(Cow<'static, str>);

impl SourceKind {
    /// Recorded by `Rprof()`. Its sample types and times are derived.
    pub const RPROF: SourceKind = SourceKind::named("rprof");
    pub const PPROF: SourceKind = SourceKind::named("pprof");
    /// A process whose memory was read, by a reader outside of it or by its own agent.
    pub const PROCESS: SourceKind = SourceKind::named("process");
    /// Tables that a user created.
    pub const MANUAL: SourceKind = SourceKind::named("manual");

    /// The kind of a format.
    pub const fn named(name: &'static str) -> SourceKind {
        SourceKind(Cow::Borrowed(name))
    }

    /// The kind with this name in a table or file.
    pub fn from_owned(text: String) -> SourceKind {
        SourceKind(Cow::Owned(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind of a source that is not filled in yet; it is not valid.
impl Default for SourceKind {
    fn default() -> SourceKind {
        SourceKind::named("")
    }
}

/// One recorded run, and the information about the run as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Source {
    pub kind: SourceKind,
    pub uri: Option<String>,
    /// Seconds since 1970.
    pub timestamp: Option<f64>,
    /// The time stamp in nanoseconds, if it was recorded and seconds cannot represent it exactly.
    pub time: Option<i64>,
    /// The sampling period: what is counted between two samples, and how much of it.
    pub period: Option<Period>,
    /// The length of the run in nanoseconds.
    pub duration: Option<i64>,
    /// The sample types in the order of the file; empty for formats with fixed types.
    pub types: Vec<SampleType>,
    /// The sample type that a viewer should show first.
    pub default_type: Option<String>,
    pub comments: Vec<StringId>,
    /// Regular expressions for names of functions: frames that a viewer should drop, together with
    /// those that they called, and exceptions.
    pub drop_frames: Option<String>,
    pub keep_frames: Option<String>,
    /// The URL of a documentation of such profiles.
    pub doc_url: Option<String>,
    /// What recorded the profile. This field and those up to `attributes` are from OpenTelemetry.
    pub scope: Option<ScopeId>,
    /// In hexadecimal digits.
    pub profile_id: Option<String>,
    pub dropped_attributes: u32,
    /// The file from which the profile was converted.
    pub payload: Option<Payload>,
    pub attributes: Vec<Attribute>,
    /// The options in the header of an Rprof block; `None` for other formats.
    pub options: Option<RprofOptions>,
    /// The `#File` lines of an Rprof block, in the order of the file.
    pub files: Vec<SourceFile>,
}

/// The attributes of a source that was a process: its id, its program and its script as file names without folders, and its
/// role among the processes of a recording. Its command line is no attribute, since arguments and code may contain secrets.
pub const PROCESS_ID: &str = "process.pid";
pub const PROCESS_PROGRAM: &str = "process.executable.name";
pub const PROCESS_CREATION: &str = "process.creation.time";
pub const PROCESS_SCRIPT: &str = "profile.process.script";
pub const PROCESS_ROLE: &str = "profile.process.role";

/// The attribute of a source that a store has returned: the key of its run there.
pub const RUN: &str = "profile.run";

/// A profile in another format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Such as `pprof` or `jfr`.
    pub format: String,
    pub bytes: Vec<u8>,
}

impl SampleType {
    /// Creates a type with a unique name. The name is the `recorded` one; if a type in `before` has
    /// it, `name/unit`; and if that exists too, `name/unit/2` and so on. The number starts at the
    /// count of types in `before`, so that a free one is found at once.
    pub fn new(recorded: String, unit: String, before: &[SampleType]) -> Result<SampleType> {
        let taken = |name: &str| before.iter().any(|t| t.type_.name == name);
        let name = match recorded.as_str() {
            "" => UNKNOWN,
            name => name,
        };
        let mut name = owned(name)?;
        if taken(&name) {
            name.try_write(format_args!("/{unit}"))?;
            let length = name.len();
            let mut number = before.len().max(2);
            while taken(&name) {
                name.truncate(length);
                name.try_write(format_args!("/{number}"))?;
                number += 1;
            }
        }
        Ok(SampleType {
            type_: ValueType { name, unit },
            recorded,
        })
    }
}

/// A sample type, and its name in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleType {
    /// The type as in [`Values`](super::Values), with a unique name.
    pub type_: ValueType,
    /// The name in the file, which another type may have too.
    pub recorded: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Period {
    pub value: f64,
    /// The exact value, if `value` is rounded.
    pub exact: Option<i64>,
    /// What is counted, usually `"cpu"`, and in which unit.
    pub type_: Option<ValueType>,
}

impl Period {
    /// The interval of an Rprof file. `Rprof()` can also measure elapsed time (R >= 4.4), but files do
    /// not record that.
    pub fn from_rprof(microseconds: u64) -> Result<Period> {
        Ok(Period {
            value: microseconds as f64,
            exact: None,
            type_: Some(ValueType {
                name: owned(CPU.name)?,
                unit: owned("microseconds")?,
            }),
        })
    }

    /// The period in nanoseconds, if its unit is one of time.
    pub fn nanoseconds(&self) -> Option<f64> {
        let factor = unit_of_time(&self.type_.as_ref()?.unit)?;
        Some(self.value * factor)
    }

    /// The period in nanoseconds if it is positive and has at most 63 bits, as if samples were really taken. Producers
    /// of pprof files write 0 for an unknown one.
    pub fn plausible_nanoseconds(&self) -> Option<f64> {
        self.nanoseconds()
            .filter(|&period| period > 0.0 && period < (1_u64 << 63) as f64)
    }
}

/// The options of `Rprof()` that determine the content of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RprofOptions {
    pub memory: bool,
    pub gc: bool,
    pub line: bool,
}

/// A `#File` line: assigns a number to a file in this block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile {
    pub number: u32,
    pub filename: StringId,
    /// The sample that follows the line, counted from 0 over the whole profile.
    pub before: usize,
}
