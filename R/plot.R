# Pictures of a profile in base graphics.

#' Plot a profile
#'
#' @description
#' `plot()` draws a profile with base graphics, on any device and in reports, without a browser. See [profile_page()]
#' for an interactive view.
#'
#' - `"flame"`: a flame graph. Each box is a function, as wide as its total, on top of its caller. Boxes of
#'   the same caller are sorted by total, so the horizontal position is not time.
#' - `"time"`: the stack over time, outermost function at the bottom, and below it the memory in use, if it
#'   was recorded.
#' - `"lines"`: the lines of source code with the greatest total. Dark bars are self.
#'
#' Boxes of garbage collection are grey, boxes of native code are hatched, and functions of the same package or file
#' have the same colour, see [add_packages()]. In a difference of two profiles, which has negative values, boxes are as
#' wide as the sum of the absolute values in them: red if their total is positive, blue if it is negative.
#'
#' @param x A profile, see [profile_data].
#' @param ... Must be empty.
#' @param view The picture: `"flame"`, `"time"`, or `"lines"`.
#' @param type The sample type to sum, for `"flame"` and `"lines"`, as in [summary()][summary.profile_data()].
#' @param source_id Values of `source_id`: the recorded runs to show. By default all runs; for `"time"` the first one.
#' @param n The number of lines, for `"lines"`; `Inf` for all.
#' @param main The title. By default it describes what is shown, with the sum.
#'
#' @return What was drawn, invisibly: for `"flame"` the rows of the [call_tree()] that are wide enough to be
#'   visible; for `"time"` a tibble with the columns `start`, `end` (in seconds, or numbers of samples),
#'   `depth`, and `name`; for `"lines"` a tibble like `summary(x)$by_line`.
#'
#' @section Errors:
#' - the errors of [call_tree()];
#' - `profile_error_unsupported` if there is nothing to draw: no samples, no lines, or for `"time"` samples
#'   of several sources.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' plot(x)
#' plot(x, view = "lines", n = 8)
#' plot(x, view = "time")
plot.profile_data <- function(
    x, ..., view = c("flame", "time", "lines"), type = NULL, source_id = NULL, n = 15, main = NULL) {
  call <- call_without_dots()
  views <- c("flame", "time", "lines")
  view <- check_choice(view, views, "view", call)
  check_type(type, call)
  check_text(main, "main", call)
  n <- check_most_rows(n, call)
  x <- as_unchecked_v2(x, call)
  # In other methods of plot(), `type` is the kind of picture.
  if (!is.null(type) && type %in% setdiff(views, x$sample_values$type)) {
    abort_argument(c(
      paste0("`type` is a sample type, and the profile has none named ", in_quotes(type), "."),
      i = paste0("Use `view = ", in_quotes(type), "` for the picture.")
    ), call)
  }
  drawn <- switch(view,
    flame = plot_flame(x, type, source_id, main, call),
    time = plot_time(x, source_id, main, call),
    lines = plot_lines(x, type, source_id, n, main, call)
  )
  invisible(drawn)
}

# `figures`: a summary or a call tree.
stop_if_all_zero <- function(figures, call) {
  zero <- all_zero(figures, "value")
  if (!is.null(zero)) {
    nothing_to_draw(gsub("\u00a0", " ", sub("^All", "all", zero), fixed = TRUE), call)
  }
}

nothing_to_draw <- function(what, call, ...) {
  abort_unsupported(c(paste("There is nothing to draw:", what), ...), call)
}

# ---- Flame graph -------------------------------------------------------------------

