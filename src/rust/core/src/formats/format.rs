//! The description of a format, by which files are recognised and read.

use super::foreign::Look;
use super::problems::Problems;
use crate::error::Result;
use crate::io::gzip::Content;
use crate::io::input::Origin;
use crate::limits::cancel::Stop;
use crate::model::Profile;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// A format that can be read.
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
    pub read: fn(Opened, Stop) -> Result<(Profile, Problems)>,
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
    Stream(&'a mut (dyn Read + Send)),
}

/// An input that is about to be read.
pub struct Opened<'a> {
    /// The content, after decompression.
    pub content: Content<'a>,
    pub origin: Origin,
    /// The format as which it is read.
    pub format: &'static Format,
    /// What it looks like, for the error if it is not of that format.
    pub look: Look,
}
