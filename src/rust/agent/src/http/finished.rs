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
