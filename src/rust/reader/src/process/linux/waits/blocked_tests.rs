//! Threads that are blocked in known calls: one reading of each has the class and the name, both as another process would
//! read it and as the agent of this process does.

use super::*;
use crate::process::linux::caller;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::mem::zeroed;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The longest time until a thread is blocked.
const LONGEST: Duration = Duration::from_secs(60);

/// Blocks a thread in `wait`, which `release` ends, and reads it with these names, such as `network 127.0.0.1:80`.
fn read_with(
    names: WaitNames,
    wait: impl FnOnce() + Send,
    release: impl FnOnce(),
    is_done: impl Fn(&str) -> bool,
) -> Vec<String> {
    let pid = std::process::id() as i32;
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            sender.send(caller::id()).unwrap();
            wait();
        });
        let thread = receiver.recv().unwrap();
        let mut found = Vec::new();
        for is_own in [false, true] {
            let begin = Instant::now();
            found.push(loop {
                // Nothing is kept: a child that another test is just starting may still have copies of descriptors.
                let mut waits = Waits::new(pid, names);
                waits.ends = Ends::reading(pid, names, is_own);
                let text = match waits.look(thread).unwrap() {
                    Some(Wait { kind, name, .. }) => {
                        let name = name.map_or(String::new(), |name| format!(" {name}"));
                        format!("{}{name}", kind.name())
                    }
                    None => "none".to_owned(),
                };
                if is_done(&text) || begin.elapsed() > LONGEST {
                    break text;
                }
                thread::yield_now();
            });
        }
        release();
        found
    })
}

/// The reading of a thread that is blocked is to be this one.
fn check(expected: &str, wait: impl FnOnce() + Send, release: impl FnOnce()) {
    let found = read_with(WaitNames::Short, wait, release, |text| text == expected);
    assert_eq!(found, [expected; 2]);
}

/// A folder for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits for one byte, or until the other end is closed.
fn read(mut from: impl Read) {
    let _ = from.read(&mut [0]);
}

#[test]
fn connections_have_the_address_of_the_other_end() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listener = match TcpListener::bind(address) {
            Ok(listener) => listener,
            // A machine without the version.
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => continue,
            Err(error) => panic!("{error}"),
        };
        let server = listener.local_addr().unwrap();
        let client = TcpStream::connect(server).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        check(
            &format!("network {server}"),
            || read(&client),
            || {
                (&accepted).write_all(b"x").unwrap();
            },
        );
        let again = || drop(TcpStream::connect(server).unwrap());
        let accept = || drop(listener.accept().unwrap());
        check(&format!("network listening on {server}"), accept, again);
    }
}

#[test]
fn a_datagram_is_from_the_network() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (own, peer) = (
        socket.local_addr().unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    socket.connect(peer.local_addr().unwrap()).unwrap();
    let name = format!("network {}", peer.local_addr().unwrap());
    let receive = || assert_eq!(socket.recv(&mut [0]).unwrap(), 1);
    check(&name, receive, || {
        assert_eq!(peer.send_to(b"x", own).unwrap(), 1)
    });
}

#[test]
fn local_sockets_are_pipes() {
    let folder = Folder::new("waits-local");
    let path = folder.0.join("db.sock");
    let (one, other) = UnixStream::pair().unwrap();
    check("pipe", || read(&one), || (&other).write_all(b"x").unwrap());
    let listener = UnixListener::bind(&path).unwrap();
    let client = UnixStream::connect(&path).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    // The socket that listens has the path, and so has its end of a connection.
    let name = format!("pipe {}", path.display());
    let connect = || drop(UnixStream::connect(&path).unwrap());
    check(&name, || drop(listener.accept().unwrap()), connect);
    // The kernel tells this process the path of the other end, and another process nothing about it.
    let found = read_with(
        WaitNames::Short,
        || read(&client),
        || (&accepted).write_all(b"x").unwrap(),
        |text| text.starts_with("pipe"),
    );
    assert_eq!(found, ["pipe".to_owned(), name]);
}

