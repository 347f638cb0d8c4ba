//! Images of the process when its memory is higher than ever, for another process that reads who holds it then.
//!
//! The newest image replaces the one before, also if that is just being read: what matters is the highest memory. The reader
//! gets to know of it by a file with these lines: the id of the image, how many images there were, the bytes of vectors in
//! use, those of the vector that is being allocated, which is no object of R yet, the date in nanoseconds since 1970, the
//! name, the file and the line of the call that allocates it, and what `malloc()` says, which only this process can ask: the
//! bytes in use and those that are free, or the name of an allocator that does not say it.

use profile_core::error::Result;
use profile_core::limits::memory::written;
use profile_core::message;
use profile_reader::heap::maxima::{Bounds, Maxima};
use profile_reader::heap::resident::{GLIBC, Malloc, malloc};
use profile_reader::live::{memory_left, resident};
use profile_reader::process::Image;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// R waits while an image is made, and then for each page that it changes for the first time.
const BOUNDS: Bounds = Bounds {
    percent: 110,
    share: 0.05,
    allowance: Duration::from_secs(1),
};
/// What must be left: a part of the memory of the process, and what the reader needs in any case. If it is more, the kernel
/// ends the reader and the image first.
const PART: u64 = 8;
const LEAST_LEFT: u64 = 64 << 20;

pub struct Images {
    /// The process that reads them, and the folder for the file.
    reader: i32,
    folder: PathBuf,
    maxima: Maxima,
    began: Instant,
    /// The memory of the process when the recording began.
    base: u64,
    count: u64,
    image: Option<Image>,
    /// Former ones, which the reader may still hold.
    former: Vec<Image>,
}

/// The vector that is being allocated.
pub struct Pending {
    pub bytes: u64,
    pub name: String,
    pub file: String,
    pub line: i32,
}

impl Images {
    pub fn new(reader: i32, file: &Path) -> Images {
        Images {
            reader,
            folder: file.parent().unwrap_or(file).to_path_buf(),
            maxima: Maxima::new(BOUNDS),
            began: Instant::now(),
            base: resident().unwrap_or(0),
            count: 0,
            image: None,
            former: Vec::new(),
        }
    }

    /// Whether to take an image, when so many bytes of vectors are in use.
    pub fn is_due(&mut self, bytes: u64) -> bool {
        let bytes = self.base.saturating_add(bytes);
        self.maxima.has_grown(bytes) && self.maxima.is_due(bytes, self.began.elapsed())
    }

    /// Takes an image. If that is not possible, the reason is kept, and it is tried again when the memory is a tenth higher.
    pub fn take(&mut self, bytes: u64, pending: &Pending, date: u64) {
        self.end_image();
        let level = self.base.saturating_add(bytes);
        let malloc = malloc::figures();
        let taken = match check_room(level, memory_left()) {
            Ok(()) => without_signals(|| Image::take_for(self.reader))
                .map_err(|error| message!("{error}")),
            Err(why) => Err(why),
        };
        let pause = taken.as_ref().map_or(Duration::ZERO, |image| image.pause);
        self.maxima.took(level, pause);
        let noted = match taken {
            Ok(image) => {
                self.count += 1;
                let asked = malloc
                    .map_err(drop)
                    .and_then(|malloc| self.ask(&image, bytes, pending, date, &malloc));
                self.image = Some(image);
                asked
            }
            Err(why) => fs::write(self.folder.join("refused"), why).map_err(drop),
        };
        if noted.is_err() {
            self.end_image();
        }
    }

    /// Ends the last image, which occupies memory. R does not wait for the reader.
    fn end_image(&mut self) {
        if let Some(image) = self.image.take() {
            // Without room in the list, it is waited for.
            if self.former.try_reserve(1).is_ok() {
                self.former.push(image);
            }
        }
        self.former.retain_mut(|image| !image.try_end());
    }

    fn ask(
        &self,
        image: &Image,
        bytes: u64,
        pending: &Pending,
        date: u64,
        malloc: &Malloc,
    ) -> std::result::Result<(), ()> {
        let Pending {
            bytes: own,
            name,
            file,
            line,
        } = pending;
        let (pid, count) = (image.pid, self.count);
        let (allocator, used, free) = match malloc {
            Malloc::Unknown => ("", 0, 0),
            Malloc::Other(name) => (name.as_str(), 0, 0),
            Malloc::Glibc(glibc) => (GLIBC, glibc.used, glibc.free),
        };
        let [name, file, allocator] = [name, file, allocator].map(first_line);
        let text = written(format_args!(
            "{pid}\n{count}\n{bytes}\n{own}\n{date}\n{name}\n{file}\n{line}\n{allocator}\n{used}\n{free}\n"
        ));
        let [new, request] = ["request.new", "request"].map(|name| self.folder.join(name));
        fs::write(&new, text.map_err(drop)?).map_err(drop)?;
        fs::rename(&new, &request).map_err(drop)
    }
}

/// Names of functions and files may have several lines.
fn first_line(text: &str) -> &str {
    text.split(['\n', '\r']).next().unwrap_or_default()
}

/// Whether there is room for an image of a process with so much memory, or why not.
fn check_room(level: u64, left: Option<u64>) -> std::result::Result<(), String> {
    let needed = (level / PART).saturating_add(LEAST_LEFT);
    match left {
        Some(left) if left < needed => Err(message!(
            "at {} MB of memory, {} MB are left, and it could need {} MB",
            level >> 20,
            left >> 20,
            needed >> 20
        )),
        _ => Ok(()),
    }
}

/// Runs code while all signals are blocked, as they then are in a process that it creates.
fn without_signals<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: the sets are initialized by the first two calls; the mask is that of this thread.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = run();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_the_file() {
        let names = ["f", "a\nb", "\n", "a\r\nb", ""].map(first_line);
        assert_eq!(names, ["f", "a", "", "a", ""]);
    }

    #[test]
    fn there_must_be_room() {
        let megabytes = |count: u64| count << 20;
        assert_eq!(check_room(megabytes(800), None), Ok(()));
        assert_eq!(check_room(megabytes(800), Some(megabytes(164))), Ok(()));
        let why = check_room(megabytes(800), Some(megabytes(163))).unwrap_err();
        assert_eq!(
            why,
            "at 800 MB of memory, 163 MB are left, and it could need 164 MB"
        );
    }
}
