# tier: gate
# The figures in the data of pages agree with summary(), summaryRprof() and go tool pprof.

all_files <- function() {
  c(
    rprof_path(rprof_files()),
    dir(data_path("pprof"), full.names = TRUE),
    dir(data_path("otlp"), "[.](pb|json)$", full.names = TRUE),
    system.file("samples", c("rprof/1.out", "rprof/memory.out", "proto/go_heap.pb.gz"), package = "profile")
  )
}

readable <- function(path) {
  tryCatch(suppressWarnings(read_profile(path), classes = "profile_warning"), profile_error = function(e) NULL)
}

test_that("self and total by function and line agree with summary(), in all files and types", {
  skip_on_cran()
  types <- 0
  for (path in all_files()) {
    x <- readable(path)
    if (is.null(x)) next
    data <- page_of(x)
    if (data$type >= 0) {
      expect_equal(data$types[[data$type + 1]]$name, attr(summary(x), "type"), info = path)
    } else {
      expect_length(data$types, 0)
    }
    for (type in seq_along(data$types)) {
      theirs <- summary(x, type = data$types[[type]]$name)
      ours <- page_figures(data, type)
      info <- paste(basename(path), data$types[[type]]$name)
      names <- ifelse(is.na(theirs$by_function$name), "<unknown>", theirs$by_function$name)
      expect_figures(ours$by_function, names, theirs$by_function, info)
      places <- sprintf("%s:%d", theirs$by_line$filename, theirs$by_line$line)
      expect_figures(ours$by_line, places, theirs$by_line, info)
      expect_equal(ours$left_out, attr(theirs, "counted")$sum_without_stack, info = info)
      types <- types + 1
    }
  }
  expect_gt(types, 100)
})

test_that("self and total agree with summaryRprof() where it is right", {
  for (file in c("basic_plain.out", "basic_memgc.out", "dplyr_all.out", "multi_line.out")) {
    data <- page_of(read_rprof(rprof_path(file)))
    theirs <- utils::summaryRprof(rprof_path(file))$by.total
    ours <- page_figures(data, data$counts + 1)$by_function
    row <- match(gsub("\"", "", rownames(theirs)), ours$key)
    expect_false(anyNA(row), info = file)
    seconds <- data$sources[[1]]$period / 1e9
    expect_equal(ours$self[row] * seconds, theirs$self.time, info = file)
    expect_equal(ours$total[row] * seconds, theirs$total.time, info = file)
  }
})

test_that("a part of the order has the sums of its samples", {
  skip_on_cran()
  set.seed(1)
  files <- c("basic_all.out", "dplyr_all.out", "append_plain3.out", "append_line2.out", "toplevel_line.out", "deep_plain.out")
  for (file in files) {
    x <- read_quietly(rprof_path(file))
    data <- page_of(x)
    nodes <- page_nodes(data)
    innermost <- x$sample_locations[x$sample_locations$depth == 1, ]
    innermost <- innermost$location_id[match(x$samples$sample_id, innermost$sample_id)]
    fun <- x$locations$function_id[match(innermost, x$locations$location_id)]
    name <- x$functions$name[match(fun, x$functions$function_id)]
    for (source in seq_along(data$sources)) {
      rows <- which(x$samples$source_id == x$sources$source_id[[source]])
      order <- page_samples(data, source)
      expect_length(order$node, length(rows))
      expect_identical(nodes$name[order$node], name[rows], info = file)
      for (type in seq_along(data$types)) {
        of_type <- x$sample_values[x$sample_values$type == data$types[[type]]$name, ]
        value <- of_type$value[match(x$samples$sample_id[rows], of_type$sample_id)]
        expect_equal(order$values[[type]], value, info = file)
        all <- numeric(nrow(nodes))
        sums <- tapply(order$values[[type]], order$node, sum)
        all[as.integer(names(sums))] <- sums
        expect_equal(belonging(all, data, type), page_self(data, type, source), info = file)
      }
      # A part, computed by hand, and by summary() of a profile with only these samples.
      ends <- sort(sample(length(rows), 2, replace = TRUE))
      part <- seq(ends[[1]], ends[[2]])
      y <- x
      y$samples <- y$samples[rows[part], ]
      kept <- function(table) table[table$sample_id %in% y$samples$sample_id, ]
      y$sample_values <- kept(y$sample_values)
      y$sample_locations <- kept(y$sample_locations)
      self <- numeric(nrow(nodes))
      sums <- tapply(order$values[[1]][part], order$node[part], sum)
      self[as.integer(names(sums))] <- sums
      theirs <- summary(y, type = data$types[[1]]$name)$by_function
      expect_figures(page_figures(data, self = self)$by_function, theirs$name, theirs, file)
    }
  }
})

