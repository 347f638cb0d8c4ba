//! The position in the file that is being read or written, for progress bars.
//!
//! A second handle of the same open file reports it, so readers and writers need not count. In a compressed file, both
//! the position and the size count compressed bytes.

use std::fs::File;
use std::io::Seek;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub struct Observed(Mutex<Option<(File, u64)>>);

impl Observed {
    /// Begins with an open file. `size` is the number of bytes to read, 0 if it is unknown.
    pub(crate) fn begin(&self, file: &File, size: u64) {
        // Without a second handle, no progress is reported.
        self.set(file.try_clone().ok().map(|file| (file, size)));
    }

    /// Closes the handle.
    pub(crate) fn end(&self) {
        self.set(None);
    }

    fn set(&self, file: Option<(File, u64)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// The number of bytes that were read or written, and the size. `None` if no file is open, or if it has no position,
    /// like a pipe.
    pub fn progress(&self) -> Option<(u64, u64)> {
        let mut observed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, size) = observed.as_mut()?;
        Some((file.stream_position().ok()?, *size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::io::input::{InputFile, Origin};
    use crate::io::save;
    use crate::message;
    use std::io::{Read, Write};
    use std::sync::Arc;

    #[test]
    fn reading_and_writing_have_a_position() {
        let name = message!("profile-observed-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let observed = Arc::new(Observed::default());
        assert_eq!(observed.progress(), None);
        let write = |out: &mut dyn Write| {
            out.write_all(&[0; 1000]).map_err(save::failed)?;
            out.flush().map_err(save::failed)?;
            assert_eq!(observed.progress(), Some((1000, 0)));
            Ok(())
        };
        save::replace(&path, Some(&observed), write).unwrap();
        // The file is not kept open.
        assert_eq!(observed.progress(), None);
        let failing = |_: &mut dyn Write| Err(Error::Interrupted);
        assert!(save::replace(&path, Some(&observed), failing).is_err());
        assert_eq!(observed.progress(), None);

        let origin = Origin {
            observed: Some(observed.clone()),
            ..Origin::default()
        };
        let (mut file, _) = InputFile::open(&path, origin).unwrap();
        assert_eq!(observed.progress(), Some((0, 1000)));
        file.source().read_exact(&mut [0; 300]).unwrap();
        assert_eq!(observed.progress(), Some((300, 1000)));
        std::fs::remove_file(&path).unwrap();
    }
}
