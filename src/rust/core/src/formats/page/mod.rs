//! Reads the pages of this package: HTML files that hold a profile as data, see `page` in the core, which writes them.
//!
//! A page has less than its profile: sums of samples for each path, or the samples in their order if it has a timeline,
//! with times that are rounded to half a period, and of large profiles within slices of equal length only; labels of which rare values may be combined; no attributes, comments,
//! mappings, addresses, columns of users, or values that cannot be summed. So sources have the type `page`.

mod data;
mod numbers;
mod samples;
mod tree;

use super::format::{Format, Opened};
use super::html;
use super::json_file;
use super::problems::Problems;
use super::signatures::pages;
use crate::error::{Error, Position, Result};
use crate::formats::format::Look;
use crate::io::gzip::Content;
use crate::io::input::Source;
use crate::limits::cancel::Stop;
use crate::limits::memory::filled;
use crate::message;
use crate::model::Profile;
use data_encoding::BASE64;

pub const FORMAT: Format = Format {
    name: "page",
    title: "a page",
    recognises: pages::is_own_page,
    read: Some(read),
    file_names: &["*.html", "*.htm"],
    may_be_compressed: false,
    r_reader: Some("read_profile"),
    r_writer: Some("write_page"),
    ..Format::NONE
};

const DATA: &[u8] = b"<script id=\"data\" type=\"application/octet-stream\">";

fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let (origin, format) = (opened.origin.clone(), opened.format);
    let html = html::load(opened, stop)?;
    let Some((text, true)) = html::scripts(&html, DATA).next() else {
        let found = "The data of the page are missing, or have no end.";
        return Err(html::damaged(&origin.name, &html, found));
    };
    let text = text.trim_ascii();
    let start = text.as_ptr() as usize - html.as_ptr() as usize;
    let invalid = |at: usize| Error::Parse {
        input: message!("{}", origin.name),
        position: Position::Byte((start + at) as u64),
        message: message!("The data of the page are not valid base64."),
    };
    let length = BASE64.decode_len(text.len());
    let length = length.map_err(|error| invalid(error.position))?;
    let mut packed = filled(length, 0_u8)?;
    let length = BASE64.decode_mut(text, &mut packed);
    packed.truncate(length.map_err(|error| invalid(error.error.position))?);
    drop(html);
    let damaged = |error| Error::damaged(&origin.name, Position::Byte(start as u64), &error);
    let content = Content::new(Source::Bytes(&packed)).map_err(damaged)?;
    let uri = origin.own_uri()?;
    let inner = Opened {
        content,
        origin,
        format,
        look: Look::Format(format),
    };
    json_file::read(inner, stop, |json| {
        data::Data::read(json)?.into_profile(uri.as_deref(), json)
    })
}
