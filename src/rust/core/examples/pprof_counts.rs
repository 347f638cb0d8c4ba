//! Prints what a reader found in pprof files: one line of counts for each file.

use profile_core::formats::pprof;
use profile_core::formats::{self, Input};
use profile_core::io::input::Origin;
use std::path::Path;
use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let origin = Origin {
            name: path.clone(),
            ..Origin::default()
        };
        let start = Instant::now();
        match formats::read(
            Input::File(Path::new(&path)),
            Some(&pprof::FORMAT),
            origin,
            &|| false,
        ) {
            Ok((profile, problems)) => {
                let seconds = start.elapsed().as_secs_f64();
                println!(
                    "{path}: {} samples, {} stacks, {} locations, {} functions, {seconds:.3} s",
                    profile.samples.len(),
                    profile.stacks.len(),
                    profile.locations.len(),
                    profile.functions.len(),
                );
                for values in &profile.values {
                    let sum: f64 = values.column.iter().sum();
                    println!("    {}/{}: {sum}", values.type_.name, values.type_.unit);
                }
                for problem in problems.kept().iter().take(3) {
                    let (place, kind) = (problem.position.clone(), problem.kind.key());
                    println!("    {place}: {kind} {}", problem.text);
                }
            }
            Err(error) => println!("{error}"),
        }
    }
}
