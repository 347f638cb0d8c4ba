//! R processes that work for others, although they were not started by them.
//!
//! The workers of `parallel::makeCluster()`, of future's multisession and of mirai are started by a shell in the
//! background, so that their parent is the first process of the system. But their command lines contain the address of
//! the socket at which the process waits for them: `MASTER=localhost PORT=11122`, or the name of a local socket.
//!
//! A process that was started while it was recorded also has the recording's environment variable.
//!
//! A process that merely talks to another one, such as an R client of a server, is no worker: it does not have the address
//! on its command line.

use super::folder::{file, file_of};
use super::proc::Process;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::text::decode;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Shorter names of sockets may be part of a command line by chance.
const SHORTEST_NAME: usize = 8;
/// How long a process may take to become R, in seconds.
pub const STARTING: f64 = 5.0;
/// The time between two searches, at least and at most: a worker computes soon after it has started, and a search takes at
/// most a twentieth of the time.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
const SHARE: u32 = 20;
/// The protocols of addresses of mirai.
const PROTOCOLS: [&str; 6] = ["tcp", "tls+tcp", "ws", "wss", "ipc", "abstract"];

/// What shows that a process belongs to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It has the address of a socket of the process with this id.
    Address(i32),
    /// It has the environment variable.
    Variable,
}

/// The search for workers.
#[derive(Debug, Default)]
pub struct Workers {
    searched: Option<Instant>,
    /// How long the last search took.
    took: Duration,
    /// Whether all processes have been examined for the last time.
    are_settled: bool,
    /// The processes whose workers were searched.
    masters: Vec<Process>,
    /// Processes that need no further examination, in ascending order.
    seen: Vec<i32>,
    /// The sockets of each process when they were last read.
    sockets: Vec<(Process, Sockets)>,
}

impl Workers {
    /// The workers of these processes, and those with this environment variable, `NAME=VALUE`. Those that were found once
    /// may be missing.
    pub fn find(&mut self, of: &[Process], variable: Option<&str>) -> Result<Vec<(Process, Sign)>> {
        if of != self.masters {
            self.masters.clear();
            self.masters.try_extend_from(of.iter().cloned())?;
            self.seen.clear();
        }
        self.are_settled = false;
        if self.were_searched() {
            return Ok(Vec::new());
        }
        let begin = Instant::now();
        let found = self.search(of, variable);
        self.took = begin.elapsed();
        self.searched = Some(Instant::now());
        found
    }

    /// The same, now.
    fn search(&mut self, of: &[Process], variable: Option<&str>) -> Result<Vec<(Process, Sign)>> {
        let mut found = Vec::new();
        self.read_sockets(of)?;
        let sockets = &self.sockets;
        if variable.is_none() && sockets.iter().all(|(_, sockets)| sockets.are_none()) {
            self.are_settled = true;
            return Ok(found);
        }
        let uptime = fs::read_to_string(file("uptime")).unwrap_or_default();
        let uptime = uptime
            .split(' ')
            .next()
            .and_then(|seconds| seconds.parse().ok());
        let mut pids = numbers_in(&file(""))?;
        pids.sort_unstable();
        self.seen.retain(|pid| pids.binary_search(pid).is_ok());
        self.are_settled = true;
        for pid in pids {
            let Err(place) = self.seen.binary_search(&pid) else {
                continue;
            };
            let Ok(process) = Process::find(pid) else {
                continue;
            };
            let sign = if of.contains(&process) || pid as u32 == std::process::id() {
                None
            } else {
                sign_of(&process, sockets, variable)?
            };
            let has_r = sign.is_some() && process.has_r();
            // It may still become R, or its master may not wait yet.
            let is_starting =
                uptime.is_some_and(|uptime: f64| uptime - process.started() <= STARTING);
            if is_starting || sign.is_some() && !has_r {
                self.are_settled = false;
            } else {
                self.seen.try_push(pid)?;
                if let Some(moved) = self.seen.get_mut(place..) {
                    moved.rotate_right(1);
                }
            }
            if let (Some(sign), true) = (sign, has_r) {
                found.try_push((process, sign))?;
            }
        }
        Ok(found)
    }

