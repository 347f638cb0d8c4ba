//! A request and its response, one step after the other. No step waits.

use crate::http::Target;
use crate::http::resolve::Resolver;
use crate::http::response::{Progress, Response};
use crate::system::{self, Waiting};
use profile_core::error::Result;
use profile_core::formats::otlp::response::{self, Coding};
use profile_core::limits::memory::{TryGrow, written};
use profile_core::message;
use profile_core::retry::{Outcome, Verdict};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WHAT: &str = "a request";
/// The least time for each address of a name.
const ADDRESS: Duration = Duration::from_secs(1);

pub struct Exchange {
    shown: String,
    head: Vec<u8>,
    body: Arc<Vec<u8>>,
    /// The most bytes of the body of the response.
    most: usize,
    state: State,
    deadline: Instant,
    /// What is in the way at the moment.
    why: String,
}

enum State {
    Resolving,
    Connecting {
        stream: TcpStream,
        /// When to try the others.
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

/// A connection that ends when it is dropped, even if a forked process has inherited it.
struct Stream(TcpStream);

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// How an exchange ended.
#[derive(Debug)]
pub struct Finished {
    pub outcome: Outcome,
    /// Profiles that the server rejected.
    pub rejected: u64,
    pub retry_after: Option<String>,
    shown: String,
    message: String,
}

impl Finished {
    /// What went wrong, if something did.
    pub fn in_words(&self) -> Option<String> {
        let (shown, message) = (&self.shown, &self.message);
        let colon = if message.is_empty() { "" } else { ": " };
        Some(match self.outcome {
            Outcome::Status(status) if self.outcome.verdict() == Verdict::Accepted => {
                match self.rejected {
                    0 if message.is_empty() => return None,
                    0 => message!("{shown}: HTTP {status}{colon}{message}"),
                    rejected => message!("{shown} rejected {rejected} profiles{colon}{message}"),
                }
            }
            Outcome::Status(status) => message!("{shown}: HTTP {status}{colon}{message}"),
            Outcome::NotSent => message!("No connection to {shown}{colon}{message}"),
            Outcome::Closed => {
                message!("{shown} closed the connection without an answer{colon}{message}")
            }
            Outcome::Late => message!("{shown} did not answer in time"),
            Outcome::NotHttp => message!("The answer of {shown} is not HTTP/1"),
            Outcome::TooLarge => message!("The answer of {shown} is too large"),
            Outcome::Tls => message!("The TLS connection to {shown} failed{colon}{message}"),
        })
    }
}

impl Exchange {
    pub fn new(target: &Target, body: &Arc<Vec<u8>>, deadline: Instant) -> Result<Exchange> {
        let url = &target.url;
        let first = format_args!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n",
            url.target, url.authority
        );
        let mut head = written(first, WHAT)?.into_bytes();
        if let Some(value) = &url.authorization {
            // A header that was asked for replaces it.
            const NAME: &[u8] = b"authorization:";
            let mut lines = target.headers.split(|&byte| byte == b'\n');
            let is_it = |line: &[u8]| {
                let start = line.get(..NAME.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(NAME))
            };
            if !lines.any(is_it) {
                let line = written(format_args!("Authorization: {value}\r\n"), WHAT)?;
                head.try_extend(line.as_bytes(), WHAT)?;
            }
        }
        head.try_extend(&target.headers, WHAT)?;
        let last = format_args!(
            "Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        head.try_extend(written(last, WHAT)?.as_bytes(), WHAT)?;
        Ok(Exchange {
            shown: message!("{}", url.shown),
            head,
            body: Arc::clone(body),
            most: target.most,
            state: State::Resolving,
            deadline,
            why: String::new(),
        })
    }

    /// It ends at this moment, if that is earlier.
    pub fn hurry(&mut self, deadline: Instant) {
        self.deadline = self.deadline.min(deadline);
    }

    /// What the next step waits for. While a name is resolved, it is time.
    pub fn waiting(&self) -> Option<Waiting> {
        match &self.state {
            State::Resolving => None,
            State::Connecting { stream, .. } => Some(Waiting::to_write(stream)),
            State::Sending { stream, .. } => Some(Waiting::to_write(&stream.0)),
            State::Reading { stream, .. } => Some(Waiting::to_read(&stream.0)),
        }
    }

    /// Does what is possible now.
    pub fn step(&mut self, resolver: &mut Resolver) -> Option<Finished> {
        loop {
            let next = match std::mem::replace(&mut self.state, State::Resolving) {
                State::Resolving => self.resolve(resolver),
                State::Connecting {
                    stream,
                    until,
                    others,
                } => self.connected(stream, until, others),
                State::Sending { stream, sent } => self.send(stream, sent),
                State::Reading { stream, response } => self.read(stream, response),
            };
            match next {
                Next::Go(state) => self.state = state,
                Next::Wait(state) => {
                    self.state = state;
                    return match Instant::now() < self.deadline {
                        true => None,
                        false => Some(self.late()),
                    };
                }
                Next::End(finished) => return Some(finished),
            }
        }
    }

    fn resolve(&mut self, resolver: &mut Resolver) -> Next {
        match resolver.addresses() {
            None => {
                self.why = message!("its address was not found in time");
                Next::Wait(State::Resolving)
            }
            Some(Ok(addresses)) => self.connect(addresses),
            Some(Err(why)) => Next::End(self.end(Outcome::NotSent, why)),
        }
    }

    /// Connects to the first address, or to the next one after an error.
    fn connect(&mut self, mut others: Vec<SocketAddr>) -> Next {
        while !others.is_empty() {
            let count = u32::try_from(others.len()).unwrap_or(u32::MAX);
            let address = others.remove(0);
            let left = self.deadline.saturating_duration_since(Instant::now());
            match system::connect(&address) {
                Ok(stream) => {
                    self.why = message!("connecting took too long");
                    let until = Instant::now() + (left / count).max(ADDRESS);
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

    fn connected(&mut self, stream: TcpStream, until: Instant, others: Vec<SocketAddr>) -> Next {
        match system::is_connected(&stream) {
            Ok(true) => {
                self.why = message!("sending took too long");
                Next::Go(State::Sending {
                    stream: Stream(stream),
                    sent: 0,
                })
            }
            Ok(false) if Instant::now() < until || others.is_empty() => {
                Next::Wait(State::Connecting {
                    stream,
                    until,
                    others,
                })
            }
            Ok(false) => self.connect(others),
            Err(error) => {
                self.why = message!("{error}");
                self.connect(others)
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
                // The server may have answered before it has read everything, for example that this is too much.
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
                    Ok(()) => return Next::End(self.answered(&response)),
                    Err(_) => Outcome::TooLarge,
                },
                Ok(Progress::More { .. }) if bytes.is_empty() => Outcome::Closed,
                Ok(Progress::More { .. }) => continue,
                Ok(Progress::Complete) => return Next::End(self.answered(&response)),
                Ok(Progress::Invalid) => Outcome::NotHttp,
                Ok(Progress::TooLarge) | Err(_) => Outcome::TooLarge,
            };
            return Next::End(self.end(outcome, message!("{}", self.why)));
        }
    }

    fn answered(&self, response: &Response) -> Finished {
        let outcome = Outcome::Status(response.status);
        let coding = response.coding.unwrap_or(Coding::Protobuf);
        let mut finished = self.end(outcome, String::new());
        let asked = response.retry_after.as_deref();
        finished.retry_after = asked.map(|text| message!("{text}"));
        let failure = || response::failure(&response.body, coding).unwrap_or_default();
        if outcome.verdict() != Verdict::Accepted {
            finished.message = failure();
            return finished;
        }
        match response::accepted(&response.body, coding) {
            Ok(Some(accepted)) => {
                finished.rejected = u64::try_from(accepted.rejected).unwrap_or(0);
                finished.message = accepted.message;
            }
            _ => finished.message = message!("the answer does not conform to OTLP. {}", failure()),
        }
        finished
    }

    fn late(&self) -> Finished {
        let outcome = match &self.state {
            State::Resolving | State::Connecting { .. } | State::Sending { .. } => Outcome::NotSent,
            State::Reading { .. } => Outcome::Late,
        };
        self.end(outcome, message!("{}", self.why))
    }

    fn end(&self, outcome: Outcome, message: String) -> Finished {
        Finished {
            outcome,
            rejected: 0,
            retry_after: None,
            shown: message!("{}", self.shown),
            message,
        }
    }
}
