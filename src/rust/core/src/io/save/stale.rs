//! Removes temporary files of killed processes.
//!
//! A killed process cannot remove its temporary file, so the next process that writes to the
//! directory does. It cannot be determined reliably whether the process that created a file still
//! runs, since it may run on another computer or in a container. But such a process writes
//! continuously, so a file that was not modified for a day is no longer in use.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// The start and the end of the names of temporary files. In between are the process id and a random
/// number.
pub const PREFIX: &str = ".profile-";
pub const SUFFIX: &str = ".tmp";
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The directory that was searched last, so that it is not searched again for each of a thousand
/// files.
static SEARCHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Removes stale temporary files in the directory of `new`, a file that was just created. Failures are
/// ignored, since they do not prevent writing.
pub(super) fn remove(new: &Path, file: &File) {
    let (Some(directory), Ok(about)) = (new.parent(), file.metadata()) else {
        return;
    };
    let Ok(mut searched) = SEARCHED.lock() else {
        return;
    };
    if searched.as_deref() != Some(directory) {
        *searched = Some(directory.to_owned());
        remove_in(directory, &about);
    }
}

/// `new` describes a file that was just created in the directory: its time is from the same clock as the times of the
/// other files.
fn remove_in(directory: &Path, new: &Metadata) {
    // The parent of "a" is "".
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_temporary);
        // `metadata()` of an entry does not follow links.
        if is_ours && entry.metadata().is_ok_and(|old| is_stale(&old, new)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_temporary(name: &str) -> bool {
    let middle = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX));
    let Some((process, number)) = middle.and_then(|middle| middle.split_once('-')) else {
        return false;
    };
    !process.is_empty()
        && process.bytes().all(|byte| byte.is_ascii_digit())
        && number.len() == 16
        && number.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_stale(old: &Metadata, new: &Metadata) -> bool {
    let (Ok(then), Ok(now)) = (old.modified(), new.modified()) else {
        return false;
    };
    old.is_file() && now.duration_since(then).is_ok_and(|age| age > STALE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Scratch, text};
    use super::*;
    use std::time::SystemTime;

    const NAME: &str = ".profile-12-0123456789abcdef.tmp";

    #[test]
    fn names_of_temporary_files_are_recognised() {
        assert!(is_temporary(NAME));
        for name in [
            "a",
            ".profile-.tmp",
            ".profile-12-.tmp",
            ".profile-12-0123456789abcdeg.tmp",
            ".profile--0123456789abcdef.tmp",
            ".profile-12-0123456789abcdef.tmp~",
            "x.profile-12-0123456789abcdef.tmp",
        ] {
            assert!(!is_temporary(name), "{name}");
        }
    }

    #[test]
    fn files_older_than_a_day_are_removed() {
        let dir = Scratch::new("stale");
        let make = |name: &str, hours: u64| {
            let file = File::create(dir.0.join(name)).unwrap();
            let then = SystemTime::now() - Duration::from_secs(hours * 60 * 60);
            file.set_modified(then).unwrap();
        };
        make(NAME, 25);
        make(".profile-12-0123456789abcde0.tmp", 23);
        make("other.tmp", 1000);
        fs::create_dir(dir.0.join(".profile-12-0123456789abcde1.tmp")).unwrap();
        text(&dir.0.join("a"), "x").unwrap();
        assert_eq!(
            dir.names(),
            [
                ".profile-12-0123456789abcde0.tmp",
                ".profile-12-0123456789abcde1.tmp",
                "a",
                "other.tmp"
            ]
        );
    }
}
