//! The content of a page in addition to the profile: its files, texts and options.

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
    /// A regular expression for names of functions that only call others.
    pub plumbing: &'p str,
    pub texts: Vec<SourceText<'p>>,
    /// The number of sources that are shown. They are compared with all further sources.
    pub sources: usize,
    /// The names of functions for which a comparison of runs found a difference; `None` if there are
    /// too few runs.
    pub found: Option<Vec<&'p str>>,
    /// Whether the page contains the order of samples.
    pub timeline: bool,
    /// Whether the page contains labels of samples.
    pub labels: bool,
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
