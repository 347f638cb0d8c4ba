# tier: gate
# Profiles whose allocations were recorded one by one, beside samples: every view has their exact bytes, and rows of
# allocations are not counted as samples.

sums_of <- function(x) {
  values <- as.data.frame(x$sample_values)
  tapply(values$value, paste(values$type, values$unit), sum)
}

exact_sums <- c(
  "alloc_objects count" = 565, "alloc_space bytes" = 6001000000, "copy_objects count" = 455,
  "copy_space bytes" = 4001000000, "gc_share nanoseconds" = 1e9, "inuse_objects count" = 2, "inuse_space bytes" = 2.4e7
)

test_that("rows of allocations are no samples", {
  x <- exact_profile()
  counted <- attr(summary(x), "counted")
  expect_identical(counted$samples, 10)
  expect_identical(counted$without_value, 0)
  expect_equal(attr(summary(x), "time"), 0.1)
  expect_identical(attr(summary(x), "alloc_type"), "alloc_space")
  expect_true(attr(summary(x), "exact_memory"))
  for (type in exact_types$type) {
    expect_identical(attr(summary(x, type = type), "counted")$without_value, 0, label = type)
    expect_no_match(format(summary(x, type = type)), "Left out|at least|previous sample")
  }
  for (text in list(format(x), format(summary(x)), format(describe_profile(x)), format(call_tree(x)))) {
    expect_no_match(paste(text, collapse = "\n"), "without a value|at least|previous sample|lower bound")
  }
  # Figures of samples are as without allocations.
  rows <- function(x) {
    rows <- summary(x)$by_function[c("name", "self", "total", "self_share", "total_share", "self_time")]
    rows[rows$total > 0, ]
  }
  expect_identical(rows(x), rows(fit_samples()))
  expect_identical(call_tree(x), call_tree(fit_samples()))
  figures <- summary(x, by = "package")
  expect_equal(sum(figures$self), 10)
  expect_equal(profile:::count_ticks(x), 10)
  # A sample without a value is still one that is left out.
  x$sample_values <- x$sample_values[!(x$sample_values$sample_id == 1 & x$sample_values$type == "samples"), ]
  expect_identical(attr(summary(x), "counted")$without_value, 1)
})

test_that("each type is summed by function, line, package and label", {
  x <- exact_profile()
  own <- function(type, by = "function") {
    rows <- summary(x, type = type, by = by)
    rows <- rows[rows$self != 0, ]
    rlang::set_names(rows$self, if (by == "line") paste0(rows$filename, ":", rows$line) else rows[[1]])
  }
  expect_equal(own("copy_space"), c(fit = 3.2e9, "names<-" = 8e8, load = 1e6))
  expect_equal(own("copy_objects", "line"), c("fit.R:2" = 400, "fit.R:4" = 50))
  expect_equal(own("alloc_space", "line"), c("fit.R:2" = 3.2e9, "fit.R:3" = 1.6e9, "fit.R:4" = 8e8, "fit.R:1" = 4e8))
  expect_equal(own("inuse_space"), c(rep = 16e6, fit = 8e6))
  expect_equal(own("gc_share"), c(fit = 7e8, rep = 2e8, "names<-" = 1e8))
  tree <- call_tree(x, type = "copy_space")
  expect_equal(sum(tree$self), 4001000000)
  expect_equal(tree$total[tree$name == "main"], 4e9)
  by_label <- summary(x, by = "allocation", type = "alloc_space")
  expect_equal(by_label$total[by_label$allocation %in% "conversion"], 4e8)
  expect_equal(by_label$samples, c(0, 0))
  expect_equal(by_label$total_alloc, by_label$total)
  # Bytes beside the samples are the exact ones.
  rows <- summary(x)$by_function
  expect_equal(sum(rows$self_alloc), 6001000000)
  expect_equal(rows$self_alloc[rows$name == "fit"], 3.6e9)
})

