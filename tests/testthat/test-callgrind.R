# Files in callgrind's format, judged by programs that read them.

write_quietly <- function(x, path = withr::local_tempfile(.local_envir = parent.frame())) {
  suppressWarnings(write_callgrind(x, path), classes = "profile_warning_lossy")
  path
}

# Names as they are written.
plain <- function(name) gsub("[[:cntrl:]]", " ", ifelse(name == "", "<Anonymous>", name))

# Sums by function that `summary()` computes, as the same names are written.
expected_sums <- function(x) {
  by <- summary(x)$by_function
  name <- plain(ifelse(is.na(by$name), "<unknown>", by$name))
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

test_that("both ways to compute inclusive values give those of summary()", {
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
    # Blanks at the start of names are not shown.
    for (name in grep("^ ", names(expected$total)[expected$total > 0], invert = TRUE, value = TRUE)) {
      # Absolute paths in the working directory are shown as relative ones.
      row <- which(endsWith(text, paste0(":", name)))
      expect_true(expected$total[[name]] %in% value[row], info = paste(of, name))
    }
  }
})

# gprof2dot does not use the inclusive values of the file. It distributes the self values of a function over its
# callers, by the numbers of calls, which is only exact without recursion, also of several functions.
test_that("gprof2dot agrees with summary()", {
  skip_on_cran()
  tool <- Sys.which("gprof2dot")
  skip_if(tool == "", "gprof2dot is not installed")
  plain <- read_collapsed(write_file("main;a;b 5", "main;c;b 7", "main;a 3", "main;c;d 1"))
  for (x in list(read_quietly(rprof_path("dplyr_all.out")), plain)) {
    dot <- system2(tool, c("-f", "callgrind", "-n0", "-e0", write_quietly(x)), stdout = TRUE, stderr = FALSE)
    nodes <- regmatches(dot, regexec("label=\"(.*)\\\\n([0-9.]+)%\\\\n\\(([0-9.]+)%\\)", dot))
    nodes <- nodes[lengths(nodes) == 4]
    expected <- expected_sums(x)
    share <- function(sums, name) 100 * as.vector(sums[name]) / sum(expected$self)
    names <- vapply(nodes, `[[`, "", 2)
    is_plain <- names %in% names(expected$total)
    expect_gt(mean(is_plain), 0.9)
    nodes <- nodes[is_plain]
    names <- names[is_plain]
    expect_lt(max(abs(as.numeric(vapply(nodes, `[[`, "", 4)) - share(expected$self, names))), 0.006)
    if (identical(x, plain)) {
      expect_lt(max(abs(as.numeric(vapply(nodes, `[[`, "", 3)) - share(expected$total, names))), 0.006)
    }
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

test_that("what cannot be written is reported", {
  x <- read_rprof(write_file(
    "line profiling: sample.interval=1000", "#File 1: a.R", "#File 2: b.R", "1#1 \"f\" ", "2#7 \"f\" ", "1#2 \"f\" "
  ))
  path <- withr::local_tempfile()
  warning <- expect_warning(write_callgrind(x, path), class = "profile_warning_lossy")
  expect_equal(warning$losses, c(other_files = 1))
  expect_equal(grep("^[0-9]", readLines(path), value = TRUE), c("0 1 1000000", "1 1 1000000", "2 1 1000000"))
  expect_error(write_callgrind(x, file.path(path, "no", "file")), class = "profile_error_write")
})
