//! R's evaluator (`eval.c`): the sizes by which its functions are recognised in native stacks, since R exports
//! `Rf_eval()` only.

/// The minimum size of the byte code interpreter (`bcEval()`) in bytes. With a case for each instruction, it has 20 to 40
/// KB and is larger than any other function of the evaluator.
pub const INTERPRETER: u64 = 10_000;
/// The maximum number of functions between `Rf_eval()` and the interpreter. R has one, or none.
pub const MOST_BETWEEN: usize = 2;
