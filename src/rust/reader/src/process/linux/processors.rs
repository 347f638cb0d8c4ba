//! How many processors a process may use: those that its threads are bound to (*affinity*), and the share of time that its
//! control group gets, as for containers.

use super::cgroup::folders;
use profile_core::error::Result;
use std::fs;
use std::mem::{size_of, zeroed};
use std::path::Path;

/// The processors that some threads may use, together: some libraries bind each of their threads to one.
#[derive(Default)]
pub struct Affinity {
    all: Option<libc::cpu_set_t>,
}

impl Affinity {
    /// Adds those of a thread. The first thread of a process has its ID.
    pub fn add(&mut self, thread: i32) {
        // SAFETY: a set is an array of integers. The kernel writes no more than its size, and fails if there are more
        // processors or no such thread.
        let (result, set) = unsafe {
            let mut set: libc::cpu_set_t = zeroed();
            let size = size_of::<libc::cpu_set_t>();
            (libc::sched_getaffinity(thread, size, &mut set), set)
        };
        if result != 0 {
            return;
        }
        let all = self.all.get_or_insert(set);
        for processor in 0..libc::CPU_SETSIZE as usize {
            // SAFETY: the number is smaller than the size of the sets.
            unsafe {
                if libc::CPU_ISSET(processor, &set) {
                    libc::CPU_SET(processor, all);
                }
            }
        }
    }

    /// Their number, if it is known.
    pub fn count(&self) -> Option<u32> {
        // SAFETY: it only reads a set.
        let count = unsafe { libc::CPU_COUNT(self.all.as_ref()?) };
        u32::try_from(count).ok()
    }
}

/// The processors that a process may use: a number that need not be whole, `None` if it is unknown.
pub fn processors(pid: i32) -> Result<Option<f64>> {
    let mut affinity = Affinity::default();
    affinity.add(pid);
    let bound = affinity.count().map(f64::from);
    Ok(bound.into_iter().chain(quota_of(pid)?).reduce(f64::min))
}

/// As many processors as the control group of a process, or one in which it is, may use at a time; `None` without a limit.
pub fn quota_of(pid: i32) -> Result<Option<f64>> {
    let mut least: Option<f64> = None;
    let version_1 = folders(pid, "cpu", "cpu.cfs_quota_us")?;
    for (folders, quota) in [
        (version_1, quota_1 as fn(&Path) -> Option<f64>),
        (folders(pid, "", "cpu.max")?, quota_2),
    ] {
        for quota in folders.iter().filter_map(|folder| quota(folder)) {
            least = Some(least.map_or(quota, |least| least.min(quota)));
        }
    }
    Ok(least)
}

/// "QUOTA PERIOD" in microseconds. Without a limit, the quota is "max".
fn quota_2(folder: &Path) -> Option<f64> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

/// Without a limit, the quota is -1.
fn quota_1(folder: &Path) -> Option<f64> {
    let text = |name| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?);
    ratio(quota.trim(), period.trim())
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u32, u32) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0 && period > 0).then(|| f64::from(quota) / f64::from(period))
}

#[cfg(test)]
mod tests {
    use super::super::folder::Scripted;
    use super::*;

    fn write(system: &Scripted, name: &str, text: &str) {
        let file = system.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn the_lowest_quota_of_all_groups_around_counts() {
        let system = Scripted::new("processors");
        let at = system.path().display().to_string();
        assert_eq!(quota_of(7).unwrap(), None);
        let mounts = format!(
            "35 31 0:32 / {at}/2 rw shared:9 - cgroup2 none rw\n36 31 0:33 / {at}/1 rw - cgroup none rw,cpu,cpuacct\n"
        );
        write(&system, "self/mountinfo", &mounts);
        write(&system, "7/cgroup", "4:cpu,cpuacct:/job\n0::/batch/job\n");
        write(&system, "2/batch/job/cpu.max", "max 100000\n");
        write(&system, "1/job/cpu.cfs_quota_us", "-1\n");
        write(&system, "1/job/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota_of(7).unwrap(), None);
        write(&system, "2/batch/cpu.max", "250000 100000\n");
        assert_eq!(quota_of(7).unwrap(), Some(2.5));
        write(&system, "1/job/cpu.cfs_quota_us", "50000\n");
        assert_eq!(quota_of(7).unwrap(), Some(0.5));
        write(&system, "1/job/cpu.cfs_period_us", "0\n");
        assert_eq!(quota_of(7).unwrap(), Some(2.5));
    }

    #[test]
    fn processors_of_threads_are_counted_once() {
        let mut affinity = Affinity::default();
        // No thread has this number.
        affinity.add(i32::MAX);
        assert_eq!(affinity.count(), None);
        affinity.add(0);
        let count = affinity.count();
        assert!(count >= Some(1));
        affinity.add(0);
        assert_eq!(affinity.count(), count);
    }
}
