//! What loading a package spends its time on.

/// A part of the time of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its own code, in `.onLoad()`.
    OnLoad,
    /// Registering methods of S3.
    S3Methods,
    /// Copying what it imports.
    Imports,
    /// Its shared library.
    Native,
    /// Reading its code and its description.
    Code,
    /// Classes, generics and methods of S4.
    S4,
    /// Attaching it, with `.onAttach()`, and the rest of `library()`.
    Attach,
    /// What is left of loading it.
    Other,
}

impl Phase {
    pub const ALL: [Phase; 8] = [
        Phase::OnLoad,
        Phase::S3Methods,
        Phase::Imports,
        Phase::Native,
        Phase::Code,
        Phase::S4,
        Phase::Attach,
        Phase::Other,
    ];

    /// The name of the column in R.
    pub fn name(self) -> &'static str {
        match self {
            Phase::OnLoad => "on_load",
            Phase::S3Methods => "s3_methods",
            Phase::Imports => "imports",
            Phase::Native => "native",
            Phase::Code => "code",
            Phase::S4 => "s4",
            Phase::Attach => "attach",
            Phase::Other => "other",
        }
    }

    /// The phase that a function inside of `loadNamespace()` begins. Its functions are the same from R 4.2 to 4.6.
    pub fn of_function(name: &str) -> Option<Phase> {
        Some(match name {
            "runHook" | "runUserHook" | ".onLoad" => Phase::OnLoad,
            "registerS3methods" => Phase::S3Methods,
            "namespaceImport"
            | "namespaceImportFrom"
            | "namespaceImportClasses"
            | "namespaceImportMethods"
            | "importIntoEnv" => Phase::Imports,
            "library.dynam" | "assignNativeRoutines" | "addNamespaceDynLibs" | "dyn.load" => {
                Phase::Native
            }
            "lazyLoad" | "lazyLoadDBexec" | "lazyLoadDBfetch" | "readRDS" | "sys.source" => {
                Phase::Code
            }
            _ if name.starts_with("methods::") => Phase::S4,
            "cacheMetaData" => Phase::S4,
            _ => return None,
        })
    }
}
