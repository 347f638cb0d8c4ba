//! Decodes the response of a server to which profiles were sent.
//!
//! If the request succeeded, the body is an `ExportProfilesServiceResponse`: the number of rejected
//! profiles, and the reason. If it failed, the body is a `google.rpc.Status` with a message. Both
//! are encoded as protocol buffers or JSON. Proxies may respond with anything else, so the body can
//! be any bytes; messages from it are reduced to one line without control characters.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "memory for the whole body is ensured first, since serde_json does not check it"
)]

use crate::error;
use crate::limits::memory::ensure_tree;
use crate::protobuf::decode::Result;
use crate::protobuf::messages::{self, messages};
use crate::text::{self, Decoded};
use serde_json::Value;

/// The maximum length of a message in characters. A body may be a whole web page.
const LONGEST: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Protobuf,
    Json,
    /// Anything else.
    Text,
}

/// The response to a successful request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The number of rejected profiles, not negative.
    pub rejected: i64,
    pub message: String,
}

/// Decodes the response to a successful request, `None` if it is invalid. An empty body is an empty
/// message, also in JSON, where some servers omit the braces.
pub fn accepted(body: &[u8], coding: Coding) -> error::Result<Option<Accepted>> {
    ensure_tree(body.len())?;
    if body.is_empty() {
        return Ok(Some(Accepted::default()));
    }
    let answer = match coding {
        Coding::Protobuf => accepted_protobuf(body).ok(),
        Coding::Json => accepted_json(body),
        Coding::Text => None,
    };
    Ok(answer.filter(|answer| answer.rejected >= 0))
}

/// The reason why a request failed: the message of the status, or the body if it is other text.
/// Empty if the server gives no reason.
pub fn failure(body: &[u8], coding: Coding) -> error::Result<String> {
    ensure_tree(body.len())?;
    let message = match coding {
        Coding::Protobuf => status_protobuf(body).ok(),
        Coding::Json => status_json(body),
        Coding::Text => None,
    };
    Ok(message.unwrap_or_else(|| match coding {
        Coding::Protobuf if !is_text(body) => String::new(),
        _ => line(body),
    }))
}

fn is_text(bytes: &[u8]) -> bool {
    let visible = |c: char| !c.is_control() || c.is_whitespace();
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(visible))
}

messages! {
    ExportProfilesServiceResponse {
        partial_success PARTIAL_SUCCESS 1 (message, optional) Option<PartialSuccess>,
    }

    PartialSuccess {
        rejected_profiles REJECTED_PROFILES 1 (int64) i64,
        error_message ERROR_MESSAGE 2 (bytes = "vec") Vec<u8>,
    }

    /// `google.rpc.Status`. Its code is not read, since it corresponds to the HTTP status.
    Status {
        message MESSAGE 2 (bytes = "vec") Vec<u8>,
    }
}

fn accepted_protobuf(body: &[u8]) -> Result<Accepted> {
    let response: ExportProfilesServiceResponse = messages::decode(body)?;
    let partial = response.partial_success.unwrap_or_default();
    Ok(Accepted {
        rejected: partial.rejected_profiles,
        message: line(&partial.error_message),
    })
}

fn status_protobuf(body: &[u8]) -> Result<String> {
    let status: Status = messages::decode(body)?;
    Ok(line(&status.message))
}

fn accepted_json(body: &[u8]) -> Option<Accepted> {
    let response: Value = serde_json::from_slice(body).ok()?;
    let partial = match response.as_object()?.get("partialSuccess") {
        None | Some(Value::Null) => return Some(Accepted::default()),
        Some(partial) => partial.as_object()?,
    };
    let rejected = match partial.get("rejectedProfiles") {
        None | Some(Value::Null) => 0,
        // JSON may contain 64-bit integers as strings or as numbers.
        Some(Value::String(digits)) => digits.parse().ok()?,
        Some(number) => number.as_i64()?,
    };
    let message = match partial.get("errorMessage") {
        None | Some(Value::Null) => String::new(),
        Some(message) => line(message.as_str()?.as_bytes()),
    };
    Some(Accepted { rejected, message })
}

fn status_json(body: &[u8]) -> Option<String> {
    let status: Value = serde_json::from_slice(body).ok()?;
    let message = status.as_object()?.get("message")?.as_str()?;
    Some(line(message.as_bytes()))
}

