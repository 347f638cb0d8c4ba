//! The folder `/proc`, in which the system describes processes. Tests put a folder with processes of their own in its place.

use profile_core::message;
use std::path::PathBuf;

/// A file of a process.
pub fn file_of(pid: i32, name: &str) -> PathBuf {
    file(&message!("{pid}/{name}"))
}

#[cfg(not(test))]
pub fn file(name: &str) -> PathBuf {
    PathBuf::from(message!("/proc/{name}"))
}

#[cfg(test)]
pub use scripted::{EXECUTES, Entry, Scripted, file};

#[cfg(test)]
mod scripted {
    use std::cell::RefCell;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    thread_local! {
        static FOLDER: RefCell<PathBuf> = RefCell::new(PathBuf::from("/proc"));
    }

    pub fn file(name: &str) -> PathBuf {
        FOLDER.with_borrow(|folder| folder.join(name))
    }

    /// A folder with processes that a test describes. This thread sees no others as long as it exists.
    pub struct Scripted(PathBuf);

    /// Instead of the start of a program that is just being executed.
    pub const EXECUTES: u64 = u64::MAX;

    /// A process in this folder.
    #[derive(Default)]
    pub struct Entry<'a> {
        pub pid: i32,
        pub started: u64,
        /// Its arguments, with blanks between them.
        pub command: &'a str,
        /// Its program, if this process may see that, and the kernel's short name of it.
        pub program: &'a str,
        pub short_name: &'a str,
        /// Its variables, each followed by a 0.
        pub variables: &'a str,
        pub children: &'a str,
        /// Whether it has executed no program since it was forked.
        pub is_fork: bool,
        /// Where the code of its program begins, 4096 if this is 0; `EXECUTES` while it executes it.
        pub execution: u64,
        /// The ports of its sockets, and the names of local ones.
        pub ports: &'a [u16],
        pub names: &'a [&'a str],
    }

    impl Scripted {
        pub fn new(name: &str) -> Scripted {
            let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            FOLDER.set(folder.clone());
            Scripted(folder)
        }

        pub fn add(&self, entry: &Entry) -> PathBuf {
            let pid = entry.pid;
            let folder = self.0.join(pid.to_string());
            let write = |name: &str, text: &str| {
                let file = folder.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            };
            let flags = if entry.is_fork { 0x40 } else { 0 };
            let before = "1 1 1 0 -1";
            let between = "0 0 0 0 0 0 0 0 20 0 1 0";
            let code = match entry.execution {
                0 => 4096,
                EXECUTES => 0,
                code => code,
            };
            let after = "0 ".repeat(37);
            let started = entry.started;
            let line =
                format!("{pid} (R) S {before} {flags} {between} {started} 0 0 0 {code} {after}");
            write("stat", &line);
            write("cmdline", &entry.command.replace(' ', "\0"));
            write("comm", &format!("{}\n", entry.short_name));
            write("environ", entry.variables);
            if !entry.program.is_empty() {
                symlink(entry.program, folder.join("exe")).unwrap();
            }
            write(&format!("task/{pid}/children"), entry.children);
            // R's library, but not its start, where the memory of the process would be read.
            let file = if entry.command.starts_with('R') {
                "/usr/lib/R/lib/libR.so"
            } else {
                "/bin/program"
            };
            write("maps", &format!("1000-2000 r-xp 00001000 00:00 1 {file}\n"));
            let ports = entry.ports.iter().map(|port| {
                let inode = u32::from(*port);
                format!("0: 0:{port:04X} 0:0 0A 0:0 0:0 0 0 0 {inode} 1\n")
            });
            write("net/tcp", &ports.collect::<String>());
            let names = (1..).zip(entry.names);
            let lines = names.map(|(inode, name)| format!("0: 2 0 10000 1 1 {inode} @{name}\n"));
            write("net/unix", &lines.collect::<String>());
            write("fd/0", "");
            let sockets = entry.ports.iter().map(|port| u32::from(*port));
            let sockets = sockets.chain(1..=entry.names.len() as u32);
            for (number, inode) in (3..).zip(sockets) {
                let link = folder.join(format!("fd/{number}"));
                let _ = fs::remove_file(&link);
                symlink(format!("socket:[{inode}]"), link).unwrap();
            }
            folder
        }

        pub fn remove(&self, pid: i32) {
            fs::remove_dir_all(self.0.join(pid.to_string())).unwrap();
        }

        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Scripted {
        fn drop(&mut self) {
            FOLDER.set(PathBuf::from("/proc"));
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
