# tier: gate
# Comparisons of runs: figures compared with `summary()`, statistics with `t.test()` and simulations.

base_runs <- list(
  c("main>f" = 50, "main>g" = 30, "main>h" = 20),
  c("main>f" = 52, "main>g" = 29, "main>h" = 21),
  c("main>f" = 49, "main>g" = 31, "main>h" = 19)
)
new_runs <- list(
  c("main>f" = 75, "main>g" = 30, "main>h" = 20),
  c("main>f" = 77, "main>g" = 31, "main>h" = 21),
  c("main>f" = 76, "main>g" = 29, "main>h" = 20)
)

row_of <- function(x, name) as.list(x[x$name == name, ])

test_that("amounts agree with summary() for each run", {
  paths <- test_path("data", "rprof", c("basic_line.out", "basic_plain.out"))
  skip_if_not(all(file.exists(paths)))
  read <- function(path) suppressWarnings(read_rprof(path))
  for (what in c("total", "self")) {
    x <- compare_profiles(read(paths[[1]]), read(paths[[2]]), what = what, min_share = 0)
    for (i in 1:2) {
      truth <- summary(read(paths[[i]]))$by_function
      truth <- truth[!is.na(truth$name), ]
      amounts <- x[[c("base", "new")[[i]]]]
      expected <- truth[[paste0(what, "_time")]][match(x$name, truth$name)]
      expected[is.na(expected)] <- 0
      expect_equal(amounts, expected)
    }
  }
})

test_that("a function that takes more is found, and others are not", {
  x <- compare_profiles(profile_of_runs(base_runs), profile_of_runs(new_runs))
  expect_s3_class(x, c("profile_comparison", "tbl_df"), exact = FALSE)
  f <- row_of(x, "f")
  expect_equal(f$verdict, "more")
  expect_equal(f$ratio, 76 / 50.3, tolerance = 0.01)
  expect_true(f$lower > 1.3 && f$upper < 1.7)
  expect_equal(row_of(x, "g")$verdict, "none found")
  expect_equal(row_of(x, "h")$verdict, "none found")
  back <- compare_profiles(profile_of_runs(new_runs), profile_of_runs(base_runs))
  expect_equal(row_of(back, "f")$verdict, "less")
  expect_equal(row_of(back, "f")$ratio, 1 / f$ratio)
  expect_equal(row_of(back, "f")$p_value, f$p_value)
  whole <- attr(x, "whole")
  expect_equal(whole$base, exp(mean(log(c(1, 1.02, 0.99) + 0.005))) - 0.005)
  expect_equal(attr(x, "runs"), c(base = 3, new = 3))
  expect_equal(attr(x, "unit"), "seconds")
})

test_that("the statistics agree with t.test() and p.adjust()", {
  set.seed(1)
  base <- matrix(exp(rnorm(20, 1)), 4)
  new <- matrix(exp(rnorm(28, 1.5)), 4)
  test <- welch_log(base, new)
  for (i in 1:4) {
    truth <- t.test(log(new[i, ]), log(base[i, ]))
    expect_equal(p_value(test)[[i]], truth$p.value)
    expect_equal(test$df[[i]], truth$parameter[["df"]])
    interval <- c(ratio_interval(test)$lower[[i]], ratio_interval(test)$upper[[i]])
    expect_equal(interval, exp(as.vector(truth$conf.int)))
  }
  p <- c(0.03, 0.001, 0.2, 0.011, 0.011)
  expect_equal(holm_weighted(p, rep(2, 5)), p.adjust(p, "holm"))
  # Computed by hand: 0.001 gets 1/10 of the level, and so on.
  expect_equal(holm_weighted(c(0.001, 0.02), c(1, 9)), c(0.01, 0.02))
  # The second is 0.004 * 10, but not less than the first, 0.01 * 10 / 9.
  expect_equal(holm_weighted(c(0.01, 0.004), c(9, 1)), c(0.1 / 9, 0.1 / 9))
})

test_that("exact amounts differ or do not", {
  exact <- welch_log(matrix(c(5, 5, 5), 1), matrix(c(6, 6, 6), 1))
  expect_equal(p_value(exact), 0)
  expect_equal(unlist(ratio_interval(exact), use.names = FALSE), c(1.2, 1.2))
  same <- welch_log(matrix(c(5, 5, 5), 1), matrix(c(5, 5, 5), 1))
  expect_equal(p_value(same), 1)
  expect_equal(detectable_ratio(same$se, same$df, 0.05), 1)
})

