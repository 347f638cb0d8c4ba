//! A request and its response, as a state machine. No step blocks.

use crate::http::direct::Endpoint;
use crate::http::finished::Finished;
use crate::http::resolve::Resolver;
use crate::http::response::{Progress, Response};
use crate::system::{self, Waiting};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, written};
use profile_core::message;
use profile_core::retry::Outcome;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The minimum time for each address of a host name.
const ADDRESS: Duration = Duration::from_secs(1);

pub struct Exchange {
    shown: String,
    head: Vec<u8>,
    body: Arc<Vec<u8>>,
    /// The maximum size of the response body, in bytes.
    most: usize,
    state: State,
    deadline: Instant,
    /// The reason to report if the request fails in the current state.
    why: String,
}

enum State {
    Resolving,
    Connecting {
        stream: TcpStream,
        /// When to try the next address.
        until: Instant,
        others: Vec<SocketAddr>,
    },
    Sending {
        stream: Stream,
        sent: usize,
    },
    Reading {
        stream: Stream,
        response: Response,
    },
}

enum Next {
    /// Another step is possible.
    Go(State),
    Wait(State),
    End(Finished),
}

/// A connection that is shut down when it is dropped, even if a forked process has inherited its file descriptor.
struct Stream(TcpStream);

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Exchange {
    pub fn new(
        endpoint: &Endpoint,
        most: usize,
        body: &Arc<Vec<u8>>,
        deadline: Instant,
    ) -> Result<Exchange> {
        let url = &endpoint.url;
        let mut head = written(format_args!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n",
            url.target, url.authority
        ))?
        .into_bytes();
        if let Some(value) = &url.authorization {
            // A header set by the user takes precedence over the credentials in the URL.
            const NAME: &[u8] = b"authorization:";
            let mut lines = endpoint.headers.split(|&byte| byte == b'\n');
            let is_it = |line: &[u8]| {
                let start = line.get(..NAME.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(NAME))
            };
            if !lines.any(is_it) {
                let line = written(format_args!("Authorization: {value}\r\n"))?;
                head.try_extend(line.as_bytes())?;
            }
        }
        head.try_extend(&endpoint.headers)?;
        let length = body.len();
        let last = message!("Content-Length: {length}\r\nConnection: close\r\n\r\n");
        head.try_extend(last.as_bytes())?;
        Ok(Exchange {
            shown: message!("{}", url.shown),
            head,
            body: Arc::clone(body),
            most,
            state: State::Resolving,
            deadline,
            why: String::new(),
        })
    }

    /// Brings the deadline forward, if this one is earlier.
    pub fn hurry(&mut self, deadline: Instant) {
        self.deadline = self.deadline.min(deadline);
    }

    /// What the next step waits for. While a name is being resolved there is nothing to wait for except time.
    pub fn waiting(&self) -> Option<Waiting> {
        match &self.state {
            State::Resolving => None,
            State::Connecting { stream, .. } => Some(Waiting::to_write(stream)),
            State::Sending { stream, .. } => Some(Waiting::to_write(&stream.0)),
            State::Reading { stream, .. } => Some(Waiting::to_read(&stream.0)),
        }
    }

    /// Does everything that is possible without blocking.
    pub fn step(&mut self, resolver: &mut Resolver, now: Instant) -> Option<Finished> {
        loop {
            let next = match std::mem::replace(&mut self.state, State::Resolving) {
                State::Resolving => self.resolve(resolver, now),
                State::Connecting {
                    stream,
                    until,
                    others,
                } => self.connected(stream, until, others, now),
                State::Sending { stream, sent } => self.send(stream, sent),
                State::Reading { stream, response } => self.read(stream, response),
            };
            match next {
                Next::Go(state) => self.state = state,
                Next::Wait(state) => {
                    self.state = state;
                    return match now < self.deadline {
                        true => None,
                        false => Some(self.late()),
                    };
                }
                Next::End(finished) => return Some(finished),
            }
        }
    }

    fn resolve(&mut self, resolver: &mut Resolver, now: Instant) -> Next {
        match resolver.addresses(now) {
            None => {
                self.why = message!("its address was not found in time");
                Next::Wait(State::Resolving)
            }
            Some(Ok(addresses)) => self.connect(addresses, now),
            Some(Err(why)) => Next::End(self.end(Outcome::NotSent, why)),
        }
    }

    /// Connects to the first address, or to the next one after an error.
    fn connect(&mut self, mut others: Vec<SocketAddr>, now: Instant) -> Next {
        while !others.is_empty() {
            let count = u32::try_from(others.len()).unwrap_or(u32::MAX);
            let address = others.remove(0);
            let left = self.deadline.saturating_duration_since(now);
            match system::connect(&address) {
                Ok(stream) => {
                    self.why = message!("connecting took too long");
                    let until = now + (left / count).max(ADDRESS);
                    return Next::Wait(State::Connecting {
                        stream,
                        until,
                        others,
                    });
                }
                Err(error) => self.why = message!("{error}"),
            }
        }
        Next::End(self.end(Outcome::NotSent, message!("{}", self.why)))
    }

    fn connected(
        &mut self,
        stream: TcpStream,
        until: Instant,
        others: Vec<SocketAddr>,
        now: Instant,
    ) -> Next {
        match system::is_connected(&stream) {
            Ok(true) => {
                self.why = message!("sending took too long");
                Next::Go(State::Sending {
                    stream: Stream(stream),
                    sent: 0,
                })
            }
            Ok(false) if now < until || others.is_empty() => Next::Wait(State::Connecting {
                stream,
                until,
                others,
            }),
            Ok(false) => self.connect(others, now),
            Err(error) => {
                self.why = message!("{error}");
                self.connect(others, now)
            }
        }
    }

    fn send(&mut self, mut stream: Stream, mut sent: usize) -> Next {
        loop {
            let rest = match self.head.get(sent..) {
                Some(rest) if !rest.is_empty() => rest,
                _ => {
                    let sent = sent - self.head.len();
                    self.body.get(sent..).unwrap_or_default()
                }
            };
            if rest.is_empty() {
                self.why.clear();
                let response = Response::default();
                return Next::Go(State::Reading { stream, response });
            }
            match stream.0.write(rest) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Next::Wait(State::Sending { stream, sent });
                }
                // The server may have answered before reading everything, for example because the body is too large.
                Err(error) => {
                    self.why = message!("{error}");
                    let response = Response::default();
                    return Next::Go(State::Reading { stream, response });
                }
            }
        }
    }

    fn read(&mut self, mut stream: Stream, mut response: Response) -> Next {
        let mut buffer = [0; 4096];
        loop {
            let bytes = match stream.0.read(&mut buffer) {
                Ok(count) => buffer.get(..count).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Next::Wait(State::Reading { stream, response });
                }
                Err(error) => return Next::End(self.end(Outcome::Closed, message!("{error}"))),
            };
            let progress = response.add(bytes, self.most);
            let outcome = match progress {
                Ok(Progress::More { may_end: true }) if bytes.is_empty() => match response.end() {
                    Ok(()) => return Next::End(Finished::answered(&self.shown, &response)),
                    Err(_) => Outcome::TooLarge,
                },
                Ok(Progress::More { .. }) if bytes.is_empty() => Outcome::Closed,
                Ok(Progress::More { .. }) => continue,
                Ok(Progress::Complete) => {
                    return Next::End(Finished::answered(&self.shown, &response));
                }
                Ok(Progress::Invalid) => Outcome::NotHttp,
                Ok(Progress::TooLarge) | Err(_) => Outcome::TooLarge,
            };
            return Next::End(self.end(outcome, message!("{}", self.why)));
        }
    }

    fn late(&self) -> Finished {
        let outcome = match &self.state {
            State::Resolving | State::Connecting { .. } | State::Sending { .. } => Outcome::NotSent,
            State::Reading { .. } => Outcome::Late,
        };
        self.end(outcome, message!("{}", self.why))
    }

    fn end(&self, outcome: Outcome, message: String) -> Finished {
        Finished::new(&self.shown, outcome, message)
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests;
