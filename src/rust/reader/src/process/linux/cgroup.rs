//! The control group (cgroup) of a process, as which containers, batch systems and services are limited: how much memory
//! its processes may use and do use, and how many of them the kernel has killed to free memory. Version 1 and version 2 of
//! the interface are described in the kernel's `Documentation/admin-guide/cgroup-v1/memory.rst` and `cgroup-v2.rst`.

mod throttling;

pub use throttling::Throttling;

use super::folder::{file, file_of};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::fs;
use std::path::{Path, PathBuf};

/// Version 1 has this limit or a higher one if there is none.
const NO_LIMIT: u64 = 1 << 62;

/// The names of files of one version of the interface.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    limit: &'static str,
    used: &'static str,
    highest: &'static str,
    /// A file with a line `oom_kill N`.
    kills: &'static str,
    /// The line of `memory.stat` with files that are dropped first, including those of inner groups.
    dropped: &'static str,
}

static VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    highest: "memory.max_usage_in_bytes",
    kills: "memory.oom_control",
    dropped: "total_inactive_file",
};
static VERSION_2: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    highest: "memory.peak",
    kills: "memory.events",
    dropped: "inactive_file",
};

/// A control group that this process can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Its folder, and those of the groups in which it is, up to the outermost one.
    folders: Vec<PathBuf>,
    names: &'static Names,
}

/// The lowest limit of a control group and those in which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimit {
    pub bytes: u64,
    /// What the processes of the group that has this limit use. This includes files that the kernel keeps in memory; when the
    /// limit is near, only those that it would not drop for other memory.
    pub used: u64,
    /// The most that they have used since the group was created, if the kernel knows that, with files.
    pub highest: Option<u64>,
}

/// Whether so much memory is used that little is left.
fn is_near(used: u64, limit: u64) -> bool {
    used >= limit - limit / 10
}

impl MemoryLimit {
    pub fn is_near(&self) -> bool {
        is_near(self.used, self.bytes)
    }
}

impl Cgroup {
    /// The group that limits the memory of this process; `None` if there is none that can be seen.
    pub fn of(pid: i32) -> Result<Option<Cgroup>> {
        // Both versions may be in use, one of them for memory.
        for (names, controller) in [(&VERSION_1, "memory"), (&VERSION_2, "")] {
            let folders = folders(pid, controller, names.kills)?;
            if !folders.is_empty() {
                return Ok(Some(Cgroup { folders, names }));
            }
        }
        Ok(None)
    }

    pub fn limit(&self) -> Option<MemoryLimit> {
        let limits = self.folders.iter().filter_map(|folder| {
            let bytes = number(&folder.join(self.names.limit))?;
            (bytes < NO_LIMIT).then_some((bytes, folder))
        });
        let (bytes, folder) = limits.min_by_key(|&(bytes, _)| bytes)?;
        let mut used = number(&folder.join(self.names.used))?;
        if is_near(used, bytes) {
            let figures = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let dropped = field(&figures, self.names.dropped).unwrap_or(0);
            used = used.saturating_sub(dropped);
        }
        Some(MemoryLimit {
            bytes,
            used,
            highest: number(&folder.join(self.names.highest)),
        })
    }

    /// How many of its processes the kernel has killed to free memory, also if that was because of the limit of a group in
    /// which it is, or because the machine had no memory left.
    pub fn kills(&self) -> Option<u64> {
        let folder = self.folders.first()?;
        field(
            &fs::read_to_string(folder.join(self.names.kills)).ok()?,
            "oom_kill",
        )
    }
}

/// The folder of the group of a process, and those of the groups in which it is, up to the outermost one, as far as they have
/// a file. `controller` is that of version 1, and empty for version 2.
pub(super) fn folders(pid: i32, controller: &str, name: &str) -> Result<Vec<PathBuf>> {
    let groups = fs::read_to_string(file_of(pid, "cgroup")).unwrap_or_default();
    let mounts = fs::read_to_string(file("self/mountinfo")).unwrap_or_default();
    let mut folders = Vec::new();
    let Some(path) = groups.lines().find_map(|line| path_of(line, controller)) else {
        return Ok(folders);
    };
    let mut found = mounts.lines().filter_map(|line| mount(line, controller));
    let Some((inner, outermost)) = found.find_map(|(root, at)| place(path, root, at)) else {
        return Ok(folders);
    };
    for folder in inner.ancestors() {
        if folder.join(name).exists() {
            folders.try_push(folder.to_path_buf())?;
        }
        if folder == outermost {
            break;
        }
    }
    Ok(folders)
}

/// How many processes of this machine the kernel has killed to free memory.
pub fn kills_on_machine() -> Option<u64> {
    field(&fs::read_to_string(file("vmstat")).ok()?, "oom_kill")
}

/// The memory of this machine, and what of it is available, in bytes.
pub fn memory_of_machine() -> Option<(u64, u64)> {
    let text = fs::read_to_string(file("meminfo")).ok()?;
    let kibibytes = |name| field(&text, name)?.checked_mul(1024);
    Some((kibibytes("MemTotal:")?, kibibytes("MemAvailable:")?))
}

/// How many bytes this process can still use: of the limit of its group, and of the machine.
pub fn memory_left() -> Option<u64> {
    let pid = i32::try_from(std::process::id()).unwrap_or(0);
    let limit = Cgroup::of(pid)
        .ok()
        .flatten()
        .and_then(|group| group.limit());
    let of_group = limit.map(|limit| limit.bytes.saturating_sub(limit.used));
    let of_machine = memory_of_machine().map(|(_, available)| available);
    of_group.into_iter().chain(of_machine).min()
}

/// The path in a line of `/proc/PID/cgroup`, `ID:CONTROLLERS:PATH`. Version 2 has no controllers there.
fn path_of<'t>(line: &'t str, controller: &str) -> Option<&'t str> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    controllers
        .split(',')
        .any(|one| one == controller)
        .then_some(path)
}

/// The group that a mounted folder shows, and the folder, in a line of `/proc/self/mountinfo`:
/// `ID PARENT DEVICE ROOT FOLDER OPTIONS ... - TYPE SOURCE OPTIONS`.
fn mount<'t>(line: &'t str, controller: &str) -> Option<(&'t str, &'t Path)> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let is_wanted = match after.next()? {
        "cgroup2" => controller.is_empty(),
        "cgroup" => after.nth(1)?.split(',').any(|one| one == controller),
        _ => false,
    };
    let mut before = before.split(' ').skip(3);
    let (root, folder) = (before.next()?, before.next()?);
    is_wanted.then_some((root, Path::new(folder)))
}

/// The folder of the group `path`, and the outermost folder, if `at` shows the group `root`.
fn place<'p>(path: &str, root: &str, at: &'p Path) -> Option<(PathBuf, &'p Path)> {
    let inside = Path::new(path).strip_prefix(root).ok()?;
    // A group outside of the namespace of this process has a path with `..`.
    let is_seen = inside.components().all(|part| part.as_os_str() != "..");
    is_seen.then(|| (at.join(inside), at))
}

/// The content of a file that is one number.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The number after this name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let is_name = words.next() == Some(name);
        is_name.then(|| words.next()?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests;