fn pipe() -> (File, File) {
    use std::os::fd::FromRawFd;
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the kernel writes two descriptors, which nothing else owns.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

#[test]
fn pipes_are_waited_for_in_several_calls() {
    let (read_end, write_end) = pipe();
    let write = || assert_eq!((&write_end).write(b"x").unwrap(), 1);
    check("pipe", || read(&read_end), write);
    let poll = |count: usize, time: i32| {
        let mut entry = libc::pollfd {
            fd: read_end.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: there is one struct.
        unsafe { libc::poll(&raw mut entry, count as libc::nfds_t, time) };
    };
    check("pipe", || poll(1, -1), write);
    // Without descriptors it sleeps, here until the time is over.
    check("sleep", || poll(0, 2000), || ());
    read(&read_end);
    let select = || {
        // SAFETY: the set is initialized, and has room for this descriptor, which is small.
        unsafe {
            let mut set: libc::fd_set = zeroed();
            assert!(read_end.as_raw_fd() < libc::FD_SETSIZE as RawFd);
            libc::FD_SET(read_end.as_raw_fd(), &raw mut set);
            let (none, forever) = (std::ptr::null_mut(), std::ptr::null_mut());
            libc::select(read_end.as_raw_fd() + 1, &raw mut set, none, none, forever);
        }
    };
    check("pipe", select, write);
}

#[test]
fn locks_of_files_have_the_name_of_the_file_and_deleted_ones_say_so() {
    let folder = Folder::new("waits-lock");
    let path = folder.0.join("shop.sqlite");
    let holder = File::create(&path).unwrap();
    let other = File::open(&path).unwrap();
    let lock = |file: &File, how| {
        // SAFETY: it has no preconditions.
        assert_eq!(unsafe { libc::flock(file.as_raw_fd(), how) }, 0);
    };
    let wait = || lock(&other, libc::LOCK_EX);
    lock(&holder, libc::LOCK_EX);
    check("lock shop.sqlite", wait, || lock(&holder, libc::LOCK_UN));
    lock(&other, libc::LOCK_UN);
    lock(&holder, libc::LOCK_EX);
    std::fs::remove_file(&path).unwrap();
    let release = || lock(&holder, libc::LOCK_UN);
    check("lock shop.sqlite (deleted)", wait, release);
}

#[test]
fn a_pipe_with_a_name_is_a_file() {
    let folder = Folder::new("waits-fifo");
    let path = folder.0.join("queue");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path ends with a 0.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let both = File::options().read(true).write(true).open(&path).unwrap();
    check(
        "file queue",
        || read(&both),
        || (&both).write_all(b"x").unwrap(),
    );
    // Opening it waits for the other end.
    drop(both);
    let wait = || drop(File::open(&path).unwrap());
    let release = || drop(File::options().write(true).open(&path).unwrap());
    check("file", wait, release);
}

fn sleeping_child() -> Child {
    let mut sleep = Command::new("sleep");
    sleep.arg("1000").stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn children_are_named_by_their_programs() {
    let mut child = sleeping_child();
    let pid = child.id() as i32;
    let wait = || {
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    };
    let kill = || {
        // SAFETY: it has no preconditions.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    };
    check("child sleep", wait, kill);
    let _ = child.wait();
}

#[test]
fn the_output_of_a_child_is_a_pipe_with_its_name() {
    let mut sleep = Command::new("sleep");
    let mut child = sleep.arg("1000").stdout(Stdio::piped()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    check("pipe sleep", || read(output), || child.kill().unwrap());
    let _ = child.wait();
}

#[test]
fn a_futex_is_for_other_threads_and_clocks_are_sleep() {
    let mutex = std::sync::Mutex::new(());
    let guard = mutex.lock().unwrap();
    check("lock", || drop(mutex.lock().unwrap()), || drop(guard));
    let is_over = AtomicBool::new(false);
    let sleep = || {
        while !is_over.load(Ordering::Acquire) {
            thread::sleep(Duration::from_secs(1));
        }
    };
    check("sleep", sleep, || is_over.store(true, Ordering::Release));
}

#[test]
fn classes_have_no_names() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let found = read_with(
        WaitNames::None,
        || drop(listener.accept().unwrap()),
        || drop(TcpStream::connect(server).unwrap()),
        |text| text == "network",
    );
    assert_eq!(found, ["network"; 2]);
    let mut child = sleeping_child();
    let pid = child.id() as i32;
    let wait = || {
        // SAFETY: no status is asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    };
    let found = read_with(
        WaitNames::None,
        wait,
        || child.kill().unwrap(),
        |text| text == "child",
    );
    assert_eq!(found, ["child"; 2]);
    let _ = child.wait();
}

#[test]
fn a_process_that_is_not_dumpable_may_not_see_its_own_call() {
    // SAFETY: the child calls only this crate, whose allocations glibc permits after a fork, and ends without destructors.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            // The files of such a process belong to root, who may read them.
            if libc::geteuid() == 0 && libc::setuid(65534) != 0 {
                libc::_exit(2);
            }
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            let own = libc::getpid();
            let mut waits = Waits::new(own, WaitNames::Short);
            let unknown = Some(Wait::of(WaitKind::Unknown));
            let is_refused =
                waits.look(own).is_ok_and(|wait| wait == unknown) && waits.are_refused();
            libc::_exit(libc::c_int::from(!is_refused));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    assert!(libc::WIFEXITED(status));
    assert_eq!(libc::WEXITSTATUS(status), 0);
}
