//! The HTML of a page: joins its parts into one self-contained file.
//!
//! The content security policy allows the browser to use only the script and the style of this
//! package, which are identified by their hashes, and forbids everything else. Names and source
//! text are only in the data, which are base64, and in the title, in which they are escaped.

use super::content::Page;
use crate::error::{Error, Result};
use crate::io::save;
use crate::limits::memory::{TryText, written};
use crate::message;
use crate::text::encoded;
use data_encoding::BASE64;
use hmac_sha256::Hash;
use std::io::Write;

/// Where the parts of a page are inserted, in the order of the template.
const CHARSET: &str = "<meta charset=\"utf-8\">";
const TITLE: &str = "<title>";
const TITLE_END: &str = "</title>";
const HEAD_END: &str = "</head>";
const DATA: &str = "<script id=\"data\" type=\"application/octet-stream\">";
const DATA_END: &str = "</script>";
const SNAPSHOT: &str = "<script id=\"snapshot\" type=\"application/octet-stream\">";
const BODY_END: &str = "</body>";

/// Writes the page with these data.
pub fn write(page: &Page, data: &[u8], out: &mut dyn Write) -> Result<()> {
    let (before, rest) = around(page.template, CHARSET)?;
    let (to_title, rest) = around(rest, TITLE)?;
    let (_, rest) = around(rest, TITLE_END)?;
    let (to_head_end, rest) = around(rest, HEAD_END)?;
    let (to_data, rest) = around(rest, DATA)?;
    let (to_snapshot, rest) = around(rest, SNAPSHOT)?;
    let (to_body_end, after) = around(rest, BODY_END)?;
    let snapshot = match page.snapshot {
        Some(page) => data_of(page)?,
        None => "",
    };
    let (script, style) = (
        inline(page.script, "</script")?,
        inline(page.style, "</style")?,
    );
    let policy = policy(script, style)?;
    let title = escaped(page.title)?;
    for part in [
        before,
        CHARSET,
        &policy,
        to_title,
        TITLE,
        &title,
        TITLE_END,
        to_head_end,
        "<style>",
        style,
        "</style>\n",
        HEAD_END,
        to_data,
        DATA,
    ] {
        out.write_all(part.as_bytes()).map_err(save::failed)?;
    }
    write!(out, "{}", BASE64.encode_display(data)).map_err(save::failed)?;
    for part in [
        to_snapshot,
        SNAPSHOT,
        snapshot,
        to_body_end,
        "<script>",
        script,
        "</script>\n",
        BODY_END,
        after,
    ] {
        out.write_all(part.as_bytes()).map_err(save::failed)?;
    }
    Ok(())
}

fn policy(script: &str, style: &str) -> Result<String> {
    let hash = |text: &str| encoded(&BASE64, &Hash::hash(text.as_bytes()));
    written(format_args!(
        "\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">",
        hash(script)?,
        hash(style)?
    ))
}

/// The data of a page.
fn data_of(page: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(page);
    let text =
        text.map_err(|_| Error::Unsupported(message!("The page of the snapshot is no text.")))?;
    let (_, rest) = around(text, DATA)?;
    let (data, _) = around(rest, DATA_END)?;
    Ok(data)
}

/// The parts of a text before and after a tag.
fn around<'t>(text: &'t str, tag: &str) -> Result<(&'t str, &'t str)> {
    let missing = || Error::Unsupported(message!("The page has no `{tag}` where it is expected."));
    text.split_once(tag).ok_or_else(missing)
}

/// Checks that an inline script or style does not end early, and has no comment that hides its end.
fn inline<'t>(text: &'t str, end: &str) -> Result<&'t str> {
    if text.contains(end) || text.contains("<!--") {
        Err(Error::Unsupported(message!(
            "A part of the page contains `{end}` or `<!--`."
        )))
    } else {
        Ok(text)
    }
}

fn escaped(text: &str) -> Result<String> {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.try_push_str("&amp;")?,
            '<' => out.try_push_str("&lt;")?,
            '>' => out.try_push_str("&gt;")?,
            _ => out.try_push_char(c)?,
        }
    }
    Ok(out)
}
