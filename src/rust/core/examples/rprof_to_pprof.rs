//! Converts an Rprof file to pprof and prints how long reading and writing took:
//! `rprof_to_pprof Rprof.out p.pb.gz [--in-order]`.

use profile_core::Error;
use profile_core::formats::pprof::Writer;
use profile_core::formats::rprof;
use profile_core::formats::{self, Input};
use profile_core::io::input::Origin;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, rest @ ..] = args.as_slice() else {
        eprintln!("rprof_to_pprof FROM TO [--in-order]");
        std::process::exit(2);
    };
    let options = Writer {
        aggregate: rest.is_empty(),
        ..Writer::default()
    };
    let origin = Origin {
        name: from.clone(),
        uri: Some(from.clone()),
        ..Origin::default()
    };
    let start = Instant::now();
    let (profile, _) = formats::read(
        Input::File(Path::new(from)),
        Some(&rprof::FORMAT),
        origin,
        &|| false,
    )?;
    let read = start.elapsed();
    formats::write_file(&options, &profile, Path::new(to), None, &|| false)?;
    let write = start.elapsed() - read;
    println!("{from}: read {read:.1?}, written {write:.1?}");
    Ok(())
}
