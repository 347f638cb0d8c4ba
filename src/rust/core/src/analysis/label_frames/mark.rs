//! Parses the name of a mark: labels, or the keys of labels that exceeded the limit.
//!
//! Profilers write names unescaped, and readers find the end of a name by what follows, so a mark consists of a few
//! ASCII characters only. R's profiler truncates names to 498 bytes; `R/label-sets.R` creates only shorter ones.

use crate::error::Result;
use crate::limits::memory::TryGrow;

/// The start and the end of the name of a mark. Truncated names lack the end.
const LABELS: &str = ".profile_labels:";
const END: &str = ";";
/// Starts a list of the keys of labels that exceeded the limit, instead of labels.
const OVERFLOW: &str = ".profile_overflow:";
/// Replaces the list of keys if it is too long.
pub const ANY: &str = "*";

/// The parsed name of a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Labels(Vec<(String, String)>),
    /// Keys; an empty list means all keys.
    Overflow(Vec<String>),
}

impl Mark {
    /// `None` for any other name, such as the name of a user's function.
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
                        labels.try_push((key, value))?;
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
                    Some(key) if !key.is_empty() => keys.try_push(key)?,
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(Mark::Overflow(keys)))
    }
}

/// Decodes a text in which all characters except some ASCII ones are percent-encoded. `None` if it contains any other
/// character.
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
        bytes.try_push(byte)?;
    }
    Ok(String::from_utf8(bytes).ok())
}
