//! Recognises pages in HTML that hold a profile, which their formats read.

use memchr::memmem;

/// The mark of pages of this package, which are recognised by their first bytes.
const GENERATOR: &[u8] = b"<meta name=\"generator\" content=\"profile\">";
const HEAD: usize = 1 << 12;
/// The element of a widget of profvis. The scripts of a page that needs no other files come before it.
const PROFVIS: &[u8] = b"class=\"profvis html-widget";

fn is_html(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(b"<")
}

pub fn is_own_page(start: &[u8]) -> bool {
    let head = &start[..start.len().min(HEAD)];
    is_html(head) && memmem::find(head, GENERATOR).is_some()
}

pub fn is_profvis(start: &[u8]) -> bool {
    is_html(start) && !is_own_page(start) && memmem::find(start, PROFVIS).is_some()
}

/// Whether a page holds a profile that can be read.
pub fn holds_profile(start: &[u8]) -> bool {
    is_own_page(start) || is_profvis(start)
}
