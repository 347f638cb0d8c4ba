//! Whether a request is retried, and after which delay. All code that sends profiles uses these rules.
//!
//! OpenTelemetry's rules: <https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There was no connection, or it ended before the request was sent.
    NotSent,
    /// The connection was closed without an answer.
    Closed,
    /// There was no answer in time. The request may have arrived.
    Late,
    /// Client and server cannot agree on TLS.
    Tls,
    /// The answer is not HTTP/1.
    NotHttp,
    /// The answer exceeds the maximum size.
    TooLarge,
    Status(u16),
}

/// How to proceed after an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// The same request may succeed later.
    Again,
    Final,
}

/// The rules: outcomes with their names, and whether the request is retried.
const RULES: [(&str, Outcome, Verdict); 6] = [
    ("not_sent", Outcome::NotSent, Verdict::Again),
    ("closed", Outcome::Closed, Verdict::Again),
    ("late", Outcome::Late, Verdict::Final),
    ("tls", Outcome::Tls, Verdict::Final),
    ("not_http", Outcome::NotHttp, Verdict::Final),
    ("too_large", Outcome::TooLarge, Verdict::Final),
];
/// HTTP statuses after which the request is retried. All other statuses except success are final.
const AGAIN: [u16; 4] = [429, 502, 503, 504];

/// The default of the first delay.
pub const FIRST: Duration = Duration::from_secs(1);
/// The longest delay before it is randomised.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest delay requested by a server that is accepted while a user waits.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Outcome {
    /// The outcome with this name, which has no status.
    pub fn named(name: &str) -> Option<Outcome> {
        let rule = RULES.iter().find(|rule| rule.0 == name);
        rule.map(|rule| rule.1)
    }

    pub fn verdict(self) -> Verdict {
        match self {
            Outcome::Status(200..300) => Verdict::Accepted,
            Outcome::Status(status) if AGAIN.contains(&status) => Verdict::Again,
            other => {
                let rule = RULES.iter().find(|rule| rule.1 == other);
                rule.map_or(Verdict::Final, |rule| rule.2)
            }
        }
    }
}

/// The delay after this number of attempts. It doubles each time. `chance`, from 0 to 1, makes it up to half shorter
/// or longer, so that not all clients retry at the same time.
pub fn delay(attempts: u32, first: Duration, chance: f64) -> Duration {
    let doubled = first.as_secs_f64() * 2_f64.powf(f64::from(attempts) - 1.0);
    let delay = doubled.min(LONGEST.as_secs_f64()) * (0.5 + chance);
    Duration::try_from_secs_f64(delay).unwrap_or(LONGEST)
}

/// A random number from 0 to 1. R's generator is not used, since that would change the random numbers of the user.
pub fn chance() -> f64 {
    let random = RandomState::new().hash_one(SystemTime::now());
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// The delay in seconds that the header `Retry-After` requests: a number of seconds or a date, which may have passed.
/// `None` if it is not valid.
pub fn requested(header: &str, now: SystemTime) -> Option<f64> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        return header.parse().ok();
    }
    let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    Some(date(header, now)? - now)
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Parses an HTTP date, in one of its three forms, to seconds since 1970:
/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`.
fn date(text: &str, now: f64) -> Option<f64> {
    let separators = |c: char| c == ' ' || c == ',' || c == '-';
    let mut words = text.split(separators).filter(|word| !word.is_empty());
    let _weekday = words
        .next()
        .filter(|word| word.bytes().all(|b| b.is_ascii_alphabetic()))?;
    let (first, second) = (words.next()?, words.next()?);
    let (year, month, day, time);
    if first.starts_with(|c: char| c.is_ascii_digit()) {
        (day, month, year) = (first, second, words.next()?);
        time = words.next()?;
        // Every date is in GMT.
        words.next().filter(|zone| *zone == "GMT")?;
    } else {
        (month, day, time) = (first, second, words.next()?);
        year = words.next()?;
    }
    let month = MONTHS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(month))? as i64
        + 1;
    let number = |text: &str, digits: usize| -> Option<i64> {
        let is_number = text.len() <= digits && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    };
    let day = number(day, 2).filter(|day| (1..=31).contains(day))?;
    let mut parts = time.split(':');
    let mut part = |most: i64| number(parts.next()?, 2).filter(|part| *part <= most);
    let (hour, minute, second) = (part(23)?, part(59)?, part(60)?);
    let seconds_of =
        |year: i64| (days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) as f64;
    if words.next().is_some() {
        return None;
    }
    Some(match year.len() {
        4 => seconds_of(number(year, 4)?),
        2 => {
            // The latest year with these digits that is at most 50 years in the future.
            let latest = 1970 + (now / 31_556_952.0) as i64 + 50;
            seconds_of(latest - (latest - number(year, 2)?).rem_euclid(100))
        }
        _ => return None,
    })
}

/// The number of days from 1970-01-01 to a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last day of a year.
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let before = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    before + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_are_retried() {
        for status in [429, 502, 503, 504] {
            assert_eq!(Outcome::Status(status).verdict(), Verdict::Again);
        }
        for status in [0, 100, 301, 400, 401, 404, 408, 413, 500, 501, 505, 600] {
            assert_eq!(
                Outcome::Status(status).verdict(),
                Verdict::Final,
                "{status}"
            );
        }
        for status in [200, 202, 299] {
            assert_eq!(Outcome::Status(status).verdict(), Verdict::Accepted);
        }
        for (name, verdict) in [
            ("not_sent", Verdict::Again),
            ("closed", Verdict::Again),
            ("late", Verdict::Final),
            ("tls", Verdict::Final),
            ("not_http", Verdict::Final),
            ("too_large", Verdict::Final),
        ] {
            assert_eq!(Outcome::named(name).unwrap().verdict(), verdict, "{name}");
        }
        assert_eq!(Outcome::named("other"), None);
    }

    #[test]
    fn delays_are_doubled_up_to_a_bound() {
        let seconds = |attempts, chance| delay(attempts, FIRST, chance).as_secs_f64();
        assert_eq!(seconds(1, 0.5), 1.0);
        assert_eq!(seconds(3, 0.5), 4.0);
        assert_eq!(seconds(3, 0.0), 2.0);
        assert_eq!(seconds(5, 1.0), 24.0);
        assert_eq!(seconds(u32::MAX, 1.0), 45.0);
        assert!((0..100).all(|_| (0.0..1.0).contains(&chance())));
        assert_ne!(chance(), chance());
    }

    #[test]
    fn servers_request_delays() {
        // 1994-11-06 08:49:07 UTC, by `date -u -d @784111747`.
        let now = UNIX_EPOCH + Duration::from_secs(784_111_747);
        for (header, seconds) in [
            ("007", Some(7.0)),
            (" 0 ", Some(0.0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30.0)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(30.0)),
            ("Sun Nov  6 08:49:37 1994", Some(30.0)),
            ("Sat, 05 Nov 1994 08:49:07 GMT", Some(-86_400.0)),
            ("Thu, 29 Feb 1996 00:00:00 GMT", Some(41_440_253.0)),
            ("Friday, 31-Dec-43 00:00:00 GMT", Some(1_551_021_053.0)),
            ("Friday, 31-Dec-45 00:00:00 GMT", Some(-1_541_580_547.0)),
            ("", None),
            ("-5", None),
            ("1.5", None),
            ("1e5", None),
            ("soon", None),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT x", None),
            ("Sun, 32 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nav 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 24:49:37 GMT", None),
            ("Sun, 06 Nov 194 08:49:37 GMT", None),
        ] {
            assert_eq!(requested(header, now), seconds, "{header}");
        }
    }
}
