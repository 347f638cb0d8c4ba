//! Where a signal has interrupted the thread that handles it.

/// What the thread was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// It was not in a system call.
    Elsewhere,
    /// It was in the system call with this number.
    InCall(i64),
    /// It was in a system call whose number is not known. Those are the calls that may wait.
    InSomeCall,
}

const ELSEWHERE: i64 = -1;
const IN_SOME_CALL: i64 = -2;

impl Interrupted {
    /// As a number, which a handler can store.
    pub fn number(self) -> i64 {
        match self {
            Interrupted::Elsewhere => ELSEWHERE,
            Interrupted::InCall(number) => number,
            Interrupted::InSomeCall => IN_SOME_CALL,
        }
    }

    pub fn from_number(number: i64) -> Interrupted {
        match number {
            ELSEWHERE => Interrupted::Elsewhere,
            IN_SOME_CALL => Interrupted::InSomeCall,
            number => Interrupted::InCall(number),
        }
    }
}

/// The code at an address; `None` if it is not mapped. Called in a handler, and therefore asks the kernel, which rejects
/// such an address: the page before the current instruction may not exist.
pub fn code_at<const SIZE: usize>(address: u64) -> Option<[u8; SIZE]> {
    let mut code = [0; SIZE];
    let local = libc::iovec {
        iov_base: code.as_mut_ptr().cast(),
        iov_len: SIZE,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address as usize),
        iov_len: SIZE,
    };
    // SAFETY: the kernel writes to the array only, whose size is correct, and checks the address.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    (usize::try_from(read) == Ok(SIZE)).then_some(code)
}
