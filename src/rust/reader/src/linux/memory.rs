//! The memory of a process.

use crate::memory::Memory;

/// The most pieces that a system call reads (`IOV_MAX` of Linux).
const PIECES: usize = 1024;

/// The memory of a process of this machine.
///
/// It is read by `process_vm_readv()`, which fails for wrong addresses, and which the kernel allows to those who
/// may debug the process. A thread can read that of its own process as well.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMemory {
    pid: libc::pid_t,
}

impl ProcessMemory {
    pub fn new(pid: i32) -> ProcessMemory {
        ProcessMemory { pid }
    }
}

impl Memory for ProcessMemory {
    #[inline]
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        self.read_each(&[address], into) == 1
    }

    fn read_each(&mut self, addresses: &[u64], into: &mut [u8]) -> usize {
        if addresses.is_empty() || into.is_empty() {
            return addresses.len();
        }
        let size = into.len() / addresses.len();
        let mut remote = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; PIECES];
        let mut count = 0;
        for (addresses, into) in addresses.chunks(PIECES).zip(into.chunks_mut(size * PIECES)) {
            for (piece, &address) in remote.iter_mut().zip(addresses) {
                piece.iov_base = address as *mut libc::c_void;
                piece.iov_len = size;
            }
            let local = libc::iovec {
                iov_base: into.as_mut_ptr().cast(),
                iov_len: into.len(),
            };
            // SAFETY: the kernel writes to `local` only, which is as long as it says. It checks the
            // addresses in `remote`, which are those of another address space.
            let read = unsafe {
                libc::process_vm_readv(
                    self.pid,
                    &raw const local,
                    1,
                    remote.as_ptr(),
                    addresses.len() as libc::c_ulong,
                    0,
                )
            };
            // -1 for an error.
            let read = usize::try_from(read).unwrap_or(0);
            count += read / size;
            if read < into.len() {
                break;
            }
        }
        count
    }
}
