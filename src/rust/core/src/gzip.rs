//! Compressed or not, told by the first two bytes; and compressing.

mod blocks;

pub use blocks::compress;

use flate2::read::MultiGzDecoder;
use std::io::{self, Chain, Cursor, Read};

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
