# tier: gate
# The page in a browser shows the figures of the profile; test-page-browser-all.R tests all sample files.

# Memory and garbage collections, lines, several sources, recursion, unusual names, damage, no samples, and Go.
shown_files <- function() {
  files <- c(
    "basic_memgc.out", "dplyr_line.out", "multi_memory_gc_line.out", "append_line2.out", "deep_plain.out", "names_line.out",
    "latin1_names.out", "empty_mem.out"
  )
  c(rprof_path(files), data_path("pprof", c("go_cpu.pb.gz", "go_heap.pb.gz")))
}

test_that("the table has the figures of summary()", {
  skip_without_chromium()
  for (file in shown_files()) expect_shown_functions(file)
})

test_that("the table by line has the figures of summary()", {
  skip_without_chromium()
  for (file in shown_files()) expect_shown_lines(file)
})

# A row for each path of names that begins a stack: its depth, its name, and the values of the samples that
# pass through it.
paths_of <- function(x, value) {
  frames <- x$sample_locations
  location <- match(frames$location_id, x$locations$location_id)
  name <- x$functions$name[match(x$locations$function_id[location], x$functions$function_id)]
  names <- split(ifelse(is.na(name), "<unknown>", name), match(frames$sample_id, x$samples$sample_id))
  # Frames are innermost first.
  names <- lapply(names, rev)
  value <- value[as.integer(names(names))]
  parent <- rep("", length(names))
  out <- NULL
  for (depth in seq_len(max(0, lengths(names)))) {
    reaches <- lengths(names) >= depth
    names <- names[reaches]
    value <- value[reaches]
    parent <- paste0(parent[reaches], "\r", vapply(names, `[[`, "", depth))
    total <- vapply(split(value, parent), sum, 0)
    out <- rbind(out, data.frame(path = names(total), depth = depth, total = unname(total)))
  }
  out
}

# The same from the list of nodes in preorder.
paths_shown <- function(list) {
  path <- character()
  paths <- character(nrow(list))
  for (i in seq_len(nrow(list))) {
    above <- if (list$depth[[i]] > 1) path[[list$depth[[i]] - 1]] else ""
    path[[list$depth[[i]]]] <- paths[[i]] <- paste0(above, "\r", list$name[[i]])
  }
  data.frame(path = paths, depth = list$depth, total = list$total, width = list$width)
}

test_that("sums, sizes of trees and widths agree with the samples", {
  skip_without_chromium()
  files <- c(
    rprof_path(c("basic_memgc.out", "dplyr_all.out", "multi_memory_gc_line.out", "names_line.out", "empty_mem.out")),
    data_path("pprof", c("go_cpu.pb.gz", "go_heap.pb.gz"))
  )
  for (file in files) {
    x <- read_for_page(file)
    result <- page_selftest(browser_page(x))
    has_stack <- x$samples$sample_id %in% x$sample_locations$sample_id
    value_of <- function(type, unit) {
      rows <- x$sample_values$type == type & x$sample_values$unit == unit
      values <- x$sample_values$value[rows]
      values[match(x$samples$sample_id, x$sample_values$sample_id[rows])]
    }
    source <- factor(x$samples$source_id, x$sources$source_id)
    for (i in seq_len(NROW(result$types))) {
      type <- result$types[i, ]
      if (type$name == "time") next
      value <- value_of(type$name, type$unit)
      value[is.na(value)] <- 0
      sums <- unname(vapply(split(value * has_stack, source), sum, 0))
      expect_equal(type$sums[[1]]$sum, sums, label = paste(basename(file), type$name))
      left_out <- unname(vapply(split(value * !has_stack, source), sum, 0))
      expect_equal(type$sums[[1]]$leftOut, left_out, label = paste(basename(file), type$name))
      if (NROW(type$ordered[[1]]) == nrow(x$sources)) {
        expect_equal(type$ordered[[1]]$sum, sums, label = paste(basename(file), type$name))
      }
    }
    expect_identical(result$trees$misplaced, c(0L, 0L, 0L), label = basename(file))
    if (NROW(result$types) == 0) {
      expect_equal(result$trees$nodes, c(0, 0, 0))
      next
    }
    shown <- result$types[result$type + 1, ]
    paths <- paths_of(x, value_of(shown$name, shown$unit))
    expect_equal(result$trees$nodes[[1]], nrow(paths), label = basename(file))
    expect_equal(result$trees$width[[1]], sum(paths$total[paths$depth == 1]), label = basename(file))
    list <- paths_shown(result$trees$list[[1]])
    paths <- paths[paths$total != 0, ]
    expect_lt(nrow(paths), 2000)
    expect_setequal(list$path, paths$path)
    expect_equal(list$total, paths$total[match(list$path, paths$path)], label = basename(file))
    # No value is negative, so each box is as wide as its total.
    expect_equal(list$width, list$total, label = basename(file))
  }
})

