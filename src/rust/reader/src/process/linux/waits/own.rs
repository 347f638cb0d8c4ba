//! The other end of a socket of this process, which the kernel says without a table of all connections.

use super::sockets::OtherEnd;
use crate::recorded::waits::WaitKind;
use profile_core::error::Result;
use profile_core::message;
use profile_core::text::decode;
use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `None` if it is not a socket any more.
pub fn other_end(number: i32) -> Result<Option<OtherEnd>> {
    let Some(own) = name_of(number, libc::getsockname) else {
        return Ok(None);
    };
    let listens = is_listening(number);
    let end = if listens {
        Some(own)
    } else {
        name_of(number, libc::getpeername)
    };
    Ok(Some(match own.family() {
        libc::AF_UNIX => {
            let path = match end.as_ref().and_then(Name::path) {
                Some((mark, path)) => Some(message!("{mark}{}", decode(path)?.text)),
                None => None,
            };
            OtherEnd::of(WaitKind::Pipe, path)
        }
        _ => {
            let address = end.and_then(|end| end.address());
            let name = address.map(|address| match listens {
                true => message!("listening on {address}"),
                false => message!("{address}"),
            });
            OtherEnd::of(WaitKind::Network, name)
        }
    }))
}

/// The address of a socket of any family, and how much of it the kernel has filled in.
#[derive(Clone, Copy)]
struct Name {
    bytes: [u8; size_of::<libc::sockaddr_storage>()],
    length: usize,
}

/// `getsockname()` or `getpeername()`.
type Ask = unsafe extern "C" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;

fn name_of(number: i32, ask: Ask) -> Option<Name> {
    let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let size = size_of::<libc::sockaddr_storage>();
    let mut length = size as libc::socklen_t;
    // SAFETY: the kernel writes no more than the size that it is given, and fails for what is no socket.
    let failed = unsafe { ask(number, storage.as_mut_ptr().cast(), &raw mut length) };
    if failed != 0 {
        return None;
    }
    // SAFETY: all bytes are initialized, and any array of bytes is valid.
    let bytes = unsafe {
        storage
            .as_ptr()
            .cast::<[u8; size_of::<libc::sockaddr_storage>()]>()
            .read()
    };
    Some(Name {
        bytes,
        length: (length as usize).min(size),
    })
}

fn is_listening(number: i32) -> bool {
    let mut answer: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes an `int`, or fails.
    let failed = unsafe {
        libc::getsockopt(
            number,
            libc::SOL_SOCKET,
            libc::SO_ACCEPTCONN,
            (&raw mut answer).cast::<c_void>(),
            &raw mut length,
        )
    };
    failed == 0 && answer != 0
}

impl Name {
    fn family(&self) -> c_int {
        c_int::from(u16::from_ne_bytes(self.part(0)))
    }

    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        let part = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        part.copied().unwrap_or([0; N])
    }

    /// An address of IP version 4 or 6.
    fn address(&self) -> Option<SocketAddr> {
        let (ip, port) = match self.family() {
            libc::AF_INET => {
                let ip = self.part::<4>(offset_of!(libc::sockaddr_in, sin_addr));
                let port = self.part(offset_of!(libc::sockaddr_in, sin_port));
                (IpAddr::V4(Ipv4Addr::from(ip)), port)
            }
            libc::AF_INET6 => {
                let ip = self.part::<16>(offset_of!(libc::sockaddr_in6, sin6_addr));
                let ip = Ipv6Addr::from(ip);
                let port = self.part(offset_of!(libc::sockaddr_in6, sin6_port));
                (ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4), port)
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(port)))
    }

    /// The path of a local socket, if it has one. Abstract names start with a 0, which is shown as `@`.
    fn path(&self) -> Option<(&'static str, &[u8])> {
        let path = self
            .bytes
            .get(offset_of!(libc::sockaddr_un, sun_path)..self.length)?;
        match path.split_first()? {
            (0, []) => None,
            (0, rest) => Some(("@", rest)),
            _ => path.split(|&byte| byte == 0).next().map(|path| ("", path)),
        }
    }
}
