//! The table of known kinds of files that cannot be read: how to recognise them, and what users can do instead.
//!
//! All readers check this table first ([`super::read`]), since the first bytes of nearly any binary file are also a
//! valid field of a protocol buffer message. A file of a kind in this table is therefore never reported as a damaged
//! profile.

mod archives;
mod json;
mod legacy;
pub mod pages;
mod traces;

use super::bytes::{is_json, text_lines};
use crate::json::keys;

/// The name of pages without a profile.
pub const HTML: &str = "html";

/// A kind of file.
#[derive(Debug)]
pub struct FileKind {
    /// One word, for the field `looks_like` of the R condition.
    pub name: &'static str,
    /// As in "it looks like a zip archive".
    pub title: &'static str,
    /// What users can do, as a sentence; may be empty.
    pub remedy: &'static str,
    mark: Mark,
}

/// How a file is recognised by its first bytes, after decompression with gzip.
#[derive(Debug)]
enum Mark {
    /// It starts with one of these.
    Start(&'static [&'static [u8]]),
    /// It contains this at an offset.
    At(usize, &'static [u8]),
    /// One of the first lines starts with one of these, after blanks. Empty lines do not count.
    Line(usize, &'static [&'static [u8]]),
    /// It is a JSON object with one of these fields, and contains this text.
    Json(&'static [&'static str], &'static str),
    Is(fn(&[u8]) -> bool),
}

impl FileKind {
    fn recognises(&self, start: &[u8]) -> bool {
        match self.mark {
            Mark::Start(starts) => starts.iter().any(|bytes| start.starts_with(bytes)),
            Mark::At(at, bytes) => start.get(at..).is_some_and(|rest| rest.starts_with(bytes)),
            Mark::Line(count, starts) => {
                let mut lines = text_lines(start).take(count).map(<[u8]>::trim_ascii_start);
                lines.any(|line| starts.iter().any(|text| line.starts_with(text)))
            }
            Mark::Json(names, text) => {
                is_json(start) && keys::has_any(start, names) && json::has(start, text)
            }
            Mark::Is(is) => is(start),
        }
    }
}

/// The kind of a file that starts with these bytes.
pub fn find(start: &[u8]) -> Option<&'static FileKind> {
    KINDS.iter().find(|kind| kind.recognises(start))
}

/// A kind that is recognised only by its syntax. To be called for content that no format recognises.
pub fn find_syntax(start: &[u8]) -> Option<&'static FileKind> {
    SYNTAXES.iter().find(|kind| kind.recognises(start))
}

use Mark::{At, Is, Json, Line, Start};

const fn kind(
    name: &'static str,
    title: &'static str,
    remedy: &'static str,
    mark: Mark,
) -> FileKind {
    FileKind {
        name,
        title,
        remedy,
        mark,
    }
}

const UNPACK: &str = "Unpack it first.";
const DECOMPRESS: &str = "Decompress it first.";
const PPROF: &str = "Convert it with `pprof -proto -output=x.pb.gz [program] file`.";
const DOWNLOADED: &str =
    "If the file was downloaded, the server may have sent a page instead of it.";
const JFRCONV: &str = "Convert it to collapsed stacks with `jfrconv` of async-profiler.";
const SPEEDSCOPE: &str = "Open it at speedscope.app and export it there.";
const SAVE_AS_UTF8: &str = "Save it as UTF-8.";

/// The form of the Gecko profiler, which the reader of processed profiles refuses as well.
pub const GECKO: FileKind = kind(
    "gecko",
    "a profile in the form that Firefox itself records",
    "Open it at profiler.firefox.com and save it there, or convert it with profiler-cli.",
    Is(json::is_gecko),
);

/// A trace of the Trace Event Format without samples, which only the reader of Chrome's traces distinguishes.
pub const TRACE_EVENTS: FileKind = kind(
    "trace_events",
    "a trace of events (Trace Event Format) without samples of V8",
    "Open it at speedscope.app and export it there. py-spy writes `--format speedscope` as well.",
    Is(|_| false),
);

