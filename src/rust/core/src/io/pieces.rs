//! The content of an input in pieces, which another thread reads and inflates ahead of their
//! use.
//!
//! The other thread is started for inputs that are longer than one piece, and only if reading them
//! never waits: a thread that waits for a terminal or a pipe would not end when the user interrupts.
//! There are four buffers, so the thread is at most three pieces ahead. An error is returned at the
//! same position as without the thread, after all bytes before it.

use super::gzip::Content;
use crate::error::Result;
use crate::limits::memory::{self, TryGrow};
use crate::limits::thread::start;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

/// The size of a piece in bytes. A piece stays in the cache of a processor until it is used. Sizes
/// between 64 kB and 1 MB make no difference.
pub const PIECE: usize = 1 << 18;
/// The number of buffers that are being filled, waiting or in use at the same time.
const BUFFERS: usize = 4;

/// Calls `work` with the content in pieces of `size` bytes.
pub fn in_pieces<'env, T>(
    content: Content<'env>,
    size: usize,
    work: impl FnOnce(&mut Pieces<'_, 'env>) -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        work(&mut Pieces {
            buffer: Vec::new(),
            unused: 0..0,
            size,
            next: size / 16,
            content: Some(content),
            ahead: None,
            error: None,
            scope,
        })
    })
}

/// The bytes that are not used yet, and the source of the next ones.
pub struct Pieces<'scope, 'env> {
    buffer: Vec<u8>,
    /// The bytes of the buffer that are not used yet.
    unused: Range<usize>,
    /// The size of a piece in bytes.
    size: usize,
    /// The number of bytes to read next without the other thread. It starts small, since most files are
    /// small.
    next: usize,
    /// `None` while the other thread owns it.
    content: Option<Content<'env>>,
    ahead: Option<Ahead<'scope, 'env>>,
    /// The error that follows the bytes.
    error: Option<io::Error>,
    scope: &'scope Scope<'scope, 'env>,
}

/// The thread that reads ahead. It ends at the end of the content, or when this struct is dropped.
struct Ahead<'scope, 'env> {
    /// Receives filled buffers, each with the number of bytes after its front.
    filled: Receiver<(Vec<u8>, usize)>,
    /// Takes buffers to be filled.
    empty: SyncSender<Vec<u8>>,
    thread: ScopedJoinHandle<'scope, Option<(Content<'env>, io::Result<()>)>>,
}

