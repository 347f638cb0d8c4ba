//! Functions whose calls have a title: the text of one of their arguments, which recorders that read R's memory add to the
//! name of the frame. `loadNamespace(dplyr)` is the call of `loadNamespace()` that loads dplyr.
//!
//! This table is the only place that knows these functions. `profile_runtime::arguments` reads the text from the memory of
//! a process, in a signal handler as well.

/// A function, and the argument that its calls are named after.
#[derive(Debug, PartialEq, Eq)]
pub struct Titled {
    pub package: &'static str,
    pub function: &'static str,
    pub argument: &'static str,
    /// The way from the argument to the text: names of variables in environments.
    pub path: &'static [&'static str],
    /// If the function quotes the argument, so that a symbol is the text: the argument that, unless it is `FALSE`, says
    /// that it does not.
    pub unquoted_by: Option<&'static str>,
    pub role: Role,
}

/// What a titled function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It loads the package, if it is not loaded.
    Load,
    /// It attaches the package.
    Attach,
    /// It runs a unit of work, which is a label of samples by a rule of `inst/frameworks.txt`.
    Unit,
}

impl Titled {
    const fn of_base(role: Role, function: &'static str, argument: &'static str) -> Titled {
        Titled {
            package: "base",
            function,
            argument,
            path: &[],
            unquoted_by: None,
            role,
        }
    }

    const fn quoting(function: &'static str) -> Titled {
        Titled {
            unquoted_by: Some("character.only"),
            ..Titled::of_base(Role::Attach, function, "package")
        }
    }
}

/// All of them.
pub const TITLED: [Titled; 6] = [
    Titled::of_base(Role::Load, "loadNamespace", "package"),
    Titled::of_base(Role::Attach, "attachNamespace", "ns"),
    Titled::quoting("library"),
    Titled::quoting("require"),
    Titled::of_base(Role::Load, "requireNamespace", "package"),
    // Of targets 1.12, in the process of the pipeline and in workers.
    Titled {
        package: "targets",
        function: "target_run",
        argument: "target",
        path: &["name"],
        unquoted_by: None,
        role: Role::Unit,
    },
];

/// The longest title, in bytes. Calls with longer texts have no title.
pub const LONGEST_TITLE: usize = 128;

/// The row of [`TITLED`] for the name of a call without a title, such as `loadNamespace` or `base::library`. Only the
/// package of the function tells whether it is this one.
pub fn row_of_call(name: &str) -> Option<usize> {
    let is_called = |titled: &Titled| match name.strip_suffix(titled.function) {
        Some("") => true,
        Some(before) => before.strip_suffix("::") == Some(titled.package),
        None => false,
    };
    TITLED.iter().position(is_called)
}

/// The name of a function, with the title of the call if it has one: the row of [`TITLED`], and the title.
pub fn title_of(name: &str) -> Option<(&'static Titled, &str)> {
    let (function, title) = name.strip_suffix(')')?.split_once('(')?;
    let row = row_of_call(function)?;
    (!title.is_empty()).then_some((&TITLED[row], title))
}

/// The name of a function without the title of the call.
pub fn without_title(name: &str) -> &str {
    match title_of(name) {
        Some((_, title)) => &name[..name.len() - title.len() - 2],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_found_behind_names_of_these_functions_only() {
        let found = |name| title_of(name).map(|(titled, title)| (titled.function, title));
        let dplyr = Some(("loadNamespace", "dplyr"));
        assert_eq!(found("loadNamespace(dplyr)"), dplyr);
        assert_eq!(found("base::loadNamespace(dplyr)"), dplyr);
        assert_eq!(found("library(dplyr)"), Some(("library", "dplyr")));
        let names = [
            "loadNamespace",
            "loadNamespace()",
            "loadNamespace(dplyr",
            "my::loadNamespace(dplyr)",
            "myloadNamespace(dplyr)",
            "FUN (report.R:12)",
            "(dplyr)",
            ")",
            "",
        ];
        for name in names {
            assert_eq!(found(name), None, "{name}");
            assert_eq!(without_title(name), name);
        }
        assert_eq!(without_title("base::require(a.b)"), "base::require");
        assert_eq!(without_title("loadNamespace(\u{e4})"), "loadNamespace");
    }
}