test_that("the share of collections is never the time of samples", {
  x <- exact_profile()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  y <- read_pprof(path)
  expect_identical(attr(summary(y), "type"), "cpu")
  # Without counts, bytes are shown.
  allocations <- filter_profile(x, labels = list(copy.reason = "`y` is also `z` in `main()`"))
  expect_identical(attr(summary(allocations), "type"), "alloc_space")
  known <- profile:::data_model()$sample_types
  expect_identical(known$type[known$role == "share"], "gc_share")
  compared <- compare_profiles(list(x, x, x), list(y, y, y))
  expect_identical(attr(compared, "type"), "time")
  expect_equal(attr(compared, "whole")$base, 0.1)
  # It is not sampled, so equal amounts are exact.
  expect_identical(attr(compare_profiles(list(x, x, x), list(x, x, x), type = "gc_share"), "whole")$lower, 1)
  firefox <- withr::local_tempfile(fileext = ".json")
  cpuprofile <- withr::local_tempfile(fileext = ".cpuprofile")
  expect_warning(write_firefox(x, firefox), class = "profile_warning")
  expect_warning(write_cpuprofile(x, cpuprofile), class = "profile_warning")
  expect_equal(sum(summary(read_firefox(firefox), type = "time")$by_function$self), 100)
  expect_equal(attr(summary(read_cpuprofile(cpuprofile)), "sum"), 10)
})

test_that("lines have exact bytes, copies and what is still in use", {
  x <- exact_profile()
  lines <- annotate_lines(x, "fit.R")
  expect_equal(lines$self_alloc[1:4], c(4e8, 3.2e9, 1.6e9, 8e8))
  expect_equal(lines$copied[1:4], c(0, 3.2e9, 0, 8e8))
  expect_equal(lines$in_use[1:4], c(0, 8e6, 16e6, 0))
  expect_snapshot({
    writeLines(format(lines, width = 100))
    writeLines(format(annotate_lines(x, "fit.R", type = "copy_space"), width = 100))
  })
  # Lines that only allocated are shown as well.
  expect_match(format(lines, n = 5, width = 100), "^ +4 .*names", all = FALSE)
  expect_named(annotate_lines(fit_samples(), "fit.R"), setdiff(names(lines), c("copied", "in_use")))
})

test_that("the digest shows exact bytes and the copies", {
  x <- exact_profile()
  expect_snapshot(writeLines(format(describe_profile(x), width = 100)))
  parts <- as.list(describe_profile(x))
  expect_false(parts$allocated$at_least)
  expect_true(parts$allocated$exact)
  expect_equal(parts$allocated$bytes, 6001000000)
  expect_equal(parts$copies$bytes, c(3.2e9, 8e8, 4e8, 1e6))
  expect_equal(parts$copies$copies, c(400, 50, 10, 5))
  expect_equal(parts$copies$line, c(2L, 4L, 1L, NA))
  expect_equal(parts$copies$name, c("fit", "fit", "fit", "load"))
  expect_equal(parts$copies$share, c(3.2e9, 8e8, 4e8, 1e6) / 6001000000)
  expect_identical(parts$copies$converts, c(FALSE, FALSE, TRUE, FALSE))
  expect_null(as.list(describe_profile(x, type = "alloc_space"))$gc)
})

test_that("the digest shows where the memory of the peak was allocated, and who held it", {
  x <- exact_profile()
  expect_null(as.list(describe_profile(x))$at_peak)
  rows <- tail(x$samples$sample_id, 5)
  x$sample_values <- vctrs::vec_rbind(x$sample_values, tibble::tibble(
    sample_id = rows, type = "peak_space", unit = "bytes", value = c(16e6, 24e6, 0, 4e6, 1e6)
  ))
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, tibble::tibble(
    source_id = 1L, key = c("profile.peak.after", "profile.peak.collected"), value = c("1500000000", "20000000"), type = "int"
  ))
  expect_identical(validate_profile(x), x)
  peak <- as.list(describe_profile(x))$at_peak
  expect_identical(peak[c("process", "bytes", "seconds", "collected")], list(
    process = NULL, bytes = 4.5e7, seconds = 1.5, collected = 2e7
  ))
  expect_identical(peak$places$line, c(3L, 2L, 1L, NA))
  expect_identical(peak$places$bytes, c(24e6, 16e6, 4e6, 1e6))
  expect_true("peak" %in% profile:::data_model()$sample_types$role)
  attr(x, "snapshot") <- heap_page_snapshots()$after
  expect_identical(holders(x), holders(attr(x, "snapshot")))
  # What nothing holds is not a holder.
  snapshot <- attr(x, "snapshot")
  snapshot$.source_attributes <- tibble::tibble(
    source_id = 1L, key = c("profile.heap.unheld", "profile.heap.free"), value = c("4000000", "60000"), type = "int",
    unit = NA_character_
  )
  attr(x, "snapshot") <- validate_profile(snapshot)
  shown <- format(describe_profile(x), width = 100)
  expect_snapshot(writeLines(shown[match("Peak", shown):length(shown)]))
})

