# tier: gate
# Lines of functions without source references in other processes, and in profiles of the agent.

skip_without_positions <- function() {
  skip_without_processes()
  skip_without_snapshots()
}

# A process that sleeps in `nap()`, which functions of packages call. Two functions of the global environment have no source
# references, and `other` is not the function of this name here.
napping <- c(
  "plain <- function(text) compiler::cmpfun(eval(parse(text = text, keep.source = FALSE), globalenv()))",
  "nap <- function(...) {", "  ready()", "  Sys.sleep(1e6)", "}",
  "same <- plain('function(f) { x <- 1; other(f, x) }')",
  "other <- plain('function(f, x) { y <- x; z <- y; lapply(z, f) }')",
  "tryCatch(same(function(i) sapply(i, nap)), error = identity)"
)
napping_stack <- c("Sys.sleep", "nap", "lapply", "sapply")

local_functions_here <- function(..., env = parent.frame()) {
  texts <- list(...)
  for (name in names(texts)) assign(name, eval(parse(text = texts[[name]], keep.source = FALSE)), globalenv())
  withr::defer(suppressWarnings(rm(list = names(texts), envir = globalenv())), env)
}

# The frames of the first sample that are in such files, with the text of their lines.
frames_in_text <- function(x) {
  frames <- x$sample_locations[x$sample_locations$sample_id == x$samples$sample_id[[1]], ]
  locations <- x$locations[match(frames$location_id, x$locations$location_id), ]
  functions <- x$functions[match(locations$function_id, x$functions$function_id), ]
  text <- x$.source_text$text[match(functions$filename, x$.source_text$filename)]
  is_deparsed <- x$.source_text$from[match(functions$filename, x$.source_text$filename)] %in% "deparsed"
  line <- mapply(function(text, line) trimws(strsplit(text, "\n")[[1]][line]), text[is_deparsed], locations$line[is_deparsed])
  paste(functions$filename[is_deparsed], line)
}

expected_frames <- c(
  "<base::Sys.sleep> function (time)",
  "<base::lapply> .Internal(lapply(X, FUN))",
  "<base::sapply> answer <- lapply(X = X, FUN = FUN, ...)",
  "<base::lapply> .Internal(lapply(X, FUN))",
  "<same> other(f, x)"
)

local_napping <- function(env = parent.frame()) {
  pid <- local_r_process(napping, envir = env)
  wait_for_stack(pid, napping_stack)
  local_functions_here(
    same = "function(f) { x <- 1; other(f, x) }", other = "function(f, x) { y <- x; lapply(y, f) }", env = env
  )
  pid
}

raw_profile <- function(pid) {
  x <- NULL
  wait_for(function() {
    x <<- processes_recorded(pid, 0.2, 0.01, "wall", list(any = FALSE, pids = integer()), NULL, positions = TRUE)$profile
    nrow(x$samples) > 0
  })
  x
}

test_that("frames of another process have the lines of functions with the same code", {
  skip_without_positions()
  pid <- local_napping()
  x <- profile_until(pid, clock = "wall")
  found <- frames_in_text(x)
  expect_identical(found[1:5], expected_frames)
  expect_match(found[-(1:5)], "^<base::(tryCatch|withVisible|eval|source)> ")
  # Of code that is another one here, nothing is known. No position is left.
  expect_false("<other>" %in% x$functions$filename)
  expect_false(any(is_byte_code(x$functions$filename)))
  expect_true(all(x$locations$line[x$functions$filename[match(x$locations$function_id, x$functions$function_id)] == ""] == 0))
  # R's own text of the function.
  expect_identical(annotate_lines(x, "base::sapply")$text, deparse(base::sapply))
  expect_no_error(validate_profile(x))

  # Without lines.
  withr::local_options(profile.deparsed_lines = 0)
  y <- profile_until(pid, clock = "wall")
  expect_false(any(grepl("^<", y$functions$filename)))
})

