# Calls every method of the classes of lazy columns (src/frame_columns.c, src/picked.c), and compares the results with
# ordinary columns. Each call gets columns that were just read. Fails if a result differs.
#
# usage: Rscript methods.R [STEP]     STEP: an argument of gctorture2(); 0, the default, for none
#
# test-lazy-robust.R runs it with a garbage collection at each allocation, tools/valgrind in valgrind.

library(profile)
step <- as.integer(c(commandArgs(TRUE), 0)[[1]])
set.seed(1)

# ---- Profiles -----------------------------------------------------------------------------

# The time of a garbage collection depends on the memory in use.
samples <- if (step > 0) 300L else 2000L
# With memory profiling there are several values for each sample, so their sample ids repeat.
stacks <- vapply(1:40, function(i) paste0("\"f", sample.int(50, 25), "\" ", collapse = ""), "")
figures <- sprintf(":%d:%d:%d:%d:", 1:40, 1:40, 1:40, 0L)
files <- c(rprof = tempfile(), memory = tempfile(), pprof = tempfile(), appended = tempfile())
writeLines(c("sample.interval=10000", sample(stacks, samples, TRUE)), files[["rprof"]])
writeLines(c("memory profiling: sample.interval=10000", sample(paste0(figures, stacks), samples, TRUE)), files[["memory"]])
write_pprof(read_rprof(files[["rprof"]]), files[["pprof"]], aggregate = FALSE)
writeLines(rep(c("sample.interval=10000", sample(stacks, samples / 2L, TRUE)), 2), files[["appended"]])

columns <- list(
  sample_locations = c("sample_id", "depth", "location_id"),
  samples = c("sample_id", "source_id"),
  sample_values = c("sample_id", "type", "unit", "value"),
  # The other columns have the classes of `sample_locations`.
  as_tibble = c("source_id", "name", "line")
)
# With garbage collections, which take long: one column of each class.
if (step > 0) {
  columns$samples <- "source_id"
  columns$as_tibble <- c("name", "line")
  files_of <- function(table) if (table == "sample_values") c("rprof", "memory") else "rprof"
} else {
  files_of <- function(table) names(files)
}

profile_of <- function(file, lazy) {
  options(profile.lazy = lazy)
  read_profile(files[[file]])
}

table_of <- function(x, table) {
  if (table != "as_tibble") {
    return(x[[table]])
  }
  # Frames without a function, and without a line.
  x$locations$function_id[[3]] <- NA
  x$locations$line[[4]] <- NA
  as_tibble(x)
}

# ---- Uses of a column -----------------------------------------------------------

n <- samples * 25L
few <- sample.int(samples, 50L)
many <- sample.int(n, 4L * n, TRUE)

uses <- list(
  Length = function(x) length(x),
  # The addresses differ.
  Inspect = function(x) length(utils::capture.output(.Internal(inspect(x)))) > 0,
  Duplicate = function(x) { y <- x; y[[3]] <- y[[4]]; list(x[1:5], y) },
  Duplicate_with_attributes = function(x) structure(x, class = "a"),
  Dataptr = function(x) list(x + 1L, x[1:3]),
  Dataptr_twice = function(x) list(rev(x), x == 2L, x),
  Dataptr_after_elements = function(x) list(unique(x), x + 1L, x[[5]]),
  Dataptr_or_null = function(x) list(rev(x), utils::head(x), sum(x[x > 5]), x[7:9]),
  Extract_subset = function(x) list(x[few], x[c(1L, NA, n + 1L)], x[0], x[-1], x[TRUE]),
  Extract_subset_by_double = function(x) x[c(1, 2.9, NA, NaN, 5e9)],
  Extract_subset_at_random = function(x) list(x[many], x[[3]]),
  Extract_subset_after_Dataptr = function(x) list(rev(x), x[few], x[many]),
  Elt = function(x) list(x[[1]], x[[length(x)]], x[[9]], x[[8]], x[[9]]),
  Elt_of_all = function(x) list(duplicated(x), unique(x), match(1:40, x), x[[7]]),
  Elt_at_random = function(x) list(x[[samples - 1L]], x[[3]], x[[samples - 20L]], x[[17]], x[[samples - 19L]], x[[2]]),
  Get_region = function(x) list(mean(x), x[5:200], anyNA(x[3:9]), as.double(x), cumsum(as.double(x))),
  Get_region_after_Dataptr = function(x) list(rev(x), mean(x), as.double(x)),
  No_NA = function(x) list(anyNA(x), is.na(x[1:9]), rev(x)[1:3], anyNA(x)),
  Is_sorted = function(x) list(is.unsorted(x), sort(x), order(x), x[1:2]),
  Is_sorted_after_Dataptr = function(x) { x[1] <- x[[2]]; list(is.unsorted(x), sort(x), order(x)) },
  Sum_Min_Max = function(x) list(sum(x), min(x), max(x), range(x)),
  Sum_Min_Max_after_Dataptr = function(x) list(rev(x), sum(x), min(x), max(x), range(x)),
  serialize = function(x) list(serialize(x, NULL, version = 2), unserialize(serialize(x, NULL)), unserialize(serialize(x, NULL, xdr = FALSE))),
  identical = function(x) identical(x, x + 0L),
  in_place = function(x) { x[1] <- x[[9]]; x[2:3] <- x[5:6]; x[[4]] <- x[[9]]; x },
  # The values stay when the other columns are collected, and the table.
  alone = function(x) { gc(); list(x[[5]], gc(), x[1:5], x + 1L)[c(1, 3, 4)] }
)

