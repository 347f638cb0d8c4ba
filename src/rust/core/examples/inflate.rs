//! Prints the seconds that inflating each file takes. Reading the file cannot be faster;
//! `bench/pprof` compares both times.

use profile_core::io::gzip::Content;
use profile_core::io::input::Source;
use std::fs::File;
use std::io::{Read, Result};
use std::time::Instant;

/// The size of the pieces that the readers request.
const CHUNK: usize = 1 << 20;

fn main() -> Result<()> {
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        let file = File::open(&path)?;
        let mut content = Content::new(Source::File(&file))?;
        let mut chunk = vec![0; CHUNK];
        let mut bytes = 0;
        loop {
            let read = content.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            bytes += read;
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{path}: {bytes} bytes, {seconds:.6} s");
    }
    Ok(())
}
