//! The memory of a process: [`own`] makes reading this process quicker, [`own_view`] lends parts of it, [`image`] is a
//! copy of this process that stands still, and [`maps`] lists what is mapped where.

pub(super) mod image;
pub(super) mod maps;
mod own;
pub(super) mod own_view;

use own::Own;
use profile_core::error::Result;
use profile_runtime::memory::{Memory, Piece};
use std::ops::Range;
use std::process;

/// The maximum number of pieces that a system call reads (`IOV_MAX` of Linux).
const MOST_PIECES: usize = 1024;

const _: () = assert!(
    size_of::<Piece>() == size_of::<libc::iovec>()
        && align_of::<Piece>() == align_of::<libc::iovec>()
        && std::mem::offset_of!(Piece, address) == std::mem::offset_of!(libc::iovec, iov_base)
        && std::mem::offset_of!(Piece, size) == std::mem::offset_of!(libc::iovec, iov_len)
);

/// The memory of a process of this machine.
///
/// It is read by `process_vm_readv()`, which fails for invalid addresses and requires permission to debug the
/// process. A thread can also read its own process, where R's stacks and variables are read directly.
#[derive(Debug, Clone)]
pub struct ProcessMemory {
    pid: libc::pid_t,
    own: Option<Own>,
}

impl ProcessMemory {
    pub fn new(pid: i32) -> ProcessMemory {
        let is_own = u32::try_from(pid) == Ok(process::id());
        let own = if is_own { Own::find() } else { None };
        ProcessMemory { pid, own }
    }
}

impl Memory for ProcessMemory {
    #[inline]
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let own = self.own.as_mut();
        if own.is_some_and(|own| own.read(address, into)) {
            return true;
        }
        let size = into.len();
        self.read_pieces(&[Piece { address, size }], into) == 1
    }

    fn keep_at_hand(&mut self, parts: &[Range<u64>]) -> Result<()> {
        self.own.as_mut().map_or(Ok(()), |own| own.add(parts))
    }

    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        let (mut count, mut start) = (0, 0);
        if let Some(own) = &mut self.own {
            for piece in pieces {
                let part = into.get_mut(start..start + piece.size);
                if !part.is_some_and(|part| own.read(piece.address, part)) {
                    break;
                }
                start += piece.size;
                count += 1;
            }
        }
        let mut into = into.get_mut(start..).unwrap_or_default();
        for pieces in pieces.get(count..).unwrap_or_default().chunks(MOST_PIECES) {
            let size: usize = pieces.iter().map(|piece| piece.size).sum();
            // Reading nothing succeeds.
            if size == 0 {
                count += pieces.len();
                continue;
            }
            let Some((part, rest)) = std::mem::take(&mut into).split_at_mut_checked(size) else {
                break;
            };
            into = rest;
            let local = libc::iovec {
                iov_base: part.as_mut_ptr().cast(),
                iov_len: size,
            };
            // SAFETY: the kernel writes to `local` only, whose length is correct. It checks the addresses of the
            // pieces, which belong to another address space. A `Piece` has the layout of an `iovec`.
            let read = unsafe {
                libc::process_vm_readv(
                    self.pid,
                    &raw const local,
                    1,
                    pieces.as_ptr().cast(),
                    pieces.len() as libc::c_ulong,
                    0,
                )
            };
            // -1 for an error.
            let read = usize::try_from(read).unwrap_or(0);
            if read == size {
                count += pieces.len();
                continue;
            }
            let mut end = 0;
            let is_read = |piece: &&Piece| {
                end += piece.size;
                end <= read
            };
            count += pieces.iter().take_while(is_read).count();
            break;
        }
        count
    }
}