    /// Examines this process again, which has executed another program.
    pub fn forget(&mut self, pid: i32) {
        self.seen.retain(|seen| *seen != pid);
        self.are_settled = false;
    }

    /// Whether a search may find more, although no process has been created since the last one.
    pub fn are_due(&self) -> bool {
        !self.are_settled && !self.were_searched()
    }

    /// Whether they were searched a moment ago.
    fn were_searched(&self) -> bool {
        let [least, most] = PAUSES;
        let pause = self.took.saturating_mul(SHARE).clamp(least, most);
        self.searched
            .is_some_and(|searched| searched.elapsed() < pause)
    }

    /// Reads the sockets of these processes. The system takes milliseconds for the table of all connections, so it is read
    /// only for a process that has other sockets than before.
    fn read_sockets(&mut self, of: &[Process]) -> Result<()> {
        self.sockets.retain(|(process, _)| of.contains(process));
        for process in of {
            let folder = file_of(process.pid, "");
            let inodes = inodes_of(&folder)?;
            let known = self.sockets.iter_mut().find(|(known, _)| known == process);
            match known {
                Some((_, sockets)) if sockets.inodes == inodes => {}
                Some((_, sockets)) => *sockets = Sockets::read(&folder, inodes)?,
                None => {
                    let sockets = Sockets::read(&folder, inodes)?;
                    self.sockets.try_push((process.clone(), sockets))?;
                }
            }
        }
        Ok(())
    }
}

/// What shows that a process works for others, which have these sockets, or belongs to the recording with this variable.
fn sign_of(
    process: &Process,
    sockets: &[(Process, Sockets)],
    variable: Option<&str>,
) -> Result<Option<Sign>> {
    let command = process.command()?;
    let is_master =
        |(of, sockets): &&(Process, Sockets)| process.is_later_than(of) && sockets.are_in(&command);
    if let Some((master, _)) = sockets.iter().find(is_master) {
        return Ok(Some(Sign::Address(master.pid)));
    }
    let has_variable = variable.is_some_and(|variable| process.has_variable(variable));
    Ok(has_variable.then_some(Sign::Variable))
}

/// The numbers of the sockets of the process with this folder.
fn inodes_of(folder: &Path) -> Result<Vec<u64>> {
    let mut inodes = Vec::new();
    for file in fs::read_dir(folder.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let target = fs::read_link(file.path()).unwrap_or_default();
        let inode = target.to_str().and_then(inode_of_socket);
        if let Some(inode) = inode {
            inodes.try_push(inode)?;
        }
    }
    Ok(inodes)
}

/// The addresses of the sockets of a process.
#[derive(Debug, Default)]
struct Sockets {
    inodes: Vec<u64>,
    ports: Vec<u16>,
    names: Vec<String>,
}

impl Sockets {
    /// The sockets with these numbers, of the process with this folder.
    fn read(folder: &Path, inodes: Vec<u64>) -> Result<Sockets> {
        let mut sockets = Sockets::default();
        if inodes.is_empty() {
            return Ok(sockets);
        }
        let table = |name| fs::read(folder.join("net").join(name)).unwrap_or_default();
        for table in [table("tcp"), table("tcp6")] {
            let table = decode(&table)?.text;
            for (port, inode) in table.lines().filter_map(tcp_socket) {
                if inodes.contains(&inode) && !sockets.ports.contains(&port) {
                    sockets.ports.try_push(port)?;
                }
            }
        }
        let table = table("unix");
        for (name, inode) in decode(&table)?.text.lines().filter_map(local_socket) {
            if inodes.contains(&inode) {
                sockets.names.try_push(owned(name)?)?;
            }
        }
        sockets.inodes = inodes;
        Ok(sockets)
    }

    fn are_none(&self) -> bool {
        self.ports.is_empty() && self.names.is_empty()
    }

