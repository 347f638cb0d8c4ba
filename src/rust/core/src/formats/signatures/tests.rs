//! Tests with the start of a file of each kind, and of files that look similar.

use super::*;
use crate::formats::read::look;

fn name_of(start: &[u8]) -> &'static str {
    find(start).map_or("", |kind| kind.name)
}

#[test]
fn each_kind_is_recognised() {
    let words = |words: [u64; 5], is_big: bool, size: usize| {
        let bytes = words.iter().flat_map(|word| {
            let bytes = if is_big {
                word.to_be_bytes()[8 - size..].to_vec()
            } else {
                word.to_le_bytes()[..size].to_vec()
            };
            bytes.into_iter()
        });
        bytes.collect::<Vec<u8>>()
    };
    let gperftools = |is_big, size| words([0, 3, 0, 10_000, 0], is_big, size);
    let mut tar = [0; 512];
    tar[..6].copy_from_slice(b"a.json");
    tar[100..107].copy_from_slice(b"0000644");
    let sum: u32 = tar.iter().map(|&byte| u32::from(byte)).sum::<u32>() + 8 * 32;
    tar[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    #[rustfmt::skip]
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"PK\x03\x04\x14\0".into(), "zip"),
        (b"PK\x05\x06\0\0".into(), "zip"),
        (tar.into(), "tar"),
        (b"7z\xbc\xaf\x27\x1c\0".into(), "7z"),
        (b"Rar!\x1a\x07\x01".into(), "rar"),
        (b"\x1f\x8b\x08\0".into(), "gzip"),
        (b"BZh91AY&SY\x01".into(), "bzip2"),
        (b"\xfd7zXZ\0\0".into(), "xz"),
        (b"\x28\xb5\x2f\xfd\x04".into(), "zstd"),
        (b"\x04\x22\x4d\x18\x64".into(), "lz4"),
        (b"RDX3\nX\n\0\0\0\x03".into(), "rda"),
        (b"RDX2\nX\n\0\0\0\x02".into(), "rda"),
        (b"RDA3\nA\n3\n".into(), "rda"),
        (b"RDB3\nB\n\x03\0\0\0".into(), "rda"),
        (b"X\n\0\0\0\x03\0\x04\x02\x02".into(), "rds"),
        (b"X\n\0\0\0\x02\0\x04\x02\x02".into(), "rds"),
        (b"A\n3\n262658\n".into(), "rds"),
        (b"A\r\n3\r\n262658\r\n".into(), "rds"),
        (b"B\n\x03\0\0\0".into(), "rds"),
        (b"PAR1\x15\x04".into(), "parquet"),
        (b"SQLite format 3\0\x10".into(), "sqlite"),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08DUCK\x40".into(), "duckdb"),
        (b"FLR\0\0\x02".into(), "jfr"),
        (b"JAVA PROFILE 1.0.2\0".into(), "hprof"),
        (b"JAVA PROFILE 1.0.1, created Mon\n".into(), "hprof"),
        (b"PERFILE2\x68\0".into(), "perf_data"),
        (b"CPU     ID                    FUNCTION:NAME\n  0  64091      :tick-60s \n\n".into(), "dtrace"),
        (b"Analysis of sampling rg (pid 64751) every 1 millisecond\n".into(), "sample"),
        (b"\tSun Aug  6 14:52 2023 Time and Allocation Profiling Report  (Final)\n".into(), "ghc"),
        (b"Function Stack,CPU Time:Self,Module\nTotal,0.0,[Unknown]\n".into(), "vtune"),
        (b"\xef\xbb\xbfLevel,Function Name,Number of Calls\r\n".into(), "vsprof"),
        (b"*version\n3\ndata-file-overflow=".into(), "art"),
        (b"SLOW\xf3\0\x20\0".into(), "art"),
        (b"{\n \"dhatFileVersion\": 2,".into(), "dhat"),
        (b"positions: instr line\nevents: cpu(ms)\n".into(), "callgrind"),
        (b"File: a\nType: cpu\n-----------+------------------\n".into(), "pprof_report"),
        (gperftools(false, 8), "gperftools"),
        (gperftools(true, 8), "gperftools"),
        (gperftools(false, 4), "gperftools"),
        (gperftools(true, 4), "gperftools"),
        (words([0, 3, 1, 10_000, 0], false, 8), "gperftools"),
        (b"heap profile:      1:   1024 [     3:   4096 ] @ heapprofile\n".into(), "pprof_heap"),
        (b"heap profile: 1: 2 [3: 4] @ heap/1048576\n".into(), "pprof_heap"),
        (b"heap profile: 0: 0 [0: 0] @ growthz\n".into(), "pprof_heap"),
        (b"--- heapz 1 ---\nformat = java\n".into(), "pprof_heap"),
        (b"goroutine profile: total 3\n".into(), "pprof_count"),
        (b"# a comment\n\nthreadcreate profile: total 7\n".into(), "pprof_count"),
        (b"--- threadz 1 ---\n\n--- Thread 7f (name: a/1) stack: ---\n".into(), "pprof_threadz"),
        (b"--- contentionz 1 ---\nformat = java\n".into(), "pprof_contention"),
        (b"--- contention:\ncycles/second=1\n".into(), "pprof_contention"),
        (b"--- mutex:\ncycles/second=1\n".into(), "pprof_contention"),
        (b"--- symbol\nbinary=/bin/a\n".into(), "pprof_symbols"),
        (b"goroutine 1 [running]:\nmain.main()\n".into(), "goroutines"),
        (b"heap_v2/524288\n  t*: 1: 2 [0: 0]\n".into(), "jemalloc"),
        (b"Nettrace\x14\0\0\0".into(), "nettrace"),
        (b"MOJ\x03".into(), "mojo"),
        (b"\x04\x08{\x0d".into(), "ruby"),
        (b"# callgrind format\nversion: 1\n".into(), "callgrind"),
        (b"version: 1\ncreator: callgrind-3.19.0\n".into(), "callgrind"),
        (b"version: 1\ncreator: xdebug 3.0.2 (PHP 7.4.14)\ncmd: /a.php\npart: 1\npositions: line\n\nevents: Time_(10ns) Memory_(bytes)\n".into(), "callgrind"),
        (b"{\"version\":1.2,\"mode\":\"cpu\",\"samples\":4,\"gc_samples\":1,\"missed_samples\":0,\"frames\":{}}".into(), "stackprof_json"),
        (b"{\"label\":\"a\",\"duration\":7.5,\"markers\":[],\"ticks\":[],\"allocations\":{\"sites\":[]},\"profile\":{\"libs\":[]}}".into(), "devtools"),
        (b"{\"version\":1,\"recording\":{\"startTime\":4.1,\"instrumentTypes\":[]}}".into(), "safari"),
        (b"{\n\"program\": \"a\",\n\"total_ticks\": 7,\n\"cost_centres\": [\n".into(), "ghc_json"),
        (b"{\"version\":1,\"flamebearer\":{\"names\":[\"total\"]}}".into(), "flamebearer"),
        (b"v8-version,6,0,287,53,0\nshared-library,".into(), "v8_log"),
        (b"Weight\tSelf Weight\t\tSymbol Name\n96.08 Gc  100.0%\t-\t \ta (4)\n".into(), "instruments"),
        (b"desc: (none)\ncmd: ./a\ntime_unit: i\n".into(), "massif"),
        (b"{\"meta\":{\"version\":3},\"threads\":[{\"samples\":{\"schema\":{\"stack\":0}}}]}".into(), "gecko"),
        (b"{\"head\":{\"callFrame\":{\"functionName\":\"(root)\"},\"selfSize\":0}}".into(), "heapprofile"),
        (b"{\"snapshot\":{\"meta\":{\"node_fields\":[\"type\"]}}}".into(), "heapsnapshot"),
        (b"{\"resourceSpans\":[]}".into(), "otlp_other"),
        (b"\xff\xfes\0a\0".into(), "utf16"),
        (b"<!DOCTYPE html>\n".into(), "html"),
        (b"\n <!doctype HTML>\n".into(), "html"),
        (b"<?xml version=\"1.0\"?>\n<svg>".into(), "html"),
        (b"\xef\xbb\xbf<HTML lang=en>".into(), "html"),
        (b"<html><body>main;f 5\n</body>".into(), "html"),
        (b"<!-- a -->".into(), "html"),
        (b"%PDF-1.7\n".into(), "pdf"),
        (b"\x89PNG\r\n\x1a\n".into(), "image"),
        (b"\x7fELF\x02".into(), "program"),
        (b"x\x9c\x4b\x04\0".into(), "zlib"),
        (b"s\0a\0m\0p\0l\0e\0.\0i\0n\0".into(), "utf16"),
        (b"\0s\0a\0m\0p\0l\0e\0.\0i\0n".into(), "utf16"),
        (b"PeriodType: cpu nanoseconds\n".into(), "pprof_report"),
        (b"File: a\nType: cpu\nShowing nodes accounting for 5, 100% of 5 total\n".into(), "pprof_report"),
        (b"# To display\n#\n# Overhead  Command\n".into(), "perf_report"),
        (b"Attaching 1 probe...\n\n@[\n    f+1\n]: 5\n".into(), "bpftrace"),
        (b"@cpu[\n    f+1\n]: 5\n".into(), "bpftrace"),
        (b"# mode: full\n\nP1;T1;a:b:1 105,0,-12\n".into(), "austin_full"),
        (b"MZ\x90\0\x03".into(), "program"),
        // What Python 2.7, 3.6 and 3.13 write; their `profile`; and what other versions of marshal may.
        (b"{(\x03\0\0\0t\x04\0\0\0a.py".into(), "cprofile"),
        (b"\xfb)\x03\xfa\x04a.py\xe9\x03".into(), "cprofile"),
        (b"\xfb)\x03\xda\x04a.py\xe9\x06".into(), "cprofile"),
        (b"\xfb\xa9\x03\xda\x07profile\xe9".into(), "cprofile"),
        (b"{)\x03\xfa\x04a.py".into(), "cprofile"),
        (b"         5 function calls (4 primitive calls) in 3.9 seconds\n\n   Random listing order was used\n\n   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n".into(), "pstats"),
        (b"Mon Jan  5 10:00:00 2026    a.prof\n\n   5 function calls in 1 seconds\n\n   Ordered by: cumulative time\n\n   ncalls  tottime  percall  cumtime  percall filename\n".into(), "pstats"),
        (b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n".into(), "gprof"),
        (b"$by.self\n            self.time self.pct total.time total.pct\n\"f\" 1.2".into(), "summary_rprof"),
        (b"Timer unit: 1e-06 s\n\nTotal time: 1 s\n".into(), "line_profiler"),
        (b"HCAT\x01\0\0\0\x03\x0f".into(), "tachyon"),
        (b"TACH\0\0\0\x01\x03\x0f".into(), "tachyon"),
        (b"memray\0\x0d\0\0\0".into(), "memray"),
        (b"\x04\x22\x4d\x18\x40\x40\xc0\x18\0\0\x80memray\0\x0d\0".into(), "memray"),
        (b"hdrbhetbetb\0\0\0\0\x04".into(), "ghc_eventlog"),
        (b"\xdc\xdfJSLB\x01\0".into(), "jsonslabs"),
        (b"go 1.26 trace\0\0\0\x01".into(), "go_trace"),
        (b"go 1.5 trace\0\0\0\0".into(), "go_trace"),
        (b"MMPD\x09\0\0\0\0".into(), "rustc"),
        (b"\x0a\x04P\x01h\x01\x0a+P\x01b%*\x08\x08\x01\x12\x04work2\x08\x08\x01\x10\x01\x18\x01 \x10:\x04\x08\x01\x10\x01\x9a\x01\x08\x08\x01 \x80 (\x80@h\x02\x0a\x0f@\0P\x01\x92\x04\x08\x08\0\x10\x05\x18\x05 \x01\x0a\x10@\xe8\x07P\x01".into(), "perfetto"),
        (b"{\"start_time\": 1.5, \"duration\": 2.0, \"sample_count\": 10, \"root_frame\": {\"time\": 2.0}}".into(), "pyinstrument"),
        (b"{\"start_time\": 1.5, \"min_interval\": 0.001, \"sample_count\": 10, \"start_call_stack\": [".into(), "pyisession"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n".into(), "lfs"),
    ];
    for (bytes, name) in &cases {
        assert_eq!(name_of(bytes), *name, "{bytes:?}");
        assert!(look(bytes).format().is_none());
    }
    // Each kind that is rejected has advice for users, unless nothing can be done.
    let without: Vec<_> = KINDS
        .iter()
        .filter(|kind| kind.remedy.is_empty())
        .map(|kind| kind.name)
        .collect();
    let expected = [
        "hdf5",
        "pickle",
        "callgrind",
        "otlp_other",
        "pdf",
        "image",
        "office",
        "program",
    ];
    assert_eq!(without, expected);
}

#[test]
fn similar_content_is_of_no_kind() {
    let similar: [&[u8]; 32] = [
        b"{)\x04",
        b"HCAT;f 1\n",
        b"go 1.22 trace;f 5\n",
        b"MMPD;f 1\n",
        b"memray;f 1\n",
        // A sample type of pprof, and a resource of OpenTelemetry.
        b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04",
        b"\x0a\x04\x12\x02\x12\x00",
        b"SLOW;a 1\n",
        b"version: 1\nname: a\n",
        b"{\"profiles\":[{\"label\":\"a\",\"duration\":1,\"markers\":[]}]}",
        b"P1;T1;a:b:1 105\n",
        b"x^;f 1\n",
        b"@x;f 1\n",
        b"",
        b"PK;f 1\n",
        b"BZhang;f 5\n",
        b"BZh9;f 5\n",
        b"MZero;f 5\n",
        b"<html>;f 5\n",
        b"<module> (app.py:3);work 12\n",
        b"<Anonymous>;f 5\n",
        b"<unknown> 5\n<body 3>;f 1\n",
        b"X\n\0\0",
        b"A\nB\n",
        b"RDX;f 5\n",
        b"heap profile of x;f 5\n",
        b"goroutine profile;f 5\n",
        b"goroutine 12\n",
        b"\0\0\0\x10\x0a\x0e",
        &[0; 600],
        b"# a comment\nR 1 2.0: 3 cycles: \n",
        b"{\"meta\":{\"preprocessedProfileVersion\":66},\"threads\":[{\"x\":{\"schema\":{}}}]}",
    ];
    for bytes in similar {
        assert_eq!(name_of(bytes), "", "{bytes:?}");
    }
}
