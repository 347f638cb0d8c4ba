//! Arguments that are lists of options.

use crate::argument::{Sexp, argument};
use crate::guard::stop;
use extendr_api::Robj;
use profile_core::error::{Error, Result};
use profile_core::formats::otlp;
use profile_core::formats::payload::payload_of;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use profile_core::model::Profile;
use profile_sampler as sampler;

/// Of a list of `aggregate`, `json`, `payload` (flags), `keys` and `values` (texts).
pub fn otlp_writer(profile: &Profile, list: &Robj) -> Result<otlp::Writer> {
    let mut resource = Vec::new();
    let keys = option(list, "keys")?.elements()?;
    for (key, value) in keys.iter().zip(option(list, "values")?.elements()?) {
        let text = |text: &Sexp| owned(text.text()?.unwrap_or_default(), "attributes");
        resource.try_push((text(key)?, text(value)?), "attributes")?;
    }
    let payload = match option(list, "payload")?.flag()? {
        true => Some(payload_of(profile, &stop)?),
        false => None,
    };
    Ok(otlp::Writer {
        aggregate: option(list, "aggregate")?.flag()?,
        json: option(list, "json")?.flag()?,
        resource,
        payload,
    })
}

/// What the sampler has to know, and what messages call its file: of a list of `path`,
/// `megabytes`, `closures`, `node_stack` and `sizes_tell`.
pub fn sampler_settings(list: &Robj) -> Result<(sampler::Settings<'_>, &str)> {
    let count = |name: &str| {
        let number = option(list, name)?.integers()?.first().copied();
        Ok::<_, Error>(number.and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
    };
    let file = option(list, "path")?.file()?;
    let settings = sampler::Settings {
        file: file.path,
        bytes: count("megabytes")? << 20,
        closures: count("closures")?,
        node_stack: option(list, "node_stack")?.flag()?,
        sizes_tell: option(list, "sizes_tell")?.flag()?,
    };
    Ok((settings, file.shown))
}

/// An element of a list that R's side never leaves out.
pub fn option<'call>(list: &'call Robj, name: &str) -> Result<Sexp<'call>> {
    let missing = || Error::Unsupported(message!("No option `{name}`."));
    argument(list).named(name)?.ok_or_else(missing)
}
