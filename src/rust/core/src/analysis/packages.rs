//! The package of a frame, by which views group and colour frames: the R package of its function if it is known,
//! otherwise what contains its code. For Go this is the package in the name of the function, for other native code the
//! R package of the library, or the program or library.
//!
//! - [`environments`]: what R's environments bind, and how R looks names up;
//! - [`known`]: what is known of a function without its callers;
//! - [`callers`]: finds the environments of functions by those of their callers;
//! - [`assign`]: assigns packages to functions.

pub mod assign;
mod callers;
pub mod environments;
mod found;
mod known;
#[cfg(test)]
mod world_tests;

use super::frame_names::{address, module};
use super::heap_frames::is_of_heap;
use super::source_facts::file_name;
use crate::model::{LocationId, Profile};

/// The package of a location, `None` if it is unknown. What holds memory in a heap snapshot is not code of a package.
pub fn package_of(profile: &Profile, id: LocationId) -> Option<&str> {
    if is_of_heap(profile, id) {
        return None;
    }
    let text = |id| profile.strings.get(id);
    let function = profile.function_of(id);
    let of_r = function.and_then(|function| function.package).map(text);
    let of_go = || {
        let function = function?;
        go_package(text(function.name), text(function.filename))
    };
    // Profilers of interpreted languages have one mapping for all functions, without addresses.
    let library = || module(profile, id).filter(|_| address(profile, id) != 0);
    of_r.or_else(of_go)
        .or_else(|| library_name(text(library()?)))
}

/// The name of a program or library, and for the library of an R package the name of the package: R installs it as
/// `stats/libs/stats.so`, on some systems in a subdirectory of `libs` for each architecture.
fn library_name(path: &str) -> Option<&str> {
    let name = file_name(path);
    let extensions = [".so", ".dll", ".dylib"];
    let stem = extensions
        .iter()
        .find_map(|extension| name.strip_suffix(extension));
    let is_of_package = |stem: &&str| {
        let mut folders = path.rsplit(['/', '\\']).skip(1);
        let is_libs = folders.by_ref().take(2).any(|folder| folder == "libs");
        is_libs && folders.next() == Some(stem)
    };
    let package = stem.filter(is_of_package);
    package.or(Some(name)).filter(|name| !name.is_empty())
}

/// The package of a Go function. The linker names functions `import/path.Function` or `import/path.(*Type).Method`.
/// Import paths are escaped, so that their last part has no dot. Type arguments in `[]` may contain other paths.
fn go_package<'p>(name: &'p str, file: &str) -> Option<&'p str> {
    // Assembly is part of many Go packages.
    if !file.ends_with(".go") && !file.ends_with(".s") {
        return None;
    }
    let path = name.split(['(', '[']).next().unwrap_or_default();
    let last = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = last + path[last..].find('.')?;
    Some(&name[..dot]).filter(|package| !package.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, HeapFrame, Location, Mapping};

    #[test]
    fn go_names_contain_the_import_path() {
        let cases = [
            ("main.main", Some("main")),
            ("runtime.mallocgc", Some("runtime")),
            ("net/http.(*conn).serve", Some("net/http")),
            ("main.(*tree).walk.func1", Some("main")),
            ("gopkg.in/yaml%2ev3.Unmarshal", Some("gopkg.in/yaml%2ev3")),
            (
                "github.com/a/b.F[go.shape.struct { net/http.x int }].G",
                Some("github.com/a/b"),
            ),
            ("slices.insertionSort[go.shape.int]", Some("slices")),
            ("cgocall", None),
            ("", None),
            (".a", None),
        ];
        for (name, package) in cases {
            assert_eq!(go_package(name, "/usr/src/x.go"), package, "{name}");
        }
        assert_eq!(go_package("a.b", "a.c"), None);
    }

    #[test]
    fn libraries_of_packages_have_their_name() {
        let cases = [
            ("/usr/lib/R/library/stats/libs/stats.so", Some("stats")),
            ("C:\\R\\library\\stats\\libs\\x64\\stats.dll", Some("stats")),
            ("/usr/lib/R/library/stats/libs/other.so", Some("other.so")),
            ("/usr/lib/stats/stats.so", Some("stats.so")),
            ("libs/stats.so", Some("stats.so")),
            ("/usr/lib/R/lib/libR.so", Some("libR.so")),
            ("/usr/bin/prog", Some("prog")),
            ("[kernel.kallsyms]", Some("[kernel.kallsyms]")),
            ("", None),
        ];
        for (path, name) in cases {
            assert_eq!(library_name(path), name, "{path}");
        }
    }

    #[test]
    fn native_code_belongs_to_its_library() {
        let mut profile = Profile::default();
        let file = profile.strings.intern("/usr/lib/libblas.so.3").unwrap();
        let empty = profile.strings.intern("").unwrap();
        let mapping = |filename| Mapping::of_file(filename, empty);
        let mappings = [mapping(file), mapping(empty)].map(|m| profile.add_mapping(m).unwrap());
        let ids =
            [(mappings[0], 16), (mappings[1], 16), (mappings[0], 0)].map(|(mapping, address)| {
                let address = Address {
                    mapping: Some(mapping),
                    address,
                    is_folded: false,
                    native_id: None,
                };
                let location = Location {
                    address: profile.intern_address(address).unwrap(),
                    ..Location::default()
                };
                profile.locations.intern(location).unwrap()
            });
        let without = profile.frame("f", empty, 0).unwrap();
        let [native, unnamed, interpreted] = ids;
        let found = [native, unnamed, interpreted, without].map(|id| package_of(&profile, id));
        assert_eq!(found, [Some("libblas.so.3"), None, None, None]);
    }

    #[test]
    fn what_holds_memory_has_no_package() {
        let mut profile = Profile::default();
        let file = profile.strings.intern("a.go").unwrap();
        let id = profile.frame("stats.x", file, 0).unwrap();
        assert_eq!(package_of(&profile, id), Some("stats"));
        for frame in HeapFrame::ALL {
            let location = Location {
                frame_type: profile.frame_type(frame.name()).unwrap(),
                ..profile.locations.get(id)
            };
            let of_heap = profile.locations.intern(location).unwrap();
            assert_eq!(package_of(&profile, of_heap), None, "{frame:?}");
        }
    }
}
