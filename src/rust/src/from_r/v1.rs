//! What the hidden components of version "1.0" say of where a profile comes from.

use super::table::not_text;
use crate::argument::{STRSXP, Sexp, VECSXP, utf8};
use profile_core::error::Result;
use profile_core::formats::pprof;
use profile_core::formats::rprof::{self, Header};
use profile_core::limits::memory::TryGrow;
use profile_core::model::{Period, RprofOptions, Source, SourceKind};
use profile_core::tables::{TableList, TablesV1};

/// The tables, and what the hidden components of `x` say.
pub fn with_origin<'t, 'call>(
    x: Sexp<'call>,
    list: &'t TableList<'t, 'call>,
) -> Result<TablesV1<'t, 'call>> {
    let mut origin = origin(x)?;
    let further = origin.sources.split_off(1.min(origin.sources.len()));
    Ok(TablesV1 {
        list,
        source: origin.sources.pop().unwrap_or_default(),
        further,
        files: origin.files,
        comments: origin.comments,
    })
}

/// What the hidden component says: `.rprof` with headers and files, `.msg` with comments,
/// or neither.
#[derive(Default)]
struct Origin<'call> {
    sources: Vec<Source>,
    files: Vec<(u32, &'call str)>,
    comments: Vec<&'call str>,
}

fn origin(x: Sexp) -> Result<Origin> {
    let mut origin = Origin::default();
    let (recorded, message) = (x.named(".rprof")?, x.named(".msg")?);
    let kind = match (recorded, message) {
        (Some(_), _) => SourceKind::RPROF,
        (None, Some(_)) => SourceKind::named(pprof::FORMAT.name),
        (None, None) => SourceKind::MANUAL,
    };
    if let Some(recorded) = recorded {
        for header in texts(".rprof", recorded, "header")? {
            if let Some(header) = rprof::parse_header(header.as_bytes()) {
                origin.sources.try_push(run(header)?, "sources")?;
            }
        }
        for file in texts(".rprof", recorded, "files")? {
            // What is no such line has no place in a table.
            let line = rprof::parse_file(file.as_bytes());
            if let Some((number, Ok(path))) = line.map(|(n, path)| (n, std::str::from_utf8(path))) {
                origin.files.try_push((number, path), "files")?;
            }
        }
    } else if let Some(message) = message {
        origin.comments = texts(".msg", message, "comment")?;
    }
    if origin.sources.is_empty() {
        let source = Source {
            kind,
            ..Source::default()
        };
        origin.sources.try_push(source, "sources")?;
    }
    Ok(origin)
}

fn run(header: Header) -> Result<Source> {
    Ok(Source {
        kind: SourceKind::RPROF,
        period: header.interval.map(Period::of_rprof).transpose()?,
        options: Some(RprofOptions {
            memory: header.memory,
            gc: header.gc,
            line: header.line,
        }),
        ..Source::default()
    })
}

/// The texts of a component; none where it is something else, as older versions of the
/// package have it.
fn texts<'call>(component: &'static str, list: Sexp<'call>, name: &str) -> Result<Vec<&'call str>> {
    let mut texts = Vec::new();
    if list.kind() != VECSXP {
        return Ok(texts);
    }
    let column = list.named(name)?.filter(|column| column.kind() == STRSXP);
    if let Some(column) = column {
        for &string in column.strings()? {
            let text = utf8(string).map_err(|error| not_text(error, (component, None), None))?;
            if let Some(text) = text {
                texts.try_push(text, "texts")?;
            }
        }
    }
    Ok(texts)
}
