//! Reads the samples of profvis: in the pages that `htmlwidgets::saveWidget()` writes, and in `.Rprofvis` files, which
//! are such pages.
//!
//! profvis reads files of `Rprof()`, and its page has a row for each frame. So the rows become the text of such a file
//! again, which is then read. The memory in use is only a sum in profvis, and is left out.

mod text;

use super::format::{Format, Opened};
use super::html;
use super::json_file;
use super::signatures::pages;
use crate::error::Error;
use crate::error::{Position, Result};
use crate::formats::format::Look;
use crate::io::gzip::Content;
use crate::io::input::Source;
use crate::limits::cancel::Stop;

pub const FORMAT: Format = Format {
    name: "profvis",
    title: "a page of profvis",
    recognises: pages::is_profvis,
    read_as: Some(("rprof", as_rprof)),
    r_reader: Some("read_profile"),
    ..Format::NONE
};

const DATA: &[u8] = b"<script type=\"application/json\" data-for=";
/// The data of a widget of profvis start like this, apart from blanks.
const START: &[u8] = b"{\"x\":{\"message\":{";

/// The samples as the text of an Rprof file.
fn as_rprof(opened: Opened, stop: Stop) -> Result<Vec<u8>> {
    let (origin, format) = (opened.origin.clone(), opened.format);
    let html = html::load(opened, stop)?;
    let data = html::scripts(&html, DATA).find_map(|(script, is_ended)| {
        let at = script.iter().position(|&byte| byte == b'>')?;
        let data = &script[at + 1..];
        let mut marks = data.iter().filter(|byte| !byte.is_ascii_whitespace());
        let is_profvis = START.iter().all(|byte| marks.next() == Some(byte));
        (is_profvis && is_ended).then_some(data)
    });
    let Some(data) = data else {
        let found = "The data of profvis are missing, or have no end.";
        return Err(html::damaged(&origin.name, &html, found));
    };
    let damaged = |error| Error::damaged(&origin.name, Position::Byte(0), &error);
    let inner = Opened {
        content: Content::new(Source::Bytes(data)).map_err(damaged)?,
        origin,
        format,
        look: Look::Format(format),
    };
    let (text, _) = json_file::read(inner, stop, text::read)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::FORMAT;
    use crate::formats::testing::{name_of, read, samples};

    #[test]
    fn frames_are_in_the_order_of_any_depths() {
        let page = r#"<!DOCTYPE html><div class="profvis html-widget"></div>
            <script type="application/json" data-for="w">{"x":{"message":{"prof":{"time":[1,1,1],
            "depth":[1,-9223372036854775808,9007199254740992],"label":["f","main","g"]}}}}</script>"#;
        let (profile, _) = read(&FORMAT, page);
        let found = samples(&profile, |id| name_of(&profile, id).to_owned());
        let stacks: Vec<_> = found.iter().map(|s| s.outermost_first()).collect();
        assert_eq!(stacks, ["main;f;g"]);
    }
}