impl<'env> Pieces<'_, 'env> {
    /// The bytes that are not used yet.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.unused.clone()]
    }

    /// Keeps only this range of the bytes. Further bytes are added at its end.
    pub fn keep(&mut self, range: Range<usize>) {
        debug_assert!(range.start <= range.end && range.end <= self.bytes().len());
        let start = self.unused.start;
        self.unused = start + range.start..start + range.end;
    }

    /// Adds the next bytes. Returns their number, which is 0 only at the end of the content.
    pub fn more(&mut self) -> io::Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let Some(ahead) = &self.ahead else {
            return self.read();
        };
        if let Ok((buffer, count)) = ahead.filled.recv() {
            self.add(buffer, count)?;
            return Ok(count);
        }
        let Some(ahead) = self.ahead.take() else {
            return Ok(0);
        };
        match ahead.thread.join() {
            Ok(Some((content, result))) => {
                self.content = Some(content);
                result.map(|()| 0)
            }
            Ok(None) => Ok(0),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// The number of zero bytes after the compressed data, when all data were read.
    pub fn padding(&self) -> u64 {
        self.content.as_ref().map_or(0, Content::padding)
    }

    /// Reads without another thread. If the content is longer than a piece, the other thread is then started.
    fn read(&mut self) -> io::Result<usize> {
        let Some(mut content) = self.content.take() else {
            return Ok(0);
        };
        let size = self.next.max(1);
        self.next = (size * 4).min(self.size);
        let result = self.room(size).and_then(|room| {
            if content.is_at_hand() {
                Ok(fill(&mut content, room))
            } else {
                content.read(room).map(|count| (count, Ok(())))
            }
        });
        let (count, end) = match result {
            Ok(found) => found,
            Err(error) => {
                self.content = Some(content);
                return Err(error);
            }
        };
        self.unused.end += count;
        if content.is_at_hand() && count == self.size {
            self.start(content)
        } else {
            self.content = Some(content)
        }
        match end {
            Err(error) if count == 0 => return Err(error),
            Err(error) => self.error = Some(error),
            Ok(()) => {}
        }
        Ok(count)
    }

    /// Starts the other thread. If that is not possible, reading continues without it.
    fn start(&mut self, content: Content<'env>) {
        let (give, take) = sync_channel::<Content>(1);
        let (to_use, filled) = sync_channel(BUFFERS);
        let (empty, to_fill) = sync_channel(BUFFERS);
        let (front, size) = (self.front(), self.size);
        let work = move || {
            let mut content = take.recv().ok()?;
            let end = fill_all(&mut content, front, &to_fill, &to_use);
            Some((content, end))
        };
        let mut enough = true;
        for _ in 1..BUFFERS {
            let buffer = memory::filled(front + size, 0);
            // There is room for all of them.
            enough &= buffer.is_ok_and(|buffer| empty.send(buffer).is_ok());
        }
        let thread = enough.then(|| start(self.scope, work));
        let Some(Ok(thread)) = thread else {
            self.content = Some(content);
            return;
        };
        // The thread is waiting for the content.
        let _ = give.send(content);
        self.ahead = Some(Ahead {
            filled,
            empty,
            thread,
        });
    }

    /// Adds the bytes of a buffer that the other thread filled.
    fn add(&mut self, mut buffer: Vec<u8>, count: usize) -> io::Result<()> {
        let (front, left) = (self.front(), self.unused.len());
        match front.checked_sub(left) {
            Some(start) => {
                buffer[start..front].copy_from_slice(&self.buffer[self.unused.clone()]);
                self.unused = start..front + count;
                std::mem::swap(&mut self.buffer, &mut buffer);
                // The first buffer was smaller, and long lines enlarge buffers.
                let length = front + self.size;
                buffer.truncate(length);
                let filled = buffer.try_fill(length, 0);
                filled.map_err(|_| ErrorKind::OutOfMemory)?;
            }
            None => {
                let piece = &buffer[front..front + count];
                self.room(count)?.copy_from_slice(piece);
                self.unused.end += count;
            }
        }
        if let Some(ahead) = &self.ahead {
            // If the thread has ended, nobody needs the buffer.
            let _ = ahead.empty.send(buffer);
        }
        Ok(())
    }

    /// The number of bytes that are reserved before each piece, for unused bytes of the previous piece.
    fn front(&self) -> usize {
        self.size / 4
    }

    /// Space for `size` bytes after the unused ones.
    fn room(&mut self, size: usize) -> io::Result<&mut [u8]> {
        if self.buffer.len() - self.unused.end < size {
            let left = self.unused.len();
            // Unused bytes at the start of the buffer stay there, so a long line is not moved each time.
            if self.unused.start > 0 {
                self.buffer.copy_within(self.unused.clone(), 0);
                self.unused = 0..left;
            }
            let grown = self.buffer.try_fill(left + size, 0);
            grown.map_err(|_| ErrorKind::OutOfMemory)?;
        }
        Ok(&mut self.buffer[self.unused.end..][..size])
    }
}

/// Fills buffers after their fronts until the content ends, or until no more buffers are wanted.
fn fill_all(
    content: &mut Content,
    front: usize,
    empty: &Receiver<Vec<u8>>,
    filled: &SyncSender<(Vec<u8>, usize)>,
) -> io::Result<()> {
    for mut buffer in empty {
        let room = &mut buffer[front..];
        let size = room.len();
        let (count, end) = fill(content, room);
        if count > 0 && filled.send((buffer, count)).is_err() {
            break;
        }
        end?;
        if count < size {
            break;
        }
    }
    Ok(())
}

