# Records the profiles in this folder of frameworks that run code in other processes, or later: `Rscript
# record-parallel.R`, in this folder, or `Rscript record-parallel.R coro furrr` for some of them. See record.R, of which
# this script uses the functions.
#
# Packages of functions, as far as the recording knows them, are in their system names: `package::name`, and `::name`
# for functions of which a process knows that they belong to none.

for (step in parse("record.R", keep.source = FALSE)) {
  if (identical(step[[1]], as.name("if"))) break
  eval(step)
}
chosen <- commandArgs(TRUE)
is_chosen <- function(package) {
  (length(chosen) == 0 || package %in% chosen) && requireNamespace(package, quietly = TRUE)
}
options(future.rng.onMisuse = "ignore")

# Records each expression, and the processes that it starts, in a profile.
record_all <- function(...) {
  recordings <- lapply(as.list(substitute(list(...)))[-1], function(expr) {
    x <- eval(bquote(record_profile(.(expr), interval = 0.01, children = TRUE)), globalenv())
    without_some(x)
  })
  x <- add_packages(combine_profiles(recordings))
  package <- ifelse(is.na(x$functions$.package), "", x$functions$.package)
  name <- sub("^[[:alnum:].]+:::?", "", x$functions$name)
  is_known <- !is.na(x$functions$.package_from)
  x$functions$system_name <- ifelse(is_known, paste0(package, "::", name), x$functions$name)
  x
}

# Few samples of each expression: some with the user's work, some others.
without_some <- function(x, most = 12, most_others = 6) {
  names <- as_tibble(x)
  mine <- unique(names$sample_id[names$name == "slow"])
  others <- setdiff(x$samples$sample_id, mine)
  few <- function(ids, n) ids[unique(round(seq(1, length(ids), length.out = min(n, length(ids)))))]
  x$samples <- x$samples[x$samples$sample_id %in% c(few(mine, most), few(others, most_others)), ]
  compact_profile(x)
}

# ---- R's own ----------------------------------------------------------------------------------------------------------

if (is_chosen("parallel")) {
  cluster <- parallel::makeCluster(1)
  parallel::clusterExport(cluster, "slow")
  x <- record_all(
    parallel::parLapply(cluster, 1:2, function(i) slow(20)),
    parallel::parSapply(cluster, 1:2, function(i) slow(20)),
    parallel::clusterApplyLB(cluster, 1:2, function(i) slow(20)),
    parallel::clusterEvalQ(cluster, slow(20)),
    parallel::clusterMap(cluster, function(i, j) slow(20), 1:2, 1:2),
    parallel::mclapply(1:4, function(i) slow(20), mc.cores = 2),
    parallel::mclapply(1:4, function(i) slow(20), mc.cores = 2, mc.preschedule = FALSE),
    parallel::pvec(1:4, function(i) slow(20), mc.cores = 2),
    parallel::mcmapply(function(i, j) slow(20), 1:4, 1:4, mc.cores = 2),
    parallel::mccollect(parallel::mcparallel(slow(40)))
  )
  parallel::stopCluster(cluster)
  save_as(x, "parallel", Inf)
}
if (is_chosen("BiocParallel")) {
  numbers <- function() {
    i <- 0
    function() if (i < 2) i <<- slow(i + 1)
  }
  save_as(record_all(
    BiocParallel::bplapply(1:2, function(i) slow(20), BPPARAM = BiocParallel::SerialParam()),
    BiocParallel::bplapply(1:4, function(i) slow(20), BPPARAM = BiocParallel::MulticoreParam(2)),
    BiocParallel::bplapply(1:4, function(i, slow) slow(20), slow = slow, BPPARAM = BiocParallel::SnowParam(2)),
    BiocParallel::bpmapply(function(i, j) slow(20), 1:2, 1:2, BPPARAM = BiocParallel::SerialParam()),
    BiocParallel::bpvec(1:2, function(i) c(slow(40), 1), BPPARAM = BiocParallel::SerialParam()),
    BiocParallel::bpiterate(numbers(), function(i) slow(20), BPPARAM = BiocParallel::SerialParam())
  ), "BiocParallel", Inf)
}

