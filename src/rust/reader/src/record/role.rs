//! What the processes of a recording are to each other.

use crate::process::Process;
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::message;

/// The attribute of a source with its role.
pub const KEY: &str = "profile.process.role";

/// Part of the path of the script that a process of the package callr runs.
const CALLR_SCRIPT: &str = "/callr-scr-";

/// Why a process is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user named it.
    Named,
    /// A recorded process waits for it at a socket.
    Worker,
    /// This process started it: as a copy of itself, by the package callr, or in another way.
    Fork(i32),
    Callr,
    Child(i32),
}

impl Role {
    pub fn of_child(child: &Process, parent: i32) -> Result<Role> {
        Ok(if child.is_fork() {
            Role::Fork(parent)
        } else if child.command()?.contains(CALLR_SCRIPT) {
            Role::Callr
        } else {
            Role::Child(parent)
        })
    }
}

/// The roles in words. A process that the user named has none, unless others were found that belong to it.
pub fn in_words(roles: &[Role]) -> Result<Vec<Option<String>>> {
    let is_alone = roles.iter().all(|role| *role == Role::Named);
    let workers = roles.iter().filter(|role| **role == Role::Worker).count();
    let mut worker = 0;
    let words = roles.iter().map(|role| match role {
        Role::Named if is_alone => None,
        Role::Named => Some("master".into()),
        Role::Worker => {
            worker += 1;
            Some(message!("worker {worker} of {workers}"))
        }
        Role::Fork(parent) => Some(message!("fork of {parent}")),
        Role::Callr => Some("callr".into()),
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
        assert_eq!(words(&[Role::Named, Role::Named]), ["", ""]);
        let roles = [
            Role::Named,
            Role::Worker,
            Role::Fork(12),
            Role::Worker,
            Role::Callr,
            Role::Child(7),
        ];
        let expected = [
            "master",
            "worker 1 of 2",
            "fork of 12",
            "worker 2 of 2",
            "callr",
            "child of 7",
        ];
        assert_eq!(words(&roles), expected);
    }
}
