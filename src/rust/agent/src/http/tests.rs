use super::*;
use crate::script::{
    Requests, Server, Shared, add_chunk, answered, beginning, checked, ended, last_error, seconds,
};
use profile_core::error::Error;
use profile_core::retry::Outcome;

const TIMEOUT: Duration = Duration::from_secs(7);

struct World {
    http: Http,
    requests: Shared<Requests>,
    queue: Queue,
    now: Now,
}

impl World {
    /// With two chunks: of 3 samples and the byte 1, and of 4 samples and the byte 2.
    fn new(chance: fn() -> f64) -> World {
        let (now, requests) = (beginning(), Shared::<Requests>::default());
        let queue = Queue::new(1000);
        let route = Box::new(Server(requests.clone()));
        let mut http = Http::new(route, TIMEOUT, seconds(1.0), now);
        http.chance = chance;
        add_chunk(&queue, 3, 1, now);
        add_chunk(&queue, 4, 2, now);
        World {
            http,
            requests,
            queue,
            now,
        }
    }

    fn step(&mut self) {
        self.http.step(&self.queue, self.now);
        checked(&self.queue);
    }

    /// The bytes of the requests so far.
    fn begun(&self) -> Vec<u8> {
        let begun = &self.requests.borrow().begun;
        begun.iter().map(|request| request.0).collect()
    }

    fn answer(&mut self, answer: Finished) {
        self.step();
        assert!(self.requests.borrow().is_open);
        self.requests.borrow_mut().answer = Some(answer);
        self.step();
    }

    /// The seconds until the next request begins.
    fn pause(&mut self) -> f64 {
        let (start, count) = (self.now, self.begun().len());
        let mut time = 0.0;
        loop {
            self.now = start.after(time);
            self.http.step(&self.queue, self.now);
            if self.begun().len() > count {
                return time;
            }
            time += 0.25;
            assert!(time < 5000.0);
        }
    }
}

#[test]
fn a_request_is_repeated_with_growing_delays_until_it_has_arrived_once() {
    for (chance, factor) in [(half as fn() -> f64, 1.0), (never, 0.5), (always, 1.5)] {
        let mut world = World::new(chance);
        let outcomes = [
            answered(503, ""),
            answered(429, ""),
            ended(Outcome::NotSent),
            ended(Outcome::Closed),
            answered(502, ""),
            answered(504, ""),
            ended(Outcome::NotSent),
        ];
        for (outcome, delay) in outcomes
            .into_iter()
            .zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0])
        {
            world.answer(outcome);
            assert_eq!(checked(&world.queue).sent, 0);
            assert_eq!(world.pause(), delay * factor);
        }
        assert_eq!(world.begun(), [1; 8]);
        world.answer(answered(200, ""));
        assert_eq!(checked(&world.queue).sent, 3);
        // The next chunk is sent at once, and its delays start again.
        assert_eq!(world.pause(), 0.0);
        world.answer(answered(503, ""));
        assert_eq!(world.pause(), factor);
        world.answer(answered(200, ""));
        assert_eq!(world.begun(), [1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
        let counts = checked(&world.queue);
        assert_eq!(
            (counts.sent, counts.chunks_sent, counts.dropped()),
            (7, 2, 0)
        );
        assert_eq!(counts.last_sent, world.now.unix());
        world.step();
        assert_eq!(world.begun().len(), 10);
    }
}

fn half() -> f64 {
    0.5
}
fn never() -> f64 {
    0.0
}
fn always() -> f64 {
    1.0
}

