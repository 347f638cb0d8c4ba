# tier: fast
# The output of `perf script`, compared with an independent reader and with perf itself.

# Heads and frames by regular expressions, for files whose frames have an address, a symbol and a module.
simple_perf <- function(path) {
  lines <- read_gzipped(path)
  lines <- lines[!grepl("^(#|  \\S)", lines) & lines != ""]
  is_head <- !startsWith(lines, "\t")
  frame <- sub("^\t *[0-9a-f]+ ", "", lines[!is_head])
  one <- regmatches(lines[is_head], regexec("([0-9.]+): +([0-9]+) +(\\S+): ?(.*)$", lines[is_head]))
  list(
    time = as.numeric(vapply(one, `[[`, "", 2)),
    period = as.numeric(vapply(one, `[[`, "", 3)),
    event = vapply(one, `[[`, "", 4),
    names = unname(split(
      sub("\\+0x[0-9a-f]+$", "", sub(" \\(.*", "", frame)), factor(cumsum(is_head)[!is_head], seq_len(sum(is_head)))
    )),
    modules = gsub(".*\\(|\\)$", "", frame)
  )
}

perf_path <- function(file) data_path("perf", file)

test_that("real files are read as by an independent reader", {
  for (file in c("native.txt.gz", "r.txt.gz")) {
    x <- expect_no_warning(read_profile(perf_path(file)))
    expect_identical(validate_profile(x), x)
    expected <- simple_perf(perf_path(file))
    expect_equal(nrow(x$samples), length(expected$period), info = file)
    frames <- as_tibble(x)
    name <- ifelse(is.na(frames$name), "[unknown]", frames$name)
    expect_equal(unname(split(name, factor(frames$sample_id, x$samples$sample_id))), expected$names, info = file)
    values <- x$sample_values[x$sample_values$type %in% expected$event, ]
    values <- values[!is.na(values$value), ]
    expect_equal(values$value[order(values$sample_id)], expected$period)
    expect_equal(values$type[order(values$sample_id)], expected$event)
    times <- x$.labels[x$.labels$key == "time", ]
    expect_equal(times$num / 1e9, expected$time)
    location <- match(x$sample_locations$location_id, x$locations$location_id)
    module <- x$.mappings$filename[match(x$locations$.mapping_id, x$.mappings$mapping_id)][location]
    expect_equal(ifelse(is.na(module), "[unknown]", module), expected$modules)
    kernel <- expected$modules == "[kernel.kallsyms]"
    expect_equal(x$locations$.frame_type[location] %in% "kernel", kernel)
  }
})

test_that("the header, threads and source lines are kept", {
  x <- read_perf_script(perf_path("native.txt.gz"), source_uri = NA)
  expect_match(x$.comments$comment, "perf version", all = FALSE)
  expect_setequal(unique(x$.labels$key), c("comm", "pid", "tid", "time"))
  expect_gt(length(unique(x$.labels$num[x$.labels$key == "tid"])), 1)
  work <- x$locations$line[match(x$functions$function_id[x$functions$name == "middle"], x$locations$function_id)]
  expect_true(all(work > 0))
  expect_match(x$functions$filename[x$functions$name == "middle"], "t[.]c$")
  # Two events: the first one is the default.
  expect_equal(x$.sample_types$unit, c("count", "nanoseconds"))
})

# perf record --off-cpu.
test_that("time off the processor is in nanoseconds", {
  path <- withr::local_tempfile(fileext = ".txt", lines = c(
    "app  5/5 [000] 10.3:     1000000 offcpu-time: ",
    "        ffffffff81000000 schedule+0x2e ([kernel.kallsyms])",
    "            1000 wait_for+0x10 (/usr/bin/app)",
    "            2000 main+0x20 (/usr/bin/app)",
    "",
    "app  5/5 [000] 10.4:     250000000 offcpu-time: ",
    "        ffffffff81000000 schedule+0x2e ([kernel.kallsyms])",
    "            1000 read_all+0x10 (/usr/bin/app)",
    "            2000 main+0x20 (/usr/bin/app)",
    ""
  ))
  x <- expect_no_warning(read_profile(path))
  expect_identical(x$.sample_types$unit[x$.sample_types$type == "offcpu-time"], "nanoseconds")
  expect_match(format(summary(x)), "251ms", fixed = TRUE, all = FALSE)
  expect_null(x$sources$.period)
})