plot_flame <- function(x, type, source_id, main, call) {
  x <- packages_added(x, call)
  tree <- tree_of(x, call, type = type, source_id = source_id)
  stop_if_all_zero(tree, call)
  if (nrow(tree) == 0) {
    nothing_to_draw("no samples with a stack.", call)
  }
  sum <- sum(tree$width[tree$depth == 1])
  unit <- attr(tree, "unit")
  amount <- paste0(at_least(tree), format_amount(attr(tree, "sum"), unit), " ", shown_label(attr(tree, "type")))
  is_difference <- any(tree$self < 0)
  main <- main %||% paste0("Flame graph: ", amount, if (is_difference) ", red: more, blue: less")
  old <- graphics::par(mar = c(2.5, 0.5, 2, 0.5), mgp = c(1.5, 0.4, 0), tcl = -0.2)
  on.exit(graphics::par(old))
  graphics::plot.new()
  # Boxes narrower than half a point cannot be seen.
  drawn <- tree[tree$width / sum * graphics::par("pin")[[1]] * 72 >= 0.5, ]
  depth <- max(drawn$depth)
  graphics::plot.window(c(0, sum), c(0, max(depth, 12)), xaxs = "i", yaxs = "i")
  native <- is_native_location(x)
  native <- drawn$name %in% if (any(native)) rust(rust_frame_names(x), call)$name[native]
  # Red for more, blue for less.
  fill <- if (is_difference) c("#a9c4ec", "grey88", "#f0b3a6")[sign(drawn$total) + 2] else fills(drawn)
  draw_boxes(drawn$x, drawn$x + drawn$width, drawn$depth - 1, drawn$name, fill, native)
  draw_axis(c(0, sum), unit)
  graphics::title(drawable(main), adj = 0, cex.main = 1)
  drawn
}

# Draws boxes one unit high, with the part of the name that fits.
draw_boxes <- function(left, right, bottom, name, fill, native = FALSE) {
  usr <- graphics::par("usr")
  border <- ifelse((right - left) * graphics::par("pin")[[1]] / diff(usr[1:2]) > 0.03, "white", NA)
  graphics::rect(left, bottom, right, bottom + 1, col = fill, border = border, lwd = 0.5)
  if (any(native)) {
    graphics::rect(
      left[native], bottom[native], right[native], bottom[native] + 1,
      col = "#00000040", density = 12, angle = 45, border = NA
    )
  }
  # Text is as large as the box permits, and is omitted if it would not be legible.
  height <- graphics::strheight("M")
  cex <- min(0.8, 0.62 / height)
  if (cex < 0.35) {
    return(invisible())
  }
  room <- (right - left) - graphics::strwidth("n", cex = cex)
  wide <- which(room > 2 * graphics::strwidth("n", cex = cex))
  label <- drawable(name[wide])
  fitted <- vapply(seq_along(wide), function(i) fit_label(label[[i]], room[[wide[[i]]]], cex), "")
  graphics::text(
    left[wide] + graphics::strwidth("n", cex = cex) / 2, bottom[wide] + 0.5, fitted,
    adj = c(0, 0.5), cex = cex, col = "#1a1a1a"
  )
}

# Replaces characters that the device cannot draw. These devices have the glyphs of one encoding, by default Latin-1;
# for other characters R warns or raises an error, depending on its version.
drawable <- function(texts) {
  texts <- printable(texts, 500)
  if (names(grDevices::dev.cur()) %in% c("pdf", "postscript", "xfig")) {
    cannot <- is.na(iconv(texts, "UTF-8", "latin1"))
    texts[cannot] <- iconv(texts[cannot], "UTF-8", "ASCII", sub = "?")
  }
  texts
}

fit_label <- function(label, room, cex) {
  if (graphics::strwidth(label, cex = cex) <= room) {
    return(label)
  }
  widest <- floor(room / graphics::strwidth("l", cex = cex))
  for (width in rev(seq_len(min(nchar(label) - 1, widest)))) {
    short <- paste0(substr(label, 1, width), "..")
    if (graphics::strwidth(short, cex = cex) <= room) {
      return(if (width >= 2) short else "")
    }
  }
  ""
}

draw_axis <- function(ends, unit, ...) {
  at <- pretty(ends, 5)
  at <- at[at >= ends[[1]] & at <= ends[[2]]]
  graphics::axis(1, at, format_amount(at, unit), cex.axis = 0.7, col = "grey60", ...)
}

# A light colour for each package or file, so that dark text is legible; warm colours if neither is known.
fills <- function(rows) {
  key <- ifelse(!is.na(rows$package), rows$package, ifelse(is.na(rows$filename), "", file_name(rows$filename)))
  hash <- function(texts) vapply(valid_text(texts), function(text) {
    # Any hash is sufficient, but without the positions of letters, neighbours would have the same colour.
    codes <- utf8ToInt(substr(text, 1, 1000))
    sum(codes * seq_along(codes) * 37) %% 360
  }, 0, USE.NAMES = FALSE)
  hue <- ifelse(key == "", 20 + hash(rows$name) %% 45, 130 + hash(key) %% 200)
  lightness <- 76 + hash(rows$name) %% 12
  fill <- grDevices::hcl(hue, ifelse(key == "", 50, 38), lightness)
  fill[rows$name %in% frames_of_r] <- "grey75"
  fill
}