# ---- Processes --------------------------------------------------------------------------------------------------------

if (is_chosen("callr")) {
  session <- callr::r_session$new()
  save_as(record_all(
    callr::r(function(slow) slow(60), list(slow = slow)),
    {
      process <- callr::r_bg(function(slow) slow(60), list(slow = slow))
      process$wait()
      process$get_result()
    },
    session$run(function(slow) slow(60), list(slow = slow))
  ), "callr", Inf)
  session$close()
}
if (is_chosen("targets")) {
  writeLines(c(
    lines_of_slow,
    "list(",
    "  targets::tar_target(one, slow(40)),",
    "  targets::tar_target(two, sapply(1:2, function(i) slow(one)))",
    ")"
  ), "app.R")
  save_as(record(targets::tar_make(script = "app.R", callr_function = NULL, reporter = "silent")), "targets")
}
if (is_chosen("crew")) {
  writeLines(c(
    lines_of_slow,
    "list(",
    "  targets::tar_target(one, slow(40)),",
    "  targets::tar_target(two, sapply(1:2, function(i) slow(one)))",
    ")"
  ), "app.R")
  writeLines(c(
    "targets::tar_option_set(controller = crew::crew_controller_local(workers = 1))", readLines("app.R")
  ), "crew.R")
  save_as(record_all(
    targets::tar_make(script = "app.R", reporter = "silent", store = "app"),
    targets::tar_make(script = "crew.R", reporter = "silent", store = "crew"),
    {
      controller <- crew::crew_controller_local(workers = 1)
      controller$start()
      controller$push(slow(40), data = list(slow = slow))
      controller$wait()
      controller$terminate()
    }
  ), "crew", Inf)
}
if (is_chosen("mirai")) {
  mirai::daemons(1)
  cluster <- mirai::make_cluster(1)
  save_as(record_all(
    {
      tasks <- list(
        mirai::mirai(profile::with_labels(c(task = "fit"), slow(40)), slow = slow),
        mirai::mirai(slow(20), slow = slow)
      )
      mirai::call_mirai(tasks)
    },
    mirai::mirai_map(1:2, function(i, slow) slow(20), .args = list(slow = slow))[],
    mirai::collect_mirai(mirai::everywhere(slow(40), slow = slow)),
    purrr::map(1:2, purrr::in_parallel(function(i) slow(20), slow = slow)),
    parallel::parLapply(cluster, 1:2, function(i, slow) slow(20), slow)
  ), "mirai", Inf)
  parallel::stopCluster(cluster)
  mirai::daemons(0)
}

# ---- Futures and loops ------------------------------------------------------------------------------------------------

