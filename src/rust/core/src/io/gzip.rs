//! Decompresses input that starts with the two bytes of the gzip signature, and compresses output.

mod blocks;

pub use blocks::compress;

use super::input::Source;
use crate::limits::memory;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The first bytes of each member of gzip data.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The content of a file. Gzip data are decompressed, also if they have several members; other data are passed on
/// unchanged.
pub struct Content<'a> {
    /// Bytes that `peek()` has read and `read()` has not returned yet, and the error that occurred
    /// after them.
    start: Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: Rest<'a>,
    /// The input, if it can be read again.
    again: Option<Source<'a>>,
}

enum Rest<'a> {
    Plain(Peeked<'a>),
    Gzip(Box<Members<Peeked<'a>>>),
}

type Peeked<'a> = Chain<Cursor<Vec<u8>>, Source<'a>>;

impl<'a> Content<'a> {
    pub fn new(mut input: Source<'a>) -> io::Result<Content<'a>> {
        let again = input.again();
        if let Source::File(mut file) = input {
            file.rewind()?;
        }
        let mut start = Vec::new();
        input.by_ref().take(2).read_to_end(&mut start)?;
        let gzip = start == MAGIC;
        let whole = Cursor::new(start).chain(input);
        Ok(Content {
            start: Cursor::default(),
            error: None,
            rest: if gzip {
                Rest::Gzip(Box::new(Members::new(whole)?))
            } else {
                Rest::Plain(whole)
            },
            again,
        })
    }

    /// Whether another thread may read it: reading never waits for input, so the thread ends soon when it
    /// has to.
    pub fn is_at_hand(&self) -> bool {
        self.again.is_some()
    }

    /// The input from its start, if it can be read again.
    pub fn again(&self) -> Option<Source<'a>> {
        self.again.as_ref().and_then(Source::again)
    }

    /// Returns the first bytes without consuming them. If an error occurs after some bytes,
    /// `read()` returns it after these.
    pub fn peek(&mut self, count: u64) -> io::Result<&[u8]> {
        let mut start =
            memory::with_room(count as usize + 1).map_err(|_| ErrorKind::OutOfMemory)?;
        if let Err(error) = self.by_ref().take(count).read_to_end(&mut start) {
            if start.is_empty() {
                return Err(error);
            }
            self.error = Some(error);
        }
        self.start = Cursor::new(start);
        Ok(self.start.get_ref())
    }

    /// The number of zero bytes after the compressed data, when all data were read.
    pub fn padding(&self) -> u64 {
        match &self.rest {
            Rest::Plain(_) => 0,
            Rest::Gzip(members) => members.zeros,
        }
    }
}

/// An upper limit of the bytes that a decoder and its buffers take.
const INFLATE: usize = 1 << 17;

/// Creates a coder. Their constructors panic if memory runs out, so it is checked first that there
/// is enough. If another thread takes that memory in between, the panic is converted to the same
/// error.
fn coder<T>(bytes: usize, make: impl FnOnce() -> T) -> io::Result<T> {
    let short = || io::Error::from(ErrorKind::OutOfMemory);
    memory::ensure(bytes).map_err(|_| short())?;
    catch_unwind(AssertUnwindSafe(make)).map_err(|_| short())
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.start.read(buffer)? {
            0 => {}
            count => return Ok(count),
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match &mut self.rest {
            Rest::Plain(input) => input.read(buffer),
            Rest::Gzip(input) => input.read(buffer),
        }
    }
}

/// The members of gzip data. Zeros after them are skipped, as gzip itself does: tapes and block
/// devices fill the last block with zeros.
struct Members<R> {
    /// `None` after the last member.
    member: Option<GzDecoder<BufReader<R>>>,
    /// The number of zeros after members.
    zeros: u64,
}

impl<R: Read> Members<R> {
    fn new(input: R) -> io::Result<Members<R>> {
        let member = coder(INFLATE, || GzDecoder::new(BufReader::new(input)))?;
        Ok(Members {
            member: Some(member),
            zeros: 0,
        })
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let zeros = skip_zeros(member.get_mut())?;
            self.zeros += zeros;
            let next = member.get_mut().fill_buf()?.first().copied();
            if next.is_some_and(|byte| byte != MAGIC[0]) {
                let what = "bytes follow the gzip data that are neither gzip nor zeros";
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
            let rest = self.member.take().map(GzDecoder::into_inner);
            let rest = rest.filter(|_| next.is_some());
            let member = rest.map(|rest| coder(INFLATE, || GzDecoder::new(rest)));
            self.member = member.transpose()?;
        }
        Ok(0)
    }
}

fn skip_zeros(input: &mut impl BufRead) -> io::Result<u64> {
    let mut count = 0;
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        if zeros == 0 {
            return Ok(count);
        }
        input.consume(zeros);
        count += zeros as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn member(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// The content, the number of zeros that were skipped, and the error at the end.
    fn inflate(bytes: &[u8]) -> (Vec<u8>, u64, Option<ErrorKind>) {
        let mut content = Content::new(Source::Bytes(bytes)).unwrap();
        let _ = content.peek(3);
        let mut all = Vec::new();
        let error = content.read_to_end(&mut all).err().map(|e| e.kind());
        let Rest::Gzip(members) = content.rest else {
            unreachable!()
        };
        (all, members.zeros, error)
    }

    #[test]
    fn zeros_after_members_are_skipped() {
        let (one, two, none) = (member(b"one"), member(b"two"), member(b""));
        let zeros = vec![0; 100_000];
        for (parts, content, padding) in [
            (vec![&one], "one", 0),
            (vec![&one, &two], "onetwo", 0),
            (vec![&none, &one, &none, &two, &none], "onetwo", 0),
            (vec![&one, &zeros], "one", 100_000),
            (vec![&none, &zeros], "", 100_000),
            (vec![&one, &two, &zeros], "onetwo", 100_000),
            (vec![&one, &zeros, &two, &zeros], "onetwo", 200_000),
        ] {
            let bytes = parts.into_iter().flatten().copied().collect::<Vec<u8>>();
            let expected = (content.as_bytes().to_vec(), padding, None);
            assert_eq!(inflate(&bytes), expected);
        }
    }

    #[test]
    fn other_garbage_and_missing_bytes_are_errors() {
        let whole = member(b"one");
        for garbage in [&b"\0\0x"[..], b"x", b"\x1f\x8bx", b"\x1f"] {
            let (content, _, error) = inflate(&[&whole, garbage].concat());
            assert_eq!(content, b"one");
            let expected = match garbage[0] {
                // The first byte of a member starts a truncated member.
                0x1f => ErrorKind::UnexpectedEof,
                _ => ErrorKind::InvalidData,
            };
            assert_eq!(error, Some(expected), "{garbage:?}");
        }
        // In the data, and in the eight bytes after them.
        for missing in 1..12 {
            let (_, _, error) = inflate(&whole[..whole.len() - missing]);
            assert_eq!(error, Some(ErrorKind::UnexpectedEof));
        }
        // Zeros instead of those eight bytes are an error too.
        let cut = &whole[..whole.len() - 8];
        assert!(inflate(&[cut, &[0; 512]].concat()).2.is_some());
    }
}
