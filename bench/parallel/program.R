# A parallel program that notes when it is in which phase: evaluated in the global environment, with `kind` (even, slow,
# data, start, serial), `how` (psock, forks, future), `workers`, and `folder`, into which each process writes a file.

note_phase <- function(what, begin, cpu = 0) {
  line <- sprintf("%d %s %.6f %.6f %.6f\n", Sys.getpid(), what, begin, as.numeric(Sys.time()), cpu)
  cat(line, file = file.path(folder, Sys.getpid()), append = TRUE)
}
phase <- function(what, code) {
  begin <- as.numeric(Sys.time())
  cpu <- sum(proc.time()[1:2])
  force(code)
  note_phase(what, begin, sum(proc.time()[1:2]) - cpu)
}
# Uses so much CPU time.
spin <- function(seconds) {
  until <- sum(proc.time()[1:2]) + seconds
  while (sum(proc.time()[1:2]) < until) sum(sqrt(1:20000))
}
task <- function(seconds, data) {
  phase("task", spin(seconds))
  data
}
parts <- c("task", "phase", "note_phase", "spin", "folder")

seconds <- switch(kind,
  even = rep(0.4, 4 * workers), slow = c(rep(0.1, 3 * workers), 1.5), data = rep(0.15, 4 * workers),
  start = rep(0.3, 2 * workers), serial = rep(0.2, 4 * workers)
)
data <- rep(list(NULL), length(seconds))
if (kind == "data") data[] <- list(runif(2e6))
slow <- if (kind == "start") c("-e", shQuote("Sys.sleep(1.5)"))

run_program <- function() {
  begin <- as.numeric(Sys.time())
  cluster <- NULL
  if (how == "psock") {
    phase("starting", cluster <- parallel::makePSOCKcluster(workers, rscript_args = slow))
    parallel::clusterExport(cluster, parts, globalenv())
  } else if (how == "future") {
    phase("starting", future::plan("multisession", workers = workers))
  }
  if (kind == "serial") phase("serial", spin(1.2))
  if (how == "psock") {
    parallel::clusterMap(cluster, task, seconds, data, .scheduling = "dynamic")
    parallel::stopCluster(cluster)
  } else if (how == "future") {
    begin_task <- function(s, d) future::future(task(s, d), globals = c(parts, "s", "d"), packages = character())
    running <- Map(begin_task, seconds, data)
    lapply(running, future::value)
    future::plan("sequential")
  } else {
    parallel::mcmapply(task, seconds, data, mc.cores = workers, mc.preschedule = FALSE, SIMPLIFY = FALSE)
  }
  note_phase("all", begin)
}
