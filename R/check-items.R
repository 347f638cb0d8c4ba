# The examples, tests and vignettes of a check: how long each took, and the line of the package that took most of it.

# All of these are tibbles with a row for each item: `kind`, `name`, `time` in seconds, and `samples`, the rows of its
# samples. `of_sample`: the key of the process of each sample.

# One process runs all examples. `titles`: see titles_with_times().
examples_of_check <- function(titles, processes, profile, of_sample) {
  keys <- unique(titles$key)
  rows <- lapply(keys, function(key) {
    own <- titles[titles$key == key, ]
    ends <- c(own$time[-1], processes$ended[match(key, processes$key)])
    timestamps <- profile$samples$.timestamp
    of_process <- which(of_sample == key)
    at <- findInterval(timestamps[of_process], own$time)
    tibble::tibble(
      kind = "example", name = own$name, time = pmax(0, ends - own$time),
      samples = lapply(seq_along(own$time), function(i) of_process[at == i])
    )[is_example_title(own$name), ]
  })
  bind_items(rows)
}

# Tests of testthat, by their labels; and scripts in `tests` that have none.
tests_of_check <- function(processes, steps, profile, of_sample) {
  labels <- profile$.labels
  test <- text_of_label(labels, "testthat.test", profile)
  file <- text_of_label(labels, "testthat.file", profile)
  wall <- wall_of_samples(profile)
  name <- ifelse(is.na(file), test, paste0(test, " (", file, ")"))
  rows <- split(which(!is.na(test)), name[!is.na(test)])
  tests <- tibble::tibble(
    kind = rep("test", length(rows)), name = as.character(names(rows)),
    time = vapply(rows, function(at) sum(wall[at]), 0, USE.NAMES = FALSE), samples = unname(rows)
  )
  of_tests <- step_of_processes(steps, processes) %in% steps$key[steps$part == "tests"]
  has_tests <- processes$key %in% of_sample[!is.na(test)]
  scripts <- processes[of_tests & !has_tests & processes$is_r & !is.na(processes$script), ]
  bind_items(list(tests, tibble::tibble(
    kind = rep("test script", nrow(scripts)), name = basename(scripts$script), time = scripts$ended - scripts$began,
    samples = lapply(scripts$key, function(key) which(of_sample == key))
  )))
}

# The code of a vignette runs in one step, and all of them are built again in another one, or in one for each.
vignettes_of_check <- function(steps, step_of_sample) {
  own <- steps[steps$is_vignette, ]
  tibble::tibble(
    kind = rep("vignette", nrow(own)), name = own$name, time = own$ended - own$began,
    samples = lapply(own$key, function(key) which(step_of_sample == key))
  )
}

bind_items <- function(rows) {
  none <- tibble::tibble(kind = character(), name = character(), time = numeric(), samples = list())
  vctrs::vec_rbind(none, !!!rows)
}

# The value of a label of each sample, NA if it has none.
text_of_label <- function(labels, key, profile) {
  rows <- labels[labels$key == key, ]
  rows$str[match(profile$samples$sample_id, rows$sample_id)]
}

# The seconds of each sample.
wall_of_samples <- function(profile) {
  values <- profile$sample_values
  values <- values[values$type == "wall", ]
  values$value[match(profile$samples$sample_id, values$sample_id)] / 1e9
}

# The place of the package's code in each sample: that of its innermost call there. `name`, `file` and `line`, NA for
# samples in which none of its functions runs.
places_in_package <- function(profile, package) {
  functions <- profile$functions
  folder <- paste0("/00_pkg_src/", package, "/")
  of_package <- functions$.package %in% package | grepl(folder, functions$filename, fixed = TRUE)
  row <- match(profile$locations$function_id, functions$function_id)
  used <- which(of_package[row])
  frames <- as.list(profile$sample_locations)
  kept <- which(frames$location_id %in% profile$locations$location_id[used])
  kept <- kept[order(frames$sample_id[kept], frames$depth[kept])]
  kept <- kept[!duplicated(frames$sample_id[kept])]
  location <- match(frames$location_id[kept], profile$locations$location_id)
  at <- match(profile$samples$sample_id, frames$sample_id[kept])
  location <- location[at]
  of_location <- row[location]
  line <- profile$locations$line[location]
  file <- sub(paste0("^.*", folder), "", functions$filename[of_location])
  list(
    name = functions$name[of_location], file = ifelse(nzchar(file), file, NA_character_),
    line = ifelse(line > 0, line, NA_integer_)
  )
}

# Adds `function`, `file` and `line` with most time of each item, and this time. `places`: see places_in_package().
# `wall`: the seconds of each sample.
with_hottest_lines <- function(items, places, wall) {
  text <- paste(places$name, places$file, places$line, sep = "\r")
  sums <- lapply(items$samples, function(rows) {
    rows <- rows[!is.na(places$name[rows])]
    if (length(rows) > 0) {
      sums <- rowsum(wall[rows], text[rows], reorder = FALSE)[, 1]
      list(row = match(names(sums)[[which.max(sums)]], text), time = max(sums))
    }
  })
  row <- vapply(sums, function(found) found$row %||% NA_integer_, 0L)
  items$`function` <- places$name[row]
  items$file <- places$file[row]
  items$line <- places$line[row]
  items$line_time <- vapply(sums, function(found) found$time %||% NA_real_, 0)
  items$samples <- NULL
  items[order(-items$time), ]
}

# What takes longer than the machines of CRAN accept: `what`, `name`, `time` and `limit` in seconds.
limits_of_cran <- c(example = 5, check = 600)

exceeded_limits <- function(items, of_check) {
  examples <- items[items$kind == "example" & items$time > limits_of_cran[["example"]], ]
  rows <- tibble::tibble(
    what = examples$kind, name = examples$name, time = examples$time,
    limit = rep(limits_of_cran[["example"]], nrow(examples))
  )
  if (of_check > limits_of_cran[["check"]]) {
    whole <- tibble::tibble(what = "check", name = NA_character_, time = of_check, limit = limits_of_cran[["check"]])
    rows <- vctrs::vec_rbind(whole, rows)
  }
  rows
}
