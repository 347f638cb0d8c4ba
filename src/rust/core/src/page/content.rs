//! The content of a page in addition to the profile: its files, texts and options.

use crate::error::Result;

/// Declares the options and their defaults. They are read and written by their names, which are the names of the
/// arguments in R and of the fields in the data.
macro_rules! options {
    ($($(#[$about:meta])* $name:ident = $default:expr,)*) => {
        /// What the caller chooses.
        #[derive(Debug, Clone, Copy)]
        pub struct Options {
            $($(#[$about])* pub $name: bool,)*
        }

        impl Default for Options {
            fn default() -> Options {
                Options { $($name: $default,)* }
            }
        }

        impl Options {
            pub fn read(flag: impl Fn(&str) -> Result<bool>) -> Result<Options> {
                Ok(Options { $($name: flag(stringify!($name))?,)* })
            }

            pub fn each(&self, mut write: impl FnMut(&str, bool) -> Result<()>) -> Result<()> {
                $(write(stringify!($name), self.$name)?;)*
                Ok(())
            }
        }
    };
}

options! {
    /// Whether the page contains the order of samples.
    timeline = true,
    /// Whether the page contains labels of samples.
    labels = true,
}

/// The content of a page in addition to the profile.
#[derive(Debug, Default)]
pub struct Page<'p> {
    pub title: &'p str,
    /// The program that writes the page, such as `profile 2.0.0`.
    pub generator: &'p str,
    /// The HTML without script and style, which follow.
    pub template: &'p str,
    pub style: &'p str,
    pub script: &'p str,
    /// The source files whose code is the user's.
    pub mine: Vec<&'p str>,
    pub texts: Vec<SourceText<'p>>,
    /// The number of sources that are shown. They are compared with all further sources.
    pub sources: usize,
    /// The names of functions for which a comparison of runs found a difference; `None` if there are
    /// too few runs.
    pub found: Option<Vec<&'p str>>,
    /// The result of the comparison with the further sources, if they can be compared.
    pub comparison: Option<Comparison<'p>>,
    /// What the workers of parallel work did, if that is known.
    pub parallel: Option<Parallel<'p>>,
    /// The page of the heap snapshot that belongs to the profile, whose data this page gets as well.
    pub snapshot: Option<&'p [u8]>,
    pub options: Options,
}

/// The result of a comparison as text, which the page shows as it is.
#[derive(Debug, Default)]
pub struct Comparison<'p> {
    /// What was compared, and the result for the whole run.
    pub head: &'p str,
    pub whole: &'p str,
    /// The verdict on the whole run; empty if there is none.
    pub verdict: &'p str,
    /// Sentences about what could not be found.
    pub notes: Vec<&'p str>,
    /// The heads of the table of differences, and its cells, row by row.
    pub columns: Vec<&'p str>,
    pub cells: Vec<&'p str>,
    /// The names of the outermost function in both versions, and the name of both together, if the names differ.
    pub expression: Vec<&'p str>,
}

/// The bill of parallel work as text, which the page shows as it is.
#[derive(Debug, Default)]
pub struct Parallel<'p> {
    pub sentence: &'p str,
    /// The heads of the table, and its cells, row by row.
    pub columns: Vec<&'p str>,
    pub cells: Vec<&'p str>,
    pub notes: Vec<&'p str>,
}

/// The text of a source file.
#[derive(Debug, Clone, Copy)]
pub struct SourceText<'p> {
    /// The name of the file, as in the table of functions.
    pub name: &'p str,
    pub text: &'p str,
    /// Whether it was changed after the profile was recorded.
    pub changed: bool,
}