test_that("equal counts of few samples are not exact", {
  runs <- function(count) rep(list(c("f>rare" = count, "f" = 100 - count)), 5)
  for (count in 0:1) {
    x <- compare_profiles(profile_of_runs(runs(count)), profile_of_runs(runs(count + 1)), min_share = 0)
    rare <- row_of(x, "rare")
    expect_equal(rare$verdict, "none found")
    expect_true(rare$p_value > 1e-4 && rare$p_value < 0.05)
  }
})

test_that("times that other tools recorded are sampled, too", {
  runs <- function(count) rep(list(c("f>rare" = count, "f" = 100 - count)), 5)
  through_pprof <- function(x) {
    path <- withr::local_tempfile()
    write_pprof(x, path, source_labels = TRUE)
    read_pprof(path)
  }
  base <- profile_of_runs(runs(1))
  new <- profile_of_runs(runs(2))
  time <- row_of(compare_profiles(base, new, min_share = 0), "rare")
  cpu <- row_of(compare_profiles(through_pprof(base), through_pprof(new), type = "cpu", min_share = 0), "rare")
  expect_equal(cpu$p_value, time$p_value)
  expect_equal(cpu$verdict, "none found")
})

test_that("functions of one version only are new, or gone", {
  with <- rep(list(c("f" = 50, "f>g" = 50)), 3)
  without <- rep(list(c("f" = 50)), 3)
  x <- compare_profiles(profile_of_runs(without), profile_of_runs(with))
  g <- row_of(x, "g")
  expect_equal(c(g$base, g$ratio, g$upper), c(0, Inf, Inf))
  expect_equal(g$verdict, "more")
  expect_true(g$lower > 10)
  g <- row_of(compare_profiles(profile_of_runs(with), profile_of_runs(without)), "g")
  expect_equal(c(g$new, g$ratio), c(0, 0))
  expect_equal(g$verdict, "less")
})

test_that("runs with different periods are compared by their time", {
  base <- profile_of_runs(base_runs, interval = 0.01)
  new <- profile_of_runs(lapply(base_runs, `*`, 2), interval = 0.005)
  x <- compare_profiles(base, new)
  expect_equal(x$ratio, rep(1, nrow(x)), tolerance = 0.01)
  expect_equal(x$verdict, rep("none found", nrow(x)))
  expect_snapshot(compare_profiles(base, new, type = "samples"), error = TRUE)
  share <- compare_profiles(base, new, type = "samples", scale = "share")
  expect_equal(share$ratio, rep(1, nrow(share)), tolerance = 0.01)
})

test_that("shares are relative to each run", {
  base <- profile_of_runs(base_runs)
  x <- compare_profiles(base, profile_of_runs(lapply(base_runs, `*`, 2)), scale = "share")
  expect_equal(row_of(x, "f")$base, mean(c(50 / 100, 52 / 102, 49 / 99)), tolerance = 0.001)
  expect_equal(x$ratio, rep(1, nrow(x)), tolerance = 0.02)
  # The whole run takes twice as long.
  expect_equal(attr(x, "whole")$ratio, 2, tolerance = 0.01)
  expect_equal(attr(x, "whole")$verdict, "more")
})

test_that("single runs have no verdict", {
  one <- profile_of_runs(base_runs[1])
  other <- profile_of_runs(new_runs[1])
  x <- compare_profiles(one, other)
  expect_true(all(is.na(x$verdict), is.na(x$lower), is.na(x$p_value)))
  expect_equal(row_of(x, "f")$ratio, 1.5, tolerance = 0.01)
  x <- compare_profiles(one, other, scale = "share")
  expect_true(all(is.na(x$verdict)))
  # The interval of two binomial shares: 50 of 100, and 75 of 125.
  f <- row_of(x, "f")
  truth <- log((75.5 / 125.5) / (50.5 / 100.5))
  se <- sqrt(1 / 75.5 - 1 / 125.5 + 1 / 50.5 - 1 / 100.5)
  expect_equal(log(c(f$lower, f$upper)), truth + c(-1, 1) * qnorm(0.975) * se)
  expect_snapshot({
    print(compare_profiles(one, other), width = 80)
    print(x, width = 80)
  })
})