test_that("the digest says how long recording took", {
  note <- function(x, ...) grep("Recording", as.list(describe_profile(x, ...))$notes, value = TRUE)
  expect_length(note(exact_profile()), 0)
  x <- exact_profile(time = 2.345e7)
  expect_equal(note(x), "Recording memory took about 0.0234 s of 0.1 s.")
  expect_equal(as.list(describe_profile(x))$run$memory_time, 0.02345)
  expect_match(format(describe_profile(x, type = "copy_space"), width = 200), "Note: Recording memory took about", all = FALSE)
  # Formats without attributes have it as a comment.
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  expect_equal(note(read_pprof(path)), note(x))
  # The CPU time that was used, if that is known.
  y <- with_cpu_time(x, 4e8)
  expect_equal(note(y), "Recording memory took about 0.0234 s of 0.4 s.")
  # The time of several runs.
  both <- combine_profiles(x, exact_profile(time = 1e7))
  expect_equal(note(both), "Recording memory took about 0.0334 s of 0.2 s.")
})

test_that("places of copies are lines, else functions, and the reason is that of most bytes", {
  copied <- function(bytes, stack = "f:0", ...) {
    list(stack = stack, values = c(bytes, 1, bytes, 1, NA, NA), labels = c(...))
  }
  lines_of <- function(...) {
    x <- with_exact_memory(fit_samples(), list(...), share = FALSE)
    x$.source_text <- NULL
    text <- format(describe_profile(x), width = 200)
    start <- match("Copies", text)
    if (is.na(start)) character() else trimws(text[(start + 1):(start + match("", text[-seq_len(start)]) - 1)])
  }
  new <- list(stack = "new:0", values = c(1e9, 1, NA, NA, NA, NA))
  expect_identical(lines_of(copied(1e8), new), "`f` copied 95.37MB in 1 copy")
  # 5% of all bytes are not enough.
  expect_identical(lines_of(copied(1e9 / 19), new), character())
  expect_identical(lines_of(copied(1e9 / 18.9), new), "`f` copied 50.46MB in 1 copy")
  # At most three.
  expect_identical(
    lines_of(copied(5, "a:0"), copied(4, "b:0"), copied(6, "c:0"), copied(3, "d:0")),
    c("`c` copied 6B in 1 copy", "`a` copied 5B in 1 copy", "`b` copied 4B in 1 copy")
  )
  reason <- function(bytes, text) copied(bytes, c("f:0", "fit:5"), copy.reason = text)
  expect_identical(
    lines_of(reason(1e6, "one"), reason(2e6, "two"), reason(1.5e6, "one")), "fit.R:5 copied 4.29MB in 3 copies: one"
  )
  # Most bytes have no reason.
  expect_identical(lines_of(reason(1e6, "one"), copied(2e6, c("f:0", "fit:5"))), "fit.R:5 copied 2.86MB in 2 copies")
  expect_identical(lines_of(new), character())
})

test_that("a reason begins with the variable that the line assigns to", {
  swapped <- c(
    "x[i] <- v", "for (i in 1:10) x[i] <<- v", "names(x)[2] <- \"a\"", "attr(x, \"a\") = y", "} else x$a[[1]] <- y",
    "if (y) { x[1] <- 2 }", "levels(x$f)[y] <- \"b\" }", "2 -> x@slot[3]", "f(y, x[[1]]@b$c <- 3); y"
  )
  for (text in swapped) {
    expect_identical(begin_with_assigned("`y` is also `x` and `z`", text), "`x` is also `y` and `z`", info = text)
    expect_identical(begin_with_assigned("`x` is also `y`", text), "`x` is also `y`", info = text)
  }
  first <- function(reason) begin_with_assigned(reason, "x[i] <- v")
  expect_identical(first("`y$a` is also `x$b`"), "`x$b` is also `y$a`")
  expect_identical(first("attribute `o` of `a` is also `x`"), "`x` is also attribute `o` of `a`")
  expect_identical(first("`y[[2]]` is also `x[[1]]` and `x` in `f()`"), "`x[[1]]` is also `y[[2]]` and `x` in `f()`")
  # Those of other functions stay where they are, and nothing is known without a text.
  for (reason in c("`y` is also `x` in `f()`", "`y` is also `z`", "`x` has no other reference", NA)) {
    expect_identical(first(reason), reason)
  }
  for (text in c("y[i] <- x", "f(x)", "x y {", "function(x, y", "", NA)) {
    expect_identical(begin_with_assigned("`y` is also `x`", text), "`y` is also `x`", info = text)
  }
})

