//! What `/proc` reports about a process.

use super::folder::{file, file_of};
use super::memory::ProcessMemory;
use super::memory::maps::{FileMapping, file_mapping, mapping, page_size};
use super::permission::{gone, not_permitted};
use crate::recorded::states::State;
use crate::running_r::Named;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, TryGrow, owned, sort_by_key};
use profile_core::message;
use profile_core::text::decode;
use profile_runtime::memory::Mapping;
use profile_runtime::memory::Memory;
use profile_runtime::variables::{DESCRIPTION_OF_BASE, LIBRARY, LIBRARY_FOLDER, PROGRAM};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A process of this machine, and the program that it runs: one that executes another program differs from what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    /// When it started, in clock ticks since the system was booted. A later process with the same ID has another
    /// start time.
    started: u64,
    execution: Execution,
}

/// What distinguishes the program that a process runs from those that it executes later. The kernel puts each at other
/// addresses, unless that is switched off; then what is known about a program remains true if it is executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// Whether the process was forked and has executed no program since.
    is_fork: bool,
    /// Where its code and its stack begin: 0 while it is being executed or is ending, and if this process may not know.
    code: u64,
    stack: u64,
}

impl Process {
    /// Finds a running process.
    pub fn find(pid: i32) -> Result<Process> {
        let status = Status::read(pid).ok_or_else(|| gone(pid))?;
        if status.state == State::Ended {
            return Err(gone(pid));
        }
        Ok(Process {
            pid,
            started: status.started,
            execution: status.execution,
        })
    }

    /// The program that it runs.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// Whether it is just executing a program, or ending. Soon more will be known.
    pub fn is_changing(&self) -> bool {
        self.execution.code == 0
    }

    /// Whether it is the same process, perhaps with another program.
    pub fn is_same_as(&self, other: &Process) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// The state of its first thread; `None` if it ended. R may run in another one, see [`Thread`](super::Thread).
    pub fn state(&self) -> Option<State> {
        let status = Status::read(self.pid)?;
        let is_same = status.started == self.started && status.state != State::Ended;
        is_same.then_some(status.state)
    }

    /// As `wait()` reports it, if it has ended and its parent has not asked yet.
    pub(super) fn exit_code(&self) -> Option<i32> {
        let status = Status::read(self.pid)?;
        let has_ended = status.started == self.started && status.state == State::Ended;
        has_ended.then_some(status.exit_code).flatten()
    }

    /// Whether it runs a program, which it does not any more when it is ending.
    pub fn runs_a_program(&self) -> bool {
        match fs::read(file_of(self.pid, "maps")) {
            Ok(maps) => !maps.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    }

    /// Whether its program started with this environment variable, as `NAME=VALUE`.
    pub fn has_variable(&self, variable: &str) -> bool {
        self.variable_starting(variable.as_bytes())
            .is_some_and(|found| found.len() == variable.len())
    }

    /// The first environment variable of its program that starts with this text, as `NAME=VALUE`.
    pub fn variable_starting(&self, text: &[u8]) -> Option<Vec<u8>> {
        let variables = fs::read(file_of(self.pid, "environ")).unwrap_or_default();
        let mut variables = variables.split(|&byte| byte == 0);
        let found = variables.find(|one| one.starts_with(text))?;
        found.iter().copied().try_vec().ok()
    }

    /// When it started, in seconds since 1970.
    pub fn start(&self) -> Option<f64> {
        let text = fs::read_to_string(file("stat")).ok()?;
        let boot = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        let boot: f64 = boot.trim().parse().ok()?;
        Some(boot + self.started())
    }

    /// Whether it was forked and has not executed a program since.
    pub fn is_fork(&self) -> bool {
        self.execution.is_fork
    }

    /// Whether it started after another one, or at the same time.
    pub fn is_later_than(&self, other: &Process) -> bool {
        self.started >= other.started
    }

    /// When it started, in seconds since the system was booted.
    pub(super) fn started(&self) -> f64 {
        // SAFETY: it has no preconditions.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        self.started as f64 / ticks.max(1) as f64
    }

    /// How long it has been running, in seconds.
    pub fn age(&self) -> Option<f64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(now.as_secs_f64() - self.start()?)
    }

