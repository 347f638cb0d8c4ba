//! The origin of a profile in version "1.0": a hidden component of texts.
//!
//! `.rprof` contains headers and `#File` lines as `Rprof()` writes them, `.msg` contains the
//! comments of a pprof file. Headers describe runs, but it is not recorded which sample belongs to
//! which run.

use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, filled, owned, written};
use crate::model::{Profile, Source, SourceFile, SourceKind};
use crate::rprof_header::{self, Header};

/// A hidden component and its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin<Text> {
    /// No component: tables created by a user.
    Manual,
    /// `.rprof`.
    Rprof {
        headers: Vec<Text>,
        files: Vec<Text>,
    },
    /// `.msg`.
    Pprof { comments: Vec<Text> },
}

impl Origin<&str> {
    /// The run that all samples are attributed to.
    pub(super) fn first_run(&self) -> Result<Source> {
        let kind = match self {
            Origin::Manual => SourceKind::MANUAL,
            Origin::Rprof { .. } => SourceKind::RPROF,
            Origin::Pprof { .. } => SourceKind::PPROF,
        };
        let unknown = || {
            Ok(Source {
                kind,
                ..Source::default()
            })
        };
        self.runs().next().unwrap_or_else(unknown)
    }

    /// The runs after the first one.
    pub(super) fn further_runs(&self) -> impl Iterator<Item = Result<Source>> {
        self.runs().skip(1)
    }

    fn runs(&self) -> impl Iterator<Item = Result<Source>> {
        let headers: &[&str] = match self {
            Origin::Rprof { headers, .. } => headers,
            _ => &[],
        };
        // Other texts contain no information that tables can store.
        let headers = headers
            .iter()
            .filter_map(|text| rprof_header::header(text.as_bytes()));
        headers.map(|header| header.source())
    }

    /// Adds files and comments to the first source, as strings of the profile.
    pub(super) fn add_texts(&self, profile: &mut Profile) -> Result<()> {
        let (mut files, mut comments) = (Vec::new(), Vec::new());
        match self {
            Origin::Manual => {}
            Origin::Rprof { files: texts, .. } => {
                for text in texts {
                    let line = rprof_header::file_line(text.as_bytes());
                    let line = line.map(|(number, path)| (number, std::str::from_utf8(path)));
                    if let Some((number, Ok(path))) = line {
                        let file = SourceFile {
                            number,
                            filename: profile.strings.intern(path)?,
                            before: 0,
                        };
                        files.try_push(file)?;
                    }
                }
                place_files(&mut files, profile)?;
            }
            Origin::Pprof { comments: texts } => {
                for text in texts {
                    comments.try_push(profile.strings.intern(text)?)?;
                }
            }
        }
        if let Some(source) = profile.sources.first_mut() {
            (source.files, source.comments) = (files, comments);
        }
        Ok(())
    }
}

/// Puts each `#File` line before the first sample that needs it, where `Rprof()` writes it.
fn place_files(files: &mut [SourceFile], profile: &Profile) -> Result<()> {
    let end = profile.samples.len();
    let mut seen = filled(profile.stacks.len(), false)?;
    let mut first = filled(profile.strings.len(), end)?;
    let mut space = Vec::new();
    for (row, &stack) in profile.samples.stack.iter().enumerate() {
        if std::mem::replace(&mut seen[stack.row()], true) {
            continue;
        }
        for &location in profile.stacks.get(stack).unpacked(&mut space)? {
            if let Some(function) = profile.function_of(location) {
                let first = &mut first[function.filename.row()];
                *first = row.min(*first);
            }
        }
    }
    // Their order is kept: a line precedes the next one even if it is needed later, or by no
    // sample.
    let mut next = end;
    for file in files.iter_mut().rev() {
        next = next.min(first[file.filename.row()]);
        file.before = next;
    }
    Ok(())
}

impl Origin<String> {
    /// The component of a profile: `.rprof` if it has an Rprof source, otherwise `.msg`; none if
    /// users created all of its sources.
    pub(super) fn of(profile: &Profile) -> Result<Origin<String>> {
        let sources = || profile.sources.iter();
        if sources().any(|source| source.kind == SourceKind::RPROF) {
            let headers = sources().filter_map(Header::from_source);
            let headers = headers.map(|header| written(format_args!("{header}")));
            let files = sources().flat_map(|source| &source.files).map(|file| {
                let path = profile.strings.get(file.filename);
                written(format_args!("#File {}: {path}", file.number))
            });
            return Ok(Origin::Rprof {
                headers: headers.try_vec_of()?,
                files: files.try_vec_of()?,
            });
        }
        if sources().all(|source| source.kind == SourceKind::MANUAL) {
            return Ok(Origin::Manual);
        }
        let comments = sources().flat_map(|source| &source.comments);
        let comments = comments.map(|&text| owned(profile.strings.get(text)));
        Ok(Origin::Pprof {
            comments: comments.try_vec_of()?,
        })
    }
}