test_that("samples without a call graph have one frame", {
  x <- expect_no_warning(read_profile(perf_path("flat.txt.gz")))
  lines <- read_gzipped(perf_path("flat.txt.gz"))
  expect_equal(nrow(x$samples), length(lines))
  expect_equal(as_tibble(x)$name, sub("\\+0x.*", "", sub(".*: +[0-9a-f]+ ", "", lines)))
  expect_setequal(unique(x$sample_values$type), c("samples", "task-clock"))
  expect_equal(x$sources$.period_unit, "nanoseconds")
})

test_that("R's native code is read, and written for other tools", {
  x <- read_perf_script(perf_path("r.txt.gz"))
  expect_match(x$.mappings$filename, "libR.so", all = FALSE)
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  y <- read_pprof(path)
  cpu <- function(x) sum(x$sample_values$value[x$sample_values$type == "cpu-clock"])
  expect_equal(cpu(y), cpu(x))
  expect_equal(sum(summary(y)$by_function$self), sum(summary(x)$by_function$self))
  write_collapsed(x, path <- withr::local_tempfile(), frame_types = TRUE)
  expect_match(readLines(path), "_[k]", fixed = TRUE, all = FALSE)
})

test_that("irregular files are reported", {
  path <- withr::local_tempfile()
  lines <- read_gzipped(perf_path("r.txt.gz"))
  text <- paste(lines, collapse = "\n")
  frame <- gregexpr("\n\t", text)[[1]][[40]]
  cat(substr(text, 1, frame + 20), file = path)
  expect_warning(x <- read_perf_script(path), class = "profile_warning_incomplete")
  expect_equal(profile_problems(x)$problem, "cut_sample")
  expect_error(read_perf_script(rprof_path("basic_all.out")), "read_rprof", class = "profile_error_parse")
  error <- expect_error(read_rprof(perf_path("r.txt.gz")), class = "profile_error_parse")
  expect_match(conditionMessage(error), "read_perf_script()", fixed = TRUE)
})

test_that("the output of simpleperf is read, which has tabs", {
  x <- expect_no_warning(read_profile(data_path("found", "perf-tab.txt"), source_uri = NA))
  expect_identical(read_perf_script(data_path("found", "perf-tab.txt"), source_uri = NA), x)
  functions <- summary(x, type = "samples")$by_function
  expect_equal(functions$self[match(c("mult", "main"), functions$name)], c(2, 0))
  expect_equal(functions$total[match(c("mult", "main"), functions$name)], c(2, 2))
  expect_equal(x$.mappings$filename, "/lib/x.so")
  expect_setequal(x$locations$.address, c("0x10a4", "0x10a8", "0x20b0"))
  expect_equal(unique(x$.labels$str[x$.labels$key == "comm"]), "app")
  # Tabs in front of modules and lines without one in front.
  lines <- gsub(" (/", "\t(/", readLines(data_path("found", "perf-tab.txt")), fixed = TRUE)
  lines <- sub("^\t", "", lines)
  y <- expect_no_warning(read_profile(write_file(lines), source_uri = NA))
  expect_identical(y$functions, x$functions)
  expect_identical(y$sample_locations, x$sample_locations)
})