test_that("positions survive in files, and lines are looked up there", {
  skip_without_positions()
  pid <- local_napping()
  raw <- raw_profile(pid)
  expect_true(any(is_byte_code(raw$functions$filename)))
  for (extension in c(".pb.gz", ".otlp", ".rds")) {
    path <- withr::local_tempfile(fileext = extension)
    if (extension == ".rds") saveRDS(raw, path) else quietly(write_profile(raw, path))
    x <- if (extension == ".rds") readRDS(path) else read_profile(path)
    # Positions are no lines.
    expect_false(any(is_byte_code(summary(x, by = "line")$filename)))
    note <- "Positions in packages were recorded: `add_source_text[(]x[)]` looks up their lines"
    expect_match(paste(format(suppressMessages(describe_profile(x))), collapse = " "), gsub(" ", " +", note))
    expect_identical(frames_in_text(suppressMessages(add_source_text(x)))[1:5], expected_frames, label = extension)
  }
  # What is not known here remains.
  local_functions_here(same = "function(f) { other(f, 1) }")
  y <- suppressMessages(add_source_text(raw))
  expect_identical(setdiff(expected_frames, frames_in_text(y)), "<same> other(f, x)")
  expect_true(any(is_byte_code(y$functions$filename)))
})

test_that("code belongs to a function only if it is on the stack, and no other function has this code", {
  skip_without_positions()
  raw <- raw_profile(local_napping())
  call <- NULL
  is_sapply <- function(x) "<base::sapply>" %in% with_lines_of_code(x, call)$functions$filename
  expect_true(is_sapply(raw))
  # A frame with the same code whose function is called otherwise, and another sample with `sapply()`.
  at <- function(x) x$functions$name[match(x$locations$function_id, x$functions$function_id)]
  y <- raw
  y$functions$name[y$functions$name == "sapply"] <- y$functions$system_name[y$functions$system_name == "sapply"] <- "vapply"
  expect_false(is_sapply(y))
  z <- raw
  added <- transform(
    z$functions[1, ], function_id = 1000L, name = "sapply", system_name = "sapply", filename = "", .package = "base"
  )
  z$functions <- vctrs::vec_rbind(z$functions, added)
  z$functions$name[z$functions$name == "sapply" & z$functions$function_id < 1000] <- "vapply"
  z$functions$system_name[z$functions$system_name == "sapply" & z$functions$function_id < 1000] <- "vapply"
  z$locations <- vctrs::vec_rbind(z$locations, transform(z$locations[1, ], function_id = 1000L, location_id = 1000L, line = 0L))
  z$samples <- vctrs::vec_rbind(z$samples, transform(z$samples[1, ], sample_id = 1000L))
  z$sample_values <- vctrs::vec_rbind(z$sample_values, transform(z$sample_values[1:2, ], sample_id = 1000L))
  z$sample_locations <- vctrs::vec_rbind(z$sample_locations, data.frame(sample_id = 1000L, depth = 1L, location_id = 1000L))
  expect_false(is_sapply(z))
  # No function is known.
  z <- raw
  z$functions$name <- z$functions$system_name <- "unknown"
  found <- with_lines_of_code(z, call)
  expect_false(any(is_byte_code(found$functions$filename)))
  expect_identical(nrow(found$samples), nrow(raw$samples))
  expect_identical(with_lines_of_code(z, call, keep = TRUE)$functions, z$functions)
  # Two functions with the same code.
  local_functions_here(sapply = paste(deparse(base::sapply), collapse = "\n"))
  z <- raw
  z$functions$.package[z$functions$name == "sapply"] <- NA
  z$functions$.package_from[z$functions$name == "sapply"] <- NA
  expect_false(any(c("<base::sapply>", "<sapply>") %in% with_lines_of_code(z, call)$functions$filename))
})

test_that("the digests of code differ", {
  skip_without_positions()
  compile <- function(text) compiled_function(eval(parse(text = text, keep.source = FALSE)))
  texts <- c(
    "function(x) f(x)", "function(x) g(x)", "function(x) f(y)", "function(x) f(x, 1)", "function(x) f(x, 2)",
    "function(x) f(x, 'a')", "function(x) f(x, 'b')", "function(x) f(x, 1L)", "function(x) { f(x); f(x) }"
  )
  functions <- lapply(texts, compile)
  raw <- raw_profile(local_napping())
  # None of them is the code of a frame.
  codes <- unique(Filter(is_byte_code, raw$functions$filename))
  expect_true(all(is.na(rust(rust_codes_find(functions, codes), NULL))))
  with_base <- c(functions, list(base::sapply, base::sapply))
  expect_identical(setdiff(rust(rust_codes_find(with_base, codes), NULL), NA), length(functions) + 1L)
})