#[test]
fn the_server_determines_how_long_to_wait() {
    for (header, pause) in [
        ("Retry-After: 7\r\n", 7.0),
        ("Retry-After: 3600\r\n", 3600.0),
        ("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 30.0),
        // Less than our own delay, passed, or invalid.
        ("Retry-After: 0\r\n", 1.0),
        ("Retry-After: Sat, 05 Nov 1994 08:49:07 GMT\r\n", 1.0),
        ("Retry-After: soon\r\n", 1.0),
    ] {
        let mut world = World::new(half);
        world.answer(answered(503, header));
        assert_eq!(world.pause(), pause, "{header}");
        assert_eq!(world.begun(), [1, 1]);
    }
    // Longer than anybody waits.
    let mut world = World::new(half);
    world.answer(answered(503, ""));
    world.pause();
    world.answer(answered(503, "Retry-After: 3601\r\n"));
    assert_eq!(checked(&world.queue).refused, 3);
    assert_eq!(world.pause(), 0.0);
    world.answer(answered(429, ""));
    assert_eq!(world.pause(), 1.0);
    assert_eq!(world.begun(), [1, 1, 2, 2]);
    // What is final has no delay, whatever the header says.
    world.answer(answered(400, "Retry-After: 9\r\n"));
    let counts = checked(&world.queue);
    assert_eq!((counts.refused, counts.sent), (7, 0));
}

#[test]
fn a_chunk_that_is_refused_is_not_sent_again() {
    for (outcome, why) in [
        (answered(400, ""), "http://a: HTTP 400"),
        (answered(404, ""), "http://a: HTTP 404"),
        (answered(301, ""), "http://a: HTTP 301"),
        (ended(Outcome::Late), "http://a did not answer in time"),
        (
            ended(Outcome::NotHttp),
            "The answer of http://a is not HTTP/1",
        ),
        (
            ended(Outcome::TooLarge),
            "The answer of http://a is too large",
        ),
        (
            ended(Outcome::Tls),
            "The TLS connection to http://a failed: why",
        ),
    ] {
        let mut world = World::new(half);
        world.answer(answered(503, ""));
        world.pause();
        world.answer(outcome);
        assert_eq!(last_error(&world.queue), why);
        assert_eq!(checked(&world.queue).refused, 3);
        assert_eq!(world.pause(), 0.0, "{why}");
        // Its first delay.
        world.answer(answered(503, ""));
        assert_eq!(world.pause(), 1.0);
        world.answer(answered(200, ""));
        assert_eq!(world.begun(), [1, 1, 2, 2]);
        let counts = checked(&world.queue);
        assert_eq!((counts.sent, counts.refused), (4, 3));
    }
}

#[test]
fn partial_success_is_reported() {
    let mut world = World::new(half);
    // A protobuf message: partial_success of rejected_profiles 300 and a message.
    let body = b"\x0a\x09\x08\xac\x02\x12\x04full";
    let mut response = response::Response::default();
    let head = format!("HTTP/1.1 200 \r\nContent-Length: {}\r\n\r\n", body.len());
    response.add(head.as_bytes(), 100).unwrap();
    response.add(body, 100).unwrap();
    world.answer(Finished::answered("http://a", &response));
    let counts = checked(&world.queue);
    assert_eq!((counts.sent, counts.rejected, counts.refused), (3, 300, 0));
    assert_eq!(
        last_error(&world.queue),
        "http://a rejected 300 profiles: full"
    );
    assert_eq!(counts.last_error.unwrap().1, world.now.unix().unwrap());
}

#[test]
fn a_request_has_the_timeout_and_one_that_cannot_begin_is_repeated() {
    let mut world = World::new(half);
    world.requests.borrow_mut().refusal = Some(Error::Process("a request".into()));
    world.step();
    assert!(last_error(&world.queue).contains("a request"));
    assert_eq!(world.pause(), 1.0);
    assert_eq!(world.requests.borrow().begun, [(1, TIMEOUT, None)]);
    // While it has no answer, there is only this one.
    for _ in 0..3 {
        world.now = world.now.after(100.0);
        world.step();
    }
    assert_eq!(world.begun(), [1]);
}

#[test]
fn an_overflow_does_not_drop_what_is_being_sent() {
    let mut world = World::new(half);
    world.step();
    add_chunk(&world.queue, 5, 3, world.now);
    world.queue.add(Ok(vec![0; 975]), world.now);
    let counts = checked(&world.queue);
    assert_eq!(counts.full, 4);
    world.answer(answered(200, ""));
    assert_eq!(checked(&world.queue).sent, 3);
    world.answer(answered(200, ""));
    assert_eq!(world.begun(), [1, 3]);
}

#[test]
fn the_end_is_a_last_attempt_without_a_delay() {
    let mut world = World::new(half);
    world.answer(answered(503, "Retry-After: 100\r\n"));
    let deadline = world.now.instant + seconds(3.0);
    world.http.hurry(deadline, world.now);
    assert_eq!(world.requests.borrow().hurried, Some(deadline));
    assert!(!world.http.has_given_up());
    world.answer(answered(200, ""));
    world.step();
    let begun = world.requests.borrow().begun.clone();
    assert_eq!(
        begun[1..],
        [(1, TIMEOUT, Some(deadline)), (2, TIMEOUT, Some(deadline))]
    );
    // A failure that would be repeated later is the last one.
    world.answer(answered(503, ""));
    assert!(world.http.has_given_up());
    world.now = world.now.after(2.0);
    world.step();
    assert_eq!(world.begun(), [1, 1, 2]);
    world.queue.clear();
    let counts = checked(&world.queue);
    assert_eq!((counts.sent, counts.lost), (3, 4));
}

#[test]
fn a_refusal_at_the_end_is_not_the_last_attempt() {
    let mut world = World::new(half);
    world.step();
    world
        .http
        .hurry(world.now.instant + seconds(3.0), world.now);
    world.answer(answered(400, ""));
    assert!(!world.http.has_given_up());
    world.answer(answered(200, ""));
    let counts = checked(&world.queue);
    assert_eq!((counts.sent, counts.refused), (4, 3));
}