    /// The processes that it started and that still run.
    pub fn children(&self) -> Result<Vec<i32>> {
        let mut children = Vec::new();
        let tasks = fs::read_dir(file_of(self.pid, "task"));
        for task in tasks.into_iter().flatten().flatten() {
            let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in text.split_ascii_whitespace() {
                if let Ok(child) = child.parse() {
                    children.try_push(child)?;
                }
            }
        }
        Ok(children)
    }

    /// The memory that it takes, in bytes.
    pub fn resident(&self) -> Option<u64> {
        let text = fs::read_to_string(file_of(self.pid, "statm")).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        pages.checked_mul(page_size())
    }

    /// How much of each part of its address space is in RAM, as text; empty if the system does not say this.
    pub fn smaps(&self) -> Vec<u8> {
        fs::read(file_of(self.pid, "smaps")).unwrap_or_default()
    }

    /// A file with a word for each page of its address space, see [`crate::heap::resident::pages`].
    pub fn pagemap(&self) -> Option<fs::File> {
        fs::File::open(file_of(self.pid, "pagemap")).ok()
    }

    /// The parts of its address space.
    pub fn mappings(&self) -> Result<Vec<Mapping>> {
        let bytes = fs::read(file_of(self.pid, "maps"));
        let bytes = bytes.map_err(|error| self.refused(&error))?;
        let lines = bytes.split(|&byte| byte == b'\n');
        let mappings = lines.filter_map(mapping).try_vec()?;
        if mappings.is_empty() {
            // A process that is ending has no mappings any more, and kernel threads never have any.
            self.state().ok_or_else(|| gone(self.pid))?;
            return Err(Error::Process(message!(
                "Process {} does not run R.",
                self.pid
            )));
        }
        // Checks whether the memory may be read.
        let mut memory = ProcessMemory::new(self.pid);
        let first = mappings.iter().find(|mapping| mapping.starts_file);
        let is_refused = |first: &Mapping| !memory.read(first.addresses.start, &mut [0; 4]);
        if first.is_some_and(is_refused) {
            return Err(self.refused(&io::Error::last_os_error()));
        }
        Ok(mappings)
    }

    /// The parts of its address space that belong to files, and the code that the kernel adds (vDSO).
    pub fn file_mappings(&self) -> Result<Vec<FileMapping>> {
        let bytes = fs::read(file_of(self.pid, "maps")).unwrap_or_default();
        let mut parts = Vec::new();
        for line in bytes.split(|&byte| byte == b'\n') {
            if let Some(part) = file_mapping(&decode(line)?.text)? {
                parts.try_push(part)?;
            }
        }
        Ok(parts)
    }

    /// The paths of the files whose starts it has mapped, and where.
    pub fn files(&self) -> Result<Vec<(String, u64)>> {
        let starts = self
            .file_mappings()?
            .into_iter()
            .filter(|part| part.offset == 0);
        starts
            .map(|part| (part.path, part.addresses.start))
            .try_vec()
    }

    /// What its files say about its R. The version is the one of the package base, which is installed with R.
    pub fn named(&self) -> Result<Named> {
        let mut named = Named::default();
        for (path, start) in self.files()? {
            let kept = path.strip_suffix(" (deleted)");
            let is_deleted = kept.is_some();
            let path = kept.unwrap_or(&path);
            let folder = [LIBRARY, PROGRAM].map(|name| path.strip_suffix(name));
            let Some(folder) = folder.into_iter().flatten().next() else {
                continue;
            };
            named.modules.try_push(start)?;
            // R may have been upgraded meanwhile.
            if is_deleted || named.version.is_some() {
                continue;
            }
            let home = folder.strip_suffix(LIBRARY_FOLDER).unwrap_or(folder);
            let file = message!("/proc/{}/root{home}{DESCRIPTION_OF_BASE}", self.pid);
            let text = start_of(Path::new(&file)).unwrap_or_default();
            let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
            named.version = version.map(owned).transpose()?;
        }
        Ok(named)
    }

    /// Why the memory cannot be read.
    fn refused(&self, error: &io::Error) -> Error {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => gone(self.pid),
            Some(libc::EPERM | libc::EACCES) => not_permitted(self.pid),
            _ => Error::Process(message!(
                "The memory of process {} cannot be read: {error}.",
                self.pid
            )),
        }
    }
}

