//! Sources: one row for each recorded run.
//!
//! A file is one source; an Rprof file written with `append = TRUE` has one for
//! each of its blocks, because every block has options and file numbers of its
//! own.

use super::strings::StringId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub(crate) u32);

impl SourceId {
    /// The row in its table, counted from 0.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

/// One recorded run, and what was said about it as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Source {
    /// `"rprof"`, `"pprof"`, `"manual"`, …
    pub kind: String,
    pub uri: Option<String>,
    /// Seconds since 1970.
    pub timestamp: Option<f64>,
    /// What lies between two samples.
    pub period: Option<Period>,
    /// Length of the run in nanoseconds.
    pub duration: Option<i64>,
    /// The sample type that a viewer should show first.
    pub default_type: Option<String>,
    pub comments: Vec<String>,
    /// What the header of an Rprof block said; `None` for other formats.
    pub options: Option<RprofOptions>,
    /// The `#File` lines of an Rprof block, in the order of the file.
    pub files: Vec<SourceFile>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Period {
    pub value: f64,
    /// What is counted, most often `"cpu"`.
    pub type_: String,
    pub unit: String,
}

impl Period {
    /// The period as time, where its unit is one of time.
    pub fn nanoseconds(&self) -> Option<f64> {
        let factor = match self.unit.as_str() {
            "nanoseconds" => 1.0,
            "microseconds" => 1e3,
            "milliseconds" => 1e6,
            "seconds" => 1e9,
            _ => return None,
        };
        Some(self.value * factor)
    }
}

/// The options of `Rprof()` that change what its lines hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RprofOptions {
    pub memory: bool,
    pub gc: bool,
    pub line: bool,
}

/// A `#File` line: the number that stands for a file in this block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile {
    pub number: u32,
    pub filename: StringId,
    /// The sample (counted from 0 over the whole profile) it stands before.
    pub before: usize,
}