test_that("lines and packages are compared", {
  lines <- function(n) {
    path <- tempfile(fileext = ".out")
    on.exit(unlink(path))
    text <- c("line profiling: sample.interval=10000", "#File 1: a.R", rep("1#3 \"f\" ", n), rep("1#4 \"f\" ", 50))
    writeLines(text, path)
    read_rprof(path)
  }
  base <- lapply(c(30, 31, 32), lines)
  x <- compare_profiles(base, lapply(c(60, 61, 62), lines), by = "line")
  expect_equal(x$line, c(3L, 4L))
  expect_equal(x$filename, c("a.R", "a.R"))
  expect_equal(x$verdict, c("more", "none found"))
  x <- profile_of_runs(rep(list(c("lm>lm.fit" = 40, "lm" = 10)), 3))
  y <- compare_profiles(x, x, by = "package")
  expect_equal(y$name, "stats")
  expect_equal(y$base, 0.5)
})

test_that("a part of the functions can be compared", {
  base <- profile_of_runs(base_runs)
  new <- profile_of_runs(new_runs)
  x <- compare_profiles(base, new, only = c("g", "h"))
  expect_setequal(x$name, c("g", "h"))
  x <- compare_profiles(base, new, only = "g")
  expect_equal(x$p_adjusted, x$p_value)
  expect_setequal(compare_profiles(base, new, min_share = 0.4)$name, c("main", "f"))
  expect_equal(nrow(compare_profiles(base, new, min_share = 1, what = "self")), 0)
})

test_that("profiles of all kinds are accepted", {
  base <- profile_of_runs(base_runs)
  new <- profile_of_runs(new_runs)
  x <- compare_profiles(base, new)
  expect_equal(compare_profiles(lapply(base_runs, function(run) profile_of_runs(list(run))), new), x)
  path <- tempfile(fileext = ".pb.gz")
  write_pprof(base, path, source_labels = TRUE)
  expect_equal(compare_profiles(read_pprof(path), new, only = "f")$ratio, compare_profiles(base, new, only = "f")$ratio)
  expect_equal(names(as_tibble(x)), names(x))
  expect_s3_class(as_tibble(x), "tbl_df")
  expect_false(inherits(as_tibble(x), "profile_comparison"))
})

test_that("it prints what was compared, and what could have been found", {
  base <- profile_of_runs(base_runs)
  expect_snapshot({
    print(compare_profiles(base, profile_of_runs(new_runs)), width = 80)
    print(compare_profiles(base, base), n = 2, width = 60)
    print(compare_profiles(base, profile_of_runs(new_runs), scale = "share"), width = 80)
    print(compare_profiles(base, base)[c("name", "ratio")])
  })
})

# A profile with a run for each element of `a`, in which the functions `a` and `b` take these seconds, measured exactly.
exact_runs <- function(a, b = rep(1, length(a))) {
  n <- length(a)
  x <- read_collapsed(write_file(c("a 1", "b 1")))
  x$sources <- x$sources[rep(1, n), ]
  x$sources$source_id <- seq_len(n)
  x$samples <- tibble::tibble(sample_id = seq_len(2 * n), source_id = rep(seq_len(n), 2))
  x$sample_values <- tibble::tibble(sample_id = seq_len(2 * n), type = "time", unit = "seconds", value = c(a, b))
  x$sample_locations <- tibble::tibble(sample_id = seq_len(2 * n), depth = 1L, location_id = rep(x$locations$location_id, each = n))
  x
}

test_that("the footer states the largest difference that can be missed, or none", {
  footer <- function(x) {
    lines <- format(x, width = 200)
    lines[[length(lines)]]
  }
  # `a` varies, `b` does not, so any difference of `b` is detectable.
  x <- compare_profiles(exact_runs(c(1, 1, 1, 1, 1), rep(0.5, 5)), exact_runs(c(1, 1, 1, 1, 2), rep(0.5, 5)))
  expect_equal(x$detectable[x$name == "b"], 1)
  missed <- sub("+", "", change(max(x$detectable)), fixed = TRUE)
  expect_equal(footer(x), paste0(
    "No difference was found. Differences below ", missed, " can be missed in rows with 10% of the run or more."
  ))
  expect_no_match(format(x), "below 0%|0% would")
  # Small rows have no influence, since in one of them nearly any difference would be missed.
  small <- compare_profiles(exact_runs(c(1, 1, 1, 1, 1), rep(20, 5)), exact_runs(c(1, 1, 1, 1, 2), rep(20, 5)))
  expect_gt(max(small$detectable), 2)
  expect_equal(footer(small), "No difference was found.")
  # No function varies, and none differs.
  x <- compare_profiles(exact_runs(rep(1, 3)), exact_runs(rep(1, 3)))
  expect_equal(footer(x), "No difference was found.")
  expect_match(format(x)[[2]], "0% (exact: the runs of each version are equal): no", fixed = TRUE)
  # Only the whole run differs, because of a function that is too small to be shown.
  x <- compare_profiles(exact_runs(rep(1e-4, 3)), exact_runs(rep(1e-9, 3)))
  expect_equal(attr(x, "whole")$verdict, "less")
  expect_equal(footer(x), "No difference was found in these rows.")
  # Nearly any difference could be missed.
  x <- compare_profiles(exact_runs(c(1, 1, 1, 1, 1), rep(0.5, 5)), exact_runs(c(1, 1, 1, 1, 10), rep(0.5, 5)))
  expect_gt(max(x$detectable), 10)
  expect_equal(footer(x), "No difference was found. The runs vary so much that even differences of 10x can be missed.")
})