/// Reads until `room` is full or the content ends. Returns the number of bytes, and the error that
/// follows them.
fn fill(content: &mut Content, room: &mut [u8]) -> (usize, io::Result<()>) {
    let mut count = 0;
    while count < room.len() {
        match content.read(&mut room[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (count, Err(error)),
        }
    }
    (count, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::gzip::compress;
    use crate::io::input::Source;
    use crate::io::save::failed;
    use crate::limits::memory::Growing;
    use crate::limits::thread::tests::without_threads;

    const SIZE: usize = 64;

    /// Reads an input, of which `left` bytes remain unused at each step. Returns its bytes, the number of
    /// zeros after it, and the error at its end.
    fn read(source: Source, left: usize) -> (Vec<u8>, u64, Option<ErrorKind>) {
        let content = Content::new(source).unwrap();
        in_pieces(content, SIZE, |pieces| {
            let mut all = Vec::new();
            let error = loop {
                match pieces.more() {
                    Ok(0) => break None,
                    Ok(_) => {}
                    Err(error) => break Some(error.kind()),
                }
                let length = pieces.bytes().len();
                let used = length.saturating_sub(left);
                all.extend_from_slice(&pieces.bytes()[..used]);
                pieces.keep(used..length);
            };
            all.extend_from_slice(pieces.bytes());
            // Reading at the end again has the same result.
            assert!(error.is_some() || matches!(pieces.more(), Ok(0)));
            Ok((all, pieces.padding(), error))
        })
        .unwrap()
    }

    #[test]
    fn pieces_are_the_content() {
        for size in [0, 1, SIZE - 1, SIZE, SIZE + 1, 4 * SIZE, 100 * SIZE + 7] {
            let plain: Vec<u8> = (0..size).map(|i| (i / 3 % 251) as u8).collect();
            let mut deflated = Vec::new();
            let all = |out: &mut dyn io::Write| out.write_all(&plain).map_err(failed);
            compress(&mut Growing(&mut deflated), all).unwrap();
            let padded = [&deflated[..], &[0; 100]].concat();
            // Among others, as many bytes as fit before a piece, and more than a buffer.
            for left in [0, 1, SIZE / 4, SIZE / 4 + 1, SIZE, 10 * SIZE] {
                for (bytes, zeros) in [(&plain, 0), (&deflated, 0), (&padded, 100)] {
                    let expected = (plain.clone(), zeros, None);
                    assert_eq!(read(Source::Bytes(bytes), left), expected);
                    let alone = without_threads(|| read(Source::Bytes(bytes), left));
                    assert_eq!(alone, expected);
                    let mut stream = bytes.as_slice();
                    assert_eq!(read(Source::Stream(&mut stream), left), expected);
                }
                let cut = &deflated[..deflated.len() - 1];
                let (bytes, _, error) = read(Source::Bytes(cut), left);
                assert_eq!(
                    (bytes, error),
                    (plain.clone(), Some(ErrorKind::UnexpectedEof))
                );
            }
        }
    }

    #[test]
    fn the_thread_ends_when_nobody_reads_on() {
        let bytes = vec![1; 100 * SIZE];
        let content = Content::new(Source::Bytes(&bytes)).unwrap();
        let count = in_pieces(content, SIZE, |pieces| {
            // Pieces of 4, 16 and 64 bytes, and then one from the thread.
            for _ in 0..3 {
                pieces.more().unwrap();
            }
            Ok(pieces.more().unwrap())
        });
        assert_eq!(count.unwrap(), SIZE);
    }

    #[test]
    fn bytes_may_be_dropped_at_both_ends() {
        let bytes: Vec<u8> = (0..100).collect();
        let content = Content::new(Source::Bytes(&bytes)).unwrap();
        in_pieces(content, SIZE, |pieces| {
            while pieces.bytes().len() < 20 {
                pieces.more().unwrap();
            }
            let read = pieces.bytes().len() as u8;
            pieces.keep(10..12);
            assert_eq!(pieces.bytes(), [10, 11]);
            pieces.more().unwrap();
            assert_eq!(pieces.bytes()[..4], [10, 11, read, read + 1]);
            Ok(())
        })
        .unwrap();
    }
}
