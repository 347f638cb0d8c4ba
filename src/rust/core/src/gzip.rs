//! Compressed or not, told by the first two bytes; and compressing, beside what
//! makes the content.

use crate::error::{Error, Result};
use crate::save;
use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use std::io::{self, Chain, Cursor, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Of gzip. Level 6 takes a tenth longer for files that are a fiftieth smaller;
/// level 1 takes two thirds of the time for files larger by a third.
const LEVEL: u32 = 5;
/// Pieces of the content that may wait to be compressed.
const WAITING: usize = 16;

/// The content of a file: inflated when the bytes are gzip (also several
/// members in a row), else as it is.
pub enum Content<R: Read> {
    Plain(Peeked<R>),
    Gzip(Box<MultiGzDecoder<Peeked<R>>>),
}

type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: Read> Content<R> {
    pub fn new(mut input: R) -> io::Result<Content<R>> {
        let mut start = Vec::with_capacity(2);
        input.by_ref().take(2).read_to_end(&mut start)?;
        let gzip = start == [0x1f, 0x8b];
        let whole = Cursor::new(start).chain(input);
        Ok(if gzip {
            Content::Gzip(Box::new(MultiGzDecoder::new(whole)))
        } else {
            Content::Plain(whole)
        })
    }

    pub fn is_gzip(&self) -> bool {
        matches!(self, Content::Gzip(_))
    }
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::Plain(input) => input.read(buffer),
            Content::Gzip(input) => input.read(buffer),
        }
    }
}

/// Compresses what `write` writes. A thread of its own does it, since it takes as
/// long as making the content.
pub fn compress(
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    // Without a time stamp equal profiles give equal files.
    let mut gzip = GzBuilder::new()
        .mtime(0)
        .write(out, Compression::new(LEVEL));
    thread::scope(|scope| {
        let (pieces, waiting) = sync_channel(WAITING);
        let worker = thread::Builder::new().spawn_scoped(scope, move || {
            deflate(&mut gzip, waiting)?;
            gzip.finish().map(|_| ())
        });
        let worker = worker.map_err(|_| Error::Memory("a thread"))?;
        let written = write(&mut Pieces(pieces));
        match worker.join() {
            // Its error is the reason why writing failed.
            Ok(Err(error)) => Err(save::failed(error)),
            Ok(Ok(())) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn deflate(gzip: &mut impl Write, pieces: Receiver<Vec<u8>>) -> io::Result<()> {
    pieces
        .into_iter()
        .try_for_each(|piece| gzip.write_all(&piece))
}

struct Pieces(SyncSender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut piece = Vec::new();
        piece
            .try_reserve_exact(bytes.len())
            .map_err(|_| ErrorKind::OutOfMemory)?;
        piece.extend_from_slice(bytes);
        self.0.send(piece).map_err(|_| ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
