//! Waits of processes that a test describes. The memory of arguments is that of this process.

use super::super::folder::{Entry, Scripted};
use super::*;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

struct Described {
    system: Scripted,
    folder: PathBuf,
    pid: i32,
}

impl Described {
    fn new(name: &str) -> Described {
        let pid = i32::try_from(std::process::id()).unwrap();
        let system = Scripted::new(name);
        let folder = system.add(&Entry {
            pid,
            command: "R",
            ..Entry::default()
        });
        Described {
            system,
            folder,
            pid,
        }
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn open(&self, number: i32, link: &str) {
        let path = self.folder.join(format!("fd/{number}"));
        let _ = fs::remove_file(&path);
        symlink(link, path).unwrap();
    }

    /// The wait in a call with these arguments, such as `network 127.0.0.1:5432`.
    fn in_call(&self, number: i64, arguments: [u64; 6]) -> String {
        let arguments: String = arguments.iter().map(|a| format!(" {a:#x}")).collect();
        self.wait(&format!("{number}{arguments} 0x7ffe0 0x7fff0\n"))
    }

    fn wait(&self, text: &str) -> String {
        self.write(&format!("task/{}/syscall", self.pid), text);
        // As of another process.
        let mut waits = Waits::new(self.pid, WaitNames::Full);
        waits.ends = Ends::reading(self.pid, WaitNames::Full, false);
        match waits.look(self.pid).unwrap() {
            Some(Wait { kind, name, .. }) => {
                let name = name.map_or(String::new(), |name| format!(" {name}"));
                format!("{}{name}", kind.name())
            }
            None => "none".to_owned(),
        }
    }
}

fn of_number(number: i32) -> [u64; 6] {
    [number as u64, 0, 0, 0, 0, 0]
}

#[test]
fn calls_with_a_descriptor_wait_for_what_it_refers_to() {
    let r = Described::new("waits-descriptors");
    r.write(
        "net/tcp",
        "sl local_address rem_address\n 1: 0100007F:E27C 0100007F:1538 01 0:0 00:0 0 0 0 52101 1\n \
         2: 00000000:1F40 00000000:0000 0A 0:0 00:0 0 0 0 52102 1\n",
    );
    r.write(
        "net/unix",
        "0: 2 0 0 1 3 31043\n0: 2 0 0 1 1 31044 /run/db.sock\n",
    );
    for (number, link) in [
        (3, "socket:[52101]"),
        (4, "socket:[52102]"),
        (5, "socket:[31043]"),
        (6, "socket:[31044]"),
        (7, "pipe:[1]"),
        (8, "/data/shop.sqlite"),
        (9, "/tmp/gone (deleted)"),
        (10, "anon_inode:[eventfd]"),
        (11, "socket:[1]"),
        (12, "anon_inode:inotify"),
    ] {
        r.open(number, link);
    }
    let read = |number| r.in_call(libc::SYS_read, of_number(number));
    assert_eq!(read(3), "network 127.0.0.1:5432");
    assert_eq!(
        r.in_call(libc::SYS_accept, of_number(4)),
        "network listening on 0.0.0.0:8000"
    );
    assert_eq!(read(5), "pipe");
    assert_eq!(
        r.in_call(libc::SYS_connect, of_number(6)),
        "pipe /run/db.sock"
    );
    assert_eq!(read(7), "pipe");
    assert_eq!(
        r.in_call(libc::SYS_fsync, of_number(8)),
        "file /data/shop.sqlite"
    );
    assert_eq!(
        r.in_call(libc::SYS_flock, of_number(8)),
        "lock /data/shop.sqlite"
    );
    assert_eq!(read(9), "file /tmp/gone (deleted)");
    assert_eq!(
        [read(10), read(12), read(99)],
        ["unknown", "unknown", "unknown"]
    );
    assert_eq!(read(11), "network");
    let lock = |command: i32| r.in_call(libc::SYS_fcntl, [8, command as u64, 0, 0, 0, 0]);
    assert_eq!(lock(libc::F_SETLKW), "lock /data/shop.sqlite");
    assert_eq!(lock(libc::F_GETFL), "unknown");
    // The network decides: other descriptors only wake the call.
    r.write(
        "fdinfo/13",
        "pos: 0\ntfd:        7 events: 1 data: 7\ntfd:        3 events: 1\ntfd: x\n",
    );
    assert_eq!(
        r.in_call(libc::SYS_epoll_pwait, of_number(13)),
        "network 127.0.0.1:5432"
    );
    assert_eq!(r.in_call(libc::SYS_epoll_pwait, of_number(14)), "unknown");
}

#[test]
fn calls_with_several_descriptors_have_them_in_memory() {
    let r = Described::new("waits-several");
    r.open(3, "pipe:[1]");
    r.open(4, "/dev/pts/0");
    r.open(5, "/data/b");
    let mut entries: Vec<[i32; 2]> = vec![[3, 1], [-1, 1], [4, 1]];
    let poll = |entries: &Vec<[i32; 2]>| {
        let address = entries.as_ptr() as u64;
        r.in_call(libc::SYS_ppoll, [address, entries.len() as u64, 0, 0, 0, 0])
    };
    assert_eq!(poll(&entries), "file /dev/pts/0");
    entries.extend([[5, 1], [5, 1], [77, 1]]);
    assert_eq!(poll(&entries), "file /dev/pts/0, /data/b");
    entries.truncate(2);
    assert_eq!(poll(&entries), "pipe");
    entries.clear();
    assert_eq!(poll(&entries), "sleep");
    let mut bits = [0_u64; 2];
    bits[0] |= 1 << 3;
    let select = |sets: [u64; 3], count| {
        r.in_call(libc::SYS_pselect6, [count, sets[0], sets[1], sets[2], 0, 0])
    };
    let set = bits.as_ptr() as u64;
    assert_eq!(select([set, 0, 0], 4), "pipe");
    assert_eq!(select([0, set, 0], 4), "pipe");
    assert_eq!(select([set, 0, 0], 3), "sleep");
    assert_eq!(select([0, 0, 0], 0), "sleep");
    // An address that cannot be read.
    assert_eq!(select([8, 0, 0], u64::MAX), "sleep");
}

#[test]
fn calls_without_a_descriptor() {
    let r = Described::new("waits-others");
    r.system.add(&Entry {
        pid: 77,
        command: "sleep 3",
        program: "/usr/bin/sleep",
        ..Entry::default()
    });
    r.system.add(&Entry {
        pid: 76,
        command: "sh -c",
        program: "/usr/bin/dash",
        children: "77",
        ..Entry::default()
    });
    r.system.add(&Entry {
        pid: 75,
        command: "sh -c",
        program: "/usr/bin/dash",
        children: "76 77",
        ..Entry::default()
    });
    let none = of_number(0);
    assert_eq!(r.in_call(libc::SYS_wait4, of_number(76)), "child sleep");
    assert_eq!(r.in_call(libc::SYS_wait4, of_number(75)), "child dash");
    assert_eq!(r.in_call(libc::SYS_clock_nanosleep, none), "sleep");
    assert_eq!(r.in_call(libc::SYS_futex, none), "lock");
    assert_eq!(r.in_call(libc::SYS_wait4, of_number(77)), "child sleep");
    assert_eq!(r.in_call(libc::SYS_wait4, of_number(-1)), "child");
    assert_eq!(
        r.in_call(libc::SYS_waitid, [libc::P_PID as u64, 77, 0, 0, 0, 0]),
        "child sleep"
    );
    assert_eq!(
        r.in_call(libc::SYS_waitid, [libc::P_ALL as u64, 77, 0, 0, 0, 0]),
        "child"
    );
    assert_eq!(r.in_call(libc::SYS_getpid, none), "unknown");
    assert_eq!(r.wait("running\n"), "none");
    assert_eq!(r.wait(""), "none");
    assert_eq!(r.wait("7 0x1"), "none");
    // In no call: asleep for another reason, or while a page is read.
    assert_eq!(r.wait("-1 0x7ffe0 0x7fff0\n"), "none");
    let stat = fs::read_to_string(r.folder.join("stat")).unwrap();
    r.write(
        &format!("task/{}/stat", r.pid),
        &stat.replace("(R) S", "(R) D"),
    );
    assert_eq!(r.wait("-1 0x7ffe0 0x7fff0\n"), "page fault");
    assert_eq!(Waits::new(1, WaitNames::Full).look(1).unwrap(), None);
}

#[test]
fn the_other_end_of_a_connection_or_pipe_may_be_a_process_of_the_recording() {
    let r = Described::new("waits-ends");
    r.write(
        "net/tcp",
        "sl local_address rem_address\n 1: 0100007F:E27C 0100007F:1538 01 0:0 00:0 0 0 0 52101 1\n \
         2: 0100007F:1538 0100007F:E27C 01 0:0 00:0 0 0 0 52102 1\n",
    );
    r.open(3, "socket:[52101]");
    r.open(4, "pipe:[61]");
    r.open(5, "pipe:[62]");
    for (pid, program) in [(77, "/usr/lib/R/bin/exec/R"), (78, "/usr/bin/curl")] {
        r.system.add(&Entry {
            pid,
            command: "x",
            program,
            ..Entry::default()
        });
    }
    let open = |pid: i32, number: i32, link: &str| {
        let path = r.system.path().join(format!("{pid}/fd/{number}"));
        symlink(link, path).unwrap();
    };
    open(77, 9, "socket:[52102]");
    open(78, 9, "pipe:[62]");
    let mut waits = Waits::new(r.pid, WaitNames::Short);
    waits.ends = Ends::reading(r.pid, WaitNames::Short, false);
    let read = |waits: &mut Waits, number: i32| {
        let text = format!(
            "{} {number:#x} 0x0 0x0 0x0 0x0 0x0 0x7ffe0 0x7fff0\n",
            libc::SYS_read
        );
        r.write(&format!("task/{}/syscall", r.pid), &text);
        waits.look(r.pid).unwrap().unwrap().name
    };
    assert_eq!(read(&mut waits, 3).unwrap(), "127.0.0.1:5432");
    assert_eq!(read(&mut waits, 5), None);
    // Now they belong to the recording, or to this process.
    waits.set_names(WaitNames::Short, &[r.pid, 77]).unwrap();
    r.write(&format!("task/{}/children", r.pid), "78");
    assert_eq!(read(&mut waits, 3).unwrap(), "process 77");
    assert_eq!(read(&mut waits, 4), None);
    assert_eq!(read(&mut waits, 5).unwrap(), "curl");
    // What was found is kept.
    r.system.remove(77);
    assert_eq!(read(&mut waits, 3).unwrap(), "process 77");
}

#[test]
fn a_call_that_may_not_be_seen_is_unknown() {
    let r = Described::new("waits-refused");
    assert!(is_refusal(&io::Error::from_raw_os_error(libc::EPERM)));
    assert!(is_refusal(&io::Error::from_raw_os_error(libc::EACCES)));
    assert!(!is_refusal(&io::Error::from_raw_os_error(libc::ENOENT)));
    let mut waits = Waits::new(r.pid, WaitNames::Full);
    waits.is_refused = true;
    r.write(&format!("task/{}/syscall", r.pid), "running");
    let wait = waits.look(r.pid).unwrap();
    assert_eq!(wait, Some(Wait::of(WaitKind::Unknown)));
    assert!(waits.are_refused());
}