/// The most bytes of a file of another process that are read.
const MOST_OF_FILE: u64 = 1 << 16;

/// The start of a file with a name that another process has chosen: it may be a pipe, a device, or endless.
fn start_of(path: &Path) -> Option<String> {
    let mut options = fs::File::options();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let mut text = String::new();
    let is_file = file.metadata().ok()?.is_file();
    let read = file.take(MOST_OF_FILE).read_to_string(&mut text);
    (is_file && read.is_ok()).then_some(text)
}

/// A flag of a process that was forked and has executed no program (`PF_FORKNOEXEC` in `linux/sched.h`).
const FORKED: u32 = 0x40;

/// The contents of `/proc/PID/stat`.
pub struct Status {
    pub state: State,
    /// The number of threads of the process.
    pub threads: u32,
    started: u64,
    pub execution: Execution,
    pub processor: usize,
    /// As `wait()` reports it, once the process has ended, and if this one may know it.
    pub exit_code: Option<i32>,
}

impl Execution {
    /// Whether a process that runs this program has executed it since it ran `other`. While it is executed, that is
    /// unknown.
    pub fn differs_from(self, other: Execution) -> bool {
        self.code != 0 && self != other
    }

    /// The same, read of another thread than the first one, which the kernel marks as if it were a fork.
    pub fn of_thread_differs_from(self, other: Execution) -> bool {
        let is_fork = other.is_fork;
        Execution { is_fork, ..self }.differs_from(other)
    }
}

impl Status {
    fn read(pid: i32) -> Option<Status> {
        // One read takes everything; `fs::read()` needs six, and this is done often.
        let mut bytes = [0; 1024];
        let length = fs::File::open(file_of(pid, "stat"))
            .and_then(|mut file| file.read(&mut bytes))
            .ok()?;
        Status::parse(bytes.get(..length)?)
    }

    pub fn parse(bytes: &[u8]) -> Option<Status> {
        // "pid (name) state parent ...": names may have blanks and parentheses.
        let end = bytes.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(bytes.get(end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = match fields.next()?.chars().next()? {
            'R' => State::Running,
            'S' | 'I' => State::Sleeping,
            'D' => State::WaitsForDevice,
            'T' | 't' => State::Stopped,
            'Z' | 'X' => State::Ended,
            other => State::Other(other),
        };
        // Field 9; the state is field 3.
        let flags: u32 = fields.nth(5)?.parse().ok()?;
        // Field 20.
        let threads = fields.nth(10)?.parse().ok()?;
        // Field 22.
        let started = fields.nth(1)?.parse().ok()?;
        // Fields 26 and 28.
        let code = fields.nth(3)?.parse().ok()?;
        let stack = fields.nth(1)?.parse().ok()?;
        // Field 39.
        let processor = fields.nth(10)?.parse().ok()?;
        // Field 52.
        let exit_code = fields.nth(12).and_then(|code| code.parse().ok());
        Some(Status {
            state,
            threads,
            started,
            execution: Execution {
                is_fork: flags & FORKED != 0,
                code,
                stack,
            },
            processor,
            exit_code,
        })
    }
}

/// The ID that was given to the last new process or thread, which is cheap to read; `None` if that is unknown.
pub fn last_created() -> Option<i32> {
    let text = fs::read_to_string(file("loadavg")).ok()?;
    text.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// The processes of this system that seem to run R and whose memory may be read, in ascending order.
pub fn r_processes() -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(file("")).into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Ok(process) = Process::find(pid) {
            if process.has_r() && process.may_be_read() {
                found.try_push(process)?;
            }
        }
    }
    sort_by_key(&mut found, |process| process.pid)?;
    Ok(found)
}

impl Process {
    /// Whether its memory may be read.
    pub fn may_be_read(&self) -> bool {
        self.mappings().is_ok()
    }

    /// Whether it has loaded R's library, or is a program named R. This is fast, and may be wrong.
    pub fn has_r(&self) -> bool {
        let maps = fs::read(file_of(self.pid, "maps")).unwrap_or_default();
        let is_r = |line: &[u8]| {
            let path = line.strip_suffix(b" (deleted)").unwrap_or(line);
            path.ends_with(LIBRARY.as_bytes()) || path.ends_with(PROGRAM.as_bytes())
        };
        maps.split(|&byte| byte == b'\n').any(is_r)
    }
}
