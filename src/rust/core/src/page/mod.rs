//! The page: one HTML file that shows a profile in any browser, without a server or a network.
//!
//! The file contains the script and the style of the package, and the profile as data: JSON,
//! compressed with gzip, in base64. The script draws the page from the data.
//!
//! - `content`: what the caller adds to the profile;
//! - `data`: the JSON;
//! - `tree`: the call tree and the names in it;
//! - `labels`: the labels of samples;
//! - `samples`: the sums of samples;
//! - `order`, `slices`: the samples in order;
//! - `memory`: the memory in use over the samples;
//! - `html`: joins everything to one file.
//!
//! Stacks are stored as a prefix tree, so that the size depends on the distinct stacks, and the
//! order of samples as runs of equal ones. A million samples of 1e5 different paths take 2.2 MB. The order of more
//! samples has a resolution, see `order`, so that it takes at most about 4 MB.

mod content;
mod data;
mod html;
mod labels;
mod memory;
mod order;
mod samples;
mod slices;
#[cfg(test)]
mod tests;
mod tree;

pub use content::{Comparison, Options, Page, Parallel, SourceText};

use crate::error::Result;
use crate::formats::{Losses, Writer};
use crate::io::gzip;
use crate::limits::cancel::Stop;
use crate::limits::memory::Growing;
use crate::model::Profile;
use std::io::Write;

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
