//! Shows the command line of a process as text.

use profile_core::error::Result;
use profile_core::limits::memory::owned;
use profile_core::text::decode;

/// The program and its arguments, each followed by a 0, except perhaps the last one, with blanks between them.
pub fn text(mut bytes: Vec<u8>) -> Result<String> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    for byte in bytes.iter_mut().filter(|byte| **byte == 0) {
        *byte = b' ';
    }
    owned(&decode(&bytes)?.text)
}
