//! The lines of `/proc/PID/maps`, which describe the address space of a process.

use super::modules::Part;
use crate::target::Mapping;
use profile_core::error::Result;
use profile_core::limits::memory::owned;

/// A line of `/proc/PID/maps`: "start-end rwxp offset device inode path".
pub fn mapping(line: &[u8]) -> Option<Mapping> {
    let text = std::str::from_utf8(line).ok();
    // A path may have any bytes.
    let text = match text {
        Some(text) => text,
        None => {
            std::str::from_utf8(line.get(..line.iter().position(|&byte| byte == b'/')?)?).ok()?
        }
    };
    let mut fields = text.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let addresses = number(start)?..number(end)?;
    let may_read = fields.next()?.starts_with('r');
    let offset = number(fields.next()?)?;
    // Memory without a file has the inode 0.
    let inode = fields.nth(1)?;
    Some(Mapping {
        addresses,
        starts_file: may_read && offset == 0 && inode != "0",
    })
}

/// The same line, if it belongs to a file.
pub fn part(line: &str) -> Result<Option<Part>> {
    let mut rest = line;
    let mut fields = || {
        // The path follows after blanks, and may contain blanks itself.
        let mut field = || {
            let (field, behind) = rest.split_once(' ')?;
            rest = behind.trim_start_matches(' ');
            Some(field)
        };
        let (start, end) = field()?.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let addresses = number(start)?..number(end)?;
        let is_code = field()?.as_bytes().get(2) == Some(&b'x');
        let offset = number(field()?)?;
        let _device = field()?;
        let inode = field()?.parse().ok()?;
        Some((addresses, is_code, offset, inode, rest))
    };
    let Some((addresses, is_code, offset, inode, path)) = fields() else {
        return Ok(None);
    };
    if !path.starts_with('/') && path != "[vdso]" {
        return Ok(None);
    }
    Ok(Some(Part {
        addresses,
        is_code,
        offset,
        inode,
        path: owned(path)?,
    }))
}
