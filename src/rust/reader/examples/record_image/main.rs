//! Records images of R's memory, see `tests/image/mod.rs` for what they are. `tools/record-images` calls it:
//!
//! ```sh
//! cargo run -p profile-reader --example record_image -- PATH COMMAND...
//! ```
//!
//! COMMAND is Rscript with options, of any version of R. It runs `tests/images/stops.R`, which stops now and then to
//! wait for its input, and reports its stack then. At each stop, the reader reads the stack, and the memory that it
//! needs is recorded.

use std::path::Path;
use std::process::ExitCode;

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod recording;

/// Elsewhere, no process can be read.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod recording {
    pub fn record(_: &std::path::Path, _: &[String]) -> Result<(), &'static str> {
        Err("the memory of processes cannot be read here")
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((path, command)) = arguments.split_first() else {
        eprintln!("Arguments: PATH COMMAND...");
        return ExitCode::FAILURE;
    };
    match recording::record(Path::new(path), command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