test_that("conversions to another type are shown as well", {
  row <- function(bytes, line, ...) {
    list(stack = c("f:0", paste0("fit:", line)), values = c(bytes, 2, NA, NA, NA, NA), labels = c(...))
  }
  x <- with_exact_memory(fit_samples(), list(
    row(3e6, 2, allocation = "conversion"), row(2e6, 4, allocation = "growth"), row(1e6, 3)
  ), share = FALSE)
  parts <- as.list(describe_profile(x))$copies
  expect_identical(parts$converts, c(TRUE, FALSE))
  expect_identical(parts$grows, c(FALSE, TRUE))
  expect_equal(parts$bytes, c(3e6, 2e6))
  text <- format(describe_profile(x), width = 200)
  expect_match(text, "fit.R:2 `for.*` converted to another type: 2.86MB in 2 vectors$", all = FALSE)
  expect_match(text, "fit.R:4 .* grows an object: 1.91MB in 2 vectors of rising size$", all = FALSE)
})

test_that("a snapshot is suggested if vectors are in use, for recordings of this session only", {
  skip_if_not(profile:::is_live_platform())
  x <- exact_profile()
  expect_false("holders(snapshot_memory())" %in% as.list(describe_profile(x))$next_calls)
  x <- profile:::mark_session(x)
  expect_true("holders(snapshot_memory())" %in% as.list(describe_profile(x))$next_calls)
  x$sample_values <- x$sample_values[x$sample_values$type != "inuse_space", ]
  expect_false("holders(snapshot_memory())" %in% as.list(describe_profile(x))$next_calls)
})

test_that("a profile with allocations only is described by its bytes", {
  x <- exact_profile()
  of_allocations <- profile:::is_allocation_row(x)
  expect_identical(which(of_allocations), 11:15)
  ids <- x$samples$sample_id[of_allocations]
  x$samples <- x$samples[of_allocations, ]
  for (table in c("sample_values", "sample_locations")) {
    x[[table]] <- x[[table]][x[[table]]$sample_id %in% ids, ]
  }
  x$.files <- NULL
  text <- format(describe_profile(x))
  expect_match(text[[1]], "<profile> 5.59GB of alloc_space, 5 functions", fixed = TRUE)
  expect_match(format(x)[[2]], "Samples:   5.59GB of alloc_space, 5 functions", fixed = TRUE)
  expect_match(text, "^Copies$", all = FALSE)
})

test_that("exact bytes and a lower bound of other runs are not mixed", {
  both <- combine_profiles(exact_profile(), fit_samples())
  expect_true(attr(summary(both), "at_least"))
  expect_identical(attr(summary(both), "alloc_type"), "alloc_size")
  expect_false(attr(summary(both), "exact_memory"))
  parts <- as.list(describe_profile(both))
  expect_true(parts$allocated$at_least)
  expect_false(parts$allocated$recorded$complete)
  twice <- combine_profiles(exact_profile(), exact_profile())
  expect_true(attr(summary(twice), "exact_memory"))
  expect_equal(attr(summary(twice, type = "copy_space"), "sum"), 8002000000)
  expect_equal(attr(summary(twice), "counted")$samples, 20)
})

