//! Names of nodes that are not names of functions.

/// The name of the outermost node, which is not a function.
pub const ROOT: &str = "(root)";
/// The name that viewers show for a function without a name.
pub const ANONYMOUS: &str = "(anonymous)";
