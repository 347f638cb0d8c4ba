//! Compressing with several threads, beside what makes the content.
//!
//! The content is cut into blocks of a fixed size, each compressed by whichever thread is
//! free, with the end of the block before at hand. Deflated data may be put behind
//! each other where they end with a byte, which flushing sees to, so the result is one
//! gzip member like any other; and the same whatever the number of threads.

use crate::error::{Error, Result};
use crate::save;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Level 6 takes a tenth longer for files that are a fiftieth smaller; level 1 takes two
/// thirds of the time for files larger by a third.
const LEVEL: u32 = 5;
const BLOCK: usize = 1 << 20;
/// How far back deflating looks.
const WINDOW: usize = 1 << 15;
/// More threads than this would wait for the content.
const MOST_THREADS: usize = 4;
/// Without a time stamp equal profiles give equal files; no operating system is told.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// A part of the content.
struct Block {
    number: usize,
    content: Vec<u8>,
    /// The end of what stands before it.
    before: Vec<u8>,
    is_last: bool,
}

struct Deflated {
    number: usize,
    bytes: Vec<u8>,
    crc: Crc,
}

/// Compresses what `write` writes.
pub fn compress(
    out: &mut (dyn Write + Send),
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    let threads = threads.min(MOST_THREADS);
    thread::scope(|scope| {
        let (blocks, waiting) = sync_channel(2 * threads);
        let (deflated, done) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let spawned = |result: io::Result<_>| result.map_err(|_| Error::Memory("a thread"));
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let (waiting, deflated) = (Arc::clone(&waiting), deflated.clone());
            let work = move || deflate_all(&waiting, &deflated);
            workers.push(spawned(thread::Builder::new().spawn_scoped(scope, work))?);
        }
        // Whoever waits for these shall learn when the workers are gone.
        drop((waiting, deflated));
        let assemble = move || assemble(out, &done);
        let assembler = thread::Builder::new().spawn_scoped(scope, assemble);
        let assembler = assembler.map_err(|_| Error::Memory("a thread"))?;
        let mut content = Content::new(blocks);
        let written = write(&mut content).and_then(|()| content.finish().map_err(save::failed));
        drop(content);
        for worker in workers {
            match worker.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match assembler.join() {
            // Its error is the reason why writing failed.
            Ok(Err(error)) if written.is_ok() || is_closed(&written) => Err(save::failed(error)),
            Ok(_) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Whether nobody took the content any more.
fn is_closed(written: &Result<()>) -> bool {
    matches!(written, Err(Error::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe)
}

/// Cuts the content into blocks.
struct Content {
    blocks: SyncSender<Block>,
    block: Vec<u8>,
    before: Vec<u8>,
    next: usize,
}

impl Content {
    fn new(blocks: SyncSender<Block>) -> Content {
        Content {
            blocks,
            block: Vec::new(),
            before: Vec::new(),
            next: 0,
        }
    }

    fn send(&mut self, is_last: bool) -> io::Result<()> {
        let content = std::mem::take(&mut self.block);
        let end = content.get(content.len().saturating_sub(WINDOW)..);
        let before = std::mem::replace(&mut self.before, end.unwrap_or_default().to_vec());
        let block = Block {
            number: self.next,
            content,
            before,
            is_last,
        };
        self.next += 1;
        self.blocks
            .send(block)
            .map_err(|_| ErrorKind::BrokenPipe.into())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.send(true)
    }
}

impl Write for Content {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == BLOCK {
            self.send(false)?;
        }
        if self.block.capacity() == 0 {
            let room = self.block.try_reserve_exact(BLOCK);
            room.map_err(|_| ErrorKind::OutOfMemory)?;
        }
        let count = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses blocks until there are no more, or nobody wants them.
fn deflate_all(waiting: &Mutex<Receiver<Block>>, deflated: &Sender<Deflated>) -> Result<()> {
    let mut compress = Compress::new(Compression::new(LEVEL), false);
    loop {
        let next = match waiting.lock() {
            Ok(waiting) => waiting.recv(),
            // Another one has panicked, which is told when it is joined.
            Err(_) => return Ok(()),
        };
        let Ok(block) = next else { return Ok(()) };
        if deflated.send(deflate(&mut compress, &block)?).is_err() {
            return Ok(());
        }
    }
}

fn deflate(compress: &mut Compress, block: &Block) -> Result<Deflated> {
    let failed = |_| Error::Memory("compressing");
    compress.reset();
    if !block.before.is_empty() {
        compress.set_dictionary(&block.before).map_err(failed)?;
    }
    let flush = match block.is_last {
        true => FlushCompress::Finish,
        false => FlushCompress::Sync,
    };
    let mut bytes = Vec::new();
    let mut rest = block.content.as_slice();
    loop {
        let room = bytes.try_reserve(rest.len() / 2 + 1024);
        room.map_err(|_| Error::Memory("compressing"))?;
        let before = compress.total_in();
        let status = compress
            .compress_vec(rest, &mut bytes, flush)
            .map_err(failed)?;
        let taken = (compress.total_in() - before) as usize;
        rest = rest.get(taken..).unwrap_or_default();
        // Room that is left says that all was flushed.
        let flushed = rest.is_empty() && bytes.len() < bytes.capacity();
        if status == Status::StreamEnd || !block.is_last && flushed {
            break;
        }
    }
    let mut crc = Crc::new();
    crc.update(&block.content);
    Ok(Deflated {
        number: block.number,
        bytes,
        crc,
    })
}

/// Writes what was compressed in the order of the blocks.
fn assemble(out: &mut dyn Write, done: &Receiver<Deflated>) -> io::Result<()> {
    out.write_all(&HEADER)?;
    let mut crc = Crc::new();
    let mut early = BTreeMap::new();
    let mut next = 0;
    for deflated in done {
        early.insert(deflated.number, deflated);
        while let Some(deflated) = early.remove(&next) {
            out.write_all(&deflated.bytes)?;
            crc.combine(&deflated.crc);
            next += 1;
        }
    }
    out.write_all(&crc.sum().to_le_bytes())?;
    out.write_all(&crc.amount().to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gzip::Content as Inflated;
    use std::io::Read;

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        compress(&mut out, |out| out.write_all(content).map_err(save::failed)).unwrap();
        out
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let mut noise = 1_u64;
        let mut any = || {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (noise >> 56) as u8
        };
        for size in [0, 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 17] {
            let random: Vec<u8> = (0..size).map(|_| any()).collect();
            let regular: Vec<u8> = (0..size).map(|i| (i / 1000) as u8).collect();
            for content in [random, regular] {
                let bytes = compressed(&content);
                assert_eq!(bytes, compressed(&content));
                let mut back = Vec::new();
                let mut inflated = Inflated::new(bytes.as_slice()).unwrap();
                inflated.read_to_end(&mut back).unwrap();
                assert!(back == content, "{size}");
            }
        }
    }

    #[test]
    fn an_error_of_either_side_is_told() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let endless = |out: &mut dyn Write| loop {
            out.write_all(&[0; 1 << 16]).map_err(save::failed)?;
        };
        let error = compress(&mut Full, endless).unwrap_err();
        assert!(
            matches!(&error, Error::Write { source, .. } if source.kind() == ErrorKind::StorageFull),
            "{error:?}"
        );
        let stopped = compress(&mut Vec::new(), |_| Err(Error::Interrupted));
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }
}
