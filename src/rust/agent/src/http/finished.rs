//! How a request ended, regardless of who sent it.

use crate::http::response::Response;
use profile_core::formats::otlp::response::{self, Coding};
use profile_core::message;
use profile_core::retry::{Outcome, Verdict};

#[derive(Debug)]
pub struct Finished {
    pub outcome: Outcome,
    /// The number of profiles that the server rejected.
    pub rejected: u64,
    pub retry_after: Option<String>,
    shown: String,
    message: String,
}

impl Finished {
    /// A request without a complete response. `shown` is the URL.
    pub fn new(shown: &str, outcome: Outcome, message: String) -> Finished {
        Finished {
            outcome,
            rejected: 0,
            retry_after: None,
            shown: message!("{shown}"),
            message,
        }
    }

    /// A request that the server has answered.
    pub fn answered(shown: &str, response: &Response) -> Finished {
        let outcome = Outcome::Status(response.status);
        let coding = response.coding.unwrap_or(Coding::Protobuf);
        let mut finished = Finished::new(shown, outcome, String::new());
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

    /// The error message, if there is one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::response::Progress;

    /// The outcome of an answer with this status, type and body, and its message.
    fn answered(status: u16, kind: &str, body: &[u8]) -> (Finished, String) {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut response = Response::default();
        let answer = [head.as_bytes(), body].concat();
        assert_eq!(response.add(&answer, 100).unwrap(), Progress::Complete);
        let finished = Finished::answered("http://a", &response);
        let message = finished.in_words().unwrap_or_default();
        (finished, message)
    }

    #[test]
    fn an_accepted_chunk_may_have_a_message() {
        let protobuf = "application/x-protobuf";
        let (finished, message) = answered(200, protobuf, b"");
        assert_eq!((finished.rejected, message.as_str()), (0, ""));
        // The first field of the body: rejected_profiles 300 and a message, or only one of them.
        let (finished, message) = answered(200, protobuf, b"\x0a\x09\x08\xac\x02\x12\x04full");
        let expected = "http://a rejected 300 profiles: full";
        assert_eq!((finished.rejected, message.as_str()), (300, expected));
        let (finished, message) = answered(200, protobuf, b"\x0a\x03\x08\xac\x02");
        let expected = "http://a rejected 300 profiles";
        assert_eq!((finished.rejected, message.as_str()), (300, expected));
        let (finished, message) = answered(202, protobuf, b"\x0a\x06\x12\x04soon");
        assert_eq!(
            (finished.rejected, message.as_str()),
            (0, "http://a: HTTP 202: soon")
        );
        // A negative number is none.
        let body = b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(answered(200, protobuf, body).0.rejected, 0);
    }

    #[test]
    fn an_answer_that_does_not_conform_is_accepted_with_a_message() {
        let (finished, message) = answered(200, "text/html", b"<html>hello</html>");
        assert_eq!(finished.outcome.verdict(), Verdict::Accepted);
        let start = "http://a: HTTP 200: the answer does not conform to OTLP. <html>hello";
        assert!(message.starts_with(start), "{message}");
    }

    #[test]
    fn a_refusal_has_the_message_of_the_server() {
        let body = b"\x08\x03\x12\x0a100% {bad}";
        let (finished, message) = answered(400, "application/x-protobuf", body);
        assert_eq!(finished.outcome, Outcome::Status(400));
        assert_eq!(message, "http://a: HTTP 400: 100% {bad}");
        assert_eq!(answered(503, "text/plain", b"").1, "http://a: HTTP 503");
    }

    #[test]
    fn each_other_outcome_has_its_words() {
        let said = |outcome, why: &str| {
            let finished = Finished::new("http://a", outcome, why.into());
            finished.in_words().unwrap()
        };
        assert_eq!(
            said(Outcome::NotSent, "why"),
            "No connection to http://a: why"
        );
        assert_eq!(said(Outcome::NotSent, ""), "No connection to http://a");
        let closed = "http://a closed the connection without an answer";
        assert_eq!(said(Outcome::Closed, ""), closed);
        assert_eq!(
            said(Outcome::Late, "why"),
            "http://a did not answer in time"
        );
        assert_eq!(
            said(Outcome::NotHttp, "why"),
            "The answer of http://a is not HTTP/1"
        );
        assert_eq!(
            said(Outcome::TooLarge, ""),
            "The answer of http://a is too large"
        );
        assert_eq!(
            said(Outcome::Tls, "why"),
            "The TLS connection to http://a failed: why"
        );
    }
}
