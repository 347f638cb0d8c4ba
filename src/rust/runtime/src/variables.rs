//! The variables and functions of R by which its memory is found. R exports them (`Rinternals.h`, `Defn.h`), but R 4.2 to
//! 4.6 export many that are not part of its API.

/// The innermost record of a call, see [`crate::contexts`].
pub const GLOBAL_CONTEXT: &str = "R_GlobalContext";
/// The position of the innermost function.
pub const SRCREF: &str = "R_Srcref";
/// The marker for a position in byte code.
pub const IN_BYTE_CODE: &str = "R_InBCInterpreter";
/// The outermost address of the C stack.
pub const STACK_START: &str = "R_CStackStart";
/// The node stack of the byte code interpreter: the first free entry, and its end.
pub const NODE_STACK_TOP: &str = "R_BCNodeStackTop";
pub const NODE_STACK_END: &str = "R_BCNodeStackEnd";
/// The stack of protected objects, and the number of objects on it.
pub const PROTECTED: &str = "R_PPStack";
pub const PROTECTED_TOP: &str = "R_PPStackTop";

/// Objects.
pub const NIL: &str = "R_NilValue";
pub const GLOBAL: &str = "R_GlobalEnv";
pub const BASE: &str = "R_BaseEnv";
pub const EMPTY: &str = "R_EmptyEnv";
pub const UNBOUND: &str = "R_UnboundValue";
pub const MISSING: &str = "R_MissingArg";
pub const NAMESPACES: &str = "R_NamespaceRegistry";
/// Symbols.
pub const SRCFILE_SYMBOL: &str = "R_SrcfileSymbol";
pub const NAMES_SYMBOL: &str = "R_NamesSymbol";
pub const CLASS_SYMBOL: &str = "R_ClassSymbol";
pub const NAME_SYMBOL: &str = "R_NameSymbol";

/// The evaluator.
pub const EVAL: &str = "Rf_eval";
/// Runs native code so that R's errors end there.
pub const TOPLEVEL_EXEC: &str = "R_ToplevelExec";
/// What allocates vectors, and what copies and converts them.
pub const ALLOCATE: &str = "Rf_allocVector3";
pub const COPY: [&str; 2] = ["Rf_duplicate", "Rf_shallow_duplicate"];
pub const CONVERT: &str = "Rf_coerceVector";
/// All functions by which these allocate objects.
pub const ALLOCATING: [&str; 3] = [ALLOCATE, "Rf_cons", "Rf_allocSExp"];
/// Frees the data of task callbacks, up to R 4.5.
pub const RELEASE: &str = "R_ReleaseObject";

/// What is needed to read R's calls.
pub const OF_CALLS: [&str; 7] = [
    GLOBAL_CONTEXT,
    SRCREF,
    NIL,
    IN_BYTE_CODE,
    SRCFILE_SYMBOL,
    NODE_STACK_END,
    STACK_START,
];

/// The names of the symbols to which [`IN_BYTE_CODE`] and [`SRCFILE_SYMBOL`] point.
pub const IN_BYTE_CODE_NAME: &str = "<in-bc-interp>";
pub const SRCFILE_NAME: &str = "srcfile";
/// The attribute that contains a source reference, and the variable with the file in its environment `srcfile`.
pub const SRCREF_NAME: &str = "srcref";
pub const FILENAME: &str = "filename";

/// The files that contain R: its library or, if R was built without one, its program.
pub const LIBRARY: &str = "/libR.so";
pub const PROGRAM: &str = "/bin/exec/R";
/// The folder of the library, and the file with the version of R, both below R's folder.
pub const LIBRARY_FOLDER: &str = "/lib";
pub const DESCRIPTION_OF_BASE: &str = "/library/base/DESCRIPTION";
