# tier: gate
# Files in the format of callgrind, checked by other programs that read them.

write_quietly <- function(x, path = withr::local_tempfile(.local_envir = parent.frame())) {
  suppressWarnings(write_callgrind(x, path), classes = "profile_warning_lossy")
  path
}

# Names in the form in which they are written.
plain <- function(name) gsub("[[:cntrl:]]", " ", ifelse(name == "", "<Anonymous>", name))

# Sums by function from `summary()`, with names in the form in which they are written.
expected_sums <- function(x) {
  by <- summary(x, type = if ("samples" %in% x$sample_values$type) "samples")$by_function
  name <- plain(by$name)
  list(self = tapply(by$self, name, sum), total = tapply(by$total, name, sum))
}

callgrind_profiles <- function() {
  files <- c("basic_all.out", "deep_plain.out", "dplyr_line.out", "dplyr_all.out", "names_line.out")
  files <- files[file.exists(rprof_path(files))]
  expect_gt(length(files), 2)
  profiles <- rlang::set_names(lapply(rprof_path(files), read_quietly), files)
  c(profiles, list(
    perf = read_perf_script(data_path("perf", "r.txt.gz")), go = read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  ))
}

# An independent reader: self values, sums of calls of functions and by functions, for the first event.
read_callgrind <- function(path) {
  lines <- readLines(path, encoding = "UTF-8")
  names <- character()
  function_of <- function(text) {
    id <- sub("^(\\([0-9]+\\)).*", "\\1", text)
    name <- substring(text, nchar(id) + 2)
    if (name != "") names[[id]] <<- name
    names[[id]]
  }
  self <- calls <- made <- numeric()
  add <- function(sums, name, value) {
    sums[name] <- value + if (name %in% names(sums)) sums[[name]] else 0
    sums
  }
  callee <- NULL
  for (line in lines) {
    if (startsWith(line, "fn=")) {
      caller <- function_of(substring(line, 4))
    } else if (startsWith(line, "cfn=")) {
      callee <- function_of(substring(line, 5))
    } else if (grepl("^[0-9]+ ", line)) {
      value <- as.numeric(strsplit(line, " ")[[1]][[2]])
      if (is.null(callee)) {
        self <- add(self, caller, value)
      } else {
        calls <- add(calls, callee, value)
        made <- add(made, caller, value)
        callee <- NULL
      }
    }
  }
  list(self = self, calls = calls, made = made)
}

zero_if_missing <- function(sums, names) {
  found <- as.numeric(sums[names])
  ifelse(is.na(found), 0, found)
}

test_that("both ways to compute inclusive values agree with summary()", {
  profiles <- callgrind_profiles()
  for (of in names(profiles)) {
    x <- profiles[[of]]
    found <- read_callgrind(write_quietly(x))
    expected <- expected_sums(x)
    name <- names(expected$total)
    self <- zero_if_missing(found$self, name)
    expect_equal(self, as.vector(expected$self), info = of)
    expect_equal(self + zero_if_missing(found$made, name), as.vector(expected$total), info = of)
    called <- name %in% names(found$calls)
    expect_equal(as.numeric(found$calls[name[called]]) <= expected$total[called] + 1e-9, rep(TRUE, sum(called)), ignore_attr = TRUE)
  }
})

test_that("callgrind_annotate agrees with summary()", {
  skip_on_cran()
  tool <- Sys.which("callgrind_annotate")
  skip_if(tool == "", "callgrind_annotate is not installed")
  profiles <- callgrind_profiles()
  for (of in names(profiles)) {
    x <- profiles[[of]]
    path <- write_quietly(x)
    output <- suppressWarnings(system2(
      tool, c("--inclusive=yes", "--threshold=100", "--auto=no", "--show-percs=no", path), stdout = TRUE, stderr = TRUE
    ))
    expect_no_match(output, "WARNING", fixed = TRUE)
    Encoding(output) <- "UTF-8"
    rows <- regmatches(output, regexec("^ *([0-9,]+) +(?:[0-9,.]+ +)*([^ ].*?:.*?)(?: \\[\\])?$", output, perl = TRUE))
    rows <- rows[lengths(rows) == 3]
    events <- length(strsplit(grep("^events:", readLines(path), value = TRUE), " ")[[1]]) - 1
    expect_gt(length(rows), 0)
    expected <- expected_sums(x)
    value <- as.numeric(gsub(",", "", vapply(rows, `[[`, "", 2)))
    text <- vapply(rows, `[[`, "", 3)
    files <- unique(c("???", x$functions$filename[x$functions$filename != ""]))
    # The program computes the total of a function from its calls, which lacks the samples in which it is outermost.
    calls <- zero_if_missing(read_callgrind(path)$calls, names(expected$total))
    judged <- names(expected$total)[expected$total > 0 & (calls == 0 | calls == expected$total)]
    expect_gt(length(judged), 0.9 * sum(expected$total > 0))
    # Blanks at the start of names are not shown.
    for (name in grep("^ ", judged, invert = TRUE, value = TRUE)) {
      # Absolute paths in the working directory are shown as relative ones.
      row <- which(endsWith(text, paste0(":", name)))
      expect_true(expected$total[[name]] %in% value[row], info = paste(of, name))
    }
  }
})

