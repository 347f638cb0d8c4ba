//! What the name of a mark says: labels, or the keys of labels that were too many.
//!
//! Profilers write names as they are, and readers find their ends by what follows, so a mark consists of a few ASCII
//! characters. R's profiler cuts names at 498 bytes; `R/labels.R` makes none that is as long.

use crate::error::Result;
use crate::limits::memory::TryGrow;

/// How the name of a mark starts, and ends. Names that were cut do not have the end.
const LABELS: &str = ".profile_labels:";
const END: &str = ";";
/// In place of labels, the keys of those that were too many.
const OVERFLOW: &str = ".profile_overflow:";
/// In place of keys, if these were too many.
pub const ANY: &str = "*";

const WHAT: &str = "labels";

/// What the name of a mark says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Labels(Vec<(String, String)>),
    /// Keys; none stands for all keys.
    Overflow(Vec<String>),
}

impl Mark {
    /// `None` if this is another name, for example that of any function of the user.
    pub fn parse(name: &str) -> Result<Option<Mark>> {
        let body = |prefix| name.strip_prefix(prefix)?.strip_suffix(END);
        if let Some(body) = body(LABELS) {
            let mut labels = Vec::new();
            for pair in body.split('&').filter(|_| !body.is_empty()) {
                let Some((key, value)) = pair.split_once('=') else {
                    return Ok(None);
                };
                match (decode(key)?, decode(value)?) {
                    (Some(key), Some(value)) if !key.is_empty() => {
                        labels.try_push((key, value), WHAT)?;
                    }
                    _ => return Ok(None),
                }
            }
            return Ok(Some(Mark::Labels(labels)));
        }
        let Some(body) = body(OVERFLOW) else {
            return Ok(None);
        };
        let mut keys = Vec::new();
        if body != ANY {
            for key in body.split('&') {
                match decode(key)? {
                    Some(key) if !key.is_empty() => keys.try_push(key, WHAT)?,
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(Mark::Overflow(keys)))
    }
}

/// A text in which all but some ASCII characters are `%` and two hexadecimal digits for each byte. `None` if anything
/// else is in it.
fn decode(text: &str) -> Result<Option<String>> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Ok(None);
                };
                (high * 16 + low) as u8
            }
            b'-' | b'.' | b'_' | b'~' | b'/' | b':' => byte,
            byte if byte.is_ascii_alphanumeric() => byte,
            _ => return Ok(None),
        };
        bytes.try_push(byte, WHAT)?;
    }
    Ok(String::from_utf8(bytes).ok())
}