test_that("fields may be missing", {
  frames <- c("\t     7f0 f+0x1 (/bin/a)", "\t    7f10 main+0x2 (/bin/a)", "")
  for (head in c(
    "   12/34    [002] 1.5:     7 cycles:u: ", "   12/34    1.5:  cycles: ", "     34 1.5: 7 cycles: ",
    "[002] 1.5: 7 cycles: ", "  1.5:  7 cycles: ", "     34 cycles: ", "    34   7 cycles: ", "  7 cycles: ",
    "cycles: ", "R 34 cycles: ", "R 12/34 [001]  7 cycles: ", "R 34 1.5: ", "R 34 [001] U    1.5: 7 cycles: ",
    "# comment\n\nR 34 cycles: "
  )) {
    path <- write_file(head, frames, sub(".*\n", "", head), frames)
    x <- expect_no_warning(read_profile(path, source_uri = NA))
    expect_identical(read_perf_script(path, source_uri = NA), x, info = head)
    expect_equal(validate_profile(x), x)
    expect_equal(nrow(x$samples), 2, info = head)
    expect_equal(as_tibble(x)$name, rep(c("f", "main"), 2), info = head)
    keys <- unique(x$.labels$key)
    expect_equal("comm" %in% keys, grepl("R ", head), info = head)
    expect_equal("tid" %in% keys, grepl("34|^  7", head), info = head)
    expect_equal("time" %in% keys, grepl("1.5", head, fixed = TRUE), info = head)
  }
})

test_that("methods that are inlined by a compiler at run time are functions", {
  lines <- c(
    "java 1 2.0: 5 cycles: ", "\t    7f01 LA;::a->LB;::b->LC;::c (/tmp/perf-1.map)",
    "\t    7f02 Interpreter (/tmp/perf-1.map)", "\t    10a4 std::unique_ptr<A>::operator->() (/lib/x.so)", "",
    "java 1 3.0: 5 cycles: ", "\t    7f01 LA;::a->LB;::b->LC;::c (/tmp/perf-1.map)",
    "\t    7f02 operator-> (/tmp/perf-1.map)", "\t    10a8 f() -> int ([unknown])", "\t    10a8 a->b (/lib/x.so)", ""
  )
  x <- expect_no_warning(read_profile(write_file(lines)))
  frames <- as_tibble(x)
  expect_equal(frames$name[frames$sample_id == 1], c(
    "LC;::c", "LB;::b", "LA;::a", "Interpreter", "std::unique_ptr<A>::operator->()"
  ))
  expect_equal(frames$name[frames$sample_id == 2], c(
    "LC;::c", "LB;::b", "LA;::a", "operator->", "f() -> int", "a->b"
  ))
  at <- x$sample_locations$location_id[x$sample_locations$sample_id == 1]
  expect_equal(x$locations$.inlined[at], c(TRUE, TRUE, FALSE, FALSE, FALSE))
  expect_equal(x$locations$.address[at], c("0x7f01", "0x7f01", "0x7f01", "0x7f02", "0x10a4"))
  # For pprof they are lines of one location.
  path <- withr::local_tempfile()
  write_pprof(x, path)
  expect_equal(as_tibble(read_pprof(path))$name, frames$name)
  suppressWarnings(write_collapsed(x, path, frame_types = TRUE), classes = "profile_warning_lossy")
  expect_match(readLines(path), "LA:::a;LB:::b_[i];LC:::c_[i]", fixed = TRUE, all = FALSE)
})

test_that("frames without a symbol keep their module", {
  lines <- c("R 1 2.0: 5 c: ", "\t    7f01 [unknown] (/lib/libfoo.so.1)", "\t    7f02 [unknown] ([unknown])", "")
  x <- read_profile(write_file(lines))
  location <- x$locations[x$sample_locations$location_id, ]
  expect_equal(location$function_id, c(NA_integer_, NA_integer_))
  expect_equal(x$.mappings$filename[match(location$.mapping_id, x$.mappings$mapping_id)], c("/lib/libfoo.so.1", NA))
})

test_that("warnings before the first sample are skipped", {
  lines <- c("Failed to open /tmp/perf-1.map", "R 1 1.0: PERF_RECORD_MMAP2 1/1: x", "R 1 2.0: 5 c: ",
    "\t    7f01 f (/bin/a)", "")
  expect_warning(x <- read_profile(write_file(lines), source_uri = NA), class = "profile_warning_incomplete")
  expect_equal(as_tibble(x)$name, "f")
  expect_equal(profile_problems(x)[c("line", "problem")], tibble::tibble(line = 1, problem = "stray_text"))
  expect_warning(expect_identical(read_perf_script(write_file(lines), source_uri = NA), x))
})

