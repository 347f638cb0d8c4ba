//! Computations on profiles, for writers and for R functions.
//!
//! - [`sample_types`]: the sample types that are summed, and those that are written;
//! - [`allocations`]: which frames have allocated what samples report;
//! - [`recorded`]: allocations that were recorded one by one;
//! - [`copies`]: where vectors were copied, and why; [`peak`]: where those were allocated that were in use at the peak, by
//!   [`places`];
//! - [`aggregate`]: merges equal samples and sums their values;
//! - [`inlining`]: groups the locations of a stack that have the same address;
//! - [`source_facts`]: time, period and duration of a source;
//! - [`cpu_clock`]: the CPU time that R's thread used, beside the time of the samples;
//! - [`clocked`]: samples of R's profiler as amounts of time, by readings of clocks;
//! - [`weights`]: the values of samples, summed for each distinct stack;
//! - [`differences`]: what shares are relative to if values are negative;
//! - [`summary`]: self and total values by function and by line;
//! - [`total`]: exact sums of values;
//! - [`frame_names`]: the names under which frames are shown;
//! - [`packages`]: the package, program or library of a frame;
//! - [`frameworks`]: frames that only run other code, and units of work;
//! - [`groups`]: groups of frames, by function, line or package;
//! - [`runs`]: self and total values by group and run, to compare runs;
//! - [`paths`]: the prefix tree of stacks;
//! - [`rows_by_source`]: the samples of each source;
//! - [`steps`]: samples as steps of equal length, for profvis;
//! - [`measures`]: values for viewers that show one number for each sample;
//! - [`call_tree`]: self and total values by path;
//! - [`holders`]: the paths that hold most of the memory in use, or below which it has grown;
//! - [`keys`]: names that differ in a key only, which holders and pages show as one;
//! - [`heap_frames`]: frames of heap snapshots, which are not calls;
//! - [`loaded`]: the time in which packages were loaded, by package;
//! - [`description`]: everything that the digest of a profile shows;
//! - [`combine`]: combines several profiles;
//! - [`compact`]: finds the used rows of edited tables;
//! - [`content_keys`]: keys of the content of rows, for stores;
//! - [`flat`]: flat rows for stores;
//! - [`convert`]: converts between the versions of the tables;
//! - [`label_frames`]: labels that recorders find as frames.

pub(crate) mod aggregate;
pub mod allocations;
pub mod call_tree;
pub mod clocked;
pub mod combine;
pub mod compact;
pub mod content_keys;
pub mod convert;
pub mod copies;
pub mod cpu_clock;
pub mod description;
pub mod differences;
pub mod flat;
pub mod frame_names;
pub mod frameworks;
pub mod groups;
pub mod heap_frames;
pub mod holders;
pub(crate) mod inlining;
pub mod keys;
pub mod label_frames;
pub mod loaded;
pub(crate) mod measures;
pub mod packages;
pub mod paths;
pub mod peak;
pub mod places;
pub mod recorded;
pub(crate) mod rows_by_source;
pub mod runs;
pub(crate) mod sample_types;
pub mod source_facts;
pub mod steps;
pub mod summary;
pub mod test_calls;
#[cfg(test)]
mod testing;
pub(crate) mod total;
pub mod weights;

pub use sample_types::types_with_values;
