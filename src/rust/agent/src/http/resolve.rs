//! Resolves the host name of a server to its addresses.
//!
//! The system's resolver function blocks until a name server answers, and cannot be cancelled. It therefore runs in a
//! separate thread, at most one at a time. A request that has waited too long fails, and the next request waits for
//! the same thread.

use crate::http::url::Url;
use profile_core::limits::memory::TryCollect;
use profile_core::message;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long addresses are cached.
const FRESH: Duration = Duration::from_secs(60);

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread is waiting for a name server.
pub fn is_resolving() -> bool {
    RUNNING.load(Ordering::Acquire) > 0
}

type Found = Result<Vec<SocketAddr>, String>;

pub struct Resolver {
    host: String,
    port: u16,
    known: Option<(Vec<SocketAddr>, Instant)>,
    pending: Option<Receiver<Found>>,
}

impl Resolver {
    pub fn new(url: &Url) -> Resolver {
        Resolver {
            host: message!("{}", url.host),
            port: url.port,
            known: None,
            pending: None,
        }
    }

    /// The addresses, or the reason for the failure; `None` if the result is still pending.
    pub fn addresses(&mut self) -> Option<Found> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Some(list([SocketAddr::new(address, self.port)].into_iter()));
        }
        if let Some((addresses, since)) = &self.known {
            if since.elapsed() < FRESH {
                return Some(list(addresses.iter().copied()));
            }
        }
        let Some(pending) = &self.pending else {
            self.pending = start(&self.host, self.port);
            return match self.pending {
                Some(_) => None,
                None => Some(Err(message!("not enough memory for a thread"))),
            };
        };
        let found = match pending.try_recv() {
            Ok(found) => found,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(message!("its address was not found")),
        };
        self.pending = None;
        if let Ok(addresses) = &found {
            let addresses = list(addresses.iter().copied()).ok();
            self.known = addresses.map(|addresses| (addresses, Instant::now()));
        }
        Some(found)
    }

    /// Clears the cached addresses.
    pub fn forget(&mut self) {
        self.known = None;
    }
}

fn list(addresses: impl Iterator<Item = SocketAddr>) -> Found {
    let addresses = addresses.try_vec("the addresses of a server");
    addresses.map_err(|error| message!("{error}"))
}

/// Counts a running thread until it is dropped.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

fn start(host: &str, port: u16) -> Option<Receiver<Found>> {
    let (sender, receiver) = channel();
    let host = message!("{host}");
    RUNNING.fetch_add(1, Ordering::AcqRel);
    let running = Running;
    let named = thread::Builder::new().name(message!("profile-resolve"));
    // It inherits the blocked signals of this thread.
    let thread = named.spawn(move || {
        let found = match (host.as_str(), port).to_socket_addrs() {
            Ok(addresses) => list(addresses),
            Err(error) => Err(message!("{error}")),
        };
        let _ = sender.send(found);
        drop(sender);
        drop(host);
        drop(running);
    });
    thread.is_ok().then_some(receiver)
}
