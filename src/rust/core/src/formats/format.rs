//! What a format says of itself, so that files can be recognised and read by it.

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
    /// Whether content that starts like this, after decompression, is of this format. It is
    /// enough to tell the formats from each other: whether a file is right is for `read`.
    pub recognises: fn(start: &[u8]) -> bool,
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

/// Where a profile is read from.
pub enum Input<'a> {
    File(&'a Path),
    Stream(&'a mut dyn Read),
}

/// An input that is about to be read.
pub struct Opened<'a> {
    /// Its content, after decompression.
    pub content: Content<'a>,
    pub origin: Origin,
    /// The format that it is read as.
    pub format: &'static Format,
    /// Which format some content looks like, to say so where it is another than expected.
    pub recognise: Recognise,
}

pub type Recognise = fn(start: &[u8]) -> Option<&'static Format>;