test_that("the footer explains an interval without 0 beside the verdict none found", {
  explains <- function(x) any(grepl("Verdicts are adjusted", format(x, width = 200), fixed = TRUE))
  x <- compare_profiles(profile_of_runs(base_runs), profile_of_runs(new_runs))
  expect_false(explains(x))
  row <- which(x$name == "h")
  expect_equal(x$verdict[[row]], "none found")
  x$lower[[row]] <- 1.01
  expect_true(explains(x))
  # Only about rows that are shown.
  expect_false(any(grepl("Verdicts are adjusted", format(x, n = 1), fixed = TRUE)))
})

test_that("the outermost functions of two expressions are one row", {
  runs <- function(name, inner, n) {
    profile_of_runs(lapply(n, function(n) stats::setNames(c(30, n), paste0(name, ">", inner, c(">f", ">g")))))
  }
  base <- runs("f_old", "sapply>lapply", c(20, 21, 22))
  new <- runs("f_new", "lapply", c(40, 41, 42))
  x <- compare_profiles(base, new)
  # `sapply` is in all samples of `base`, too, but inside.
  expect_setequal(x$name, c("f_old -> f_new", "sapply", "lapply", "f", "g"))
  row <- row_of(x, "f_old -> f_new")
  whole <- attr(x, "whole")
  expect_equal(c(row$base, row$new, row$ratio), c(whole$base, whole$new, whole$ratio))
  expect_equal(row$verdict, "more")
  expect_equal(attr(expect_no_regression(new, base), "whole")$ratio, 1 / whole$ratio)
  expect_setequal(compare_profiles(new, base)$name, c("f_new -> f_old", "sapply", "lapply", "f", "g"))
  # Rows that are chosen by name, and functions that both versions have.
  expect_equal(compare_profiles(base, new, only = "f_old")$name, "f_old")
  both <- combine_profiles(list(new, base))
  expect_true(all(c("f_old", "f_new") %in% compare_profiles(base, both, min_share = 0)$name))
  # A function that is in all samples of one version, but has no counterpart.
  expect_true("main" %in% compare_profiles(runs("main", "lapply", 1:3), runs("lapply", "lapply", 1:3))$name)
})

test_that("a change is not rounded to none or all", {
  expect_equal(
    change(c(1, 1.095, 0.5, 3.2, 0.0042, 1e-9, 0.0099999, 0.995, 1.00012, 1 - 1.2e-5, 1 + 1e-12, 0, Inf, NA, 1.0996, 1e7)),
    c("0%", "+9.5%", "-50%", "3.2x", "0.0042x", "1e-09x", "0.01x", "-0.5%", "+0.012%", "-0.0012%", "0%", "-100%", "new", "", "+10%", "1e+07x")
  )
  interval <- function(lower, upper, detectable = 1.1) {
    format_interval(list(lower = lower, upper = upper, detectable = detectable))
  }
  # Different ends of an interval are shown as different.
  expect_equal(interval(0.9, 1.2), "-10% to +20%")
  expect_equal(interval(1.121, 1.124), "+12.1% to +12.4%")
  expect_equal(interval(0.0010971, 0.0011), "0.001097x to 0.0011x")
  expect_equal(interval(5.01, 5.02), "5.01x to 5.02x")
  expect_equal(interval(2, 2, 1), "exact")
  expect_equal(interval(2, Inf), "at least +100%")
  expect_equal(format_share(c(0, 1e-9, 4e-4, 6e-4, 0.5, 1)), c("0.0%", "<0.1%", "<0.1%", "0.1%", "50.0%", "100.0%"))
  x <- compare_profiles(exact_runs(c(1000, 1001, 1000.5)), exact_runs(c(0.1, 0.1001, 0.10005)))
  expect_no_match(format(x), "100%", fixed = TRUE)
  expect_match(format(x), "0.0001x", fixed = TRUE, all = FALSE)
})

