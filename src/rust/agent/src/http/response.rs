//! Parses an HTTP/1 response that arrives in pieces of any size.

use profile_core::error::Result;
use profile_core::formats::otlp::response::Coding;
use profile_core::limits::memory::{TryGrow, owned};

/// The maximum size of everything except the body, in bytes.
const MOST_HEAD: usize = 64 << 10;
/// The maximum length of the line that precedes a chunk of a chunked body, in bytes.
const MOST_LINE: usize = 1024;

/// The state of a response after the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed. If `may_end`, the response is complete when the server closes the connection.
    More {
        may_end: bool,
    },
    Complete,
    /// It is not a valid HTTP/1 response.
    Invalid,
    TooLarge,
}

#[derive(Debug, Default)]
pub struct Response {
    bytes: Vec<u8>,
    pub status: u16,
    /// The offset of the body, once the head is complete.
    body_at: Option<usize>,
    length: Option<usize>,
    is_chunked: bool,
    pub retry_after: Option<String>,
    pub coding: Option<Coding>,
    /// The body, once it is complete.
    pub body: Vec<u8>,
}

impl Response {
    /// Adds bytes and returns the new state. `most` is the maximum size of the body, in bytes.
    pub fn add(&mut self, bytes: &[u8], most: usize) -> Result<Progress> {
        self.bytes.try_extend(bytes)?;
        loop {
            if self.body_at.is_some() {
                return self.read_body(most);
            }
            let start = self.bytes.get(..7).unwrap_or(&self.bytes);
            if !b"HTTP/1.".starts_with(start) {
                return Ok(Progress::Invalid);
            }
            let Some(end) = find(&self.bytes, b"\r\n\r\n") else {
                return Ok(match self.bytes.len() > MOST_HEAD {
                    true => Progress::TooLarge,
                    false => Progress::More { may_end: false },
                });
            };
            if !self.read_head(end)? {
                return Ok(Progress::Invalid);
            }
            // An interim response, such as 100 Continue, precedes the real one.
            match self.status {
                100..200 => drop(self.bytes.drain(..end + 4)),
                _ => self.body_at = Some(end + 4),
            }
        }
    }

    /// The connection was closed, which completes the body.
    pub fn end(&mut self) -> Result<()> {
        let start = self.body_at.unwrap_or(self.bytes.len());
        let rest = self.bytes.get(start..).unwrap_or_default();
        self.body.clear();
        self.body.try_extend(rest)
    }

    fn read_head(&mut self, end: usize) -> Result<bool> {
        let head = self.bytes.get(..end).unwrap_or_default();
        let mut lines = head
            .split(|&byte| byte == b'\n')
            .map(<[u8]>::trim_ascii_end);
        // "HTTP/1.1 200 OK"
        let code = lines.next().and_then(|line| line.get(9..12));
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let Some(status) = code.and_then(|code| code.parse().ok()) else {
            return Ok(false);
        };
        self.status = status;
        for line in lines {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else {
                continue;
            };
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let is = |wanted: &[u8]| name.eq_ignore_ascii_case(wanted);
            let text = std::str::from_utf8(value).unwrap_or_default();
            if is(b"content-length") {
                let Ok(length) = text.parse() else {
                    return Ok(false);
                };
                self.length = Some(length);
            } else if is(b"transfer-encoding") {
                let last = text.rsplit(',').next().unwrap_or_default();
                self.is_chunked = last.trim().eq_ignore_ascii_case("chunked");
            } else if is(b"retry-after") {
                self.retry_after = Some(owned(text)?);
            } else if is(b"content-type") {
                self.coding = Some(Coding::of_type(text));
            }
        }
        Ok(true)
    }

    fn read_body(&mut self, most: usize) -> Result<Progress> {
        let start = self.body_at.unwrap_or(0);
        let rest = self.bytes.get(start..).unwrap_or_default();
        let is_long = self.length.is_some_and(|length| length > most);
        if is_long || rest.len() > most.saturating_add(MOST_HEAD) {
            return Ok(Progress::TooLarge);
        }
        if self.status == 204 || self.status == 304 {
            return Ok(Progress::Complete);
        }
        if self.is_chunked {
            self.body.clear();
            return read_pieces(rest, &mut self.body);
        }
        let Some(length) = self.length else {
            return Ok(match rest.len() > most {
                true => Progress::TooLarge,
                false => Progress::More { may_end: true },
            });
        };
        let Some(body) = rest.get(..length) else {
            return Ok(Progress::More { may_end: false });
        };
        self.body.clear();
        self.body.try_extend(body)?;
        Ok(Progress::Complete)
    }
}