/// The start of a text as one line, without characters that could move the cursor of a terminal or
/// change the direction of its text.
fn line(bytes: &[u8]) -> String {
    // A character has up to four bytes. The rest is for white space, which is collapsed.
    let start = bytes.get(..16 * LONGEST).unwrap_or(bytes);
    let Ok(Decoded { text, .. }) = text::decode(start) else {
        return String::new();
    };
    let hidden =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let visible = text.replace(hidden, " ");
    let mut line = String::new();
    for word in visible.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(body: &[u8], coding: Coding) -> Option<Accepted> {
        super::accepted(body, coding).unwrap()
    }

    fn failure(body: &[u8], coding: Coding) -> String {
        super::failure(body, coding).unwrap()
    }
    use Coding::{Json, Protobuf, Text};

    fn answer(rejected: i64, message: &str) -> Option<Accepted> {
        let message = message.to_owned();
        Some(Accepted { rejected, message })
    }

    // The bytes are the output of `protoc --encode` for the messages in the comments.

    #[test]
    fn a_success_may_be_partial() {
        for coding in [Protobuf, Json, Text] {
            assert_eq!(accepted(b"", coding), answer(0, ""));
        }
        // partial_success { rejected_profiles: 300 error_message: "no \303\274" }
        let bytes = b"\x0a\x0a\x08\xac\x02\x12\x05no \xc3\xbc";
        assert_eq!(accepted(bytes, Protobuf), answer(300, "no ü"));
        // partial_success { }
        assert_eq!(accepted(b"\x0a\x00", Protobuf), answer(0, ""));
        // Fields of a later version.
        let bytes = b"\x12\x01a\x0a\x06\x08\x01\x1a\x00\x20\x05";
        assert_eq!(accepted(bytes, Protobuf), answer(1, ""));

        for rejected in ["300", "\"300\""] {
            let json = format!(
                r#"{{"a":[1],"partialSuccess":{{"rejectedProfiles":{rejected},"errorMessage":"n\u00f6"}}}}"#
            );
            assert_eq!(accepted(json.as_bytes(), Json), answer(300, "nö"));
        }
        for json in [
            "{}",
            r#"{"partialSuccess":null}"#,
            r#"{"partialSuccess":{}}"#,
        ] {
            assert_eq!(accepted(json.as_bytes(), Json), answer(0, ""));
        }
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let bad: [&[u8]; 7] = [
            b"<html>",
            b"\x0a\x05\x08",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x08\x01",
            b"\x0a\x02\x0a\x00",
            // -1
            b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x00",
        ];
        for bytes in bad {
            assert_eq!(accepted(bytes, Protobuf), None, "{bytes:?}");
        }
        let bad = [
            "ok",
            "[]",
            r#"{"partialSuccess":1}"#,
            r#"{"partialSuccess":{"rejectedProfiles":-1}}"#,
            r#"{"partialSuccess":{"rejectedProfiles":1.5}}"#,
            r#"{"partialSuccess":{"rejectedProfiles":"99999999999999999999"}}"#,
            r#"{"partialSuccess":{"errorMessage":{}}}"#,
            &"[".repeat(1 << 20),
        ];
        for json in bad {
            let start = json.get(..json.len().min(60));
            assert_eq!(accepted(json.as_bytes(), Json), None, "{start:?}");
        }
        assert_eq!(accepted(b"ok", Text), None);
    }

    #[test]
    fn a_failure_has_a_message_or_a_text() {
        // code: 3 message: "bad %s" details { type_url: "x" }
        let bytes = b"\x08\x03\x12\x06bad %s\x1a\x03\x0a\x01x";
        assert_eq!(failure(bytes, Protobuf), "bad %s");
        assert_eq!(failure(b"\x08\x03", Protobuf), "");
        assert_eq!(failure(br#"{"code":3,"message":"bad"}"#, Json), "bad");
        assert_eq!(failure(br#"{"code":"x","message":"bad"}"#, Json), "bad");
        assert_eq!(failure(br#"{"error":"bad"}"#, Json), r#"{"error":"bad"}"#);
        assert_eq!(failure(b"not found\n", Protobuf), "not found");
        assert_eq!(failure(b"\x08\x03\x12\x06bad", Protobuf), "");
        assert_eq!(failure(b"", Text), "");
    }

    #[test]
    fn a_text_is_one_short_line() {
        let shown = |bytes: &[u8]| failure(bytes, Text);
        assert_eq!(shown(b"a\r\n\tb\0 \x1b[31mc\x07"), "a b<00> [31mc");
        assert_eq!(shown("\u{202e}a\u{2028}b".as_bytes()), "a b");
        assert_eq!(shown(b"caf\xe9"), "café");
        let long = shown("ü ".repeat(4000).as_bytes());
        assert_eq!(long.chars().count(), LONGEST + 1);
        assert!(long.ends_with("…"));
    }
}
