//! The URL of a server. R has already checked that it is a URL.

use data_encoding::BASE64;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, TryText, ensure, owned, written};
use profile_core::message;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// The value of the header `Host`.
    pub authority: String,
    /// Path and query, as in the request line.
    pub target: String,
    /// The value of the header `Authorization`, if the URL contains a user.
    pub authorization: Option<String>,
    /// The URL without user and query, which may be secret.
    pub shown: String,
}

impl Url {
    pub fn parse(text: &str) -> Result<Url> {
        let invalid = || Error::Unsupported(message!("The endpoint is not a valid HTTP URL."));
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(invalid());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (site, path) = rest.split_at(end);
        let (user, authority) = match site.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, site),
        };
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or_else(invalid)?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match port.strip_prefix(':') {
            Some("") => 80,
            Some(port) => port.parse().map_err(|_| invalid())?,
            None if port.is_empty() => 80,
            None => return Err(invalid()),
        };
        let is_blank = |byte: u8| byte.is_ascii_control() || byte == b' ';
        if host.is_empty() || authority.bytes().any(is_blank) {
            return Err(invalid());
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut target = owned(slash)?;
        for byte in path.bytes() {
            match byte.is_ascii_graphic() {
                true => target.try_push_char(char::from(byte))?,
                false => target.try_write(format_args!("%{byte:02X}"))?,
            }
        }
        let shown_path = target.split('?').next().unwrap_or_default();
        Ok(Url {
            host: owned(host)?,
            port,
            authority: owned(authority)?,
            authorization: user.map(basic).transpose()?,
            shown: written(format_args!("http://{authority}{shown_path}"))?,
            target,
        })
    }
}

/// Basic authentication for `user:password`, both percent-encoded.
#[expect(clippy::disallowed_methods, reason = "memory was ensured")]
fn basic(user: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let mut rest = user.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) => {
                bytes.try_push(code)?;
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.try_push(byte)?;
                rest = after;
            }
        }
    }
    if !bytes.contains(&b':') {
        bytes.try_push(b':')?;
    }
    ensure(bytes.len() * 2)?;
    written(format_args!("Basic {}", BASE64.encode(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        let url = Url::parse("http://us%40er:pa ss@example.org:4318/a/b?c=ü#d").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("example.org", 4318));
        assert_eq!(url.authority, "example.org:4318");
        assert_eq!(url.target, "/a/b?c=%C3%BC");
        assert_eq!(url.shown, "http://example.org:4318/a/b");
        // printf 'us@er:pa ss' | base64
        assert_eq!(url.authorization.unwrap(), "Basic dXNAZXI6cGEgc3M=");
        let url = Url::parse("HTTP://[::1]:81").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("::1", 81));
        assert_eq!(url.authority, "[::1]:81");
        assert_eq!(url.target, "/");
        let url = Url::parse("http://localhost?x").unwrap();
        assert_eq!((url.port, url.target.as_str()), (80, "/?x"));
        let url = Url::parse("http://u@h/").unwrap();
        // printf 'u:' | base64
        assert_eq!(url.authorization.unwrap(), "Basic dTo=");
        for bad in [
            "https://a",
            "a",
            "http://",
            "http://:80",
            "http://a:99999",
            "http://[::1",
            "http://[::1]x",
            "http://a b/",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}
