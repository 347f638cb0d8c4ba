//! Reads what R's environments bind: the attribute `environments` of a list of tables, see `R/namespaces.R`. It is
//! there if the packages of functions that are known by name only have to be looked up.

use crate::argument::Sexp;
use profile_core::analysis::packages::assign::{Added, assign_packages};
use profile_core::analysis::packages::environments::{
    Bindings, CodeTable, Environments, GenericTable, Tables,
};
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::TryCollect;
use profile_core::message;
use profile_core::model::Profile;

/// The attribute of the first of these lists of tables that has it.
pub fn of<'call>(profiles: &[Sexp<'call>]) -> Result<Option<Sexp<'call>>> {
    for profile in profiles {
        let found = profile.attribute(c"environments")?;
        if !found.is_null() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Assigns packages, if there is such an attribute.
pub fn assign(found: Option<Sexp>, profile: &mut Profile, stop: Stop) -> Result<Added> {
    let Some(list) = found else {
        return Ok(Added::default());
    };
    assign_packages(profile, &Environments::new(tables(list)?)?, stop)
}

fn tables<'call>(list: Sexp<'call>) -> Result<Tables<'call>> {
    let part = |name| part(list, name);
    let integers = |name| part(name)?.integers();
    let lists = |name| Ok::<_, Error>(part(name)?.elements()?.iter());
    let bindings = lists("bindings")?.map(|of| {
        Ok(Bindings {
            names: self::part(*of, "names")?.integers()?,
            homes: self::part(*of, "homes")?.integers()?,
        })
    });
    let code = lists("code")?.map(|of| {
        let part = |name| self::part(*of, name)?.integers();
        let (environment, name) = (part("environment")?, part("name")?);
        Ok(CodeTable {
            environment: environment.first().copied().unwrap_or(0),
            name: name.first().copied().unwrap_or(0),
            locals: part("locals")?,
            arguments: part("arguments")?,
            mentions: part("mentions")?,
            dispatches: part("dispatches")?.first() == Some(&1),
        })
    });
    let generics = lists("generics")?.map(|of| {
        let part = |name| self::part(*of, name)?.integers();
        let (environment, name) = (part("environment")?, part("name")?);
        Ok(GenericTable {
            environment: environment.first().copied().unwrap_or(0),
            name: name.first().copied().unwrap_or(0),
            homes: part("homes")?,
        })
    });
    Ok(Tables {
        names: part("names")?.texts()?,
        packages: part("packages")?.texts()?,
        bindings: bindings.try_vec_of()?,
        own: integers("own")?,
        imports: integers("imports")?,
        methods: integers("methods")?,
        search: integers("search")?,
        start: integers("start")?.first().copied().unwrap_or(0),
        code: code.try_vec_of()?,
        generics: generics.try_vec_of()?,
    })
}

fn part<'call>(list: Sexp<'call>, name: &str) -> Result<Sexp<'call>> {
    let missing = || Error::Unsupported(message!("No part `{name}`."));
    list.named(name)?.ok_or_else(missing)
}
