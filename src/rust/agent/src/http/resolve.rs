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

pub(super) type Found = Result<Vec<SocketAddr>, String>;

pub struct Resolver {
    host: String,
    port: u16,
    known: Option<(Vec<SocketAddr>, Instant)>,
    pending: Option<Receiver<Found>>,
    lookup: Lookup,
}

/// Starts to look up a host name and port. `None` if there is not enough memory.
pub(super) type Lookup = Box<dyn Fn(&str, u16) -> Option<Receiver<Found>>>;

impl Resolver {
    pub fn new(url: &Url) -> Resolver {
        Resolver::with(Box::new(look_up), url)
    }

    pub(super) fn with(lookup: Lookup, url: &Url) -> Resolver {
        Resolver {
            host: message!("{}", url.host),
            port: url.port,
            known: None,
            pending: None,
            lookup,
        }
    }

    /// The addresses, or the reason for the failure; `None` if the result is still pending.
    pub fn addresses(&mut self, now: Instant) -> Option<Found> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Some(list([SocketAddr::new(address, self.port)].into_iter()));
        }
        if let Some((addresses, since)) = &self.known {
            if now.saturating_duration_since(*since) < FRESH {
                return Some(list(addresses.iter().copied()));
            }
        }
        let Some(pending) = &self.pending else {
            self.pending = (self.lookup)(&self.host, self.port);
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
            self.known = addresses.map(|addresses| (addresses, now));
        }
        Some(found)
    }

    /// Clears the cached addresses.
    pub fn forget(&mut self) {
        self.known = None;
    }
}

fn list(addresses: impl Iterator<Item = SocketAddr>) -> Found {
    let addresses = addresses.try_vec();
    addresses.map_err(|error| message!("{error}"))
}

/// Counts a running thread until it is dropped.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

fn look_up(host: &str, port: u16) -> Option<Receiver<Found>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Shared, beginning, seconds};
    use std::sync::mpsc::Sender;

    /// A resolver of `example.org:4318`, and the name servers that it asks, which answer when the test says so.
    fn resolver() -> (Resolver, Shared<Vec<Sender<Found>>>) {
        let asked = Shared::<Vec<Sender<Found>>>::default();
        let servers = asked.clone();
        let lookup = move |host: &str, port: u16| {
            assert_eq!((host, port), ("example.org", 4318));
            let (sender, receiver) = channel();
            servers.borrow_mut().push(sender);
            Some(receiver)
        };
        let url = Url::parse("http://example.org:4318/").unwrap();
        (Resolver::with(Box::new(lookup), &url), asked)
    }

    fn address(last: u8) -> Vec<SocketAddr> {
        vec![SocketAddr::from(([127, 0, 0, last], 4318))]
    }

    #[test]
    fn there_is_one_lookup_at_a_time_and_its_result_is_kept_for_a_minute() {
        let (mut resolver, asked) = resolver();
        let now = beginning().instant;
        // Another request waits for the same lookup.
        for time in [0.0, 1.0, 50.0] {
            assert_eq!(resolver.addresses(now + seconds(time)), None);
        }
        assert_eq!(asked.borrow().len(), 1);
        asked.borrow()[0].send(Ok(address(1))).unwrap();
        for time in [50.0, 109.9] {
            assert_eq!(
                resolver.addresses(now + seconds(time)),
                Some(Ok(address(1)))
            );
        }
        assert_eq!(asked.borrow().len(), 1);
        assert_eq!(resolver.addresses(now + seconds(110.0)), None);
        assert_eq!(asked.borrow().len(), 2);
        asked.borrow()[1].send(Ok(address(2))).unwrap();
        assert_eq!(
            resolver.addresses(now + seconds(110.0)),
            Some(Ok(address(2)))
        );
        // The address may have changed.
        resolver.forget();
        assert_eq!(resolver.addresses(now + seconds(111.0)), None);
        assert_eq!(asked.borrow().len(), 3);
    }

    #[test]
    fn a_failure_is_not_kept() {
        let (mut resolver, asked) = resolver();
        let now = beginning().instant;
        assert_eq!(resolver.addresses(now), None);
        asked.borrow()[0].send(Err("no such host".into())).unwrap();
        assert_eq!(resolver.addresses(now), Some(Err("no such host".into())));
        assert_eq!(resolver.addresses(now), None);
        assert_eq!(asked.borrow().len(), 2);
        // The thread ends without an answer.
        asked.borrow_mut().clear();
        let missing = "its address was not found".into();
        assert_eq!(resolver.addresses(now), Some(Err(missing)));
        assert_eq!(resolver.addresses(now), None);
        // There is no thread.
        let url = Url::parse("http://example.org/").unwrap();
        let mut resolver = Resolver::with(Box::new(|_, _| None), &url);
        let why = "not enough memory for a thread".into();
        assert_eq!(resolver.addresses(now), Some(Err(why)));
    }

    #[test]
    fn addresses_need_no_lookup() {
        let now = beginning().instant;
        for (url, address) in [
            ("http://127.0.0.1:81", "127.0.0.1:81"),
            ("http://[::1]:82", "[::1]:82"),
        ] {
            let mut resolver = Resolver::with(Box::new(|_, _| None), &Url::parse(url).unwrap());
            let found = resolver.addresses(now).unwrap().unwrap();
            assert_eq!(found, [address.parse().unwrap()]);
        }
    }

    #[test]
    fn names_are_looked_up_in_a_thread() {
        let found = look_up("localhost", 81).unwrap().recv().unwrap().unwrap();
        assert!(
            found
                .iter()
                .all(|address| address.port() == 81 && address.ip().is_loopback())
        );
        assert!(!found.is_empty());
        // A name with a space is none, without asking a server.
        assert!(look_up("a b", 81).unwrap().recv().unwrap().is_err());
        // Their threads end, and until then the code of this library is in use.
        let running = Running;
        RUNNING.fetch_add(1, Ordering::AcqRel);
        assert!(is_resolving());
        drop(running);
        while is_resolving() {
            thread::yield_now();
        }
    }
}
