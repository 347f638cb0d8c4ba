//! Writes a file such that a failure leaves the old content intact.
//!
//! The new content is written to a temporary file in the directory of the target, which replaces
//! the target when it is complete. Targets that are not regular files (a pipe, `/dev/stdout`,
//! `/dev/full`) have no old content and are written directly.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "the system limits the length of paths"
)]

mod stale;

use crate::error::{Error, Result};
use crate::io::observed::Observed;
use crate::limits::memory;
use foldhash::fast::RandomState;
use stale::{PREFIX, SUFFIX};
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const BUFFER: usize = 1 << 16;
/// The number of symbolic links that Linux follows.
const MOST_LINKS: usize = 40;
/// How many names are tried for a temporary file.
const MOST_NAMES: u32 = 100;

/// Creates or replaces the file at `path` with the content that `write` writes.
///
/// If `path` is a symbolic link, the file that it points to is replaced. The new file has the
/// permissions of the old one, and its owner and group if this user may set them. `observed` reports the position.
pub fn replace(
    path: &Path,
    observed: Option<&Observed>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    replace_target(path, observed, write).map_err(|error| match error {
        Error::Write { source, .. } => in_file(path, source),
        other => other,
    })
}

/// Creates the file at `path` with the content that `write` writes, and returns `false` if there is one already, which
/// may be from another process that writes at the same time.
pub fn create(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<bool> {
    create_new(path, write).map_err(|error| match error {
        Error::Write { source, .. } => in_file(path, source),
        other => other,
    })
}

fn create_new(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<bool> {
    let (file, temporary) = Temporary::in_directory_of(path).map_err(failed)?;
    fill(file, None, write)?;
    temporary.rename_unless_exists(path).map_err(failed)
}

fn in_file(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

/// The error of a failed write to a `dyn Write`, without a path: [`replace`] adds it.
pub fn failed(source: io::Error) -> Error {
    if source.kind() == ErrorKind::OutOfMemory {
        return Error::Memory;
    }
    Error::Write {
        path: PathBuf::new(),
        source,
    }
}

/// Checks that [`replace()`] can create or replace the file, before the work whose result it is to contain.
pub fn check(path: &Path) -> Result<()> {
    let old = old_file(path).map_err(|error| in_file(path, error))?;
    // Opening a pipe would be noticed at its other end.
    if old.as_ref().is_some_and(|about| !about.is_file()) {
        return Ok(());
    }
    open(path, old.as_ref())
        .map(drop)
        .map_err(|error| in_file(path, error))
}

/// What is at the path now, which must not be a directory.
fn old_file(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => {
            Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory"))
        }
        Ok(about) => Ok(Some(about)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// A file that is open for writing.
struct Opened {
    file: File,
    /// The file that replaces the target, and the target.
    replacement: Option<(Temporary, PathBuf)>,
}

fn open(path: &Path, old: Option<&fs::Metadata>) -> io::Result<Opened> {
    if let Some(about) = old {
        // Renaming alone would also replace a file that must not be written.
        let file = OpenOptions::new().append(true).open(path)?;
        if !about.is_file() || is_descriptor(path) {
            return Ok(Opened {
                file,
                replacement: None,
            });
        }
    }
    let target = follow(path);
    let (file, temporary) = Temporary::in_directory_of(&target)?;
    if let Some(about) = old {
        copy_permissions(&file, about)?;
    }
    Ok(Opened {
        file,
        replacement: Some((temporary, target)),
    })
}

fn replace_target(
    path: &Path,
    observed: Option<&Observed>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let old = old_file(path).map_err(failed)?;
    let Opened { file, replacement } = open(path, old.as_ref()).map_err(failed)?;
    fill(file, observed, write)?;
    match replacement {
        Some((temporary, target)) => temporary.rename(&target).map_err(failed),
        None => Ok(()),
    }
}

fn fill(
    file: File,
    observed: Option<&Observed>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    memory::ensure(BUFFER)?;
    if let Some(observed) = observed {
        observed.begin(&file, 0);
    }
    let mut writer = BufWriter::with_capacity(BUFFER, file);
    let written = write(&mut writer).and_then(|()| writer.flush().map_err(failed));
    if let Some(observed) = observed {
        // Some systems do not rename open files.
        observed.end();
    }
    written
}

/// Gives a new file the owner, the group and the permissions of the old one.
#[cfg(unix)]
fn copy_permissions(new: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    // Only root may give files away; others may choose among their own groups.
    let _ = fchown(new, None, Some(old.gid()));
    let _ = fchown(new, Some(old.uid()), None);
    let about = new.metadata()?;
    let mut mode = old.mode() & 0o777;
    if about.gid() != old.gid() {
        // If the group differs from the old one, it gets only the permissions that all users have.
        mode = mode & !0o070 | (mode & 0o007) << 3;
    }
    new.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn copy_permissions(new: &File, old: &fs::Metadata) -> io::Result<()> {
    new.set_permissions(old.permissions())
}

/// Whether the path is `/dev/stdout` or similar. If it is redirected to a file, another process may
/// have that file open and continue to write to it, so the file must not be replaced.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc") || links(path).any(|link| link.starts_with("/proc"))
}

/// The path that a chain of symbolic links ends at, whether it exists or not.
fn follow(path: &Path) -> PathBuf {
    links(path).last().unwrap_or_else(|| path.to_owned())
}

fn links(path: &Path) -> impl Iterator<Item = PathBuf> {
    let next = |path: &PathBuf| {
        let target = fs::read_link(path).ok()?;
        Some(match path.parent() {
            Some(parent) => parent.join(target),
            None => target,
        })
    };
    std::iter::successors(next(&path.to_owned()), next).take(MOST_LINKS)
}

/// A temporary file, which is removed unless it was renamed.
struct Temporary {
    path: Option<PathBuf>,
}

impl Temporary {
    /// Creates a new file in the directory of `target`. Its name does not contain the name of the target, which may
    /// already have the maximum length.
    fn in_directory_of(target: &Path) -> io::Result<(File, Temporary)> {
        let random = RandomState::default();
        for attempt in 0..MOST_NAMES {
            let number = random.hash_one((SystemTime::now(), attempt));
            let name = format!("{PREFIX}{}-{number:016x}{SUFFIX}", std::process::id());
            let path = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    stale::remove(&path, &file);
                    return Ok((file, Temporary { path: Some(path) }));
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Unlike renaming, a link never replaces a file. Some file systems have no links; there, a file that appears
    /// between the check and the renaming is replaced.
    fn rename_unless_exists(self, target: &Path) -> io::Result<bool> {
        let linked = match &self.path {
            Some(path) => fs::hard_link(path, target),
            None => Ok(()),
        };
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(_) if fs::symlink_metadata(target).is_ok() => Ok(false),
            Err(_) => self.rename(target).map(|()| true),
        }
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // If this fails too, the error that led here is reported already.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own for each test.
    pub(super) struct Scratch(pub(super) PathBuf);

    impl Scratch {
        pub(super) fn new(name: &str) -> Scratch {
            let name = format!("profile-save-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }

        pub(super) fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(&self.0)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    pub(super) fn text(path: &Path, text: &'static str) -> Result<()> {
        replace(path, None, |out| {
            out.write_all(text.as_bytes()).map_err(failed)
        })
    }

    #[test]
    fn a_file_is_made_and_replaced() {
        let dir = Scratch::new("replace");
        let path = dir.0.join("a");
        text(&path, "one").unwrap();
        text(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(dir.names(), ["a"]);
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_no_temporary_file() {
        let dir = Scratch::new("failure");
        let path = dir.0.join("a");
        text(&path, "old").unwrap();
        let result = replace(&path, None, |out| {
            out.write_all(&[0; 3 * BUFFER]).map_err(failed)?;
            Err(Error::Interrupted)
        });
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(dir.names(), ["a"]);
        let new = dir.0.join("b");
        assert!(replace(&new, None, |_| Err(Error::Interrupted)).is_err());
        assert_eq!(dir.names(), ["a"]);
    }

    #[test]
    fn errors_contain_the_path_of_the_user() {
        let dir = Scratch::new("errors");
        let missing = dir.0.join("no").join("a");
        let error = text(&missing, "x").unwrap_err();
        assert!(matches!(&error, Error::Write { path, .. } if *path == missing));
        let error = text(&dir.0, "x").unwrap_err();
        assert!(error.to_string().ends_with("it is a directory."), "{error}");
        assert!(text(Path::new(""), "x").is_err());
        assert!(text(&dir.0.join("new/"), "x").is_err());
        assert!(dir.names().is_empty());
    }

    #[test]
    fn a_file_of_another_process_is_not_replaced() {
        let dir = Scratch::new("create");
        let path = dir.0.join("a");
        let new = |text: &'static str| {
            create(&path, |out| out.write_all(text.as_bytes()).map_err(failed)).unwrap()
        };
        assert!(new("one"));
        assert!(!new("two"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(dir.names(), ["a"]);
        fs::remove_file(&path).unwrap();
        // Another process creates the file meanwhile.
        let created = create(&path, |out| {
            fs::write(&path, "other").map_err(failed)?;
            out.write_all(b"own").map_err(failed)
        });
        assert!(!created.unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "other");
        assert_eq!(dir.names(), ["a"]);
        let missing = dir.0.join("no").join("a");
        let error = create(&missing, |_| Ok(())).unwrap_err();
        assert!(matches!(&error, Error::Write { path, .. } if *path == missing));
    }

    #[test]
    fn a_file_can_be_checked_before_it_is_written() {
        let dir = Scratch::new("check");
        let path = dir.0.join("a");
        check(&path).unwrap();
        assert!(dir.names().is_empty());
        text(&path, "old").unwrap();
        check(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(dir.names(), ["a"]);
        for wrong in [dir.0.join("no").join("a"), path.join("a"), dir.0.clone()] {
            let checked = check(&wrong).unwrap_err().to_string();
            assert_eq!(checked, text(&wrong, "x").unwrap_err().to_string());
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = Scratch::new("links");
        let file = dir.0.join("file");
        let link = dir.0.join("link");
        text(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        text(&link, "two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);

        let dangling = dir.0.join("dangling");
        symlink("later", &dangling).unwrap();
        text(&dangling, "three").unwrap();
        assert_eq!(fs::read_to_string(dir.0.join("later")).unwrap(), "three");

        let looped = dir.0.join("loop");
        symlink("loop", &looped).unwrap();
        assert!(text(&looped, "x").is_err());
        assert_eq!(dir.names(), ["dangling", "file", "later", "link", "loop"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_are_written_directly() {
        let full = Path::new("/dev/full");
        let error = text(full, "x").unwrap_err();
        assert!(matches!(&error, Error::Write { path, .. } if path == full));
        text(Path::new("/dev/null"), "x").unwrap();
        let shell = format!("/proc/self/fd/{}", 0);
        assert!(is_descriptor(Path::new(&shell)));
        assert!(is_descriptor(Path::new("/dev/stdout")));
        assert!(!is_descriptor(Path::new("/dev/null")));
    }
}