test_that("processes that worked together are on one clock", {
  skip_without_chromium()
  x <- profile_of_processes(list(master = c(0, 7), "worker 1 of 2" = 2:3, "worker 2 of 2" = c(2, 5)))
  shown <- function(x, ...) {
    code <- "JSON.stringify({
      layout: app.state.layout, names: timeline.shown?.lanes.map(laneName),
      starts: timeline.shown?.lanes.map((lane) => Array.from({ length: lane.samples }, (_, i) => timeOf(lane, i) / 1e9))
    })"
    jsonlite::fromJSON(evaluate_in_page(browser_page(x, ...), "", code), simplifyMatrix = FALSE)
  }
  expect_identical(shown(x), list(
    layout = "time", names = c("master, pid 100", "worker 1 of 2, pid 101", "worker 2 of 2, pid 102"),
    starts = list(c(0L, 7L), 2:3, c(2L, 5L))
  ))
  expect_identical(shown(x, timeline = FALSE)$layout, "icicle")
  x$.source_attributes <- NULL
  expect_identical(shown(x)$layout, "icicle")
})

test_that("the head has the CPU time that was used, if samples show another one", {
  skip_without_chromium()
  x <- read_for_page(rprof_path("basic_all.out"))
  seconds <- attr(summary(x), "time")
  head_of <- function(x, ...) {
    evaluate_in_page(browser_page(x, ...), "", "document.getElementById('facts').textContent")
  }
  at <- function(used) with_cpu_time(x, used * 1e9)
  # Amounts are shown with three digits.
  samples <- paste0("^", count_of(nrow(x$samples), "sample"))
  expect_match(head_of(at(10)), paste0(samples, ", [0-9.]+ m?s of 10(\\.0)? s used · "))
  expect_match(head_of(at(seconds / 4)), paste0(samples, ", [0-9.]+ m?s, R used [0-9.]+ m?s · "))
  expect_match(head_of(at(seconds)), paste0(samples, " · "))
  expect_match(head_of(at(10), base = at(20)), paste0(count_of(2 * nrow(x$samples), "sample"), " · "))
})

test_that("the head has the CPU time of other threads", {
  skip_without_chromium()
  x <- read_for_page(rprof_path("basic_all.out"))
  line_of <- function(x, ...) {
    evaluate_in_page(browser_page(x, ...), "", "document.getElementById('threads').textContent")
  }
  expect_identical(line_of(x), "")
  with_threads <- with_thread_times(x, tibble::tibble(
    key = paste0("profile.threads.", c("r", "cpu.libopenblas", "count.libopenblas", "ended", "processors")),
    value = c("12000000000", "240000000000", "31", "500000000", "1.5"), type = c(rep("int", 4), "double")
  ))
  text <- "31 threads of libopenblas used 4 min, R's own 12 s; 1.5 processors are allowed."
  expect_identical(line_of(with_threads), text)
  expect_identical(line_of(with_threads, base = x), "")
  # The page is read with them.
  page <- browser_page(with_threads)
  expect_identical(line_of(read_profile(page)), text)
})

test_that("memory that was measured at samples is a lower bound, and belongs to functions of R", {
  skip_without_chromium()
  x <- marked_as_native(read_for_page(rprof_path("basic_memgc.out")), c("gsub", "lm.fit"))
  path <- browser_page(x)
  summary <- summary(x)$by_function
  shown <- page_table(dump_page(path, "tab=table&rows=all&type=0"))
  expect_shown(shown, summary, shown$name, summary$name, "native")
  expect_identical(shown$bytes[shown$name == "gsub"], 0)
  types <- page_data(path)$types
  names <- vapply(types, `[[`, "", "name")
  for (name in c("alloc_size", "duplications")) {
    summary <- summary(x, type = name)$by_function
    summary <- summary[summary$total != 0, ]
    shown <- page_table(dump_page(path, paste0("tab=table&rows=all&type=", match(name, names) - 1)))
    at <- match(summary$name, shown$name)
    expect_equal(shown$self[at], summary$self)
    expect_equal(shown$total[at], summary$total)
  }
  text_of <- function(type, where) {
    hash <- paste0("tab=table&rows=all&type=", match(type, names) - 1)
    evaluate_in_page(path, hash, paste0("document.querySelector('", where, "').textContent"))
  }
  expect_match(text_of("samples", "thead"), "Own bytes, at least", fixed = TRUE)
  expect_match(text_of("alloc_size", "thead"), "Self alloc_size, at least", fixed = TRUE)
  expect_match(text_of("duplications", "#left-out"), "^Measured since the previous sample: ")
  expect_no_match(text_of("samples", "#left-out"), "since")
  expect_no_match(text_of("duplications", "thead"), "Self duplications, at least", fixed = TRUE)
})

