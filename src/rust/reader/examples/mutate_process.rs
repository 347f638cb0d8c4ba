//! A fuzzer: reads the memory of a process that is changed at random, for a given time.
//!
//! ```sh
//! cargo run --release -p profile-reader --example mutate_process -- SECONDS [SEED]
//! ```
//!
//! Each round has a number, starting with the seed. To repeat a failed round, use `-- 0 NUMBER`.

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[path = "../tests/fake/mod.rs"]
mod fake;
#[path = "../tests/fuzz/mod.rs"]
mod fuzz;

fn main() -> ExitCode {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<u64>());
    let (Some(Ok(seconds)), seed @ (None | Some(Ok(_)))) = (arguments.next(), arguments.next())
    else {
        eprintln!("Arguments: SECONDS [SEED]");
        return ExitCode::FAILURE;
    };
    let first = seed.and_then(Result::ok).unwrap_or(0);
    let start = Instant::now();
    let (mut round, mut failures) = (first, 0);
    let mut outcomes = fuzz::Outcomes::default();
    loop {
        let slow = Duration::from_secs(1);
        match catch_unwind(|| fuzz::round(round)) {
            Ok(Ok(outcome)) => {
                if outcome.time > slow {
                    println!("round {round}: a call took {:?}", outcome.time);
                    failures += 1;
                }
                outcomes.add(outcome);
            }
            Ok(Err(what)) => {
                println!("round {round}: {what}");
                failures += 1;
            }
            Err(_) => {
                println!("round {round}: panicked");
                failures += 1;
            }
        }
        round += 1;
        if start.elapsed() >= Duration::from_secs(seconds) || failures == 20 {
            break;
        }
    }
    println!(
        "{} rounds, {failures} failures, {outcomes:?}",
        round - first
    );
    match failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
