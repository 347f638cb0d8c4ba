//! Information that a writer could not store exactly: the counterpart of [`super::problems`].
//!
//! General limitations of a format are described in its documentation. Losses occur only in some
//! profiles, so users do not expect them: R code reports them in one warning.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $key:literal $what:literal,)*) => {
        /// A kind of loss.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum LossKind { $($(#[$doc])* $name,)* }

        impl LossKind {
            pub const ALL: &'static [LossKind] = &[$(LossKind::$name,)*];

            /// A short name, stable between releases.
            pub fn key(self) -> &'static str {
                match self { $(LossKind::$name => $key,)* }
            }

            /// Describes the loss. R code appends the count.
            pub fn describe(self) -> &'static str {
                match self { $(LossKind::$name => $what,)* }
            }
        }
    };
}

kinds! {
    // Rprof.
    AssumedInterval "assumed_intervals"
        "Sources without a sampling interval were written with the default of `Rprof()`, 20000 microseconds",
    RoundedInterval "rounded_intervals"
        "Sampling intervals were rounded to whole microseconds",
    RoundedCount "rounded_counts"
        "Samples whose time is not a whole number of intervals were rounded",
    RoundedFigures "rounded_figures"
        "Samples whose memory figures were rounded to the units of Rprof, such as 8 bytes",
    PartialFigures "partial_figures"
        "Samples with only some of the four memory figures, which are not in the file",
    EmptySample "empty_samples"
        "Samples without a frame have no line in the file",
    Allocation "allocations"
        "Allocations that were recorded one by one are not in the file, which contains samples only",
    /// This includes lines of locations without a function, since only functions have a file.
    Line "lost_lines"
        "Line numbers that are beyond R's integers or without a function are not in the file",
    ChangedName "changed_names"
        "Names of functions and files were changed that would be read as something else",
    // Collapsed stacks.
    NegativeSum "negative_sums"
        "Stacks whose values have a negative sum are not in the file",
    // Callgrind's format.
    OtherFile "other_files"
        "Functions that occur in several files have the lines of one of them only",
    // pprof and speedscope.
    /// In pprof, sources are labels of samples.
    SourceWithoutSamples "sources_without_samples"
        "Sources without a sample are not in the file",
    OtherLabel "other_labels"
        "Labels that are neither text nor integer are not in the file",
    LineWithoutFunction "lines_without_function"
        "Lines without a function are not in the file, as Go's pprof refuses them",
    JoinedSource "joined_sources"
        "Sources follow one another on one time line, as the format has only one",
    NotFinite "infinite_values"
        "Infinite values are not in the file",
    // Viewers that draw samples as boxes.
    NotPositive "not_positive_values"
        "Values that are negative or infinite are not in the file, as viewers draw only positive ones",
    FarTime "far_times"
        "Times more than 146 years from the start of the profile are not in the file",
    SampleWithoutValue "samples_without_value"
        "Samples that have no value of the type that is written, such as a time, are not in the file",
    OtherType "other_types"
        "Sources whose sample type the format does not distinguish from another one: its name and unit are not in the file",
    // Formats with one sample type.
    LeftOutType "left_out_types"
        "Sample types of memory are not in the file, as it has one type",
    // pprof and OpenTelemetry, which hold whole numbers of 64 bits.
    Period "periods"
        "Sampling periods were rounded or left out, as only whole numbers below 2^63 can be written",
    Time "times"
        "Time stamps outside the years 1678 to 2262 were not written",
    Duration "durations"
        "Durations were not written, as they are or add up to more than 292 years",
    // OpenTelemetry.
    WidenedTime "widened_times"
        "Times and durations of sources were changed, as all of their samples must lie within",
    MissingValue "missing_values"
        "Missing values of samples were written as 0 where other samples of the source have a value",
    RepeatedAttribute "repeated_attributes"
        "Repeated attributes with the same key were left out, as each key has one value",
    FrameType "frame_types"
        "Frame types of inlined calls were left out where they differ from the type of their location",
}

/// The number of losses of each kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Losses([usize; LossKind::ALL.len()]);

impl Default for Losses {
    fn default() -> Losses {
        Losses([0; LossKind::ALL.len()])
    }
}

impl Losses {
    pub fn add(&mut self, kind: LossKind, count: usize) {
        self.0[kind as usize] += count;
    }

    pub fn count(&self, kind: LossKind) -> usize {
        self.0[kind as usize]
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The kinds that occurred, and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (LossKind, usize)> {
        let kinds = LossKind::ALL.iter().copied().zip(self.0);
        kinds.filter(|(_, count)| *count > 0)
    }
}

impl fmt::Debug for Losses {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let counts = self.iter().map(|(kind, count)| (kind.key(), count));
        f.debug_map().entries(counts).finish()
    }
}
