//! R's own profiler, `Rprof()` (`eval.c`).

/// Whether this version of R, of which the first two numbers are given, writes each line of its file when it takes the
/// sample. Earlier versions buffer lines.
pub fn writes_lines_at_once(version: (u32, u32)) -> bool {
    version >= (4, 3)
}
