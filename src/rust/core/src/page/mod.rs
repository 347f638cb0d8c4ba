//! The page: one HTML file that shows a profile in any browser, without a server or a network.
//!
//! The file contains the script and the style of the package, and the profile as data: JSON,
//! compressed with gzip, in base64. The script draws the page from the data.
//!
//! - `data`: the JSON;
//! - `tree`: the call tree and the names in it;
//! - `samples`: the values of samples, both summed and in order;
//! - `html`: joins everything to one file.
//!
//! Stacks are stored as a prefix tree, so that the size depends on the distinct stacks, and the
//! order of samples as runs of equal ones. A million samples of 1e5 different paths take 2.2 MB.

mod data;
mod html;
mod samples;
#[cfg(test)]
mod tests;
mod tree;

use crate::error::Result;
use crate::formats::{Losses, Writer};
use crate::io::gzip;
use crate::limits::cancel::Stop;
use crate::limits::memory::Growing;
use crate::model::Profile;
use std::io::Write;

/// The content of a page other than the profile.
#[derive(Debug, Default)]
pub struct Page<'p> {
    pub title: &'p str,
    /// The program that writes the page, such as `profile 2.0.0`.
    pub generator: &'p str,
    /// The HTML without script and style, which follow.
    pub template: &'p str,
    pub style: &'p str,
    pub script: &'p str,
    /// A regular expression for names of functions that only call others.
    pub plumbing: &'p str,
    pub texts: Vec<SourceText<'p>>,
    /// The number of sources that are shown. They are compared with all further sources.
    pub sources: usize,
    /// The names of functions for which a comparison of runs found a difference; `None` if there are
    /// too few runs.
    pub found: Option<Vec<&'p str>>,
    /// Whether the page contains the order of samples.
    pub timeline: bool,
}

/// The text of a source file.
#[derive(Debug, Clone, Copy)]
pub struct SourceText<'p> {
    /// The name of the file, as in the table of functions.
    pub name: &'p str,
    pub text: &'p str,
    /// Whether it was changed after the profile was recorded.
    pub changed: bool,
}

impl Writer for Page<'_> {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let mut data = Vec::new();
        gzip::compress(&mut Growing(&mut data), |out| {
            data::write(self, profile, out, stop)
        })?;
        html::write(self, &data, out)?;
        Ok(Losses::default())
    }
}
