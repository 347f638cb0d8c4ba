//! The threads of a process, and the CPU time of each: what `/proc/PID/task` reports. Processes need no permission for that.

use super::folder::file_of;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, sort_by_key};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// A thread, and the CPU time that it has used since it started, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    pub id: i32,
    pub cpu: u64,
}

/// The threads of a process, by their IDs; none if it has ended.
pub fn tasks(pid: i32) -> Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for entry in fs::read_dir(file_of(pid, "task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.parse().ok());
        // A thread that has just ended has no time any more.
        let folder = entry.path();
        if let (Some(id), Some(cpu)) = (id, exact(&folder).or_else(|| by_ticks(&folder))) {
            tasks.try_push(Task { id, cpu })?;
        }
    }
    sort_by_key(&mut tasks, |task| task.id)?;
    Ok(tasks)
}

/// The first number of `schedstat` is the time on a processor. Some kernels have no such file.
fn exact(folder: &Path) -> Option<u64> {
    let mut bytes = [0; 128];
    let text = start_of(&folder.join("schedstat"), &mut bytes)?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The time in clock ticks.
fn by_ticks(folder: &Path) -> Option<u64> {
    let mut bytes = [0; 1024];
    let text = start_of(&folder.join("stat"), &mut bytes)?;
    // "id (name) state ...": names may have blanks and parentheses. Fields 14 and 15; the state is field 3.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    // SAFETY: it has no preconditions.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    user.checked_add(system)?
        .checked_mul(1_000_000_000)?
        .checked_div(ticks)
}

fn start_of<'b>(file: &Path, bytes: &'b mut [u8]) -> Option<&'b str> {
    let length = File::open(file)
        .and_then(|mut file| file.read(bytes))
        .ok()?;
    std::str::from_utf8(bytes.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::folder::Scripted;
    use super::*;

    #[test]
    fn times_are_exact_where_the_kernel_has_them() {
        let system = Scripted::new("tasks");
        let write = |name: &str, text: &str| {
            let file = system.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        assert_eq!(tasks(7).unwrap(), []);
        // SAFETY: it has no preconditions.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u64;
        let stat = "(a ) b) S 1 7 7 0 -1 4194304 9 0 0 0 25 50 3 4 20 0 3 0 99 0 0\n";
        write("7/task/12/schedstat", "1500000000 77 3\n");
        write("7/task/12/stat", &format!("12 {stat}"));
        write("7/task/9/stat", &format!("9 {stat}"));
        // It has just ended.
        write("7/task/10/stat", "");
        let task = |id, cpu| Task { id, cpu };
        let by_ticks = 75 * (1_000_000_000 / ticks);
        assert_eq!(
            tasks(7).unwrap(),
            [task(9, by_ticks), task(12, 1_500_000_000)]
        );
    }
}