test_that("formats and stores return the same types and bytes, and know that these are exact", {
  x <- exact_profile()
  dir <- withr::local_tempdir()
  read_again <- function(name, ...) {
    path <- file.path(dir, name)
    write_profile(x, path, ...)
    read_profile(path)
  }
  profiles <- list(
    pprof = read_again("a.pb.gz"), separate = read_again("b.pb.gz", aggregate = FALSE), otlp = read_again("a.otlp"),
    json = read_again("a.otlp.json"), speedscope = read_again("a.speedscope.json"), page = read_again("a.html")
  )
  if (rlang::is_installed(c("DBI", "RSQLite", "dbplyr", "dplyr"))) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    withr::defer(DBI::dbDisconnect(con))
    store_profiles(x, con)
    profiles$store <- read_profile(tbl_profile(con))
  }
  for (name in names(profiles)) {
    y <- profiles[[name]]
    expect_equal(sums_of(y)[names(exact_sums)], exact_sums, ignore_attr = TRUE, label = name)
    expect_true(attr(summary(y), "exact_memory"), label = name)
    expect_false(attr(summary(y), "at_least"), label = name)
    expect_identical(attr(summary(y), "counted")$without_value, 0, label = name)
    expect_identical(sum(profile:::is_allocation_row(y)) > 0, TRUE, label = name)
    expect_equal(sum(summary(y, type = "samples")$by_function$self), 10, label = name)
    bytes <- function(x) {
      rows <- summary(x, type = "samples")$by_function
      rows <- rows[order(rows$name), ]
      rlang::set_names(rows$self_alloc, rows$name)
    }
    expect_equal(bytes(y), bytes(x), label = name)
    lines <- annotate_lines(y, "fit.R")
    expect_equal(lines$copied[lines$line %in% 1:4], c(0, 3.2e9, 0, 8e8), label = name)
  }
  attribute <- x$.source_attributes[c("key", "type", "value")]
  for (name in c("otlp", "json")) {
    expect_equal(profiles[[name]]$.source_attributes[c("key", "type", "value")], attribute)
  }
  # A file has a comment instead, also if it is written again.
  again <- file.path(dir, "c.pb.gz")
  write_pprof(profiles$pprof, again)
  for (y in list(profiles$pprof, read_pprof(again))) {
    expect_identical(sum(y$.comments$comment == "profile.memory: exact"), 1L)
  }
  # If all samples are written separately, nothing but the order of values changes.
  expect_equal(nrow(profiles$separate$samples), nrow(x$samples))
})

test_that("formats that have samples only leave allocations out, and say so", {
  x <- exact_profile()
  path <- withr::local_tempfile()
  expect_warning(write_rprof(x, path), "Allocations that were recorded one by one .*: 5", class = "profile_warning")
  sampled <- withr::local_tempfile()
  write_rprof(fit_samples(), sampled)
  expect_identical(readLines(path), readLines(sampled))
  expect_equal(nrow(read_rprof(path)$samples), 10)
  expect_no_warning(write_otlp(x, path, aggregate = FALSE))
  y <- suppressWarnings(profile_v1_from_v2(x))
  expect_equal(sum(y$samples$value), 10)
})

test_that("profvis has the steps of samples only", {
  skip_if_not_installed("profvis")
  steps <- function(x) as_profvis(x, source_text = FALSE)$x$message$prof
  expect_equal(steps(exact_profile()), steps(fit_samples()))
})

test_that("sampled and exact memory are not compared", {
  x <- exact_profile()
  sampled <- fit_samples()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(sampled, path)
  renamed <- read_pprof(path)
  exact <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, exact)
  go <- system.file("samples/proto/go_heap.pb.gz", package = "profile")
  expect_snapshot(error = TRUE, compare_profiles(sampled, x, type = "alloc_space"))
  refused <- function(base, new, type = "alloc_space", side = "base") {
    error <- expect_error(compare_profiles(base, new, type = type), class = "profile_error_unsupported")
    expect_match(conditionMessage(error), paste0("memory of `", side, "` was measured at samples"))
    expect_match(conditionMessage(error), "record_profile(memory = \"exact\")", fixed = TRUE)
  }
  refused(x, sampled, side = "new")
  refused(renamed, x)
  refused(renamed, read_pprof(exact))
  refused(read_pprof(exact), renamed, side = "new")
  refused(sampled, x, type = "copy_space")
  refused(go, x)
  expect_error(
    expect_no_regression(list(renamed, renamed, renamed), list(x, x, x), type = "alloc_space"),
    class = "profile_error_unsupported"
  )
  # What is measured in the same way is compared.
  for (new in list(x, read_pprof(exact))) {
    compared <- compare_profiles(list(x, x, x), list(new, new, new), type = "copy_space")
    expect_equal(attr(compared, "whole")$ratio, 1)
    expect_identical(unique(compared$verdict), "none found")
  }
  expect_no_error(compare_profiles(sampled, x, type = "alloc_size"))
  expect_no_error(compare_profiles(sampled, x))
  expect_no_error(compare_profiles(renamed, renamed, type = "alloc_space"))
  more <- with_exact_memory(fit_samples(), c(fit_allocations, fit_allocations[1]))
  expect_error(expect_no_regression(list(x, x, x), list(more, more, more), type = "copy_space"), "`fit` \\+80%")
})