# ---- Time --------------------------------------------------------------------------

plot_time <- function(x, source_id, main, call) {
  x <- checked_with_packages(x, call)
  wanted <- sources_wanted(x, source_id, call) %||% (seq_len(nrow(x$sources)) == 1)
  if (sum(wanted) > 1) {
    nothing_to_draw("samples of several sources have no common time.", call)
  }
  boxes <- boxes_over_time(x, x$sources$source_id[wanted], call)
  if (nrow(boxes) == 0) {
    nothing_to_draw("no samples with a stack.", call)
  }
  memory <- attr(boxes, "memory")
  old <- graphics::par(mar = c(2.5, 0.5, 2, 0.5), mgp = c(1.5, 0.4, 0), tcl = -0.2)
  on.exit({
    graphics::layout(1)
    graphics::par(old)
  })
  if (!is.null(memory)) {
    graphics::layout(matrix(1:2), heights = c(4, 1.3))
    graphics::par(mar = c(0.3, 0.5, 2, 0.5))
  }
  end <- max(boxes$end)
  x_name <- attr(boxes, "x_name")
  graphics::plot.new()
  graphics::plot.window(c(0, end), c(0, max(boxes$depth, 12)), xaxs = "i", yaxs = "i")
  draw_boxes(boxes$start, boxes$end, boxes$depth - 1, boxes$name, fills(boxes))
  title <- main %||% paste0("Stacks over time: ", format_count(attr(boxes, "samples")), " samples")
  graphics::title(drawable(title), adj = 0, cex.main = 1)
  if (!is.null(memory)) {
    graphics::par(mar = c(2.5, 0.5, 0.3, 0.5))
    graphics::plot.new()
    graphics::plot.window(c(0, end), c(0, max(memory$bytes)), xaxs = "i", yaxs = "i")
    graphics::polygon(
      c(memory$time[[1]], memory$time, end), c(0, memory$bytes, 0),
      col = "grey85", border = "grey60"
    )
    top <- max(memory$bytes)
    graphics::text(0, top, paste0(" ", format_value(top, "bytes")), adj = c(0, 1.2), cex = 0.7)
  }
  graphics::axis(1, cex.axis = 0.7, col = "grey60")
  graphics::title(xlab = x_name, cex.lab = 0.8)
  attributes(boxes) <- attributes(boxes)[c("names", "row.names", "class")]
  boxes[c("start", "end", "depth", "name")]
}

# A row for each call in consecutive samples. If there are more samples than a picture can show, some are left out.
boxes_over_time <- function(x, source_id, call) {
  rows <- which(x$samples$source_id == source_id)
  # Allocations beside samples have no time.
  sampled <- rows[!is_allocation_row(x)[rows]]
  if (length(sampled) > 0) rows <- sampled
  shown <- rows[unique(round(seq(1, length(rows), length.out = min(length(rows), 1000))))]
  ids <- x$samples$sample_id[shown]
  frames <- x$sample_locations
  frames <- slice_rows(frames, which(frames$sample_id %in% ids))
  frames <- frames[order(match(frames$sample_id, ids), -frames$depth), ]
  sample <- match(frames$sample_id, ids)
  depth <- sequence(tabulate(sample, length(ids)))
  location <- match(frames$location_id, x$locations$location_id)
  functions <- x$functions[match(x$locations$function_id[location], x$functions$function_id), ]
  name <- rust(rust_frame_names(x), call)$name[location]
  # A call continues if the previous sample has the same functions up to this depth.
  starts <- logical(length(depth))
  open <- list()
  for (rows_of in split(seq_along(depth), factor(sample, seq_along(ids)))) {
    names <- name[rows_of]
    same <- seq_len(min(length(names), length(open)))
    equal <- vapply(same, function(i) identical(names[[i]], open[[i]]), NA)
    common <- if (all(equal)) length(same) else which(!equal)[[1]] - 1L
    starts[rows_of] <- seq_along(rows_of) > common
    open <- as.list(names)
  }
  interval <- interval_of(list(sources = x$sources[x$sources$source_id == source_id, ]))
  step <- length(rows) / max(length(ids), 1)
  scale <- step * (interval %||% 1)
  # The last sample of each call: the row before the next start at the same depth, or before a sample without it.
  by_depth <- split(seq_along(depth), depth)
  boxes <- lapply(by_depth, function(at) {
    gap <- c(TRUE, diff(sample[at]) > 1)
    first <- which(starts[at] | gap)
    last <- c(first[-1] - 1L, length(at))
    tibble::tibble(
      start = (sample[at[first]] - 1) * scale, end = sample[at[last]] * scale, depth = depth[at[first]],
      name = name[at[first]], filename = functions$filename[at[first]], package = functions$.package[at[first]]
    )
  })
  boxes <- if (length(boxes) > 0) vctrs::vec_rbind(!!!unname(boxes)) else tibble::tibble(start = numeric())
  attr(boxes, "samples") <- length(rows)
  attr(boxes, "x_name") <- if (is.null(interval)) "samples" else "seconds"
  attr(boxes, "memory") <- memory_over_time(x, ids, scale)
  boxes
}

