//! The library that has started a thread: the one with the function that the thread began with.
//!
//! Some libraries start threads that work for others. That of C++ is given an object of the caller, whose class is in the
//! library of the caller. Those of OpenMP and TBB use the same threads again and again, for all libraries that are linked
//! with them, so these are named: `libgomp (data.table)`. R is linked with OpenMP as well, but has little use for it, so it
//! is named only if no other library is.

use crate::memory::pthreads::Pthread;
use crate::memory::symbols::Module;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use profile_runtime::memory::{self, Memory};
use std::ops::Range;

/// Threads of a C library of another kind, and those that have just ended.
pub const UNKNOWN: &str = "unknown";
/// This package.
pub const OWN: &str = "profile";

/// Libraries that give the work to the threads that they have started for others.
const POOLS: [&str; 4] = ["libgomp", "libomp", "libiomp5", "libtbb"];
const CXX: &str = "libstdc++";
/// R itself, and its packages that are linked with OpenMP.
const OF_R: [&str; 2] = ["libR", "stats"];
/// More libraries than are named.
const MOST: usize = 3;

/// The library of a thread. `files` are those whose starts are mapped, and where; `places` are all parts of them.
pub fn library_of(
    thread: &Pthread,
    memory: &mut impl Memory,
    files: &[(String, u64)],
    places: &[(String, Range<u64>)],
) -> Result<Option<String>> {
    let Some(path) = file_at(thread.routine, places) else {
        return Ok(None);
    };
    let name = name_of(path, memory, files)?;
    if name == CXX {
        // The object begins with the address of a table of its class.
        let class = memory::word(memory, thread.argument);
        let caller = class.and_then(|class| file_at(class, places));
        return match caller {
            Some(path) => name_of(path, memory, files).map(Some),
            None => Ok(Some(name)),
        };
    }
    if !POOLS.contains(&name.as_str()) {
        return Ok(Some(name));
    }
    let users = users_of(path, memory, files)?;
    Ok(Some(match users.as_slice() {
        [] => name,
        users => {
            let shown = users.get(..MOST).unwrap_or(users);
            let mut text = message!("{name} (");
            for (number, user) in shown.iter().enumerate() {
                let comma = if number > 0 { ", " } else { "" };
                text = message!("{text}{comma}{user}");
            }
            let more = if users.len() > MOST { ", ..." } else { "" };
            message!("{text}{more})")
        }
    }))
}

fn file_at(address: u64, places: &[(String, Range<u64>)]) -> Option<&str> {
    let place = places.iter().find(|(_, part)| part.contains(&address))?;
    Some(&place.0)
}

/// The module whose file is mapped from its start.
fn module(path: &str, memory: &mut impl Memory, files: &[(String, u64)]) -> Result<Option<Module>> {
    match files.iter().find(|(other, _)| other == path) {
        Some((_, start)) => Module::at(memory, *start),
        None => Ok(None),
    }
}

/// What a file is called: the package of a library in its folder `libs`, else the name of the library by which others are
/// linked with it, without versions, such as `libopenblas` of `libopenblasp-r0.3.21.so`.
fn name_of(path: &str, memory: &mut impl Memory, files: &[(String, u64)]) -> Result<String> {
    if let Some(package) = package_of(path) {
        return owned(package);
    }
    let module = module(path, memory, files)?;
    let name = match module {
        Some(module) => module.name(memory)?,
        None => None,
    };
    owned(stem(name.as_deref().unwrap_or(path)))
}

fn stem(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    name.find(".so").map_or(name, |end| &name[..end])
}

/// R installs libraries of packages as `stats/libs/stats.so`, or in a folder of `libs` for each architecture. Others that are
/// in a folder of this name begin with `lib`.
fn package_of(path: &str) -> Option<&str> {
    let mut folders = path.rsplit('/');
    if folders.next()?.starts_with("lib") {
        return None;
    }
    let is_libs = folders.by_ref().take(2).any(|folder| folder == "libs");
    let package = folders.next().filter(|package| !package.is_empty());
    package.filter(|_| is_libs)
}

/// The libraries that are linked with this one.
fn users_of(path: &str, memory: &mut impl Memory, files: &[(String, u64)]) -> Result<Vec<String>> {
    let mut users: Vec<String> = Vec::new();
    let of = module(path, memory, files)?;
    let name = match &of {
        Some(of) => of.name(memory)?,
        None => None,
    };
    let Some(name) = name else {
        return Ok(users);
    };
    for (file, start) in files {
        let Some(module) = Module::at(memory, *start)? else {
            continue;
        };
        if module.needs(memory, &name)? {
            let user = name_of(file, memory, files)?;
            if !users.contains(&user) {
                users.try_push(user)?;
            }
        }
    }
    let is_of_r = |user: &String| OF_R.contains(&user.as_str());
    if users.iter().all(is_of_r) {
        users.truncate(1);
        users.fill(owned("R")?);
    } else {
        users.retain(|user| !is_of_r(user));
    }
    users.sort_unstable();
    Ok(users)
}
