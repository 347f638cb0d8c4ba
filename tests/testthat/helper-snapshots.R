# Snapshots of the heap of R: profiles as of snapshots, from paths as text, and the paths of snapshots as text.

# A snapshot with a sample for each path, written "globalenv;$fits;[[*]] <lm>;numeric": the root, what holds the objects,
# and their type. Frames of the same name and kind are one location.
snapshot <- function(paths, bytes, objects = rep(1, length(paths)), pid = 123, time = 1.8e9, program = "R") {
  frames <- strsplit(paths, ";", fixed = TRUE)
  snapshot_of_frames(frames, unlist(lapply(frames, kinds_of_frames)), bytes, objects, pid, time, program)
}

# The same, of the names of frames in each path, and the kinds of all of them.
snapshot_of_frames <- function(frames, kind, bytes, objects, pid, time, program) {
  name <- unlist(frames)
  frame <- paste(name, kind)
  first <- !duplicated(frame)
  id <- match(frame, frame[first])
  count <- length(frames)
  depth <- unlist(lapply(frames, function(frames) rev(seq_along(frames))))
  known <- data_model()$sample_types
  known <- known[known$role == "in use", ]
  type <- function(unit) known$type[known$unit == unit][[1]]
  new_profile_data(list(
    meta = tibble::tibble(key = "version", value = "2.0"),
    sources = tibble::tibble(
      source_id = 1L, source_type = "heap", source_uri = paste0("pid:", pid), source_timestamp = time,
      .default_type = type("bytes")
    ),
    samples = tibble::tibble(sample_id = seq_len(count), source_id = 1L),
    sample_values = tibble::tibble(
      sample_id = rep(seq_len(count), 2), type = rep(c(type("bytes"), type("count")), each = count),
      unit = rep(c("bytes", "count"), each = count), value = as.double(c(bytes, objects))
    ),
    sample_locations = tibble::tibble(sample_id = rep(seq_len(count), lengths(frames)), depth = depth, location_id = id),
    locations = tibble::tibble(
      location_id = seq_len(sum(first)), function_id = seq_len(sum(first)), line = 0L, .frame_type = kind[first]
    ),
    functions = tibble::tibble(
      function_id = seq_len(sum(first)), name = name[first], system_name = name, filename = "", start_line = 0L
    ),
    .source_attributes = tibble::tibble(source_id = 1L, key = "process.executable.name", type = "string", value = program, unit = NA_character_)
  ), "2.0")
}

kinds_of_frames <- function(frames) {
  kind <- ifelse(startsWith(frames, "[["), "element", ifelse(startsWith(frames, "attr "), "attribute", "binding"))
  kind[frames == "in code"] <- "code"
  kind[grepl(" env$", frames)] <- "environment"
  kind[[1]] <- "root"
  kind[[length(kind)]] <- "type"
  kind
}

# A session with models: the largest part is held by the environment of their formulas, which nobody sees.
models_snapshot <- function(models = 4, ...) {
  terms <- "globalenv;$fits <list>;[[*]] <lm>;$terms <terms>;attr \".Environment\";$raw <data.frame>"
  snapshot(
    c(
      paste0(terms, ";[[*]];numeric"), paste0(terms, ";<data.frame>"),
      "globalenv;$fits <list>;[[*]] <lm>;$model <data.frame>;[[*]];numeric",
      "globalenv;$fits <list>;[[*]] <lm>;$qr <qr>;numeric", "globalenv;$fits <list>;list",
      "globalenv;$work();in code;bytecode", "namespace:stats;$lm();in code;bytecode", "namespace:stats;function",
      "package:stats;$x;numeric", "call of f();$data <data.frame> [shared];[[*]];character", "base;function",
      "free cells of R;free", "not R's heap;memory"
    ),
    bytes = c(models * 8e6, models * 1e3, models * 3e6, models * 5e5, 200, 4e4, 2e6, 9e5, 3e5, 6e6, 3e6, 4e6, 9e6),
    objects = c(models, models, models * 3, models, 1, 50, 2000, 8000, 2, 5, 12000, 0, 0),
    ...
  )
}

# The paths of a profile as text, outermost frame first, with the sums of bytes and objects.
paths_in <- function(x) {
  rows <- x$sample_locations[order(x$sample_locations$sample_id, -x$sample_locations$depth), ]
  names <- x$functions$name[match(x$locations$function_id, x$functions$function_id)]
  frames <- split(names[match(rows$location_id, x$locations$location_id)], rows$sample_id)
  values <- function(unit) x$sample_values$value[x$sample_values$unit == unit]
  tibble::tibble(
    path = vapply(frames, paste, "", collapse = " > "), bytes = values("bytes"), objects = values("count")
  )
}

heap_attribute <- function(x, key) {
  attributes <- x$.source_attributes
  as.numeric(attributes$value[attributes$key == paste0("profile.heap.", key)])
}

# Expects that the rows of a snapshot are the resident memory of the process, and R's objects that are not resident.
expect_resident <- function(x) {
  testthat::expect_identical(
    sum(paths_in(x)$bytes), heap_attribute(x, "resident") + heap_attribute(x, "not_resident")
  )
}

# Expects that a snapshot is complete: all references lead to objects, all figures agree, and the objects of a path are
# as many as the process has made.
expect_sane_snapshot <- function(x, path, objects, info = NULL) {
  testthat::expect_identical(validate_profile(x), x, info = info)
  testthat::expect_equal(heap_attribute(x, "wrong_references"), 0, info = info)
  paths <- paths_in(x)
  is_r <- paths$path != "free cells of R > free cells" & !startsWith(paths$path, "not R's heap > ")
  testthat::expect_equal(sum(paths$objects), heap_attribute(x, "objects"), info = info)
  testthat::expect_equal(sum(paths$bytes[is_r]), heap_attribute(x, "used"), info = info)
  testthat::expect_equal(sum(paths$objects[startsWith(paste0(paths$path, " "), paste0(path, " "))]), objects, info = info)
}