test_that("sources keep their own sums", {
  x <- combine_profiles(lapply(c("basic_all.out", "dplyr_plain.out"), function(file) read_rprof(rprof_path(file))))
  data <- page_of(x)
  expect_equal(vapply(data$sources, `[[`, "", "name"), c("basic_all.out", "dplyr_plain.out"))
  expect_equal(vapply(data$sources, `[[`, 0L, "samples"), as.vector(table(x$samples$source_id)))
  expect_equal(vapply(data$sources, `[[`, NA, "base"), c(FALSE, FALSE))
  for (source in 1:2) {
    theirs <- summary(read_rprof(x$sources$source_uri[[source]]))$by_function
    expect_figures(page_figures(data, 1, source)$by_function, theirs$name, theirs, source)
  }
})

test_that("a base is in the same tree", {
  x <- read_rprof(rprof_path("basic_all.out"))
  base <- read_rprof(rprof_path("dplyr_plain.out"))
  data <- page_of(x, base = base)
  expect_equal(vapply(data$sources, `[[`, NA, "base"), c(FALSE, TRUE))
  expect_equal(vapply(data$types, `[[`, "", "name"), c("samples", "duplications", "alloc_size", "dealloc_size"))
  for (side in 1:2) {
    theirs <- summary(list(x, base)[[side]])$by_function
    expect_figures(page_figures(data, 1, side)$by_function, theirs$name, theirs, side)
  }
  # Several runs of either, and other versions.
  runs <- read_rprof(rprof_path("append_plain3.out"))
  old <- read_rprof(rprof_path("basic_all.out"), version = "1.0")
  data <- page_of(runs, base = old)
  expect_equal(vapply(data$sources, `[[`, NA, "base"), rep(c(FALSE, TRUE), c(nrow(runs$sources), 1)))
  data <- page_of(old, base = runs)
  expect_equal(vapply(data$sources, `[[`, NA, "base"), rep(c(FALSE, TRUE), c(1, nrow(runs$sources))))
})

test_that("functions whose difference is certain are marked if there are enough runs", {
  base <- profile_of_runs(rep(list(c("main>f" = 50, "main>g" = 50)), 3))
  new <- profile_of_runs(rep(list(c("main>f" = 80, "main>g" = 50)), 3))
  data <- page_of(new, base = base)
  found <- data$strings[data$functions$name + 1][data$functions$found == 1]
  compared <- compare_profiles(base, new)
  expect_setequal(found, compared$name[compared$verdict == "more"])
  expect_true("f" %in% found && !"g" %in% found)
  # There is no certain difference.
  expect_equal(sum(page_of(base, base = base)$functions$found), 0)
  one <- profile_of_runs(list(c("main>f" = 50)))
  expect_null(page_of(new, base = one)$functions$found)
  expect_null(page_of(new)$functions$found)
})