# Self and total of each function as percentages, with two decimals.
run_gprof2dot <- function(path) {
  script <- file.path(viewer_directory(), "python", "gprof2dot.py")
  tool <- if (file.exists(script)) c(Sys.which("python3")[[1]], script) else Sys.which("gprof2dot")[[1]]
  skip_if(tool[[1]] == "", "gprof2dot is not installed: inclusive values are not judged by it")
  dot <- system2(tool[[1]], shQuote(c(tool[-1], "-f", "callgrind", "-n0", "-e0", path)), stdout = TRUE, stderr = FALSE)
  Encoding(dot) <- "UTF-8"
  nodes <- regmatches(dot, regexec("label=\"(.*)\\\\n([0-9.]+)%\\\\n\\(([0-9.]+)%\\)", dot))
  nodes <- nodes[lengths(nodes) == 4]
  part <- function(i) vapply(nodes, `[[`, "", i)
  data.frame(name = gsub("\\\\(.)", "\\1", part(2)), total = as.numeric(part(3)), self = as.numeric(part(4)))
}

expect_gprof2dot <- function(x, columns, info) {
  found <- run_gprof2dot(write_quietly(x))
  expected <- expected_sums(x)
  found <- found[found$name %in% names(expected$total), ]
  # Functions without samples are left out.
  expect_gte(nrow(found), 0.98 * sum(round(10000 * expected$total / sum(expected$self)) > 0))
  for (column in columns) {
    share <- 100 * as.vector(expected[[column]][found$name]) / sum(expected$self)
    expect_lt(max(abs(found[[column]] - share)), 0.006, label = paste(info, column))
  }
}

# Selects stacks of a profile whose calls together have no cycle, each as one sample.
without_cycles <- function(x) {
  edges <- lines <- character()
  for (names in unique(strsplit(stacks(x), " < ", fixed = TRUE))) {
    # Only the innermost call of a function is written. A function with a caller is not outermost.
    stack <- c("start", rev(unique(gsub("[; ]", "_", plain(names)))))
    more <- unique(c(edges, paste(utils::head(stack, -1), stack[-1], sep = ";")))
    if (length(more) == length(edges) || !has_cycle(more)) {
      edges <- more
      lines <- c(lines, paste(paste(stack, collapse = ";"), 1))
    }
  }
  read_collapsed(do.call(write_file, as.list(lines)))
}

has_cycle <- function(edges) {
  pair <- do.call(rbind, strsplit(edges, ";", fixed = TRUE))
  while (nrow(pair) > 0) {
    first <- !pair[, 1] %in% pair[, 2]
    if (!any(first)) {
      return(TRUE)
    }
    pair <- pair[!first, , drop = FALSE]
  }
  FALSE
}

# gprof2dot does not use the inclusive values of the file. It distributes the total of a function over its callers by
# the numbers of calls, which is exact if no function is a direct or indirect caller of itself.
test_that("gprof2dot agrees with summary()", {
  skip_on_cran()
  for (file in c("basic_all.out", "dplyr_all.out", "names_line.out")) {
    skip_if_not(file.exists(rprof_path(file)), file)
    x <- read_quietly(rprof_path(file))
    expect_gprof2dot(x, "self", file)
    some <- without_cycles(x)
    expect_gt(nrow(some$functions), 50)
    expect_gprof2dot(some, c("self", "total"), file)
  }
})

test_that("events are the types that can be summed", {
  x <- read_quietly(rprof_path("basic_all.out"))
  path <- write_quietly(x)
  lines <- readLines(path)
  expect_equal(lines[[5]], "events: samples cpu_nanoseconds alloc_space_bytes")
  pprof <- withr::local_tempfile()
  write_pprof(x, pprof)
  values <- read_pprof(pprof)$sample_values
  expected <- tapply(values$value, values$type, sum)[c("samples", "cpu", "alloc_space")]
  expect_equal(as.numeric(strsplit(sub("summary: ", "", lines[[6]]), " ")[[1]]), as.vector(expected))
})

test_that("losses are reported", {
  x <- read_rprof(write_file(
    "line profiling: sample.interval=1000", "#File 1: a.R", "#File 2: b.R", "1#1 \"f\" ", "2#7 \"f\" ", "1#2 \"f\" "
  ))
  path <- withr::local_tempfile()
  warning <- expect_warning(write_callgrind(x, path), class = "profile_warning_lossy")
  expect_equal(warning$losses, c(other_files = 1))
  expect_equal(grep("^[0-9]", readLines(path), value = TRUE), c("0 1 1000000", "1 1 1000000", "2 1 1000000"))
  expect_error(write_callgrind(x, file.path(path, "no", "file")), class = "profile_error_write")
})
