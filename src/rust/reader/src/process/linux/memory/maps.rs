//! The lines of `/proc/PID/maps`, which describe the address space of a process, and where the files in it are.

use profile_core::error::Result;
use profile_core::limits::memory::owned;
use profile_core::message;
use profile_runtime::memory::{MEMORY_PAGE, Mapping};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The size of a page of memory. It is 4 KiB on x86-64, and may be larger on other processors.
pub fn page_size() -> u64 {
    // SAFETY: it has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // It is always known.
    u64::try_from(size).unwrap_or(MEMORY_PAGE)
}

/// A part of the address space that is not anonymous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMapping {
    pub addresses: Range<u64>,
    pub is_code: bool,
    /// The offset in the file.
    pub offset: u64,
    pub inode: u64,
    pub path: String,
}

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

/// The mapping of a file that a line of `/proc/PID/maps` describes.
pub fn file_mapping(line: &str) -> Result<Option<FileMapping>> {
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
    Ok(Some(FileMapping {
        addresses,
        is_code,
        offset,
        inode,
        path: owned(path)?,
    }))
}

/// The file of a module, if it is not the one at its path, because it was deleted or replaced, or because the process has
/// a different view of the file system. It remains open, so that it can be read after the process has ended.
pub fn other_file(pid: i32, path: &str, inode: u64, code: &Range<u64>) -> Option<File> {
    let is_it = |path: &Path| fs::metadata(path).is_ok_and(|about| about.ino() == inode);
    if inode == 0 || is_it(Path::new(path)) {
        return None;
    }
    // The first of these is accessible to root only.
    let end = code.end.next_multiple_of(page_size());
    let candidates = [
        message!("/proc/{pid}/map_files/{:x}-{end:x}", code.start),
        message!("/proc/{pid}/root{path}"),
    ];
    let found = candidates.iter().find(|path| is_it(Path::new(path)));
    File::open(found?).ok()
}
