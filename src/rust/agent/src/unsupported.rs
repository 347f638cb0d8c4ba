//! On other systems the thread ends at once, because R cannot be read there. This only has to compile.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct Waiting;

impl Waiting {
    pub fn to_read(_: &TcpStream) -> Waiting {
        Waiting
    }

    pub fn to_write(_: &TcpStream) -> Waiting {
        Waiting
    }
}

pub fn boot_time() -> Duration {
    Duration::ZERO
}

pub fn thread_time() -> u64 {
    0
}

pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}

pub fn wait(_: Option<Waiting>, longest: Duration) {
    thread::sleep(longest);
}

pub fn connect(_: &SocketAddr) -> io::Result<TcpStream> {
    Err(ErrorKind::Unsupported.into())
}

pub fn is_connected(_: &TcpStream) -> io::Result<bool> {
    Ok(false)
}
