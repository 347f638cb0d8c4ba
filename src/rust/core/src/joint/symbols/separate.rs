//! Debug information in a file of its own, where gdb looks for it (its manual,
//! "Debugging Information in Separate Files").

use super::elf::Elf;
use super::files::Files;
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryText, written};
use flate2::Crc;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Read at once for a checksum.
const PIECE: usize = 1 << 18;

/// The debug information of the file with this build id: `ab/cdef….debug` in a
/// folder for such.
pub fn by_build_id<'f>(
    id: &[u8],
    folders: &[PathBuf],
    files: &'f Files,
) -> Result<Option<Elf<'f>>> {
    let Some((first, rest)) = id.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Ok(None);
    };
    let mut name = written(format_args!(".build-id/{first:02x}/"), "a path")?;
    for byte in rest {
        name.try_write(format_args!("{byte:02x}"), "a path")?;
    }
    name.try_push_str(".debug", "a path")?;
    for folder in folders {
        if let Some(found) = identified(&folder.join(&name), id, files)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The debug information that a file names. An empty build id is none: then the
/// checksum has to do.
pub fn by_link<'f>(
    elf: &Elf<'f>,
    id: &[u8],
    folders: &[PathBuf],
    files: &'f Files,
) -> Result<Option<Elf<'f>>> {
    let Some((name, checksum)) = elf.debug_link()? else {
        return Ok(None);
    };
    for beside in beside(&elf.path) {
        let places = [beside.join(name), beside.join(".debug").join(name)];
        let inside = beside.strip_prefix("/").unwrap_or(&beside);
        let collected = folders.iter().map(|folder| folder.join(inside).join(name));
        for path in places.into_iter().chain(collected) {
            let found = identified(&path, id, files)?;
            if found.is_some() && checksum_of(&path)? == Some(checksum) {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// The file with debug information that several files share (Debian packages have
/// such), found by the path or the build id in `elf`.
pub fn shared<'f>(elf: &Elf<'f>, folders: &[PathBuf], files: &'f Files) -> Result<Option<Elf<'f>>> {
    let Some((path, id)) = elf.shared_link()? else {
        return Ok(None);
    };
    for beside in beside(&elf.path) {
        if let Some(found) = identified(&beside.join(path), id, files)? {
            return Ok(Some(found));
        }
    }
    by_build_id(id, folders, files)
}

fn identified<'f>(path: &Path, id: &[u8], files: &'f Files) -> Result<Option<Elf<'f>>> {
    match Elf::open(path, files)? {
        Some(elf) if elf.build_id()? == id => Ok(Some(elf)),
        _ => Ok(None),
    }
}

/// The folders of a file: links lead to a file, and it has its debug information
/// where it is or where the link is.
#[expect(clippy::disallowed_methods, reason = "two at most")]
fn beside(path: &Path) -> Vec<PathBuf> {
    let real = path.canonicalize().ok();
    let mut folders: Vec<PathBuf> = [real.as_deref(), Some(path)]
        .into_iter()
        .flatten()
        .filter_map(|path| path.parent().map(Path::to_owned))
        .collect();
    folders.dedup();
    folders
}

fn checksum_of(path: &Path) -> Result<Option<u32>> {
    let Ok(mut file) = File::open(path) else {
        return Ok(None);
    };
    let mut piece = Vec::new();
    piece.try_fill(PIECE, 0, "a checksum")?;
    let mut checksum = Crc::new();
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Some(checksum.sum())),
            Ok(size) => checksum.update(&piece[..size]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(None),
        }
    }
}
