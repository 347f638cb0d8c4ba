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

const WHAT: &str = "a request";
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
        let mut head = written(
            format_args!(
                "POST {} HTTP/1.1\r\nHost: {}\r\n",
                url.target, url.authority
            ),
            WHAT,
        )?
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
                let line = written(format_args!("Authorization: {value}\r\n"), WHAT)?;
                head.try_extend(line.as_bytes(), WHAT)?;
            }
        }
        head.try_extend(&endpoint.headers, WHAT)?;
        let length = body.len();
        let last = message!("Content-Length: {length}\r\nConnection: close\r\n\r\n");
        head.try_extend(last.as_bytes(), WHAT)?;
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
mod tests {
    use super::*;
    use crate::http::resolve::Found;
    use crate::http::url::Url;
    use crate::script::{beginning, seconds};
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::OwnedFd;
    use std::sync::mpsc::channel;

    const TIMEOUT: f64 = 10.0;

    /// A request to a server that the test plays, in the same thread.
    struct World {
        exchange: Exchange,
        resolver: Resolver,
        listener: TcpListener,
        start: Instant,
    }

    impl World {
        fn new(headers: &str, user: &str) -> World {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            World::with(
                listener,
                headers,
                &format!("http://{user}{address}/a?b"),
                &[],
            )
        }

        /// With a host name that has these addresses.
        fn with(listener: TcpListener, headers: &str, url: &str, found: &[SocketAddr]) -> World {
            let endpoint = Endpoint {
                url: Url::parse(url).unwrap(),
                headers: headers.as_bytes().to_vec(),
            };
            let found = found.to_vec();
            let lookup = move |_: &str, _| {
                let (sender, receiver) = channel();
                sender.send(Ok(found.clone())).unwrap();
                Some(receiver)
            };
            let start = beginning().instant;
            let body = Arc::new(b"body".to_vec());
            let deadline = start + seconds(TIMEOUT);
            World {
                exchange: Exchange::new(&endpoint, 100, &body, deadline).unwrap(),
                resolver: Resolver::with(Box::new(lookup), &endpoint.url),
                listener,
                start,
            }
        }

        fn step(&mut self, time: f64) -> Option<Finished> {
            self.exchange
                .step(&mut self.resolver, self.start + seconds(time))
        }

        /// Steps, at the start, until the kernel has passed on what was written. The limit is for what never happens.
        fn until<T>(&mut self, mut found: impl FnMut(&mut World) -> Option<T>) -> T {
            for _ in 0..3000 {
                if let Some(found) = found(self) {
                    return found;
                }
                system::wait(self.exchange.waiting(), Duration::from_millis(100));
            }
            panic!("nothing has arrived")
        }

        /// Accepts the request and reads it.
        fn accept(&mut self) -> (TcpStream, String) {
            self.until(|world| {
                assert!(world.step(0.0).is_none());
                matches!(world.exchange.state, State::Reading { .. }).then_some(())
            });
            loop {
                let (mut stream, _) = self.listener.accept().unwrap();
                let (mut text, mut buffer) = (Vec::new(), [0; 1000]);
                while !text.ends_with(b"body") {
                    match stream.read(&mut buffer).unwrap() {
                        0 => break,
                        count => text.extend_from_slice(&buffer[..count]),
                    }
                }
                // Connections of earlier attempts were closed.
                if !text.is_empty() {
                    return (stream, String::from_utf8(text).unwrap());
                }
            }
        }

        fn finished(&mut self) -> Finished {
            self.until(|world| world.step(0.0))
        }
    }

    /// How a request ends after this answer, after which the connection is closed.
    fn after(answer: &[u8]) -> Finished {
        let mut world = World::new("", "");
        let (mut stream, _) = world.accept();
        stream.write_all(answer).unwrap();
        drop(stream);
        world.finished()
    }

