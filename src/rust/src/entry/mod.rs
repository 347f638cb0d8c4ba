//! The entry points, which are the functions that R calls, by family: each reads its arguments, calls the core and
//! returns the result.
//!
//! All arguments are `&Robj` and all results `Robj`: extendr would convert other types, and raise its own errors if
//! that fails (`argument.rs` and `outcome.rs` explain why this must not happen). Entry points have ordinary comments,
//! because extendr creates help pages from doc comments.

mod analysis;
pub mod lines;
mod native;
mod parallel;
mod peaks;
mod processes;
mod reading_and_writing;
mod services;
mod tables;

use extendr_api::extendr_module;

/// Called before the library is unloaded: ends threads.
pub fn abandon() {
    processes::abandon();
    peaks::abandon();
}

extendr_module! {
    mod profile;
    use reading_and_writing;
    use tables;
    use analysis;
    use lines;
    use native;
    use processes;
    use parallel;
    use peaks;
    use services;
}