test_that("the output of the installed perf can be read", {
  skip_on_cran()
  perf <- Sys.which("perf")
  skip_if(perf == "", "perf is not installed")
  dir <- withr::local_tempdir()
  data <- file.path(dir, "perf.data")
  command <- c("record", "-q", "-o", data, "-e", "cpu-clock", "-F", "199", "-g", "--", file.path(R.home("bin"), "R"),
    "--vanilla", "-s", "-e", shQuote("for (i in 1:20) sum(sort(runif(1e5)))"))
  status <- suppressWarnings(system2(perf, command, stdout = FALSE, stderr = FALSE))
  skip_if(status != 0, "perf cannot record here")
  recorded <- suppressWarnings(system2(perf, c("script", "-i", data), stdout = TRUE, stderr = FALSE))
  skip_if(length(recorded) == 0, "perf records no samples here")
  for (fields in list(
    character(), "--header", c("-F", "comm,pid,tid,time,event,ip,sym,dso,period"), c("-F", "comm,tid,time,event,ip,sym"),
    c("-F", "comm,tid,time,event,ip,dso"), c("-F", "+srcline"), "-G"
  )) {
    path <- file.path(dir, "perf.txt")
    status <- suppressWarnings(system2(perf, c("script", "-i", data, fields), stdout = path, stderr = FALSE))
    if (status != 0) next
    info <- paste(fields, collapse = " ")
    x <- expect_no_warning(read_profile(path))
    expect_equal(x$sources$source_type, "perf", info = info)
    heads <- grep("^ *\\S.* [0-9.]+: .*cpu-clock:", readLines(path), value = TRUE)
    expect_equal(nrow(x$samples), length(heads), info = info)
  }
})

test_that("samples are weighted by the period of their event, as in perf report", {
  x <- read_profile(data_path("found", "perf-periods.txt"), source_uri = NA)
  functions <- summary(x)$by_function
  expect_identical(attr(summary(x), "type"), "cycles")
  expect_equal(functions$self[match(c("work", "wake", "main"), functions$name)], c(4e6, 17, 0))
  counts <- summary(x, type = "samples")$by_function
  expect_equal(counts$self[match(c("work", "wake", "main"), counts$name)], c(1, 3, 0))
  write_collapsed(x, path <- withr::local_tempfile())
  expect_setequal(readLines(path), c("main;wake 17", "main;work 4000000"))
  write_collapsed(x, path, type = "samples")
  expect_setequal(readLines(path), c("main;wake 3", "main;work 1"))
  expect_snapshot({
    print(x)
    describe_profile(x)
    cat(format(summary(x))[[1]])
  })
})

test_that("addresses and sources of data are not functions", {
  x <- expect_no_warning(read_profile(data_path("found", "perf-addresses.txt")))
  expect_identical(as_tibble(x)$name, c("elf_load", "elf_load", "main"))
  expect_identical(x$locations$.frame_type[x$sample_locations$location_id], c("kernel", "kernel", "native"))
})

test_that("errors in traces of instructions are reported, and are no samples", {
  expect_warning(
    x <- read_profile(data_path("found", "perf-trace-error.txt")), "decoded a trace",
    class = "profile_warning_incomplete"
  )
  expect_identical(as_tibble(x)$name, c("inner", "inner"))
  expect_identical(profile_problems(x)$problem, "trace_error")
  expect_equal(profile_problems(x)$line, 2)
})

test_that("frames may have no indentation, or follow a blank line", {
  x <- expect_no_warning(read_profile(data_path("found", "perf-unindented.txt")))
  frames <- as_tibble(x)
  expect_identical(frames$name[frames$sample_id == 1], c("perf_pmu_enable", "write_bytes", "start_thread"))
  expect_identical(frames$name[frames$sample_id == 2], c("print", "start_thread"))
})
