//! What is known of a function without its callers.

use super::environments::{EnvironmentId, Environments, GLOBAL, Home, NameId};
use crate::analysis::frame_names::address;
use crate::analysis::heap_frames::is_of_heap;
use crate::model::titled::without_title;
use crate::model::{
    COLLECTION, COPYING, FINALIZER, Function, LocationId, NATIVE, Profile, is_deparsed,
};

/// In `.package_from`: the name of the function contains the package.
const FROM_NAME: &str = "name";

/// What is known of a location without its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Native code, and what is not code: it does not look anything up.
    Nothing,
    /// The environment of its function, if the environment is loaded.
    Environment(Home),
    /// The namespace in the call `package::name`, which may be that of an S4 generic, but not of the method.
    Called(EnvironmentId),
    /// Its name, if any environment or function has it.
    Name(Option<NameId>),
}

/// The name of a function without its package, which `package::name` contains, and without the title of the call.
pub fn name_in_package<'p>(profile: &'p Profile, function: &Function) -> &'p str {
    let name = without_title(profile.strings.get(function.name));
    let package = function.package.map(|id| profile.strings.get(id));
    let rest = package.and_then(|package| name.strip_prefix(package)?.strip_prefix("::"));
    rest.map_or(name, |rest| rest.strip_prefix(':').unwrap_or(rest))
}

pub fn known(profile: &Profile, environments: &Environments, id: LocationId) -> Known {
    let Some(function) = profile.function_of(id) else {
        return Known::Nothing;
    };
    let type_ = profile.frame_type_of(&profile.locations.get(id));
    if type_ == Some(NATIVE) || address(profile, id) != 0 || is_of_heap(profile, id) {
        return Known::Nothing;
    }
    known_of_function(profile, environments, &function)
}

pub fn known_of_function(
    profile: &Profile,
    environments: &Environments,
    function: &Function,
) -> Known {
    let text = |id| profile.strings.get(id);
    if let Some(package) = function.package {
        let home = environments.of_package(text(package));
        let is_called = function.package_from.map(text) == Some(FROM_NAME);
        return match home.filter(|_| is_called) {
            Some(home) => Known::Called(home),
            None => Known::Environment(home),
        };
    }
    // Code of the user: that a function belongs to no package may be known, and files of packages are.
    let file = text(function.filename);
    if function.package_from.is_some() || !(file.is_empty() || is_deparsed(file)) {
        return Known::Environment(Some(GLOBAL));
    }
    match text(function.name) {
        COLLECTION | COPYING | FINALIZER => Known::Nothing,
        name => Known::Name(environments.name(without_title(name))),
    }
}