/// Decodes a chunked body: each chunk follows its length in hexadecimal digits, and the last one has length 0.
fn read_pieces(mut rest: &[u8], body: &mut Vec<u8>) -> Result<Progress> {
    let more = Ok(Progress::More { may_end: false });
    loop {
        let Some(end) = find(rest.get(..MOST_LINE).unwrap_or(rest), b"\r\n") else {
            return match rest.len() >= MOST_LINE {
                true => Ok(Progress::Invalid),
                false => more,
            };
        };
        let (line, after) = rest.split_at(end);
        let size = line.split(|&byte| byte == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(size.trim_ascii()).unwrap_or_default();
        let Ok(size) = u32::from_str_radix(size, 16) else {
            return Ok(Progress::Invalid);
        };
        if size == 0 {
            // The trailer is not needed.
            return Ok(Progress::Complete);
        }
        let size = size as usize;
        let Some(piece) = after.get(2..2 + size) else {
            return more;
        };
        body.try_extend(piece)?;
        match after.get(2 + size..4 + size) {
            None => return more,
            Some(b"\r\n") => rest = after.get(4 + size..).unwrap_or_default(),
            Some(_) => return Ok(Progress::Invalid),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut windows = bytes.windows(wanted.len());
    windows.position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a response at once and byte by byte, and checks that the results are equal.
    fn read(bytes: &[u8]) -> (Progress, u16, Vec<u8>) {
        let mut once = Response::default();
        let progress = once.add(bytes, 1000).unwrap();
        let mut slow = Response::default();
        let mut last = Progress::More { may_end: false };
        for byte in bytes {
            if matches!(last, Progress::More { .. }) {
                last = slow.add(&[*byte], 1000).unwrap();
            }
        }
        assert_eq!(last, progress);
        assert_eq!((slow.status, &slow.body), (once.status, &once.body));
        (progress, once.status, once.body)
    }

    #[test]
    fn responses_have_bodies_of_three_kinds() {
        let complete = |status, body: &[u8]| (Progress::Complete, status, body.to_vec());
        let sized = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(read(sized), complete(200, b"abc"));
        let pieces = b"HTTP/1.0 503 x\r\ntransfer-encoding: Chunked\r\n\r\n3;x\r\nabc\r\nA\r\n0123456789\r\n0\r\n";
        assert_eq!(read(pieces), complete(503, b"abc0123456789"));
        assert_eq!(read(b"HTTP/1.1 204 \r\n\r\n"), complete(204, b""));
        let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n";
        assert_eq!(read(interim), complete(200, b""));
        let open = b"HTTP/1.1 200 OK\r\n\r\nabc";
        assert_eq!(read(open).0, Progress::More { may_end: true });
        let mut response = Response::default();
        response.add(open, 1000).unwrap();
        response.end().unwrap();
        assert_eq!(response.body, b"abc");
    }

    #[test]
    fn headers_are_read_in_any_case() {
        let mut response = Response::default();
        let head =
            b"HTTP/1.1 429 x\r\nRETRY-AFTER:  7 \r\ncontent-type: application/JSON; a=b\r\n\r\n";
        response.add(head, 1000).unwrap();
        assert_eq!(response.retry_after.as_deref(), Some("7"));
        assert_eq!(response.coding, Some(Coding::Json));
    }

    #[test]
    fn everything_else_is_refused() {
        for bytes in [
            &b"SSH-2.0"[..],
            b"HTTP/2",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc",
        ] {
            assert_eq!(read(bytes).0, Progress::Invalid, "{bytes:?}");
        }
        let declared = b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n";
        assert_eq!(read(declared).0, Progress::TooLarge);
        let long = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[b'a'; 1001]].concat();
        assert_eq!(read(&long).0, Progress::TooLarge);
        let mut head = b"HTTP/1.1 200 OK\r\nx: ".to_vec();
        head.resize(MOST_HEAD + 2, b'a');
        let progress = Response::default().add(&head, 1000).unwrap();
        assert_eq!(progress, Progress::TooLarge);
        let short = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab";
        assert_eq!(read(short).0, Progress::More { may_end: false });
    }
}
