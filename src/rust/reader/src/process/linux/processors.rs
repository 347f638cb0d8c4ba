//! How many processors a process may use: those that it may run on, and what the control groups around it permit. See the
//! kernel's `Documentation/scheduler/sched-bwc.rst` and `admin-guide/cgroup-v2.rst`.

use super::cgroup::folders_of;
use super::folder::file_of;
use std::fs;
use std::path::Path;

/// A number that need not be whole; `None` if it is unknown.
pub fn processors(pid: i32) -> Option<f64> {
    let status = fs::read_to_string(file_of(pid, "status")).ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let allowed = count(list.trim())? as f64;
    let mut most = allowed;
    // Version 1 has a folder for this controller.
    for controller in ["cpu", ""] {
        let Some((inner, outermost)) = folders_of(pid, controller) else {
            continue;
        };
        let mut folders = inner.ancestors();
        while let Some(folder) = folders.next().filter(|one| one.starts_with(&outermost)) {
            most = most.min(quota(folder).unwrap_or(allowed));
        }
    }
    Some(most)
}

/// The number of processors in a list such as `0-3,8`.
fn count(list: &str) -> Option<u32> {
    let mut count = 0;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count += last.checked_sub(first)? + 1;
    }
    Some(count)
}

/// The processors that a group may use, if they are limited.
fn quota(folder: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        None => {
            let number = |name: &str| read(name)?.trim().parse::<f64>().ok();
            (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        }
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Scripted;

    fn write(system: &Scripted, name: &str, text: &str) {
        let file = system.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn processors_are_limited_by_groups_and_affinity() {
        let system = Scripted::new("processors");
        assert_eq!(processors(7), None);
        write(&system, "7/status", "Name:\tR\nCpus_allowed_list:\t0-3,8\n");
        assert_eq!(processors(7), Some(5.0));
        let mount = |at: &str, kind: &str, options: &str| {
            let folder = system.path().join(at);
            let folder = folder.display();
            format!("35 31 0:32 / {folder} rw,relatime - {kind} {kind} {options}\n")
        };
        let mounts = mount("fs", "cgroup2", "rw") + &mount("cpu", "cgroup", "rw,cpu,cpuacct");
        write(&system, "self/mountinfo", &mounts);
        write(&system, "7/cgroup", "4:cpu,cpuacct:/a\n0::/batch/job\n");
        assert_eq!(processors(7), Some(5.0));
        write(&system, "fs/batch/job/cpu.max", "max 100000\n");
        assert_eq!(processors(7), Some(5.0));
        // The group around it.
        write(&system, "fs/batch/cpu.max", "150000 100000\n");
        assert_eq!(processors(7), Some(1.5));
        write(&system, "cpu/a/cpu.cfs_period_us", "100000\n");
        write(&system, "cpu/a/cpu.cfs_quota_us", "-1\n");
        assert_eq!(processors(7), Some(1.5));
        write(&system, "cpu/a/cpu.cfs_quota_us", "50000\n");
        assert_eq!(processors(7), Some(0.5));
    }

    #[test]
    fn lists_of_processors() {
        for (list, expected) in [
            ("0", Some(1)),
            ("0-1", Some(2)),
            ("0,2-4,7", Some(5)),
            ("", None),
            ("3-1", None),
            ("x", None),
        ] {
            assert_eq!(count(list), expected, "{list}");
        }
    }
}