# The bytes in use at each sample, as Rprof() records them.
memory_over_time <- function(x, ids, scale) {
  values <- x$sample_values
  rows <- which(has_role(values$type, values$unit, "level") & values$sample_id %in% ids)
  if (length(rows) == 0) {
    return(NULL)
  }
  sums <- rowsum(values$value[rows], match(values$sample_id[rows], ids))
  list(time = (as.integer(rownames(sums)) - 0.5) * scale, bytes = as.vector(sums))
}

# ---- Lines -------------------------------------------------------------------------

plot_lines <- function(x, type, source_id, n, main, call) {
  if (!is.null(source_id)) {
    abort_argument("`source_id` cannot be used with lines.", call)
  }
  summary <- summary_of(x, type, call)
  x <- with_source_text(x, end_of_recording(x, attr(summary, "time")), call)
  lines <- described_lines(summary$by_line, x$.source_text)
  stop_if_all_zero(summary, call)
  lines <- utils::head(lines[order(-abs(lines$total), -abs(lines$self)), ], n)
  if (nrow(lines) == 0) {
    nothing_to_draw("no lines.", call, i = "See `?read_rprof` for how to record lines.")
  }
  unit <- attr(summary, "unit")
  drawn <- lines[rev(seq_len(nrow(lines))), ]
  place <- paste0(file_name(drawn$filename), ":", drawn$line)
  old <- graphics::par(mar = c(2.5, 8, 2, 0.5), mgp = c(1.5, 0.4, 0), tcl = -0.2)
  on.exit(graphics::par(old))
  graphics::plot.new()
  # Zero-width characters take space on a device that does not know them.
  place <- cut_text(drawable(shown_name(place, 24, "start", "..")), 24, "start", "..")
  widest <- max(graphics::strwidth(place, "inches", cex = 0.75))
  graphics::par(mai = replace(graphics::par("mai"), 2, widest + 0.25), new = TRUE)
  graphics::plot.new()
  # Bars of negative values, in differences, go to the left.
  ends <- range(0, drawn$total, drawn$self)
  graphics::plot.window(ends, c(0, max(nrow(drawn), 5)), xaxs = "i", yaxs = "i")
  at <- seq_len(nrow(drawn))
  graphics::rect(0, at - 0.92, drawn$total, at - 0.08, col = "#cfe0f5", border = NA)
  graphics::rect(0, at - 0.92, drawn$self, at - 0.08, col = "#5b93d6", border = NA)
  graphics::axis(2, at - 0.5, place, las = 1, tick = FALSE, cex.axis = 0.75)
  text <- drawable(ifelse(is.na(drawn$text), "", trimmed(drawn$text)))
  text <- vapply(text, fit_label, "", diff(ends) * 0.98, 0.75, USE.NAMES = FALSE)
  graphics::text(ends[[1]] + diff(ends) * 0.01, at - 0.5, text, adj = c(0, 0.5), cex = 0.75, col = "#1a1a1a")
  draw_axis(ends, unit)
  sum <- format_amount(attr(summary, "sum"), unit)
  amount <- paste0(at_least(summary), sum, " ", shown_label(attr(summary, "type")))
  graphics::title(drawable(main %||% paste("Lines by total (dark: self),", amount)), adj = 0, cex.main = 1)
  lines
}
