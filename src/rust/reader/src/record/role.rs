//! What the processes of a recording are to each other.

use crate::process::Process;
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::message;

/// The role of a process to which others belong.
pub const MASTER: &str = "master";

/// The role of a fork of a process.
pub fn fork_of(parent: impl std::fmt::Display) -> String {
    message!("fork of {parent}")
}

/// Part of the path of the script that a process of the package callr runs. A session of callr runs none, but each of its
/// processes has its own profile of the user, with this variable and this part of its path.
const CALLR_SCRIPT: &str = "/callr-scr-";
const PROFILE: &str = "R_PROFILE_USER=";
const CALLR_PROFILE: &str = "/callr-upr-";

/// Code on the command lines of workers, which parallel, mirai and crew start.
const WORKERS: [&str; 3] = ["workRSOCK()", "mirai::daemon(", "crew::crew_worker("];
/// The same of processes of mirai that give tasks to workers.
const DISPATCHER: &str = "mirai::dispatcher(";

/// Why a process is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user named it, by this id.
    Named(i32),
    /// This process waits for it at a socket.
    Worker(i32),
    /// It gives tasks of this process to workers.
    Dispatcher(i32),
    /// This process started it: as a copy of itself, by the package callr, or in another way.
    Fork(i32),
    Callr(i32),
    Child(i32),
}

impl Role {
    pub fn of_child(child: &Process, parent: i32) -> Result<Role> {
        if child.is_fork() {
            Ok(Role::Fork(parent))
        } else {
            Role::of_program(child, parent)
        }
    }

    /// The role of a process that runs a program for another one.
    pub fn of_program(process: &Process, master: i32) -> Result<Role> {
        Ok(match Role::on_command_line(process, master)? {
            Some(role) => role,
            None if has_profile_of_callr(process, master) => Role::Callr(master),
            None => Role::Child(master),
        })
    }

    /// The role that the command line of a process says, which works for this one.
    pub fn on_command_line(process: &Process, master: i32) -> Result<Option<Role>> {
        let command = process.command()?;
        Ok(if command.contains(CALLR_SCRIPT) {
            Some(Role::Callr(master))
        } else if command.contains(DISPATCHER) {
            Some(Role::Dispatcher(master))
        } else {
            let is_worker = WORKERS.iter().any(|code| command.contains(code));
            is_worker.then_some(Role::Worker(master))
        })
    }

    /// The process to which it belongs.
    pub fn master(self) -> Option<i32> {
        match self {
            Role::Named(_) => None,
            Role::Worker(pid)
            | Role::Dispatcher(pid)
            | Role::Fork(pid)
            | Role::Callr(pid)
            | Role::Child(pid) => Some(pid),
        }
    }
}

/// Whether a process has a profile of callr, which it has not inherited.
fn has_profile_of_callr(child: &Process, parent: i32) -> bool {
    let Some(own) = child.variable_starting(PROFILE.as_bytes()) else {
        return false;
    };
    let of_parent = Process::find(parent).ok();
    let of_parent = of_parent.and_then(|parent| parent.variable_starting(PROFILE.as_bytes()));
    let is_of_callr = |part: &[u8]| part == CALLR_PROFILE.as_bytes();
    own.windows(CALLR_PROFILE.len()).any(is_of_callr) && of_parent != Some(own)
}

/// The roles in words. A process that the user named has none, unless others belong to it.
pub fn in_words(roles: &[Role]) -> Result<Vec<Option<String>>> {
    let named = roles.iter().filter(|role| role.master().is_none()).count();
    // A shell may be between a process and its child, but all belong to the only one.
    let is_master = |pid| match named {
        1 => roles.len() > 1,
        _ => roles.iter().any(|role| role.master() == Some(pid)),
    };
    let words = roles.iter().enumerate().map(|(row, &role)| match role {
        Role::Named(pid) => is_master(pid).then(|| MASTER.into()),
        Role::Worker(pid) => {
            let workers = |roles: &[Role]| roles.iter().filter(|other| **other == role).count();
            let (number, count) = (workers(&roles[..=row]), workers(roles));
            let words = message!("worker {number} of {count}");
            Some(if named > 1 {
                message!("{words} for {pid}")
            } else {
                words
            })
        }
        Role::Dispatcher(_) => Some("dispatcher".into()),
        Role::Fork(parent) => Some(fork_of(parent)),
        Role::Callr(_) => Some("callr".into()),
        Role::Child(parent) => Some(message!("child of {parent}")),
    });
    words.try_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_words() {
        let words = |roles: &[Role]| {
            let words = in_words(roles).unwrap().into_iter();
            words.map(Option::unwrap_or_default).collect::<Vec<_>>()
        };
        assert_eq!(words(&[Role::Named(1)]), [""]);
        let roles = [
            Role::Named(1),
            Role::Worker(1),
            Role::Fork(12),
            Role::Worker(1),
            Role::Callr(1),
            Role::Child(7),
            Role::Dispatcher(1),
        ];
        let expected = [
            "master",
            "worker 1 of 2",
            "fork of 12",
            "worker 2 of 2",
            "callr",
            "child of 7",
            "dispatcher",
        ];
        assert_eq!(words(&roles), expected);
        let roles = [Role::Named(1), Role::Named(2), Role::Worker(2)];
        assert_eq!(words(&roles), ["", "master", "worker 1 of 1 for 2"]);
    }
}
