//! Requests that the thread sends itself, unencrypted. A connection is used for one request only, since there is only
//! one every few seconds.

use crate::http::Route;
use crate::http::exchange::Exchange;
use crate::http::finished::Finished;
use crate::http::resolve::Resolver;
use crate::http::url::Url;
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
    ) -> Result<()> {
        let deadline = Instant::now() + timeout;
        let deadline = end.map_or(deadline, |end| deadline.min(end));
        let exchange = Exchange::new(&self.endpoint, self.most, body, deadline)?;
        self.current = Some(exchange);
        Ok(())
    }

    fn step(&mut self, _: &Queue) -> Option<Finished> {
        let finished = self.current.as_mut()?.step(&mut self.resolver)?;
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