test_that("the strip has the memory in use at the samples", {
  skip_without_chromium()
  x <- read_for_page(rprof_path("basic_memgc.out"))
  values <- x$sample_values
  of <- lapply(c("vsize_small", "vsize_large", "nodes"), function(type) values$value[values$type == type])
  bytes <- Reduce(`+`, of)
  order <- page_of(x)$order[[1]]
  expect_identical(order$memory$samples, 1L)
  expect_equal(unlist(order$memory$bytes), bytes)
  at <- which.max(bytes)
  code <- sprintf("JSON.stringify({
    peak: mostMemory(0, strip.samples), part: mostMemory(%d, %d), range: byId('range').textContent,
    place: describePlace(%d, 0), height: memoryHeight()
  })", 2, 5, at - 1)
  shown <- jsonlite::fromJSON(evaluate_in_page(browser_page(x), "", code))
  expect_equal(shown$peak, list(bytes = max(bytes), at = at - 1L))
  expect_equal(shown$part$bytes, max(bytes[3:5]))
  expect_match(shown$range, "at most [0-9.]+ MB in use")
  expect_match(shown$place, "^[0-9.]+ MB in use$", all = FALSE)
  expect_gt(shown$height, 0)
  without <- read_for_page(rprof_path("basic_all.out"))
  without$sample_values <- without$sample_values[without$sample_values$type == "samples", ]
  expect_null(page_of(without)$order[[1]]$memory)
  expect_identical(evaluate_in_page(browser_page(without), "", "memoryHeight()"), 0L)
})

test_that("the snapshot at the peak is one click away", {
  skip_without_chromium()
  x <- read_for_page(rprof_path("basic_memgc.out"))
  attr(x, "snapshot") <- heap_page_snapshots()$after
  path <- browser_page(x)
  # A page has the profile and nothing else as its data.
  expect_identical(page_data(path), page_of(read_for_page(rprof_path("basic_memgc.out"))))
  look <- "(async () => {
    const shown = () => ({
      title: byId('title').textContent, tab: byId('tab-table').textContent, code: byId('tab-code').hidden,
      button: byId('go-snapshot').textContent, time: byId('time').hidden, rows: document.querySelectorAll('#panel-table tr').length > 1,
      help: byId('help-text').querySelector('p[data-heap] em') !== null, hash: formatHash(app.state, app.defaults)
    });
    const click = async () => {
      const title = () => byId('title').textContent;
      const before = title();
      byId('go-snapshot').click();
      while (title() === before) await new Promise((resolve) => setTimeout(resolve, 5));
      showTab('table');
      return shown();
    };
    showTab('table');
    return JSON.stringify([shown(), await click(), await click()]);
  })()"
  shown <- jsonlite::fromJSON(evaluate_in_page(path, "", look), simplifyVector = FALSE)
  expect_identical(shown[[3]], shown[[1]])
  expect_identical(shown[[1]][-1], list(
    tab = "Functions", code = FALSE, button = "Snapshot of the heap at the peak", time = FALSE, rows = TRUE, help = TRUE,
    hash = ""
  ))
  expect_identical(shown[[2]], list(
    title = "Memory of R, pid 124", tab = "Holders", code = TRUE, button = "Back to the recording", time = TRUE,
    rows = TRUE, help = FALSE, hash = "snapshot=1"
  ))
  of_snapshot <- "byId('title').textContent"
  expect_identical(evaluate_in_page(path, "snapshot=1", of_snapshot), "Memory of R, pid 124")
  alone <- browser_page(read_for_page(rprof_path("basic_memgc.out")))
  expect_true(evaluate_in_page(alone, "snapshot=1", "byId('go-snapshot').hidden && !app.state.snapshot"))
})

test_that("a comparison has both sides", {
  skip_without_chromium()
  x <- read_for_page(rprof_path("basic_all.out"))
  base <- read_for_page(rprof_path("basic_line.out"))
  shown <- page_table(dump_page(browser_page(x, base = base), "tab=table&rows=all"))
  # Amounts are times in nanoseconds, since all intervals are known.
  ours <- summary(x)$by_function
  expect_setequal(shown$name, union(ours$name, summary(base)$by_function$name))
  total <- ours$total_time[match(shown$name, ours$name)] * 1e9
  expect_equal(shown$total, ifelse(is.na(total), 0, total))
})

test_that("hostile names and texts are shown as text", {
  skip_without_chromium()
  x <- read_for_page(rprof_path("basic_line.out"))
  hostile <- c("</script><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "a\u2028b", "\u202eabc", "-->")
  x$functions$name[seq_along(hostile)] <- hostile
  x$functions$filename[seq_along(hostile)] <- hostile
  html <- dump_table(x, title = hostile[[1]])
  shown <- page_table(html)
  expect_setequal(shown$name, summary(x)$by_function$name)
  expect_no_match(html, "<img", fixed = TRUE)
  expect_no_match(html, "<script>alert", fixed = TRUE)
})
