//! What a file descriptor refers to, from the link in `/proc/PID/fd`.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::text::decode;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descriptor {
    /// The number of its inode.
    Socket(u64),
    /// The number of its inode, which both ends have.
    Pipe(u64),
    /// The path of a file or a device.
    File(String),
    /// A clock or an alarm of the process itself.
    Own,
    Other,
}

pub fn descriptor(link: &Path) -> Result<Descriptor> {
    let bytes = link.as_os_str().as_bytes();
    if bytes.starts_with(b"/") {
        return Ok(Descriptor::File(owned(&decode(bytes)?.text)?));
    }
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    Ok(match text.split_once(':') {
        Some(("socket", number)) => match inode(number) {
            Some(inode) => Descriptor::Socket(inode),
            None => Descriptor::Other,
        },
        Some(("pipe", number)) => match inode(number) {
            Some(inode) => Descriptor::Pipe(inode),
            None => Descriptor::Other,
        },
        Some(("anon_inode", "[eventfd]" | "[timerfd]" | "[signalfd]")) => Descriptor::Own,
        _ => Descriptor::Other,
    })
}

fn inode(text: &str) -> Option<u64> {
    text.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// The descriptors that an epoll descriptor watches, from its `fdinfo`: lines such as `tfd:        7 events: ...`.
pub fn watched(about: &str, most: usize) -> Result<Vec<i32>> {
    let mut numbers = Vec::new();
    let lines = about.lines().filter_map(|line| line.strip_prefix("tfd:"));
    for line in lines.take(most) {
        let number = line.split_ascii_whitespace().next();
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            numbers.try_push(number)?;
        }
    }
    Ok(numbers)
}
