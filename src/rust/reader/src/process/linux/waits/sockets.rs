//! The other end of a socket, from the tables in `/proc/PID/net`, see proc(5).

use super::super::folder::file_of;
use crate::recorded::waits::WaitKind;
use profile_core::error::Result;
use profile_core::limits::memory::owned;
use profile_core::message;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const LISTENS: &str = "0A";

/// The other end of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherEnd {
    pub kind: WaitKind,
    /// Its address, or the path of a local socket.
    pub name: Option<String>,
    /// The inode of a socket of this machine that is connected to it.
    pub inode: Option<u64>,
}

impl OtherEnd {
    pub fn of(kind: WaitKind, name: Option<String>) -> OtherEnd {
        OtherEnd {
            kind,
            name,
            inode: None,
        }
    }
}

/// The other end of the socket with this inode; `None` if no table has it. The tables do not say to which other local
/// socket one is connected that has no path.
pub fn other_end(pid: i32, inode: u64) -> Result<Option<OtherEnd>> {
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = read(pid, table);
        let Some(row) = text
            .lines()
            .filter_map(Row::parse)
            .find(|row| row.inode == inode)
        else {
            continue;
        };
        let mut end = OtherEnd::of(WaitKind::Network, row.name());
        if address(row.remote).is_some_and(|remote| remote.ip().is_loopback()) {
            let rows = text.lines().filter_map(Row::parse);
            let mut ends = rows.filter(|end| end.local == row.remote && end.remote == row.local);
            end.inode = ends.next().map(|end| end.inode);
        }
        return Ok(Some(end));
    }
    let text = read(pid, "unix");
    Ok(match text.lines().find_map(|line| path_in(line, inode)) {
        Some("") => Some(OtherEnd::of(WaitKind::Pipe, None)),
        Some(path) => Some(OtherEnd::of(WaitKind::Pipe, Some(owned(path)?))),
        None => None,
    })
}

fn read(pid: i32, table: &str) -> String {
    let bytes = fs::read(file_of(pid, &message!("net/{table}"))).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// A row of a table of connections.
#[derive(Debug, Clone, Copy)]
struct Row<'t> {
    local: &'t str,
    remote: &'t str,
    state: &'t str,
    inode: u64,
}

impl<'t> Row<'t> {
    fn parse(line: &'t str) -> Option<Row<'t>> {
        let mut fields = line.split_ascii_whitespace();
        Some(Row {
            local: fields.nth(1)?,
            remote: fields.next()?,
            state: fields.next()?,
            inode: fields.nth(5)?.parse().ok()?,
        })
    }

    /// The remote address, or where it listens.
    fn name(&self) -> Option<String> {
        Some(match self.state {
            LISTENS => message!("listening on {}", address(self.local)?),
            _ => message!("{}", address(self.remote)?),
        })
    }
}

/// `0100007F:1538` is 127.0.0.1:5432: words of an address in the order of the processor, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok();
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(8 * at)?.to_ne_bytes());
            }
            let ip = Ipv6Addr::from(bytes);
            // A socket of both versions.
            ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// The path of the local socket with this inode, empty if it has none. Abstract names start with `@`.
fn path_in(line: &str, inode: u64) -> Option<&str> {
    let mut fields = line.split_ascii_whitespace();
    let number: u64 = fields.nth(6)?.parse().ok()?;
    (number == inode).then(|| fields.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_in(line: &str, inode: u64) -> Option<String> {
        Row::parse(line).filter(|row| row.inode == inode)?.name()
    }

    #[test]
    fn addresses_are_in_the_tables_of_sockets() {
        let connected = "   1: 0100007F:E27C 0100007F:1538 01 00000000:00000000 02:000004E7 00000000  1000        0 52101 2 0";
        assert_eq!(address_in(connected, 52101).unwrap(), "127.0.0.1:5432");
        assert_eq!(address_in(connected, 52102), None);
        let listening =
            "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1";
        assert_eq!(
            address_in(listening, 7).unwrap(),
            "listening on 0.0.0.0:8000"
        );
        let six = "   0: 00000000000000000000000001000000:1F40 B80D012000000000000000000100000:01BB 01 0:0 00:0 0 0 0 8 1";
        assert_eq!(address_in(six, 8), None);
        let six = "   0: 00000000000000000000000001000000:1F40 B80D0120000000000000000001000000:01BB 01 0:0 00:0 0 0 0 8 1";
        assert_eq!(address_in(six, 8).unwrap(), "[2001:db8::1]:443");
        let mapped = "   0: 0:0 0000000000000000FFFF00000100007F:0050 01 0:0 00:0 0 0 0 9 1";
        assert_eq!(address_in(mapped, 9).unwrap(), "127.0.0.1:80");
        assert_eq!(
            address_in("  sl  local_address rem_address   st tx_queue", 1),
            None
        );
        let local = "0000000000000000: 00000002 00000000 00010000 0001 01 31042 /run/db.sock";
        assert_eq!(path_in(local, 31042), Some("/run/db.sock"));
        assert_eq!(path_in("0: 2 0 0 1 3 31043", 31043), Some(""));
        assert_eq!(
            path_in("Num       RefCount Protocol Flags    Type St Inode Path", 1),
            None
        );
    }
}
