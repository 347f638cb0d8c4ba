//! What a thread waits for.

/// A wait, and what it is for, such as the address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub kind: WaitKind,
    pub name: Option<String>,
}

impl Wait {
    pub fn of(kind: WaitKind) -> Wait {
        Wait { kind, name: None }
    }
}

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
            WaitKind::PageFault => "page fault",
            WaitKind::Sleep => "sleep",
            WaitKind::Idle => "idle",
            WaitKind::Unknown => "unknown",
        }
    }
}

/// The functions that run callbacks and requests, of the package later, and those that a worker of a cluster runs.
const LOOP: &str = "execCallbacks";
const WORKER: &str = "workCommand";
const RECEIVES: &str = "recvData";
/// What is between them.
const HANDLERS: [&str; 4] = ["tryCatch", "tryCatchList", "tryCatchOne", "doTryCatch"];

/// What R waits for in a call, given the names of its functions, the innermost one first. R decides before the system call:
/// `Sys.sleep()` may watch a pipe meanwhile, and a server without a request waits for its clients in many ways.
pub fn of_r<'n>(wait: Wait, mut names: impl Iterator<Item = &'n str>) -> Wait {
    let Some(innermost) = names.next() else {
        return Wait::of(WaitKind::Idle);
    };
    if innermost == "Sys.sleep" {
        return Wait::of(WaitKind::Sleep);
    }
    let mut is_first = true;
    let mut receives = false;
    for name in names {
        let is_loop = name == LOOP && is_first && innermost == ".Call";
        if is_loop || name == WORKER && receives {
            return Wait::of(WaitKind::Idle);
        }
        is_first = false;
        receives = name.starts_with(RECEIVES) || receives && HANDLERS.contains(&name);
    }
    wait
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(names: &[&str]) -> WaitKind {
        of_r(Wait::of(WaitKind::Pipe), names.iter().copied()).kind
    }

    #[test]
    fn functions_of_r_decide_before_the_system_call() {
        assert_eq!(kind(&["Sys.sleep", "f"]), WaitKind::Sleep);
        assert_eq!(kind(&["f", "Sys.sleep"]), WaitKind::Pipe);
        assert_eq!(kind(&[]), WaitKind::Idle);
        assert_eq!(kind(&[".Call", "execCallbacks", "run_now"]), WaitKind::Idle);
        assert_eq!(kind(&["readLines", "f", "execCallbacks"]), WaitKind::Pipe);
        let received = ["unserialize", "recvData.SOCKnode", "recvData"];
        let inside = |outer: &[&'static str]| kind(&[&received[..], outer].concat());
        assert_eq!(inside(&["workCommand", "workLoop"]), WaitKind::Idle);
        assert_eq!(
            inside(&["doTryCatch", "tryCatch", "workCommand"]),
            WaitKind::Idle
        );
        // A worker that is the master of others.
        assert_eq!(
            inside(&["clusterApply", "do.call", "workCommand"]),
            WaitKind::Pipe
        );
        assert_eq!(
            kind(&["readLines", "f", "do.call", "workCommand"]),
            WaitKind::Pipe
        );
    }
}