test_that("a page with a base begins with what compare_profiles() prints", {
  base <- profile_of_runs(rep(list(c("f_old>f" = 50, "f_old>g" = 50)), 3))
  new <- profile_of_runs(rep(list(c("f_new>f" = 80, "f_new>g" = 50)), 3))
  compared <- compare_profiles(base, new)
  printed <- format(compared, width = 1000)
  text <- page_of(new, base = base)$comparison
  expect_identical(paste("<comparison by function>", text$head), printed[[1]])
  expect_identical(paste("Whole run:", text$whole), printed[[2]])
  expect_identical(text$verdict, "more")
  certain <- compared[compared$verdict == "more", ]
  expect_identical(certain$name, c("f_old -> f_new", "f"))
  cells <- matrix(unlist(text$cells), ncol = length(text$columns), byrow = TRUE, dimnames = list(NULL, text$columns))
  expect_identical(cells[, "name"], certain$name)
  for (row in seq_len(nrow(cells))) {
    line <- gsub(" {2,}", "  ", printed[startsWith(printed, paste0(cells[row, "name"], " "))])
    expect_identical(line, paste(cells[row, ], collapse = "  "))
  }
  expect_identical(unlist(text$expression), c("f_old", "f_new", "f_old -> f_new"))
  expect_length(text$notes, 0)
  data <- page_of(new, base = base)
  found <- data$strings[data$functions$name + 1][data$functions$found == 1]
  expect_setequal(found, c("f_old", "f_new", "f"))
  # No difference, too few runs, and runs that cannot be compared.
  text <- page_of(base, base = base)$comparison
  expect_length(text$cells, 0)
  expect_match(unlist(text$notes), "^No difference was found")
  text <- page_of(profile_of_runs(list(c("f_old>f" = 50))), base = base)$comparison
  expect_identical(text$verdict, "")
  expect_match(text$notes[[1]], "There is no verdict")
  expect_null(page_of(read_rprof(rprof_path("basic_plain.out")), base = read_pprof(data_path("pprof", "go_heap.pb.gz")))$comparison)
  expect_null(page_of(new)$comparison)
})

test_that("the title of a page with a base names both versions", {
  title <- function(x, base) page_of(x, base = base)$title
  of <- function(name, n = 3) {
    x <- profile_of_runs(rep(list(c("f" = 5)), n))
    x$sources$source_uri <- name
    x
  }
  expect_identical(title(of(paste("new", 1:3)), of(paste("base", 1:3))), "new, compared with base")
  expect_identical(title(of(paste0("runs/new-", 1:3, ".out")), of(paste0("old", 1:3, ".out"))), "new.out, compared with old.out")
  expect_identical(title(of("a.out", 1), of("a.out", 1)), "a.out compared with its base")
  expect_identical(title(of(c("a", "b", "c")), of("base.out", 1)), "a and 2 more, compared with base.out")
  expect_identical(title(of(as.character(1:3)), of("base.out", 1)), "1 and 2 more, compared with base.out")
})

test_that("differences agree with go tool pprof", {
  pprof <- go_pprof()
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  x <- read_rprof(rprof_path("dplyr_plain.out"))
  base <- read_rprof(rprof_path("dplyr_line.out"))
  write_pprof(x, at("x.pb.gz"))
  write_pprof(base, at("base.pb.gz"))
  data <- page_of(x, base = base)
  sides <- lapply(1:2, function(side) page_figures(data, 1, side)$by_function)
  ours <- data.frame(
    name = sides[[1]]$key, self = sides[[1]]$self - sides[[2]]$self, total = sides[[1]]$total - sides[[2]]$total
  )
  ours <- ours[ours$self != 0 | ours$total != 0, ]
  lines <- pprof(
    "-top", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", "-sample_index=samples",
    paste0("-diff_base=", at("base.pb.gz")), at("x.pb.gz")
  )
  lines <- lines[-seq_len(grep("flat%", lines))]
  parts <- regmatches(lines, regexec("^ *(\\S+) +\\S+ +\\S+ +(\\S+) +\\S+  (.*)$", lines, perl = TRUE))
  theirs <- data.frame(
    name = vapply(parts, `[`, "", 4),
    self = as.numeric(vapply(parts, `[`, "", 2)),
    total = as.numeric(vapply(parts, `[`, "", 3))
  )
  theirs <- theirs[theirs$self != 0 | theirs$total != 0, ]
  by_name <- function(rows) `rownames<-`(rows[order(rows$name, method = "radix"), ], NULL)
  expect_gt(nrow(ours), 50)
  expect_equal(by_name(ours), by_name(theirs))
})