test_that("values of any size are compared, or refused", {
  for (value in c(1e-140, 1e-100, 1e100, 1e140)) {
    x <- compare_profiles(exact_runs(rep(value, 3)), exact_runs(rep(1, 3)))
    expect_match(format(x)[[1]], "3 runs of base and 3 of new")
  }
  expect_error(
    compare_profiles(exact_runs(rep(1e308, 3), rep(1e308, 3)), exact_runs(rep(1, 3))),
    "beyond the range of a double", class = "profile_error_unsupported"
  )
})

test_that("wrong arguments are reported", {
  base <- profile_of_runs(base_runs)
  empty <- profile_of_runs(list(c("f" = 0)))
  unknown <- base
  unknown$sources$.period[[1]] <- NA
  expect_snapshot(error = TRUE, {
    compare_profiles(base, 1)
    compare_profiles(list(), base)
    compare_profiles(base, base, by = "process")
    compare_profiles(base, base, scale = "log")
    compare_profiles(base, base, what = "both")
    compare_profiles(base, base, only = 1)
    compare_profiles(base, base, only = c("f", "nothing"))
    compare_profiles(base, base, min_share = 2)
    compare_profiles(base, base, type = "alloc")
    compare_profiles(base, base, "function")
    compare_profiles(base, empty)
    compare_profiles(list(empty, empty), base)
    compare_profiles(base, unknown)
  })
})

test_that("identical runs give few false alarms, and real differences are found", {
  set.seed(17)
  times <- c(f = 0.5, g = 0.3, h = 0.2, i = 0.1, j = 0.05, k = 0.02, l = 0.02, m = 0.01)
  slower <- times * c(1.26, rep(1, 7))
  verdicts <- function(n, base, new) {
    amounts <- 0.01 * do.call(cbind, c(sampled_runs(n, base), sampled_runs(n, new)))
    data <- list(
      sums = colSums(amounts), quantum = rep(0.01, 2 * n), is_new = rep(c(FALSE, TRUE), each = n)
    )
    x <- compared_rows(amounts, data, "amount")
    stats::setNames(x$verdict, names(times))
  }
  for (n in c(5, 10)) {
    alarms <- replicate(150, any(verdicts(n, times, times) != "none found"))
    # bench/compare measures exact rates; a rate of 5% exceeds this limit once in a thousand times.
    expect_lt(sum(alarms), qbinom(0.999, 150, 0.05))
  }
  found <- replicate(100, verdicts(5, times, slower)[["f"]] == "more")
  expect_gt(mean(found), 0.75)
})

test_that("the difference that is stated as detectable is found", {
  set.seed(18)
  found <- function(errors) {
    run <- function(ratio = 1) matrix(ratio * exp(errors(5)), 1)
    mean(replicate(400, {
      stated <- welch_log(run(), run())
      ratio <- detectable_ratio(stated$se, stated$df, 0.05)
      p_value(welch_log(run(), run(ratio))) < 0.05
    }))
  }
  expect_gt(found(function(n) rnorm(n, 0, 0.1)), 0.8)
  # Some runs take far longer.
  expect_gt(found(function(n) 0.07 * rt(n, 4)), 0.76)
  expect_gt(found(function(n) rexp(n, 10)), 0.74)
  # With many runs the factor approaches the normal distribution's.
  expect_equal(log(detectable_ratio(0.1, 1e6, 0.05)), 0.1 * (qnorm(0.975) + qnorm(0.85)))
  # power.t.test() assumes a known standard deviation.
  truth <- power.t.test(n = 50, power = 0.85, sd = 1)$delta
  expect_equal(log(detectable_ratio(sqrt(2 / 50), 98, 0.05)), truth, tolerance = 0.02)
})