if (is_chosen("future")) {
  `%<-%` <- future::`%<-%`
  future::plan("multisession", workers = 2)
  workers <- record_all(
    future::value(future::future(slow(60))),
    future::value(list(future::future(slow(40)), future::future(slow(40)))),
    future.apply::future_lapply(1:4, function(i) slow(20)),
    future.apply::future_mapply(function(i, j) slow(20), 1:2, 1:2)
  )
  future::plan("sequential")
  save_as(combine_profiles(workers, record_all(
    future::value(future::future(slow(40))),
    future.apply::future_lapply(1:2, function(i) slow(20)),
    future.apply::future_mapply(function(i, j) slow(20), 1:2, 1:2),
    future.apply::future_Map(function(i) slow(20), 1:2),
    future.apply::future_sapply(1:2, function(i) slow(20)),
    future.apply::future_by(data.frame(a = 1:2), 1:2, function(rows) slow(20)),
    delayed %<-% slow(40)
  )), "future", Inf)
}
if (is_chosen("furrr")) {
  future::plan("multisession", workers = 2)
  workers <- record_all(
    furrr::future_map(1:4, function(i) slow(20)),
    furrr::future_walk(1:4, function(i) slow(20))
  )
  future::plan("sequential")
  save_as(combine_profiles(workers, record_all(
    furrr::future_map(1:2, function(i) slow(20)),
    furrr::future_map2_dbl(1:2, 1:2, function(i, j) slow(20)),
    furrr::future_pmap(list(1:2, 1:2), function(i, j) slow(20)),
    furrr::future_imap(1:2, ~ slow(20)),
    furrr::future_walk(1:2, function(i) slow(20)),
    furrr::future_modify(c(20, 20), function(n) slow(n)),
    furrr::future_modify_if(c(20, 20), function(n) slow(n) > 0, function(n) slow(n)),
    furrr::future_map_if(1:2, function(i) slow(20) > 0, function(i) slow(20))
  )), "furrr", Inf)
}
if (is_chosen("foreach")) {
  `%do%` <- foreach::`%do%`
  `%dopar%` <- foreach::`%dopar%`
  foreach <- foreach::foreach
  foreach::registerDoSEQ()
  own <- record_all(
    foreach(i = 1:2) %do% slow(20),
    foreach(i = 1:2) %do% {
      slow(20)
    },
    foreach(i = 1:2) %dopar% slow(20)
  )
  doParallel::registerDoParallel(2)
  forks <- record_all(foreach(i = 1:4) %dopar% slow(20))
  cluster <- parallel::makeCluster(1)
  doParallel::registerDoParallel(cluster)
  workers <- record_all(foreach(i = 1:2) %dopar% slow(20))
  parallel::stopCluster(cluster)
  save_as(combine_profiles(own, forks, workers), "foreach", Inf)
}
if (is_chosen("doFuture")) {
  `%dopar%` <- foreach::`%dopar%`
  `%dofuture%` <- doFuture::`%dofuture%`
  foreach <- foreach::foreach
  doFuture::registerDoFuture()
  future::plan("multisession", workers = 2)
  workers <- record_all(foreach(i = 1:4) %dofuture% slow(20), foreach(i = 1:4) %dopar% slow(20))
  future::plan("sequential")
  own <- record_all(foreach(i = 1:2) %dofuture% slow(20), foreach(i = 1:2) %dopar% slow(20))
  save_as(combine_profiles(workers, own), "doFuture", Inf)
}
if (is_chosen("coro")) {
  # Line numbers of `app.R` show which functions are the user's.
  writeLines(c(
    lines_of_slow,
    "numbers <- coro::generator(function(n) {",
    "  for (i in seq_len(n)) {",
    "    slow(5)",
    "    if (slow(5) > 0) coro::yield(i)",
    "  }",
    "})",
    "doubled <- coro::generator(function(n) for (i in numbers(n)) coro::yield(slow(5)))",
    "by_loop <- function() coro::loop(for (i in numbers(4)) slow(5))",
    "by_call <- function() {",
    "  instance <- numbers(4)",
    "  while (!coro::is_exhausted(instance())) slow(5)",
    "}",
    "by_collect <- function() coro::collect(doubled(4))",
    "wait <- coro::async(function(n) {",
    "  await(coro::async_sleep(0.01))",
    "  slow(n)",
    "})",
    "task <- coro::async(function(n) {",
    "  x <- slow(n)",
    "  y <- await(wait(n))",
    "  tryCatch(slow(n), error = function(e) NULL)",
    "})",
    "stream <- coro::async_generator(function(n) {",
    "  for (i in seq_len(n)) {",
    "    await(coro::async_sleep(0.01))",
    "    yield(slow(5))",
    "  }",
    "})",
    "each <- coro::async(function() for (x in coro::await_each(stream(4))) slow(5))",
    "by_async <- function() { task(20); each(); while (!later::loop_empty()) later::run_now(1) }"
  ), "app.R")
  source("app.R", keep.source = TRUE)
  save_as(record_all(by_loop(), by_call(), by_collect(), by_async()), "coro", Inf)
}
