//! Finds separate files with debug information, in the folders in which gdb looks for them (see
//! "Debugging Information in Separate Files" in its manual).

use super::elf::Elf;
use super::files::Files;
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryText, written};
use flate2::Crc;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The number of bytes that are read at once for a checksum.
const PIECE: usize = 1 << 18;

/// The debug information for a file with this build id: `.build-id/ab/cdef….debug` in one of the
/// folders.
pub fn by_build_id<'f>(
    id: &[u8],
    folders: &[PathBuf],
    files: &'f Files,
) -> Result<Option<Elf<'f>>> {
    let Some((first, rest)) = id.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Ok(None);
    };
    let mut name = written(format_args!(".build-id/{first:02x}/"))?;
    for byte in rest {
        name.try_write(format_args!("{byte:02x}"))?;
    }
    name.try_push_str(".debug")?;
    for folder in folders {
        if let Some(found) = identified(&folder.join(&name), id, files)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The debug information that a file refers to by name and checksum. The build ids must be equal
/// too; the build id of a file without one is empty.
pub fn by_link<'f>(
    elf: &Elf<'f>,
    id: &[u8],
    folders: &[PathBuf],
    files: &'f Files,
) -> Result<Option<Elf<'f>>> {
    let Some((name, checksum)) = elf.debug_link()? else {
        return Ok(None);
    };
    for folder in folders_of(&elf.path) {
        let near = [folder.join(name), folder.join(".debug").join(name)];
        let relative = folder.strip_prefix("/").unwrap_or(&folder);
        let global = folders.iter().map(|debug| debug.join(relative).join(name));
        for path in near.into_iter().chain(global) {
            let found = identified(&path, id, files)?;
            if found.is_some() && checksum_of(&path)? == Some(checksum) {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// The file with the shared part of the debug information of several files, as in Debian packages.
/// `elf` refers to it by path and build id.
pub fn shared<'f>(elf: &Elf<'f>, folders: &[PathBuf], files: &'f Files) -> Result<Option<Elf<'f>>> {
    let Some((path, id)) = elf.shared_link()? else {
        return Ok(None);
    };
    for folder in folders_of(&elf.path) {
        if let Some(found) = identified(&folder.join(path), id, files)? {
            return Ok(Some(found));
        }
    }
    by_build_id(id, folders, files)
}

/// The file at a path, if it has this build id.
fn identified<'f>(path: &Path, id: &[u8], files: &'f Files) -> Result<Option<Elf<'f>>> {
    match Elf::open(path, files)? {
        Some(elf) if elf.build_id()? == id => Ok(Some(elf)),
        _ => Ok(None),
    }
}

/// The folders of a file: if the path is a symbolic link, debug information may be in the folder of the link or in the
/// folder of the file.
#[expect(clippy::disallowed_methods, reason = "two at most")]
fn folders_of(path: &Path) -> Vec<PathBuf> {
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
    piece.try_fill(PIECE, 0)?;
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
