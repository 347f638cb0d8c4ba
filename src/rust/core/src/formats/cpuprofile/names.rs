//! Names of nodes that are no names of functions.

/// The name of the outermost node, which is no function.
pub const ROOT: &str = "(root)";
/// What viewers call a function without a name.
pub const ANONYMOUS: &str = "(anonymous)";
