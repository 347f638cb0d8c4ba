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
    let (_, text) = World::new("X: authorization:\r\nAUTHORIZATION: Bearer x\r\n", "u:p@").accept();
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
