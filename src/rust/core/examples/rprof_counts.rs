//! Prints what a reader found in Rprof files: one line of counts for each file.

use profile_core::formats::rprof;
use profile_core::formats::{self, Input};
use profile_core::io::input::Origin;
use std::path::Path;
use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        match formats::read(
            Input::File(Path::new(&path)),
            Some(&rprof::FORMAT),
            Origin::default(),
            &|| false,
        ) {
            Ok((profile, problems)) => {
                let seconds = start.elapsed().as_secs_f64();
                let frames: usize = profile
                    .samples
                    .stack
                    .iter()
                    .map(|s| profile.stacks.get(*s).len())
                    .sum();
                println!(
                    "{path}: {} samples, {frames} frames, {} stacks, {} locations, {} sources, {seconds:.3} s",
                    profile.samples.len(),
                    profile.stacks.len(),
                    profile.locations.len(),
                    profile.sources.len(),
                );
                for (kind, count) in problems.counts() {
                    println!("    {count} x {}", kind.describe());
                }
                for problem in problems.kept().iter().take(3) {
                    println!(
                        "    {}: {} {}",
                        problem.position,
                        problem.kind.key(),
                        problem.text
                    );
                }
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
}