test_that("a comparison is drawn", {
  base <- profile_of_runs(base_runs)
  x <- compare_profiles(base, profile_of_runs(new_runs))
  draw <- function(x, ...) {
    path <- withr::local_tempfile(fileext = ".svg")
    skip_if_not_installed("svglite")
    svglite::svglite(path)
    tryCatch(result <- withVisible(plot(x, ...)), finally = grDevices::dev.off())
    expect_false(result$visible)
    expect_identical(result$value, x)
    paste(readLines(path), collapse = "\n")
  }
  svg <- draw(x, main = "f <&> g")
  for (text in c("whole run", ">main<", ">f<", ">g<", "f &lt;&amp;&gt; g", "#B5402A")) {
    expect_match(svg, text, fixed = TRUE)
  }
  expect_match(draw(x, n = Inf), "#B5402A", fixed = TRUE)
  expect_match(draw(compare_profiles(base, base)), "#8C8C8C", fixed = TRUE)
  expect_no_match(draw(compare_profiles(base, base)), "#B5402A", fixed = TRUE)
  # Without a verdict, with a share, and with functions of one version only.
  one <- profile_of_runs(base_runs[1])
  expect_match(draw(compare_profiles(one, one)), "whole run", fixed = TRUE)
  expect_no_match(draw(compare_profiles(one, one, scale = "share")), "whole run", fixed = TRUE)
  draw(compare_profiles(one, profile_of_runs(list(c("other" = 10)))))
  expect_snapshot(error = TRUE, {
    plot(x, n = 0)
    plot(x, main = 1)
    plot(x[c("name", "base")])
    plot(compare_profiles(one, one, scale = "share", min_share = 1, what = "self"))
  })
})

test_that("estimates lie inside their intervals, and swapping the versions inverts them", {
  set.seed(11)
  counts <- c(0, 1, 2, 3, 5, 20, 1000)
  pairs <- expand.grid(base = counts, new = counts, spread = c(0, 1, 3), runs = c(3, 5))
  for (i in seq_len(nrow(pairs))) {
    pair <- pairs[i, ]
    draw <- function(mean) pmax(0, mean + sample(-pair$spread:pair$spread, pair$runs, TRUE))
    amounts <- matrix(c(draw(pair$base), draw(pair$new)), 1)
    if (!any(amounts > 0)) next
    data <- list(
      is_new = rep(c(FALSE, TRUE), each = pair$runs), quantum = rep(1, 2 * pair$runs), sums = rep(2000, 2 * pair$runs)
    )
    ours <- compared_rows(amounts, data, "amount", detectable = FALSE)
    info <- paste(amounts, collapse = " ")
    expect_true(ours$lower <= ours$ratio && ours$ratio <= ours$upper, info = info)
    back <- compared_rows(amounts[, rev(seq_along(amounts)), drop = FALSE], data, "amount", detectable = FALSE)
    expect_equal(c(back$ratio, back$lower, back$upper), 1 / c(ours$ratio, ours$upper, ours$lower), info = info)
    expect_equal(back$p_value, ours$p_value, info = info)
  }
})

test_that("a version that is too fast to be sampled takes less, with advice", {
  fast <- profile_of_runs(list(c("main>f" = 0), c("main>f" = 0), c("main>f" = 1)))
  x <- compare_profiles(profile_of_runs(base_runs), fast)
  expect_identical(attr(x, "whole")$verdict, "less")
  expect_match(format(x), "The runs of `new` have few samples", all = FALSE)
  none <- filter_profile(fast, focus = "^nothing$")
  x <- compare_profiles(profile_of_runs(base_runs), none)
  whole <- attr(x, "whole")
  expect_identical(whole$verdict, "less")
  expect_identical(c(whole$new, whole$ratio, whole$lower), c(0, 0, 0))
  expect_gt(whole$upper, 0)
  back <- attr(compare_profiles(none, profile_of_runs(base_runs)), "whole")
  expect_identical(c(back$ratio, back$upper), c(Inf, Inf))
  expect_equal(back$lower, 1 / whole$upper)
  # There is nothing to compare if no run has samples, and such runs have no shares.
  expect_error(compare_profiles(none, none), class = "profile_error_unsupported")
  expect_error(compare_profiles(profile_of_runs(base_runs), none, scale = "share"), class = "profile_error_unsupported")
})

test_that("the result of benchmark_profile() is compared by the names of its versions", {
  base <- profile_of_runs(base_runs)
  new <- profile_of_runs(new_runs)
  expected <- compare_profiles(base, new)
  expect_identical(compare_profiles(list(base = base, new = new)), expected)
  expect_identical(compare_profiles(list(new = new, base = base)), expected)
  expect_identical(compare_profiles(list(sub = base, gsub = new)), expected)
  expect_identical(expect_no_regression(list(new = base, base = new)), compare_profiles(new, base))
  expect_snapshot(error = TRUE, {
    compare_profiles(list(a = base, b = new, c = new))
    compare_profiles(list(base, new))
    compare_profiles(base)
  })
})
