//! The description of a format: everything that other code needs to know about it.
//!
//! Each folder of a format has one, `FORMAT` in its `mod.rs`, and [`super::FORMATS`] lists them. It determines how
//! files are recognised, read and written, the names of the R functions and files of the format, and whether the order
//! of its samples has a meaning, which the page needs to know.

use super::problems::Problems;
use super::signatures::FileKind;
use super::write::MakeWriter;
use crate::error::{Error, Foreign, Result};
use crate::io::gzip::Content;
use crate::io::input::Origin;
use crate::limits::cancel::Stop;
use crate::message;
use crate::model::Profile;
use std::fmt;
use std::io;
use std::path::Path;

/// A format that can be read, written, or both.
#[derive(Clone, Copy)]
pub struct Format {
    /// One word, as in `sources.source_type`.
    pub name: &'static str,
    /// As in "it looks like an Rprof file".
    pub title: &'static str,
    /// Whether content that starts with these bytes, after decompression, looks like this format. This
    /// only distinguishes the formats; `read` checks whether a file is valid.
    pub recognises: fn(start: &[u8]) -> bool,
    /// Whether only a few bytes distinguish this format from others, so that a reader of another format tries
    /// to read such content before it refuses it.
    pub is_guessed: bool,
    /// Whether samples of a file may be sums of equal ones, so that their order has no meaning.
    pub is_aggregated: bool,
    pub read: Option<Read>,
    /// The format as which it is read, and how its content is converted.
    pub read_as: Option<(&'static str, Convert)>,
    pub write: Option<MakeWriter>,
    /// The names of files that are written in this format, with `*` for any text. If several formats have a name that
    /// fits, the longest one counts.
    pub file_names: &'static [&'static str],
    /// Whether a name may be followed by `.gz`.
    pub may_be_compressed: bool,
    /// The functions of R that read and write the format.
    pub r_reader: Option<&'static str>,
    pub r_writer: Option<&'static str>,
}

/// The content as the text of a file of another format.
pub type Convert = fn(Opened, Stop) -> Result<Vec<u8>>;

pub type Read = fn(Opened, Stop) -> Result<(Profile, Problems)>;

impl Format {
    /// A format with nothing but a name, for `..Format::NONE` in descriptions.
    pub const NONE: Format = Format {
        name: "",
        title: "",
        recognises: |_| false,
        is_guessed: false,
        is_aggregated: false,
        read: None,
        read_as: None,
        write: None,
        file_names: &[],
        may_be_compressed: true,
        r_reader: None,
        r_writer: None,
    };
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The input that a profile is read from.
pub enum Input<'a> {
    File(&'a Path),
    Bytes(&'a [u8]),
    Stream(&'a mut (dyn io::Read + Send)),
}

/// An input that is about to be read.
pub struct Opened<'a> {
    /// The content, after decompression.
    pub content: Content<'a>,
    pub origin: Origin,
    /// The format as which it is read.
    pub format: &'static Format,
    /// The kind of file that it looks like, for the error if it is not of that format.
    pub look: Look,
}

/// The kind of file that content looks like, judged by its start.
#[derive(Debug, Clone, Copy)]
pub enum Look {
    /// One of the formats that can be read.
    Format(&'static Format),
    /// A kind of file that cannot be read.
    Kind(&'static FileKind),
    /// A file of which only the syntax is recognised, such as JSON. A reader may recognise more.
    Syntax(&'static FileKind),
    Unknown,
}

impl Look {
    pub fn format(self) -> Option<&'static Format> {
        match self {
            Look::Format(format) => Some(format),
            _ => None,
        }
    }

    /// Whether it looks like another format.
    pub fn is_other_than(self, wanted: &Format) -> bool {
        match self {
            Look::Format(format) => format != wanted,
            Look::Kind(_) | Look::Syntax(_) => true,
            Look::Unknown => false,
        }
    }

    /// The error of a reader of the format `wanted`. If the content looks like no other format, `otherwise` is the
    /// reason why it is not of this format.
    pub fn error(self, input: &str, wanted: &Format, otherwise: &str) -> Error {
        let format = self.format().filter(|format| *format != wanted);
        let kind = match self {
            Look::Kind(kind) | Look::Syntax(kind) => Some(kind),
            Look::Format(_) | Look::Unknown => None,
        };
        let title = format
            .map(|format| format.title)
            .or(kind.map(|kind| kind.title));
        Error::Foreign(Foreign {
            input: message!("{input}"),
            wanted: wanted.title,
            found: match title {
                Some(title) => message!("it looks like {title}"),
                None => message!("{otherwise}"),
            },
            looks_like: format
                .map(|format| format.name)
                .or(kind.map(|kind| kind.name)),
            remedy: kind.map_or("", |kind| kind.remedy),
        })
    }
}