test_that("exact bytes of Rprofmem() and of samples are compared", {
  x <- exact_profile()
  alone <- read_rprofmem(rprof_path("rprofmem_basic.out"))
  expect_no_error(compare_profiles(alone, x, type = "alloc_space"))
  expect_error(compare_profiles(fit_samples(), alone, type = "alloc_space"), class = "profile_error_unsupported")
})

test_that("filters keep allocations with their samples", {
  x <- exact_profile()
  focused <- filter_profile(x, focus = "^rep$")
  expect_equal(attr(summary(focused), "counted")$samples, 3)
  expect_equal(attr(summary(focused, type = "alloc_space"), "sum"), 1.6e9)
  expect_true(attr(summary(focused), "exact_memory"))
  ignored <- filter_profile(x, ignore = "^fit$")
  expect_equal(attr(summary(ignored, type = "alloc_space"), "sum"), 1e6)
})

test_that("the page has all types, no bound, and only samples in its timeline", {
  x <- exact_profile()
  page <- page_of(x)
  names <- vapply(page$types, `[[`, "", "name")
  expect_true(all(exact_types$type %in% names))
  bounds <- names[vapply(page$types, `[[`, NA, "bound")]
  expect_identical(bounds, c("alloc_size", "dealloc_size"))
  expect_identical(names[[page$bytes + 1]], "alloc_space")
  expect_equal(page$sources[[1]]$samples, 10)
  expect_equal(sum(unlist(page$order[[1]]$run)), 10)
  sampled <- page_of(fit_samples())
  expect_identical(sampled$order[[1]]$run, page$order[[1]]$run)
  expect_identical(vapply(sampled$types, `[[`, "", "name")[[sampled$bytes + 1]], "alloc_size")
})

test_that("pictures over time have samples only", {
  withr::local_pdf(NULL)
  expect_equal(plot(exact_profile(), view = "time"), plot(fit_samples(), view = "time"))
})

test_that("times of samples are given to samples only", {
  x <- exact_profile()
  x$sources$source_timestamp <- 1e9
  timed <- profile:::by_clock(x, "cpu", 2e8, list(date = 1e18 + c(0, 2e8), cpu = c(0, 1e8)), NULL)
  expect_identical(which(is.na(timed$samples$.timestamp)), 11:15)
  expect_equal(attr(summary(timed, type = "cpu"), "sum"), 1e8)
  expect_equal(attr(summary(timed, type = "copy_space"), "sum"), 4001000000)
})

test_that("callgrind has the exact bytes, and no share of collections is added to its time", {
  path <- withr::local_tempfile()
  write_callgrind(exact_profile(), path)
  text <- readLines(path)
  events <- strsplit(sub("^events: ", "", grep("^events:", text, value = TRUE)), " ")[[1]]
  expect_true(all(c("cpu_nanoseconds", "alloc_space_bytes", "copy_objects", "inuse_objects") %in% events))
  totals <- as.numeric(strsplit(sub("^summary: ", "", grep("^summary:", text, value = TRUE)), " ")[[1]])
  expect_equal(
    totals[match(c("cpu_nanoseconds", "copy_space_bytes", "gc_share_nanoseconds"), events)], c(1e8, 4001000000, 1e9)
  )
})

test_that("a page with a base says that sampled and exact memory cannot be compared", {
  x <- exact_profile()
  sampled <- fit_samples()
  notes <- function(new, base) {
    unlist(page_data(profile_page(new, base = base))$comparison$notes)
  }
  expect_match(notes(x, sampled), "memory of `base` was measured at samples", all = FALSE)
  expect_match(notes(sampled, x), "memory of `new` was measured at samples", all = FALSE)
  expect_no_match(notes(x, x), "memory")
  expect_no_match(notes(sampled, sampled), "memory")
})
