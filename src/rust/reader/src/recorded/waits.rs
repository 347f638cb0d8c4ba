//! What a thread waits for.

use profile_core::message;

/// A wait, and what it is for, such as the address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub kind: WaitKind,
    pub name: Option<String>,
    /// Whether it is for something that another thread does, so that what these do decides about the kind.
    pub is_for_threads: bool,
}

impl Wait {
    pub fn of(kind: WaitKind) -> Wait {
        Wait {
            kind,
            name: None,
            is_for_threads: false,
        }
    }
}

/// Which names waits have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitNames {
    /// None, since what a process is connected to may be private.
    None,
    /// Without the folders of files.
    Short,
    Full,
}

/// The name of another process of the recording, until its role is known.
pub fn process_name(pid: i32) -> String {
    message!("process {pid}")
}

/// The label of a sample with what it waits for, and the one with its name.
pub const WAITS_FOR: &str = "waits_for";
pub const WAITS_FOR_NAME: &str = "waits_for.name";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// A socket of the network, or a local one of which nothing is known.
    Network,
    /// A file or a device, by its path.
    File,
    /// The end of a child process.
    Child,
    /// A pipe, or a local socket.
    Pipe,
    /// A lock of a file or of threads.
    Lock,
    /// Other threads of the process, which compute meanwhile.
    Threads,
    /// A processor, on which it could run.
    Processor,
    /// A page of memory that is read from a file.
    PageFault,
    Sleep,
    /// R waits for work.
    Idle,
    Unknown,
}

impl WaitKind {
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Network => "network",
            WaitKind::File => "file",
            WaitKind::Child => "child",
            WaitKind::Pipe => "pipe",
            WaitKind::Lock => "lock",
            WaitKind::Threads => "threads",
            WaitKind::Processor => "processor",
            WaitKind::PageFault => "page fault",
            WaitKind::Sleep => "sleep",
            WaitKind::Idle => "idle",
            WaitKind::Unknown => "unknown",
        }
    }
}

/// The attribute of a source whose waits the system does not permit to see.
pub const WAITS_REFUSED: &str = "profile.waits.refused";

/// The functions that run callbacks and requests, of the package later, and those that a worker of a cluster runs.
const LOOP: &str = "execCallbacks";
const WORKER: &str = "workCommand";
const RECEIVES: &str = "recvData";
/// What is between them.
const HANDLERS: [&str; 4] = ["tryCatch", "tryCatchList", "tryCatchOne", "doTryCatch"];

/// What R waits for, if its functions say so, given their names, the innermost one first. R decides before the system call:
/// `Sys.sleep()` may watch a pipe meanwhile, and a server without a request waits for its clients in many ways. With an
/// open span, a request is being worked on, so that its loop is not idle.
pub fn of_r<'n>(has_span: bool, mut names: impl Iterator<Item = &'n str>) -> Option<WaitKind> {
    let Some(innermost) = names.next() else {
        return Some(WaitKind::Idle);
    };
    if innermost == "Sys.sleep" {
        return Some(WaitKind::Sleep);
    }
    let mut is_first = true;
    let mut receives = false;
    for name in names {
        let is_loop = name == LOOP && is_first && innermost == ".Call" && !has_span;
        if is_loop || name == WORKER && receives {
            return Some(WaitKind::Idle);
        }
        is_first = false;
        receives = name.starts_with(RECEIVES) || receives && HANDLERS.contains(&name);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(names: &[&str]) -> Option<WaitKind> {
        of_r(false, names.iter().copied())
    }

    #[test]
    fn functions_of_r_decide_before_the_system_call() {
        assert_eq!(kind(&["Sys.sleep", "f"]), Some(WaitKind::Sleep));
        assert_eq!(kind(&["f", "Sys.sleep"]), None);
        assert_eq!(kind(&[]), Some(WaitKind::Idle));
        assert_eq!(
            kind(&[".Call", "execCallbacks", "run_now"]),
            Some(WaitKind::Idle)
        );
        assert_eq!(kind(&["readLines", "f", "execCallbacks"]), None);
        let with_span = |names: &[&str]| of_r(true, names.iter().copied());
        assert_eq!(with_span(&[".Call", "execCallbacks"]), None);
        assert_eq!(with_span(&["Sys.sleep", "f"]), Some(WaitKind::Sleep));
        assert_eq!(with_span(&[]), Some(WaitKind::Idle));
        let received = ["unserialize", "recvData.SOCKnode", "recvData"];
        let inside = |outer: &[&'static str]| kind(&[&received[..], outer].concat());
        assert_eq!(inside(&["workCommand", "workLoop"]), Some(WaitKind::Idle));
        assert_eq!(
            inside(&["doTryCatch", "tryCatch", "workCommand"]),
            Some(WaitKind::Idle)
        );
        // A worker that is the master of others.
        assert_eq!(inside(&["clusterApply", "do.call", "workCommand"]), None);
        assert_eq!(kind(&["readLines", "f", "do.call", "workCommand"]), None);
    }
}
