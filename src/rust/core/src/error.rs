//! The error enum.
//!
//! Each variant describes what went wrong and where, and corresponds to one class of R condition
//! ([`Error::class`]). Hints for R users, such as which function reads a file, are added in R.

use crate::message;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// A position in an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// A line, counted from 1.
    Line(u64),
    /// A byte offset, counted from 0, in the data after decompression.
    Byte(u64),
    /// A sample, counted from 1.
    Sample(u64),
    /// A field of JSON, such as `dictionary.stackTable[3]`.
    Field(String),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(n) => write!(f, "line {n}"),
            Position::Byte(n) => write!(f, "byte {n}"),
            Position::Sample(n) => write!(f, "sample {n}"),
            Position::Field(path) => f.write_str(path),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is missing, not a file, or not readable.
    #[error("Cannot read `{}`: {}.", path.display(), reason(source))]
    Open { path: PathBuf, source: io::Error },

    /// The target cannot be written; its old content is untouched.
    #[error("Cannot write `{}`: {}.", path.display(), reason(source))]
    Write { path: PathBuf, source: io::Error },

    /// The content breaks the rules of its format.
    #[error("{input}, {position}: {message}")]
    Parse {
        input: String,
        position: Position,
        message: String,
    },

    /// The content is not of the requested format.
    #[error("{0}")]
    Foreign(Foreign),

    /// A table breaks a rule of the data model.
    #[error("{0}")]
    Invalid(#[from] Invalid),

    /// The target format cannot represent part of the profile.
    #[error("{0}")]
    Lossy(String),

    /// Version "1.0" of the tables cannot represent the profile.
    #[error("{0}")]
    LossyV1(String),

    /// A valid request that this package does not support.
    #[error("{0}")]
    Unsupported(String),

    /// The content would take more memory than is allowed for a file of its size.
    #[error(
        "{input} would take at least {:.3} GB of memory, but for its size {:.3} GB are allowed.",
        gigabytes(*needed),
        gigabytes(*allowed)
    )]
    Budget {
        input: String,
        /// In bytes, for the part that was read.
        needed: u64,
        allowed: u64,
    },

    /// A process cannot be inspected: it ended, does not run R, or the system does not permit it; or its core file
    /// lacks a part of its memory.
    #[error("{0}")]
    Process(String),

    /// An allocation failed.
    #[error("Not enough memory.")]
    Memory,

    /// An allocation failed while a file was read or written.
    #[error("Not enough memory to {task} `{path}`.")]
    FileMemory { task: &'static str, path: String },

    /// The system starts no thread or process.
    #[error("The system does not permit another {what}: {}.", limit_reason(source))]
    Limit {
        what: &'static str,
        source: io::Error,
    },

    /// The user pressed Ctrl-C, or R jumped out of a call made for us.
    #[error("Interrupted.")]
    Interrupted,
}

/// Content that is not of the requested format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub input: String,
    /// As in "an Rprof file".
    pub wanted: &'static str,
    /// As in "it looks like a pprof profile".
    pub found: String,
    /// One word for the other format. For one that can be read, R code adds a hint how to read it.
    pub looks_like: Option<&'static str>,
    /// What users can do with a file of a kind that cannot be read, as a sentence; may be empty.
    pub remedy: &'static str,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not {}: {}.", self.input, self.wanted, self.found)
    }
}

/// A broken rule of the data model: the table, column and row, and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub table: Cow<'static, str>,
    pub column: Option<Cow<'static, str>>,
    /// Row, counted from 1.
    pub row: Option<usize>,
    pub rule: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table `{}`", self.table)?;
        if let Some(column) = &self.column {
            write!(f, ", column `{column}`")?;
        }
        if let Some(row) = self.row {
            write!(f, ", row {row}")?;
        }
        // "Table `samples` is missing."
        let is_verb = ["is ", "has "]
            .iter()
            .any(|verb| self.rule.starts_with(verb));
        write!(f, "{} {}.", if is_verb { "" } else { ":" }, self.rule)
    }
}

impl std::error::Error for Invalid {}

impl Error {
    /// The class of the R condition.
    pub fn class(&self) -> &'static str {
        match self {
            Error::Open { .. } => "profile_error_open",
            Error::Write { .. } => "profile_error_write",
            Error::Parse { .. } | Error::Foreign(_) => "profile_error_parse",
            Error::Invalid(_) => "profile_error_invalid",
            Error::Lossy(_) | Error::LossyV1(_) => "profile_error_lossy",
            Error::Unsupported(_) | Error::Limit { .. } => "profile_error_unsupported",
            Error::Budget { .. } => "profile_error_budget",
            Error::Process(_) => "profile_error_process",
            Error::Memory | Error::FileMemory { .. } => "profile_error_memory",
            Error::Interrupted => "profile_interrupt",
        }
    }

    /// The position in the input, if the error has one.
    pub fn position(&self) -> Option<&Position> {
        match self {
            Error::Parse { position, .. } => Some(position),
            _ => None,
        }
    }

    /// Replaces the path by the one that the user gave: paths in the core consist of bytes that need
    /// not be valid text.
    pub fn shown_as(self, path: &str) -> Error {
        match self {
            Error::Open { source, .. } => Error::Open {
                path: PathBuf::from(path),
                source,
            },
            Error::Write { source, .. } => Error::Write {
                path: PathBuf::from(path),
                source,
            },
            other => other,
        }
    }

    /// The error of a task that reads or writes a whole file: a lack of memory names the task and the file as well.
    pub fn during(self, task: &'static str, path: &str) -> Error {
        match self {
            Error::Memory => Error::FileMemory {
                task,
                path: message!("{path}"),
            },
            other => other.shown_as(path),
        }
    }

    /// The error for an input that could be opened, but not be read beyond a position.
    pub(crate) fn damaged(input: &str, position: Position, error: &io::Error) -> Error {
        let message = match error.kind() {
            io::ErrorKind::OutOfMemory => return Error::Memory,
            io::ErrorKind::UnexpectedEof => {
                message!("The gzip data end early. The file may be truncated.")
            }
            _ => message!("The data cannot be read any further: {error}."),
        };
        Error::Parse {
            input: message!("{input}"),
            position,
            message,
        }
    }

    pub(crate) fn open(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::OutOfMemory {
            return Error::Memory;
        }
        Error::Open {
            path: PathBuf::from(path),
            source,
        }
    }
}

/// Why the system starts no thread or process: mostly, their number is limited.
fn limit_reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::WouldBlock => message!(
            "the maximum number for this user (`ulimit -u`) or this container (`pids.max`) is reached"
        ),
        _ => reason(source),
    }
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// Why the system refuses, in the same words on all systems and in all languages; what is rare, in the system's own
/// words, without Rust's "(os error 2)".
#[expect(
    clippy::disallowed_methods,
    reason = "messages of the system are short"
)]
fn reason(error: &io::Error) -> String {
    let known = match error.kind() {
        // An error with words of its own.
        _ if error.get_ref().is_some() => None,
        io::ErrorKind::NotFound => Some("there is no such file or directory"),
        io::ErrorKind::PermissionDenied => Some("permission is denied"),
        io::ErrorKind::IsADirectory => Some("it is a directory"),
        io::ErrorKind::NotADirectory => Some("a part of the path is not a directory"),
        io::ErrorKind::ReadOnlyFilesystem => Some("the file system is read-only"),
        io::ErrorKind::StorageFull => Some("the disk is full"),
        _ => None,
    };
    if let Some(known) = known {
        return known.to_owned();
    }
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
