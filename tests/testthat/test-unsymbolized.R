# tier: gate
# Code without symbols: every view and every writer shows the program or library that contains it.

totals <- function(x) {
  rows <- summary(x)$by_function
  rlang::set_names(rows$total, rows$name)
}

perf <- function() read_perf_script(data_path("found", "perf-unknown-lib.txt"))
pprof <- function() read_pprof(data_path("found", "unsymbolized.pb.gz"))

test_that("code without symbols has the name of its program or library", {
  expect_identical(totals(perf()), c(`[libbar.so.2]` = 250000, `[libfoo.so.1]` = 250000, main = 500000))
  expect_identical(totals(pprof()), c(`[prog]` = 7))
  # The tables are as recorded.
  expect_identical(perf()$functions$name, "main")
  expect_identical(perf()$locations$function_id, c(1L, NA, NA))
  expect_identical(sum(is.na(as_tibble(perf())$name)), 2L)
  expect_snapshot({
    print(perf())
    describe_profile(perf())
    summary(perf())
    call_tree(perf())
    call_tree(perf(), by = "line")
    print(pprof())
    call_tree(pprof(), by = "line")
  })
})

test_that("names of mappings of all kinds are short", {
  lines <- function(address, module) c(
    "R 100 1.0:     250000 cpu-clock:u: ", paste0("\t", address, " [unknown] (", module, ")"),
    "\t7f0000002000 main+0x10 (/usr/bin/prog)", ""
  )
  modules <- c(
    "[vdso]", "[kernel.kallsyms]", "/usr/lib/libbar.so.2 (deleted)", "//anon", "/tmp/perf-12.map", "C:\\dir\\sys.dll",
    "[unknown]", "/"
  )
  x <- read_perf_script(write_file(unlist(Map(lines, paste0("7f000000000", seq_along(modules)), modules))))
  names <- c(
    "[vdso]", "[kernel.kallsyms]", "[libbar.so.2 (deleted)]", "[anon]", "[perf-12.map]", "[sys.dll]", "0x7f0000000007",
    "[/]", "main"
  )
  expect_setequal(names(totals(x)), names)
})

test_that("the address is shown only if nothing else is known", {
  x <- pprof()
  x$.mappings$filename <- ""
  expect_identical(totals(x), c(`0xffffffff81000010` = 5, `0xffffffff81000020` = 7))
  expect_identical(call_tree(x, by = "line")$name, c("0xffffffff81000020", "0xffffffff81000010"))
  x$locations[c(".address", ".mapping_id")] <- NULL
  expect_identical(totals(x), c(`<unknown>` = 7))
  # Functions without a name are shown in the same way, unless their source file is known.
  x <- pprof()
  x$functions <- tibble::tibble(
    function_id = 1L, name = "<unknown>", system_name = "<unknown>", filename = "", start_line = 0L, .has_name = FALSE
  )
  x$locations$function_id <- 1L
  expect_identical(totals(x), c(`[prog]` = 7))
  x$.mappings$filename <- ""
  expect_identical(names(totals(x)), c("0xffffffff81000010", "0xffffffff81000020"))
  x$functions$filename <- "a.c"
  expect_identical(totals(x), c(`<unknown>` = 7))
})

test_that("callers() and callees() find code without symbols", {
  x <- perf()
  for (name in list("<unknown>", NA, NA_character_)) {
    tree <- callers(x, name)
    expect_identical(tree$name, c("[libbar.so.2]", "main", "[libfoo.so.1]", "main"))
    expect_identical(tree$total, rep(250000, 4))
    expect_identical(callees(x, name)$name, c("[libbar.so.2]", "[libfoo.so.1]"))
  }
  expect_identical(callers(x, "[libfoo.so.1]")$name, c("[libfoo.so.1]", "main"))
  for (name in names(totals(pprof()))) {
    expect_identical(callees(pprof(), name)$total[[1]], totals(pprof())[[name]])
  }
  expect_snapshot(error = TRUE, {
    callers(x, "[libfoo]")
    callers(read_rprof(rprof_path("basic_plain.out")), NA)
  })
})

test_that("all writers keep the names", {
  path <- withr::local_tempfile()
  writers <- list(
    collapsed = write_collapsed, speedscope = write_speedscope, cpuprofile = write_cpuprofile, firefox = write_firefox,
    rprof = write_rprof, pprof = write_pprof, otlp = write_otlp
  )
  x <- perf()
  for (format in names(writers)) {
    writers[[format]](x, path)
    y <- suppressWarnings(read_profile(path), classes = "profile_warning")
    expect_setequal(names(totals(y)), names(totals(x)))
  }
  write_callgrind(x, path)
  expect_match(readLines(path), "[libfoo.so.1]", fixed = TRUE, all = FALSE)
  expect_setequal(as_profvis(x)$x$message$prof$label, names(totals(x)))
})

test_that("pictures, pages and comparisons use the names", {
  x <- perf()
  withr::local_pdf(withr::local_tempfile(fileext = ".pdf"))
  expect_setequal(plot(x)$name, names(totals(x)))
  expect_setequal(plot(x, view = "time")$name, names(totals(x)))
  expect_setequal(compare_profiles(x, x)$name, names(totals(x)))
  # Addresses of two runs of a program usually differ.
  y <- x
  y$locations$.address <- sub("0x7f", "0x6f", y$locations$.address)
  expect_identical(unique(compare_profiles(x, y, by = "line")$ratio), 1)
  skip_if_not_installed("jsonlite")
  data <- page_data(profile_page(x))
  expect_setequal(data$strings[data$functions$name + 1], names(totals(x)))
  expect_setequal(data$strings[data$frames$address + 1], c("", "0x7f0000001000", "0x7f1000001000"))
  expect_null(page_data(profile_page(read_pprof(data_path("pprof/go_cpu.pb.gz"))))$frames$address)
})

test_that("a hint says that a profile is not symbolized", {
  expect_match(paste(format(pprof()), collapse = " "), "not symbolized")
  expect_match(as.list(describe_profile(pprof()))$notes, "not symbolized", all = FALSE)
  expect_no_match(format(read_pprof(data_path("pprof/go_cpu.pb.gz"))), "symbolized")
  # Few samples without symbols are usual.
  x <- perf()
  x$sample_values$value[x$sample_values$sample_id == 1] <- 0
  x$locations$function_id[3] <- 1L
  expect_no_match(format(x), "symbolized")
})

test_that("names agree with go tool pprof", {
  go <- go_pprof()
  shown <- go("-top", "-symbolize=none", data_path("found", "unsymbolized.pb.gz"))
  expect_match(shown, "^ +7 +100% +100% +7 +100% +\\[prog\\]$", all = FALSE)
})

test_that("hints fit what recorded the profile", {
  hint <- function(x) hint_for(x, summary(x))
  firefox <- suppressWarnings(read_profile(data_path("found", "firefox-unsymbolized.json")), classes = "profile_warning")
  other <- perf()
  other$sources$source_type <- "process"
  otlp <- perf()
  otlp$sources$source_type <- "otlp"
  expect_snapshot(cat(hint(perf()), hint(pprof()), hint(firefox), hint(otlp), hint(other), sep = "\n"))
})