    /// Whether one of their addresses is in a command line: a word `PORT=`, or an address with a protocol.
    fn are_in(&self, command: &str) -> bool {
        // R replaces blanks in code by `~+~`.
        let is_between = |c: char| c.is_whitespace() || "\"'(),;~\\".contains(c);
        command.split(is_between).any(|word| {
            let is_port = |text: &str| text.parse().is_ok_and(|port| self.ports.contains(&port));
            let parallel = word.strip_prefix("PORT=").is_some_and(is_port);
            let mirai = word.split_once("://").is_some_and(|(protocol, address)| {
                let port = address.rsplit_once(':').map_or("", |(_, port)| port);
                let has_name = self.names.iter().any(|name| name == address);
                PROTOCOLS.contains(&protocol) && (has_name || is_port(port.trim_end_matches('/')))
            });
            parallel || mirai
        })
    }
}

/// The names in a folder that are numbers.
fn numbers_in(folder: &Path) -> Result<Vec<i32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(number) = name.to_str().and_then(|name| name.parse().ok()) {
            numbers.try_push(number)?;
        }
    }
    Ok(numbers)
}

/// The number of a socket, from what a file descriptor refers to: "socket:[12345]".
fn inode_of_socket(target: &str) -> Option<u64> {
    target
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The port and the number of a socket, from a line of `/proc/PID/net/tcp`, see proc(5).
fn tcp_socket(line: &str) -> Option<(u16, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    Some((
        u16::from_str_radix(port, 16).ok()?,
        fields.nth(7)?.parse().ok()?,
    ))
}

/// The name and the number of a socket, from a line of `/proc/PID/net/unix`. Abstract names start with `@`.
fn local_socket(line: &str) -> Option<(&str, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let inode = fields.nth(6)?.parse().ok()?;
    let name = fields.next()?;
    let name = name.strip_prefix('@').unwrap_or(name);
    (name.len() >= SHORTEST_NAME).then_some((name, inode))
}

#[cfg(test)]
mod tests {
    use super::super::folder::{Entry, Scripted};
    use super::*;

    #[test]
    fn sockets_are_in_tables() {
        let tcp = "   1: 0100007F:2B72 0100007F:E27C 01 00000000:00000000 02:000004E7 00000000  1000        0 52101 2 0";
        assert_eq!(tcp_socket(tcp), Some((11122, 52101)));
        let tcp6 = "   0: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 7 1";
        assert_eq!(tcp_socket(tcp6), Some((8000, 7)));
        assert_eq!(
            tcp_socket("  sl  local_address rem_address   st tx_queue"),
            None
        );
        let local = "0000000000000000: 00000002 00000000 00010000 0001 01 31042 @mirai-7c1f0a";
        assert_eq!(local_socket(local), Some(("mirai-7c1f0a", 31042)));
        assert_eq!(local_socket("0: 2 0 0 1 3 31043"), None);
        assert_eq!(
            local_socket("Num       RefCount Protocol Flags    Type St Inode Path"),
            None
        );
        assert_eq!(inode_of_socket("socket:[52101]"), Some(52101));
        assert_eq!(inode_of_socket("/dev/null"), None);
    }

    #[test]
    fn a_worker_has_the_address_on_its_command_line() {
        let sockets = Sockets {
            ports: vec![11122],
            names: vec!["mirai-7c1f0a".into()],
            ..Sockets::default()
        };
        for (command, is_worker) in [
            ("R --args MASTER=localhost PORT=11122 OUT=/dev/null", true),
            ("R --args MASTER=localhost PORT=11122", true),
            ("R -e mirai::daemon(\"tcp://127.0.0.1:11122\")", true),
            ("R -e mirai::daemon(\"abstract://mirai-7c1f0a\")", true),
            ("R --args PORT=111223", false),
            ("R --args PORT=1112", false),
            ("R -e f(11122)", false),
            ("R -e for (i in 1:11122) f(i)", false),
            ("R -e get(\"http://127.0.0.1:11122/\")", false),
            (
                "R -e mirai::daemon(\"tcp://127.0.0.1:11122/\",~+~cleanup~+~=~+~TRUE)",
                true,
            ),
            ("R --file=client.R", false),
            ("", false),
        ] {
            assert_eq!(sockets.are_in(command), is_worker, "{command}");
        }
    }

    #[test]
    fn the_sockets_of_a_process_are_those_of_its_files() {
        let system = Scripted::new("sockets");
        let folder = system.add(&Entry {
            pid: 5,
            ports: &[11122],
            names: &["mirai-7c1f0a", "short"],
            ..Entry::default()
        });
        let mut tcp = fs::read_to_string(folder.join("net/tcp")).unwrap();
        tcp += "0: 0:2B73 0:0 0A 0:0 0:0 0 0 0 8 1\n";
        fs::write(folder.join("net/tcp"), tcp).unwrap();
        let inodes = inodes_of(&folder).unwrap();
        let sockets = Sockets::read(&folder, inodes).unwrap();
        assert_eq!(sockets.ports, [11122]);
        assert_eq!(sockets.names, ["mirai-7c1f0a"]);
    }

    fn found(workers: &mut Workers, of: &[Process], variable: Option<&str>) -> Vec<(i32, Sign)> {
        workers.searched = None;
        let found = workers.find(of, variable).unwrap().into_iter();
        found.map(|(process, sign)| (process.pid, sign)).collect()
    }

    #[test]
    fn workers_are_found_among_all_processes() {
        let system = Scripted::new("workers");
        let add = |pid, started, command, variables| {
            system.add(&Entry {
                pid,
                started,
                command,
                variables,
                ports: if pid == 10 { &[11122] } else { &[] },
                ..Entry::default()
            });
        };
        add(10, 100, "R", "");
        // It started before.
        add(9, 50, "R --args PORT=11122", "");
        add(11, 200, "R --args PORT=11122", "A=1\0RECORDING=x\0");
        add(12, 200, "R --file=a.R", "RECORDING=x\0");
        add(13, 200, "R --file=a.R", "RECORDING=xy\0NOT_RECORDING=x\0");
        let master = Process::find(10).unwrap();
        let mut workers = Workers::default();
        let address = (11, Sign::Address(10));
        let of = std::slice::from_ref(&master);
        assert_eq!(found(&mut workers, of, None), [address]);
        // Those that have been running for long are examined once.
        assert_eq!(found(&mut workers, of, None), []);
        let mut workers = Workers::default();
        let all = [address, (12, Sign::Variable)];
        assert_eq!(found(&mut workers, of, Some("RECORDING=x")), all);
        // An id that another process gets.
        system.remove(13);
        assert_eq!(found(&mut workers, of, Some("RECORDING=x")), []);
        add(13, 300, "R --file=b.R", "RECORDING=x\0");
        let again = [(13, Sign::Variable)];
        assert_eq!(found(&mut workers, of, Some("RECORDING=x")), again);
    }

    #[test]
    fn young_processes_are_examined_again() {
        let system = Scripted::new("young");
        fs::write(system.path().join("uptime"), "12.5 30.0\n").unwrap();
        let ticks = |seconds: u64| {
            // SAFETY: it has no preconditions.
            seconds * unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u64
        };
        let add = |pid, seconds, command| {
            system.add(&Entry {
                pid,
                started: ticks(seconds),
                command,
                ports: if pid == 10 { &[11122] } else { &[] },
                ..Entry::default()
            });
        };
        add(10, 1, "R");
        add(11, 2, "sh");
        add(12, 10, "sh");
        let master = [Process::find(10).unwrap()];
        let mut workers = Workers::default();
        assert_eq!(found(&mut workers, &master, None), []);
        add(11, 2, "R --args PORT=11122");
        add(12, 10, "R --args PORT=11122");
        let worker = (12, Sign::Address(10));
        assert_eq!(found(&mut workers, &master, None), [worker]);
    }
}
