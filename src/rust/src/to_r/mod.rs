//! Converts a profile to R objects: from the model to the tables of each version.

mod call_tree;
mod combined;
mod description;
mod filtered;
mod flat;
mod frames;
mod holders;
mod loading;
mod names;
mod packages;
mod processes;
mod profvis;
mod result;
mod runs;
mod schema;
mod summary;
mod tables;
mod test_calls;
mod v1;

pub use call_tree::call_tree;
pub use combined::{combined, combined_tables, rows};
pub use description::description;
pub use filtered::filtered;
pub use flat::flat;
pub use frames::frames;
pub use holders::holders;
pub use loading::loading;
pub use names::frame_names;
pub use packages::packages;
pub use processes::{
    dump, endings, heap, members, peaks, peaks_so_far, processes, recorded, thread_facts,
};
pub use profvis::profvis;
pub use result::{counts, losses, result, tables};
pub use runs::runs;
pub use schema::schema;
pub use summary::summary;
pub use test_calls::test_calls;