#[rustfmt::skip]
static KINDS: &[FileKind] = &[
    // Archives and compression.
    kind("zip", "a zip archive", UNPACK, Start(&[b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"])),
    kind("tar", "a tar archive", UNPACK, Is(archives::is_tar)),
    kind("7z", "a 7z archive", UNPACK, Start(&[b"7z\xbc\xaf\x27\x1c"])),
    kind("rar", "a rar archive", UNPACK, Start(&[b"Rar!\x1a\x07"])),
    kind("gzip", "a file compressed twice with gzip", "Decompress it once.", Start(&[b"\x1f\x8b"])),
    kind("zlib", "a file compressed with zlib", DECOMPRESS, Start(&[b"x\x9c", b"x\xda", b"x\x01"])),
    kind("bzip2", "a file compressed with bzip2", "Read it through `bzfile()`.", Is(archives::is_bzip2)),
    kind("xz", "a file compressed with xz", "Read it through `xzfile()`.", Start(&[b"\xfd7zXZ\0"])),
    kind("zstd", "a file compressed with zstd", DECOMPRESS, Start(&[b"\x28\xb5\x2f\xfd"])),
    kind("memray", "a recording of memray", "Show it with `memray flamegraph`. No other tool reads its stacks.",
        Is(traces::is_memray)),
    kind("lz4", "a file compressed with lz4", DECOMPRESS, Start(&[b"\x04\x22\x4d\x18"])),
    kind("lzip", "a file compressed with lzip", DECOMPRESS, Start(&[b"LZIP\x01"])),
    kind("compress", "a file compressed with `compress`", DECOMPRESS, Start(&[b"\x1f\x9d"])),
    kind("snappy", "a file compressed with snappy", DECOMPRESS, Start(&[b"\xff\x06\0\0sNaPpY"])),
    // Data of R and of other programs.
    kind("rda", "an R data file", "Use `load()`.", Is(archives::is_r_data)),
    kind("rds", "an R object", "Use `readRDS()`.", Is(archives::is_r_object)),
    kind("qs", "an R object of the package qs or qs2", "Use the package that wrote it.", Start(&[b"\x0b\x0e\x0a"])),
    kind("parquet", "a Parquet file", "Read its tables with a package such as nanoparquet.", Start(&[b"PAR1", b"PARE"])),
    kind("arrow", "an Arrow file", "Read its tables with the package arrow.", Start(&[b"ARROW1", b"FEA1"])),
    kind("hdf5", "an HDF5 file", "", Start(&[b"\x89HDF\r\n\x1a\n"])),
    kind("sqlite", "an SQLite database", "Connect to it with DBI, and use `tbl_profile()`.",
        Start(&[b"SQLite format 3\0"])),
    kind("duckdb", "a DuckDB database", "Connect to it with DBI, and use `tbl_profile()`.", At(8, b"DUCK")),
    kind("pickle", "a Python pickle", "", Start(&[b"\x80\x02", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95"])),
    // Profiles of other tools.
    kind("jfr", "a recording of Java Flight Recorder", JFRCONV, Start(&[b"FLR\0"])),
    kind("hprof", "a heap dump of Java", "Open it with a viewer such as VisualVM.", Start(&[b"JAVA PROFILE 1.0"])),
    kind("perf_data", "a recording of perf", "Convert it with `perf script`.", Start(&[b"PERFILE2", b"2ELIFREP", b"PERFFILE"])),
    kind("simpleperf", "a protobuf report of simpleperf", "Convert the recording with its `report_sample.py`.",
        Start(&[b"SIMPLEPERF"])),
    kind("gperftools", "a profile in the legacy pprof format (gperftools, CPU)", PPROF, Is(legacy::is_gperftools)),
    kind("pprof_heap", "a profile in the legacy pprof format (heap, text)", PPROF, Is(legacy::is_heap)),
    kind("pprof_count", "a profile in the legacy pprof format (counts, text)", PPROF, Is(legacy::is_count)),
    kind("pprof_threadz", "a profile in the legacy pprof format (threads, text)", PPROF,
        Line(5, &[b"--- threadz ", b"--- Thread "])),
    kind("pprof_contention", "a profile in the legacy pprof format (contention, text)", PPROF,
        Line(5, &[b"--- contentionz ", b"--- contention:", b"--- mutex:"])),
    kind("pprof_symbols", "a profile in the legacy pprof format (with symbols)", PPROF, Is(legacy::is_symbolized)),
    kind("pprof_report", "a report of pprof", "Read the profile itself.", Line(10, &[b"PeriodType: ", b"Showing nodes accounting for ", b"-----------+----------"])),
    kind("goroutines", "a dump of goroutines",
        "Get `/debug/pprof/goroutine` without `debug=2`, which returns a profile.", Is(legacy::is_dump)),
    kind("jemalloc", "a heap profile of jemalloc", "Convert it with `jeprof --collapsed program file`.",
        Start(&[b"heap_v2/"])),
    kind("perf_report", "a report of perf", "Print the samples with `perf script`.", Line(100, &[b"# Overhead ", b"# Children "])),
    kind("bpftrace", "an output of bpftrace", "Convert it with `stackcollapse-bpftrace.pl` of FlameGraph.",
        Is(legacy::is_bpftrace)),
    kind("austin_full", "a file of Austin with several metrics", "Convert it with `austin2speedscope`.",
        Is(legacy::is_austin_full)),
    kind("nettrace", "a trace of .NET", "Convert it with `dotnet-trace convert --format Speedscope`.",
        Start(&[b"Nettrace"])),
    kind("mojo", "a binary file of Austin", "Convert it with `mojo2austin`.", Start(&[b"MOJ"])),
    kind("rbspy", "a raw recording of rbspy", "Convert it with `rbspy report --format speedscope`.",
        Start(&[b"rbspy0"])),
    kind("ruby", "data of Ruby, such as a recording of stackprof", "Convert it with `stackprof --stackcollapse`.",
        Start(&[b"\x04\x08"])),
    kind("cprofile", "statistics of Python's cProfile", "They have no stacks. Record with a tool such as py-spy.",
        Is(traces::is_cprofile)),
    kind("pstats", "a report of Python's cProfile", "It has no stacks. Record with a tool such as py-spy.",
        Line(10, &[b"ncalls  tottime  percall  cumtime"])),
    kind("gprof", "a report of gprof", "It has no stacks. Record with a tool such as perf.", Start(&[b"Flat profile:"])),
    kind("summary_rprof", "a printed result of `summaryRprof()`", "Read the file of `Rprof()` itself.",
        Is(legacy::is_summary_of_rprof)),
    kind("line_profiler", "a report of Python's line_profiler", "It has no stacks. Record with a tool such as py-spy.",
        Start(&[b"Timer unit: "])),
    kind("tachyon", "a binary file of Python's profiling.sampling",
        "Convert it with `python -m profiling.sampling replay --gecko -o x.json file`.", Is(traces::is_tachyon)),
    kind("pyinstrument", "a report of pyinstrument", "Write it with `pyinstrument -r speedscope -o x.json`.",
        Json(&["root_frame"], "\"sample_count\"")),
    kind("pyisession", "a session of pyinstrument", "Convert it with `pyinstrument --load file -r speedscope -o x.json`.",
        Json(&["start_call_stack"], "")),
    kind("go_trace", "an execution trace of Go",
        "Get a profile with `go tool trace -pprof=TYPE file > x.pb`, where TYPE is net, sync, syscall or sched.",
        Is(traces::is_go)),
    kind("perfetto", "a trace of Perfetto",
        "Convert its stacks with `traceconv profile file`; samples of the CPU need `--perf`.", Is(traces::is_perfetto)),
    kind("rustc", "a self-profile of rustc", "Convert it with `stack_collapse` of measureme.", Is(traces::is_rustc)),
    kind("dtrace", "an output of DTrace", "Convert it with `stackcollapse.pl` of FlameGraph.", Is(legacy::is_dtrace)),
    kind("sample", "a report of sample, the profiler of macOS", "Convert it with `stackcollapse-sample.awk` of FlameGraph.",
        Start(&[b"Analysis of sampling ", b"Sampling process "])),
    kind("ghc", "a profile of GHC", "Convert it with `ghc-prof-flamegraph`.", Is(legacy::is_ghc)),
    kind("ghc_eventlog", "an event log of GHC", "Convert it with `hs-speedscope`.", Start(&[b"hdrbhetb"])),
    kind("vtune", "a table of VTune", "Convert it with `inferno-collapse-vtune`.", Start(&[b"Function Stack,"])),
    kind("vsprof", "a table of Visual Studio's profiler", "Convert it with `inferno-collapse-vsprof`.",
        Start(&[b"\xef\xbb\xbfLevel,Function Name,", b"Level,Function Name,"])),
    kind("art", "a method trace of Android", "Open it at profiler.firefox.com and save it there.",
        Start(&[b"*version\n", b"SLOW\xf2\0", b"SLOW\xf3\0"])),
    kind("dhat", "a file of DHAT", "Open it with `dh_view.html` of valgrind.", Json(&["dhatFileVersion"], "")),
    kind("callgrind", "a callgrind file, which can only be written", "", Is(legacy::is_callgrind)),
    kind("massif", "a file of massif", "Print it with `ms_print`.", Is(legacy::is_massif)),
    kind("jsonslabs", "a profile that the Firefox Profiler saved as JsonSlabs",
        "Open it at profiler.firefox.com and save it there as JSON.", Start(&[b"\xdc\xdfJSLB"])),
    GECKO,
    kind("devtools", "a recording of the old performance panel of Firefox", SPEEDSCOPE, Is(json::is_devtools)),
    kind("safari", "a recording of a timeline of Safari", SPEEDSCOPE, Json(&["recording"], "\"instrumentTypes\"")),
    kind("ghc_json", "a profile of GHC in JSON", SPEEDSCOPE, Json(&["cost_centres"], "")),
    kind("stackprof_json", "a report of stackprof in JSON", "Convert it with `stackprof --stackcollapse`.",
        Json(&["gc_samples"], "\"missed_samples\"")),
    kind("flamebearer", "a flame graph of Pyroscope", "Download the profile as pprof instead.", Json(&["flamebearer"], "")),
    kind("v8_log", "a log of V8", "Record with `node --cpu-prof` instead of `--prof`.", Start(&[b"v8-version,"])),
    kind("instruments", "a call tree that was copied from Instruments", SPEEDSCOPE,
        Start(&[b"Running Time\tSelf (ms)\t", b"Weight\tSelf Weight\t", b"Bytes Used\tCount\t"])),
    kind("heapprofile", "a heap profile of Chrome or Node", "Only their CPU profiles can be read.",
        Json(&["head"], "\"selfSize\"")),
    kind("heapsnapshot", "a heap snapshot of Chrome or Node", "Only their CPU profiles can be read.",
        Json(&["snapshot"], "\"node_fields\"")),
    kind("otlp_other", "OpenTelemetry data that are not profiles", "", Json(&["resourceSpans", "resourceMetrics", "resourceLogs"], "")),
    // Documents and programs.
    kind("utf16", "UTF-16 text", SAVE_AS_UTF8, Is(archives::is_utf16)),
    kind(HTML, "HTML or XML", DOWNLOADED, Is(|start| archives::is_markup(start) && !pages::holds_profile(start))),
    kind("pdf", "a PDF file", "", Start(&[b"%PDF-"])),
    kind("image", "an image", "", Start(&[b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"])),
    kind("office", "a document of Microsoft Office", "", Start(&[b"\xd0\xcf\x11\xe0"])),
    kind("program", "a program or library", "", Is(archives::is_program)),
    kind("lfs", "a pointer of Git LFS", "Get the file itself with `git lfs pull`.",
        Start(&[b"version https://git-lfs.github.com/spec/"])),
];

/// Checked last: some JSON files are recognised only by their readers, and stacks may start with `<`.
#[rustfmt::skip]
static SYNTAXES: &[FileKind] = &[
    kind("json", "JSON", "", Is(json::is_any)),
    kind(HTML, "HTML or XML", DOWNLOADED, Is(|start| start.trim_ascii_start().starts_with(b"<"))),
];

#[cfg(test)]
mod tests;
