//! Source files that a profile names: which of them may be read, and their text.
//!
//! Names come from files that somebody else may have written, and the text that is read may be published. Therefore a
//! name is resolved first, including links, and the checks apply to the file that it leads to. A name that refers to a
//! network or needs a shell to interpret it is rejected before it is passed to the system: on Windows even a request
//! for the size of `\\server\share\file` sends the hash of the user's password to that server.

use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, with_room};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf, Prefix};
use std::time::SystemTime;

/// Larger files are unlikely to be handwritten source code, and would make a page too large.
const LARGEST: u64 = 5_000_000;

/// The longest path that Linux accepts.
const LONGEST_NAME: usize = 4096;

/// In lower case; extensions are compared regardless of case.
const EXTENSIONS: [&str; 28] = [
    "r", "s", "q", "rmd", "qmd", "rnw", "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "f", "f77",
    "f90", "f95", "rs", "go", "py", "js", "mjs", "ts", "tsx", "jsx", "java", "stan", "jl",
];

/// What a file may be read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The text of source code.
    Source,
    /// The description of an R package.
    Description,
}

/// Where files may be.
#[derive(Debug)]
pub struct Places<'a> {
    /// Folders that the user names, which are searched as well.
    directories: &'a [&'a Path],
    /// The working directory and these folders, resolved.
    roots: Vec<PathBuf>,
    /// Whether files elsewhere may be read, too.
    anywhere: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Text {
        bytes: Vec<u8>,
        modified: Option<SystemTime>,
    },
    /// There is such a file, but not in these places.
    Elsewhere,
    /// There is no file that may be read.
    Nothing,
}

impl<'a> Places<'a> {
    pub fn new(directories: &'a [&'a Path], anywhere: bool) -> Result<Places<'a>> {
        let mut roots = with_room(directories.len() + 1)?;
        let working = [Path::new(".")];
        for folder in working.iter().chain(directories) {
            if let Ok(root) = fs::canonicalize(folder) {
                roots.try_push(root)?;
            }
        }
        Ok(Places {
            directories,
            roots,
            anywhere,
        })
    }

    /// Finds the file with this name, or the end of the name in one of the folders, and reads it.
    pub fn find(&self, name: &Path, wanted: Wanted) -> Result<Found> {
        if !is_local(&name.to_string_lossy()) {
            return Ok(Found::Nothing);
        }
        let mut found = Found::Nothing;
        let ends = ends_of(name)?;
        let searched = self.directories.iter();
        let searched = searched.flat_map(|folder| ends.iter().map(|end| folder.join(end)));
        for path in std::iter::once(name.to_path_buf()).chain(searched) {
            let Some((path, about)) = self.resolved(&path, wanted) else {
                continue;
            };
            if !self.anywhere && !self.contain(&path) {
                found = Found::Elsewhere;
            } else if let Some(text) = read(&path, &about)? {
                return Ok(text);
            }
        }
        Ok(found)
    }

    /// The file to which a path leads, if it may be read.
    fn resolved(&self, path: &Path, wanted: Wanted) -> Option<(PathBuf, Metadata)> {
        let path = fs::canonicalize(path).ok()?;
        let has_name = match wanted {
            Wanted::Source => path.extension().is_some_and(|extension| {
                let mut known = EXTENSIONS.iter();
                known.any(|known| extension.eq_ignore_ascii_case(known))
            }),
            Wanted::Description => path.file_name().is_some_and(|name| name == "DESCRIPTION"),
        };
        let may_be = self.contain(&path) || !is_hidden(&path) && !is_remote(&path);
        // The path is resolved, so this is the file itself. Opening anything else than a regular file could block.
        let about = (has_name && may_be).then(|| fs::symlink_metadata(&path).ok())??;
        (about.is_file() && about.len() <= LARGEST).then_some((path, about))
    }

    /// Whether a file is in one of the folders, and not hidden there.
    fn contain(&self, path: &Path) -> bool {
        let mut roots = self.roots.iter();
        roots.any(|root| {
            let rest = path.strip_prefix(root);
            rest.is_ok_and(|rest| !is_hidden(rest))
        })
    }
}

/// Whether a name can refer to a file of this computer: it is not a URL or the name of a server, and contains only
/// characters that are allowed on every system. `~` has no meaning here.
fn is_local(name: &str) -> bool {
    let is_separator = |c: char| c == '/' || c == '\\';
    let mut start = name.chars();
    let first = start.next();
    let is_server = first.is_some_and(is_separator) && start.next().is_some_and(is_separator);
    // The colon of a drive, as in `C:/a.R`.
    let has_drive = first.is_some_and(|c| c.is_ascii_alphabetic()) && name[1..].starts_with(':');
    let rest = if has_drive { &name[2..] } else { name };
    let is_refused = |c: char| c.is_control() || ":?*<>|\"".contains(c);
    let is_device = cfg!(windows) && rest.split(is_separator).any(is_device);
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !is_server
        && !is_device
        && !rest.contains(is_refused)
}

/// Names that Windows reserves for devices in every folder, with any extension.
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().trim_end();
    let is = |name: &str| stem.eq_ignore_ascii_case(name);
    let numbered = |name: &str| {
        let start = stem
            .get(..3)
            .is_some_and(|start| start.eq_ignore_ascii_case(name));
        start && stem.chars().count() == 4
    };
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
        .into_iter()
        .any(is)
        || ["com", "lpt"].into_iter().any(numbered)
}

/// The ends of a name: of `/home/me/a.R` these are `home/me/a.R`, `me/a.R` and `a.R`.
fn ends_of(name: &Path) -> Result<Vec<PathBuf>> {
    let name = name.to_string_lossy();
    let is_part = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains(':');
    let parts = name.split(['/', '\\']).filter(is_part);
    let parts = parts.try_vec()?;
    let starts = 0..parts.len();
    let ends = starts.map(|start| {
        let mut end = PathBuf::new();
        parts[start..].iter().for_each(|part| end.push(part));
        end
    });
    ends.try_vec()
}

fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Normal(name) => name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    })
}

/// Whether a resolved path is on a server. On Windows, a drive or a link may lead to one.
fn is_remote(path: &Path) -> bool {
    match path.components().next() {
        Some(Component::Prefix(prefix)) => {
            !matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_))
        }
        _ => false,
    }
}

/// Reads a file that was checked by its metadata `about`. Returns nothing if another file has replaced it since then,
/// or if it cannot be read or is not text.
fn read(path: &Path, about: &Metadata) -> Result<Option<Found>> {
    let Some((file, opened)) = opened(path) else {
        return Ok(None);
    };
    if !is_same(about, &opened) || !opened.is_file() {
        return Ok(None);
    }
    let mut bytes = with_room(about.len() as usize + 1)?;
    let count = file.take(LARGEST + 1).read_to_end(&mut bytes);
    let is_text = count.is_ok_and(|count| count as u64 <= LARGEST) && !bytes.contains(&0);
    Ok(is_text.then(|| Found::Text {
        bytes,
        modified: opened.modified().ok(),
    }))
}

fn opened(path: &Path) -> Option<(File, Metadata)> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    Some((file, about))
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.dev() == other.dev() && one.ino() == other.ino()
}

#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.created().ok() == other.created().ok() && one.len() == other.len()
}

#[cfg(test)]
mod tests;