# The same for columns of texts.
text_uses <- c(
  uses[c("Length", "Inspect", "Duplicate_with_attributes", "Extract_subset", "Extract_subset_by_double", "Elt", "No_NA", "Is_sorted", "serialize", "in_place", "alone")],
  list(
    Duplicate = function(x) { y <- x; y[[3]] <- "b"; list(x[1:5], y) },
    Dataptr = function(x) list(paste0(x, "!"), x == "count", x[1:3]),
    Dataptr_by_vctrs = function(x) list(vctrs::vec_slice(x, few), vctrs::vec_unique(x), x[[9]]),
    Elt_of_all = function(x) list(duplicated(x), unique(x), match("count", x), nchar(x), table(x)),
    Set_elt = function(x) { names(few) <- x[few]; names(few)[2] <- "b"; list(names(few), x[1:5]) },
    sort = function(x) list(sort(x), order(x), rev(x), x[[3]]),
    identical = function(x) identical(x, paste0(x))
  )
)
text_uses$alone <- function(x) { gc(); list(x[[5]], gc(), x[1:5], paste(x))[c(1, 3, 4)] }

# Uses of whole profiles, in which columns are recognised.
calls <- list(
  read = function(x) unclass(x),
  validate = function(x) unclass(validate_profile(x)),
  summary = function(x) unclass(summary(x)),
  combine = function(x) unclass(combine_profiles(x, x)),
  after_reading = function(x) { x$sample_locations$depth + 1L; unclass(combine_profiles(x)) },
  changed = function(x) { x$sample_locations$location_id[[3]] <- 1L; unclass(validate_profile(x)) },
  table = function(x) as_tibble(x),
  version_1 = function(x) unclass(profile_v1_from_v2(x))
)

# ---- Comparing --------------------------------------------------------------------------

compare <- function(what, use, lazy, ordinary, step = 0) {
  gctorture2(step)
  found <- use(lazy)
  gctorture2(0)
  if (!identical(found, use(ordinary))) {
    stop(what, " gives another result", call. = FALSE)
  }
}

compared <- 0
for (file in names(files)) {
  ordinary <- profile_of(file, FALSE)
  for (call in names(calls)) {
    compare(paste(call, file), calls[[call]], profile_of(file, TRUE), ordinary)
    compared <- compared + 1
  }
  for (table in Filter(function(table) file %in% files_of(table), names(columns))) {
    for (column in columns[[table]]) {
      same <- table_of(ordinary, table)[[column]]
      uses_of <- if (is.character(same)) text_uses else uses
      for (use in names(uses_of)) {
        # Only this column is reachable.
        lazy <- table_of(profile_of(file, TRUE), table)[[column]]
        compare(paste(use, file, table, column), uses_of[[use]], lazy, same, step)
        compared <- compared + 1
      }
    }
  }
}
cat(compared, "results are the same\n")
unlink(files)
