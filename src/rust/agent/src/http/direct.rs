//! Requests that the thread sends itself, unencrypted. A connection is used for one request only, since there is only
//! one every few seconds.

use crate::http::Route;
use crate::http::exchange::Exchange;
use crate::http::finished::Finished;
use crate::http::resolve::Resolver;
use crate::http::url::Url;
use crate::now::Now;
use crate::queue::Queue;
use crate::system::Waiting;
use profile_core::error::Result;
use profile_core::retry::Outcome;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub struct Endpoint {
    pub url: Url,
    /// Complete header lines, except those that depend on the URL and the body.
    pub headers: Vec<u8>,
}

pub struct Direct {
    endpoint: Endpoint,
    most: usize,
    resolver: Resolver,
    current: Option<Exchange>,
}

impl Direct {
    pub fn new(endpoint: Endpoint, most: usize) -> Direct {
        Direct {
            resolver: Resolver::new(&endpoint.url),
            endpoint,
            most,
            current: None,
        }
    }
}

impl Route for Direct {
    fn begin(
        &mut self,
        body: &Arc<Vec<u8>>,
        timeout: Duration,
        end: Option<Instant>,
        now: Now,
    ) -> Result<()> {
        let deadline = now.instant + timeout;
        let deadline = end.map_or(deadline, |end| deadline.min(end));
        let exchange = Exchange::new(&self.endpoint, self.most, body, deadline)?;
        self.current = Some(exchange);
        Ok(())
    }

    fn step(&mut self, _: &Queue, now: Now) -> Option<Finished> {
        let current = self.current.as_mut()?;
        let finished = current.step(&mut self.resolver, now.instant)?;
        self.current = None;
        if finished.outcome == Outcome::NotSent {
            // The address of the server may have changed.
            self.resolver.forget();
        }
        Some(finished)
    }

    fn waiting(&self) -> Option<Waiting> {
        self.current.as_ref()?.waiting()
    }

    fn hurry(&mut self, deadline: Instant) {
        if let Some(exchange) = &mut self.current {
            exchange.hurry(deadline);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use crate::script::{Shared, beginning, seconds};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::mpsc::channel;

    #[test]
    fn a_request_ends_at_the_earlier_deadline_and_the_name_is_looked_up_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: Shared<SocketAddr> =
            std::rc::Rc::new(std::cell::RefCell::new(closed.local_addr().unwrap()));
        drop(closed);
        let found = address.clone();
        let lookup = move |_: &str, _| {
            let (sender, receiver) = channel();
            sender.send(Ok(vec![*found.borrow()])).unwrap();
            Some(receiver)
        };
        let endpoint = Endpoint {
            url: Url::parse("http://example.org/").unwrap(),
            headers: Vec::new(),
        };
        let mut direct = Direct {
            resolver: Resolver::with(Box::new(lookup), &endpoint.url),
            endpoint,
            most: 100,
            current: None,
        };
        let (now, queue, body) = (beginning(), Queue::new(100), Arc::new(b"body".to_vec()));
        assert!(direct.step(&queue, now).is_none() && direct.waiting().is_none());
        direct.hurry(now.instant);
        direct.begin(&body, seconds(9.0), None, now).unwrap();
        // The limit is for what never happens.
        let finished = (0..3000).find_map(|_| {
            crate::system::wait(direct.waiting(), seconds(0.1));
            direct.step(&queue, now)
        });
        assert_eq!(finished.unwrap().outcome, Outcome::NotSent);
        // The address has changed.
        *address.borrow_mut() = listener.local_addr().unwrap();
        for (end, timeout) in [(None, 9.0), (Some(4.0), 4.0), (Some(20.0), 9.0)] {
            let end = end.map(|end| now.instant + seconds(end));
            direct.begin(&body, seconds(9.0), end, now).unwrap();
            assert!(direct.step(&queue, now).is_none());
            // Accepted by the kernel, and not answered.
            assert!(direct.step(&queue, now.after(timeout - 0.001)).is_none());
            assert!(direct.step(&queue, now.after(timeout)).is_some());
            assert!(direct.step(&queue, now.after(100.0)).is_none());
        }
        direct.begin(&body, seconds(9.0), None, now).unwrap();
        direct.hurry(now.instant + seconds(1.0));
        assert!(direct.step(&queue, now.after(0.9)).is_none());
        assert!(direct.step(&queue, now.after(1.0)).is_some());
        assert!(direct.waiting().is_none());
    }
}