    #[test]
    fn a_request_is_sent_and_answered() {
        let mut world = World::new("X-One: 1\r\n", "");
        let authority = world.listener.local_addr().unwrap();
        let (mut stream, text) = world.accept();
        let expected = format!(
            "POST /a?b HTTP/1.1\r\nHost: {authority}\r\nX-One: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        );
        assert_eq!(text, expected);
        assert!(world.exchange.waiting().is_some());
        // In pieces.
        stream
            .write_all(b"HTTP/1.1 503 x\r\nRetry-After: 5\r\n")
            .unwrap();
        assert!(world.step(9.9).is_none());
        stream.write_all(b"Content-Length: 0\r\n\r\n").unwrap();
        let finished = world.finished();
        assert_eq!(finished.outcome, Outcome::Status(503));
        assert_eq!(finished.retry_after.as_deref(), Some("5"));
        let url = format!("http://{authority}/a: HTTP 503");
        assert_eq!(finished.in_words().unwrap(), url);
        // The connection was closed.
        drop(world);
        assert_eq!(stream.read(&mut [0; 10]).unwrap_or(0), 0);
    }

    #[test]
    fn a_user_is_authenticated_unless_there_is_a_header() {
        // printf 'u:p' | base64
        let (_, text) = World::new("", "u:p@").accept();
        assert!(text.contains("\r\nAuthorization: Basic dTpw\r\n"), "{text}");
        let (_, text) =
            World::new("X: authorization:\r\nAUTHORIZATION: Bearer x\r\n", "u:p@").accept();
        assert!(
            !text.contains("Basic") && text.contains("Bearer x"),
            "{text}"
        );
        let (_, text) = World::new("X: authorization: y\r\n", "u:p@").accept();
        assert!(text.contains("Basic"), "{text}");
    }

    #[test]
    fn an_answer_may_be_incomplete_or_no_answer_at_all() {
        assert_eq!(
            after(b"HTTP/1.1 200 OK\r\n\r\n").outcome,
            Outcome::Status(200)
        );
        assert_eq!(after(b"").outcome, Outcome::Closed);
        assert_eq!(
            after(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").outcome,
            Outcome::Closed
        );
        assert_eq!(after(b"SSH-2.0-OpenSSH\r\n").outcome, Outcome::NotHttp);
        assert_eq!(
            after(b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n").outcome,
            Outcome::TooLarge
        );
    }

    #[test]
    fn an_answer_may_be_late() {
        let mut world = World::new("", "");
        let (stream, _) = world.accept();
        assert!(world.step(TIMEOUT - 0.001).is_none());
        let finished = world.step(TIMEOUT).unwrap();
        assert_eq!(finished.outcome, Outcome::Late);
        assert!(
            finished
                .in_words()
                .unwrap()
                .ends_with("/a did not answer in time")
        );
        drop(stream);
        // The end of the agent is earlier.
        let mut world = World::new("", "");
        let (_stream, _) = world.accept();
        world.exchange.hurry(world.start + seconds(3.0));
        world.exchange.hurry(world.start + seconds(5.0));
        assert!(world.step(2.999).is_none());
        assert_eq!(world.step(3.0).unwrap().outcome, Outcome::Late);
    }

    #[test]
    fn a_server_that_does_not_read_is_late() {
        let mut world = World::new("", "");
        world.exchange.body = Arc::new(vec![0; 64 << 20]);
        world.until(|world| {
            assert!(world.step(0.0).is_none());
            matches!(world.exchange.state, State::Sending { .. }).then_some(())
        });
        assert!(world.step(TIMEOUT - 0.1).is_none());
        let finished = world.step(TIMEOUT).unwrap();
        assert_eq!(finished.outcome, Outcome::NotSent);
        assert!(
            finished
                .in_words()
                .unwrap()
                .ends_with(": sending took too long")
        );
    }

    #[test]
    fn the_next_address_is_tried_after_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = closed.local_addr().unwrap();
        drop(closed);
        let mut world = World::with(listener, "", "http://example.org/", &[refused, address]);
        world.accept();
        // There is no other.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut world = World::with(listener, "", "http://example.org/", &[refused, refused]);
        let finished = world.finished();
        assert_eq!(finished.outcome, Outcome::NotSent);
        let why = finished.in_words().unwrap();
        assert!(
            why.starts_with("No connection to http://example.org/: Connection refused"),
            "{why}"
        );
    }

    /// A connection that is never established.
    fn silent() -> TcpStream {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        TcpStream::from(OwnedFd::from(socket))
    }

    #[test]
    fn each_address_has_its_part_of_the_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for (timeout, part) in [(10.0, 5.0), (1.5, 1.0)] {
            let listener = listener.try_clone().unwrap();
            let mut world = World::with(listener, "", "http://example.org/", &[address, address]);
            world.exchange.deadline = world.start + seconds(timeout);
            assert!(world.step(0.0).is_none());
            if matches!(world.exchange.state, State::Resolving) {
                assert!(world.step(0.0).is_none());
            }
            let State::Connecting { stream, until, .. } = &mut world.exchange.state else {
                panic!("not connecting")
            };
            assert_eq!(*until, world.start + seconds(part));
            // The first one does not answer.
            *stream = silent();
            assert!(world.step(part - 0.001).is_none());
            let State::Connecting { others, .. } = &world.exchange.state else {
                panic!("not connecting")
            };
            assert_eq!(others.len(), 1);
            assert!(world.step(part).is_none());
            world.accept();
        }
    }

    #[test]
    fn the_last_address_has_all_of_the_time() {
        let mut world = World::new("", "");
        world.exchange.state = State::Connecting {
            stream: silent(),
            until: world.start,
            others: Vec::new(),
        };
        world.exchange.why = "connecting took too long".into();
        assert!(world.exchange.waiting().is_some());
        assert!(world.step(TIMEOUT - 0.001).is_none());
        let finished = world.step(TIMEOUT).unwrap();
        assert_eq!(finished.outcome, Outcome::NotSent);
        assert!(
            finished
                .in_words()
                .unwrap()
                .ends_with(": connecting took too long")
        );
    }

    #[test]
    fn a_name_may_be_found_late_or_never() {
        let (sender, receiver) = channel::<Found>();
        let receiver = std::cell::RefCell::new(Some(receiver));
        let mut world = World::new("", "");
        let url = Url::parse("http://example.org/").unwrap();
        let lookup = Box::new(move |_: &str, _| receiver.borrow_mut().take());
        world.resolver = Resolver::with(lookup, &url);
        assert!(world.step(0.0).is_none() && world.exchange.waiting().is_none());
        assert!(world.step(TIMEOUT - 0.001).is_none());
        let finished = world.step(TIMEOUT).unwrap();
        assert_eq!(finished.outcome, Outcome::NotSent);
        assert!(
            finished
                .in_words()
                .unwrap()
                .ends_with(": its address was not found in time")
        );
        // The next request gets the answer.
        sender.send(Err("no such host".into())).unwrap();
        world.exchange.state = State::Resolving;
        let finished = world.step(0.0).unwrap();
        assert_eq!(finished.outcome, Outcome::NotSent);
        assert!(finished.in_words().unwrap().ends_with(": no such host"));
    }
}
