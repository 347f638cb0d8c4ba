//! Explains why a process cannot be read or stopped: it has ended, or the system does not permit it.

use super::folder::file;
use profile_core::error::Error;
use profile_core::message;
use std::fs;

/// The capability to look into any process, in `linux/capability.h`.
const SYS_PTRACE: u32 = 19;
/// The value of `Seccomp:` if a filter decides about each system call, see `proc_pid_status(5)`.
const FILTERED: u64 = 2;

/// The error if a process has ended.
pub fn gone(pid: i32) -> Error {
    Error::Process(message!("There is no process {pid}, or it has ended."))
}

/// The error if the memory of a process may not be read.
pub fn not_permitted(pid: i32) -> Error {
    let why = why_refused(pid);
    Error::Process(message!(
        "The system does not permit to read the memory of process {pid}. {why}"
    ))
}

/// Why the system refuses to look into a process that nobody traces. The rules are those of `ptrace(2)`: it belongs to
/// the same user and is not protected, or the reader has the capability SYS_PTRACE. The security module Yama often permits
/// descendants only, and a filter of system calls refuses them before all that is checked.
pub fn why_refused(pid: i32) -> String {
    // The real, effective, saved and file system user IDs.
    let user = |pid: &str| {
        let ids = field(pid, "Uid:")?;
        ids.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let is_own = u32::try_from(pid) == Ok(std::process::id());
    let (own, theirs) = (user("self"), user(&message!("{pid}")));
    let capabilities = field("self", "CapEff:");
    let capabilities = capabilities.and_then(|text| u64::from_str_radix(&text, 16).ok());
    let is_capable = capabilities.map(|all| all >> SYS_PTRACE & 1 == 1);
    let filter = field("self", "Seccomp:").and_then(|text| text.parse().ok());
    let is_filtered = filter == Some(FILTERED);
    let yama = fs::read_to_string(file("sys/kernel/yama/ptrace_scope")).ok();
    let yama = yama
        .and_then(|text| text.trim().parse::<u32>().ok())
        .unwrap_or(0);
    match (own, theirs) {
        _ if yama == 3 => {
            "The setting kernel.yama.ptrace_scope = 3 of this system forbids it to everybody.".into()
        }
        _ if is_filtered && (is_own || is_capable == Some(true)) => {
            "A filter of system calls (seccomp) of this process forbids it, as in some containers.".into()
        }
        (Some(own), Some(theirs)) if own != theirs && own != 0 => message!(
            "It belongs to user {theirs}, and this is user {own}: run this as that user, or as root."
        ),
        (Some(0), _) if is_capable != Some(true) => {
            "Root needs the capability SYS_PTRACE for that, which containers often lack: start this one with \
             `--cap-add=SYS_PTRACE`."
                .into()
        }
        _ if yama == 2 => {
            "The setting kernel.yama.ptrace_scope = 2 of this system allows it only to root: run this as root, or set it to 0."
                .into()
        }
        _ if yama > 0 => message!(
            "The setting kernel.yama.ptrace_scope = {yama} of this system allows it only for processes that \
             this one started: run this as root, or set it to 0."
        ),
        _ if is_filtered => {
            "It is protected, as programs are that run with other privileges, or a filter of system calls (seccomp) of \
             this process forbids it, as in some containers."
                .into()
        }
        _ => "It is protected, as programs are that run with other privileges.".into(),
    }
}

/// The value of a field of `/proc/PID/status`.
fn field(pid: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file(&message!("{pid}/status"))).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().into())
}

#[cfg(test)]
mod tests {
    use super::super::folder::Scripted;
    use super::*;

    #[test]
    fn the_reason_is_what_the_system_says() {
        let system = Scripted::new("permission");
        let write = |name: &str, text: &str| {
            let file = system.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let status = |user: u32, capabilities: &str, filter: u32| {
            format!(
                "Name:\tR\nUid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{capabilities}\nSeccomp:\t{filter}\n"
            )
        };
        let (none, all) = ("0000000000000000", "000001ffffffffff");
        for (own, theirs, yama, expected) in [
            ((0, all, 2), 0, "0", "(seccomp) of this process forbids"),
            ((1000, all, 2), 0, "1", "(seccomp) of this process forbids"),
            ((0, none, 2), 0, "1", "capability SYS_PTRACE"),
            ((0, none, 0), 1000, "0", "capability SYS_PTRACE"),
            ((1000, none, 0), 1001, "1", "belongs to user 1001"),
            ((1000, none, 2), 1000, "1", "kernel.yama.ptrace_scope = 1"),
            ((1000, none, 0), 1000, "2", "kernel.yama.ptrace_scope = 2"),
            ((0, all, 0), 0, "3", "kernel.yama.ptrace_scope = 3"),
            (
                (1000, none, 2),
                1000,
                "0",
                "protected, as programs are that run with other privileges, or",
            ),
            (
                (1000, none, 0),
                1000,
                "0",
                "protected, as programs are that run with other privileges.",
            ),
        ] {
            write("self/status", &status(own.0, own.1, own.2));
            write("7/status", &status(theirs, none, 0));
            write("sys/kernel/yama/ptrace_scope", yama);
            let why = why_refused(7);
            assert!(why.contains(expected), "{own:?} {theirs} {yama}: {why}");
        }
    }
}
