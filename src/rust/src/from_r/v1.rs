//! Reads the hidden component of version "1.0" for the origin of a profile.

use super::table::not_text;
use crate::argument::{STRSXP, Sexp, VECSXP, utf8};
use profile_core::analysis::convert::Origin;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

pub fn origin<'call>(x: Sexp<'call>) -> Result<Origin<&'call str>> {
    if let Some(component) = x.named(".rprof")? {
        return Ok(Origin::Rprof {
            headers: texts(".rprof", component, "header")?,
            files: texts(".rprof", component, "files")?,
        });
    }
    if let Some(component) = x.named(".msg")? {
        return Ok(Origin::Pprof {
            comments: texts(".msg", component, "comment")?,
        });
    }
    Ok(Origin::Manual)
}

/// The texts of an element of a component. There are none if the component is another object, as
/// in older versions of the package.
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
                texts.try_push(text)?;
            }
        }
    }
    Ok(texts)
}
