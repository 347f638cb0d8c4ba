//! What the file descriptors of a process refer to: their kinds, and names of what is at the other end.
//!
//! The other end of a pipe is found by its inode, and that of a connection to this machine by the addresses in the table of
//! connections: among the children of the process, and the other processes of the recording. What was found is kept,
//! since the system takes milliseconds for a long table.

use super::super::folder::file_of;
use super::super::proc::Process;
use super::descriptors::{Descriptor, descriptor};
use super::sockets::OtherEnd;
use super::{own, sockets};
use crate::recorded::waits::{WaitKind, WaitNames, process_name};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, owned};
use profile_core::message;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Programs that run others, and how many of them are looked through.
const SHELLS: [&str; 5] = ["sh", "dash", "bash", "zsh", "busybox"];
const MOST_SHELLS: usize = 3;
/// The most processes that may have the other end, and the most ends that are kept.
const MOST_PROCESSES: usize = 64;
const MOST_KEPT: usize = 1000;

/// The kind of what a descriptor refers to, and its name.
pub type End = (WaitKind, Option<String>);

#[derive(Debug)]
pub struct Ends {
    pid: i32,
    is_own: bool,
    names: WaitNames,
    /// Other processes of the recording.
    others: Vec<i32>,
    /// What was found, by the inode of this end.
    found: HashMap<u64, End, foldhash::fast::RandomState>,
}

impl Ends {
    pub fn new(pid: i32, names: WaitNames) -> Ends {
        Ends::reading(pid, names, u32::try_from(pid) == Ok(std::process::id()))
    }

    /// The same for this process if `is_own`, else for another one.
    pub fn reading(pid: i32, names: WaitNames, is_own: bool) -> Ends {
        Ends {
            pid,
            is_own,
            names,
            others: Vec::new(),
            found: HashMap::default(),
        }
    }

    /// See [`super::Waits::set_names()`].
    pub fn set_names(&mut self, names: WaitNames, others: &[i32]) -> Result<()> {
        self.names = names;
        self.others.clear();
        self.others.try_extend(others)?;
        self.found.clear();
        Ok(())
    }

    /// `None` if the descriptor is not open any more, or is the process's own clock or alarm.
    pub fn of(&mut self, number: i32) -> Result<Option<End>> {
        let link = fs::read_link(file_of(self.pid, &message!("fd/{number}")));
        let Ok(link) = link else {
            return Ok(None);
        };
        Ok(match descriptor(&link)? {
            Descriptor::Socket(inode) => Some(self.of_socket(number, inode)?),
            Descriptor::Pipe(inode) => Some(self.of_pipe(inode, &link)?),
            Descriptor::File(path) => Some((WaitKind::File, self.of_file(path)?)),
            Descriptor::Own => None,
            Descriptor::Other => Some((WaitKind::Unknown, None)),
        })
    }

    fn of_file(&self, path: String) -> Result<Option<String>> {
        Ok(match self.names {
            WaitNames::None => None,
            WaitNames::Full => Some(path),
            WaitNames::Short => Some(owned(path.rsplit('/').next().unwrap_or_default())?),
        })
    }

    fn of_pipe(&mut self, inode: u64, link: &Path) -> Result<End> {
        if self.names == WaitNames::None {
            return Ok((WaitKind::Pipe, None));
        }
        if let Some((kind, name)) = self.found.get(&inode) {
            return Ok((*kind, copy(name)?));
        }
        let name = match self.owner(link)? {
            Some(owner) => self.name_of(owner)?,
            None => None,
        };
        self.keep(inode, (WaitKind::Pipe, name))
    }

    fn of_socket(&mut self, number: i32, inode: u64) -> Result<End> {
        if let Some((kind, name)) = self.found.get(&inode) {
            return Ok((*kind, copy(name)?));
        }
        let found = if self.is_own {
            own::other_end(number)?
        } else {
            sockets::other_end(self.pid, inode)?
        };
        // One that is not connected yet is looked up again.
        let Some(OtherEnd {
            kind,
            name,
            inode: other,
        }) = found
        else {
            return Ok((WaitKind::Network, None));
        };
        if self.names == WaitNames::None {
            return Ok((kind, None));
        }
        let owner = match other {
            Some(other) => self.owner(Path::new(&message!("socket:[{other}]")))?,
            None => None,
        };
        let name = match owner {
            Some(owner) => self.name_of(owner)?.or(name),
            None => name,
        };
        self.keep(inode, (kind, name))
    }

    fn keep(&mut self, inode: u64, end: End) -> Result<End> {
        if self.found.len() >= MOST_KEPT {
            self.found.clear();
        }
        let kept = (end.0, copy(&end.1)?);
        self.found.try_put(inode, kept)?;
        Ok(end)
    }

    /// The process that has this open, apart from the one that waits.
    fn owner(&self, link: &Path) -> Result<Option<i32>> {
        let mut left = Vec::new();
        left.try_extend_from(self.others.iter().copied())?;
        left.try_extend_from(self.children(self.pid)?.into_iter())?;
        let mut at = 0;
        while let Some(&pid) = left.get(at).filter(|_| at < MOST_PROCESSES) {
            at += 1;
            if pid == self.pid {
                continue;
            }
            let open = fs::read_dir(file_of(pid, "fd")).into_iter().flatten();
            let mut links = open
                .flatten()
                .filter_map(|entry| fs::read_link(entry.path()).ok());
            if links.any(|open| open == link) {
                return Ok(Some(pid));
            }
            if !self.others.contains(&pid) {
                left.try_extend_from(self.children(pid)?.into_iter())?;
            }
        }
        Ok(None)
    }

    fn children(&self, pid: i32) -> Result<Vec<i32>> {
        match Process::find(pid) {
            Ok(process) => process.children(),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// The name of another process: one of the recording by its ID, else its program. A shell that runs one program
    /// stands for it.
    pub fn name_of(&self, pid: i32) -> Result<Option<String>> {
        let mut process = Process::find(pid).ok();
        let mut name = None;
        for _ in 0..MOST_SHELLS {
            let Some(current) = process else {
                break;
            };
            if self.others.contains(&current.pid) {
                return Ok(Some(process_name(current.pid)));
            }
            name = current.program()?;
            let is_shell = name.as_deref().is_some_and(|name| SHELLS.contains(&name));
            process = match current.children()?.as_slice() {
                [only] if is_shell => Process::find(*only).ok(),
                _ => None,
            };
        }
        Ok(name)
    }
}

fn copy(name: &Option<String>) -> Result<Option<String>> {
    name.as_deref().map(owned).transpose()
}
