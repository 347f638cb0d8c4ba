//! Explains why a process cannot be read: it has ended, or the system does not permit reading its memory.

use profile_core::error::Error;
use profile_core::message;
use std::fs;

/// The error if a process has ended.
pub fn gone(pid: i32) -> Error {
    Error::Process(message!("There is no process {pid}, or it has ended."))
}

/// The rules of `ptrace(2)`: the process belongs to the same user and is not protected, or the reader has the
/// capability SYS_PTRACE. The security module Yama often permits descendants only.
pub fn not_permitted(pid: i32) -> Error {
    let owner = |pid: &str| {
        let status = fs::read_to_string(message!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        // The real, effective, saved and file system user IDs.
        line.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let (own, theirs) = (owner("self"), owner(&message!("{pid}")));
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let yama = yama
        .and_then(|text| text.trim().parse::<u32>().ok())
        .unwrap_or(0);
    let why = match (own, theirs) {
        (Some(own), Some(theirs)) if own != theirs && own != 0 => message!(
            "It belongs to user {theirs}, and this is user {own}: run this as that user, or as root."
        ),
        _ if yama == 3 => {
            message!(
                "The setting kernel.yama.ptrace_scope = 3 of this system forbids it to everybody."
            )
        }
        (Some(0), _) => {
            message!(
                "Root needs the capability SYS_PTRACE for that, which containers often lack: \
            start this one with `--cap-add=SYS_PTRACE`."
            )
        }
        _ if yama == 2 => message!(
            "The setting kernel.yama.ptrace_scope = 2 of this system allows it only to root: run this as root, or set \
             it to 0."
        ),
        _ if yama > 0 => message!(
            "The setting kernel.yama.ptrace_scope = {yama} of this system allows it only for processes that \
             this one started: run this as root, or set it to 0."
        ),
        _ => message!("It is protected, as programs are that run with other privileges."),
    };
    Error::Process(message!(
        "The system does not permit to read the memory of process {pid}. {why}"
    ))
}
