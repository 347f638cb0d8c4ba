# The help page about how the agent works, for readers of the status and of the samples. The code is in agent.R and the
# files beside it, and in forwarder.R.

#' How the agent takes and sends samples
#'
#' [start_agent()] takes samples by one of two methods. This page describes the samples of each method, and how
#' profiles are sent to a server.
#'
#' @section Reading R's memory:
#' With `method = "reader"`, the thread of the agent reads R's stack from memory, as [profile_process()] does for
#' another process. If R's thread runs, it gets a signal, and waits in its handler while its calls are copied: for some
#' ten microseconds, at most for a millisecond. So the shares of lines are those of [Rprof()], also for functions that
#' take a few microseconds. A thread that sleeps or waits in a system call gets no signal. The signal is the last
#' real-time signal that the process does not use when the agent takes its first sample.
#'
#' The agent does not interfere with [Rprof()], `profvis::profvis()`, [start_profiler()] or debuggers, and they do not
#' interfere with the agent.
#'
#' A sample has two values: the CPU time of R's thread (type `cpu`) and the real time (type `wall`) that it stands for,
#' as described in the section *CPU time* of [profile_process()], and the label `state`. With
#' `clock = "wall"`, samples of a thread that does not compute have the label `waits_for`, see *Waiting* in [dump_stack()]; the
#' label `waits_for.name`, which may be private, only with `waits = "names"`. The factor for CPU times is
#' computed from at least 300 samples, including those of earlier parts if necessary. The attributes `profile.cpu.ticks`
#' and `profile.cpu.clock` describe the part alone. Parts without samples are not sent; their CPU time is counted in
#' `profile.cpu.missed` of the next part. Files in a folder have comments instead, as for figures about memory.
#'
#' @section Samples of Rprof():
#' With `method = "rprof"`, [Rprof()] takes the samples: a signal interrupts R after each interval. `Rprof()` writes to
#' a file in memory, which the agent empties every second, and which disappears with the process.
#'
#' A sample has a count of 1 (type `samples`), and `interval` as its time, whose type is `cpu` or `wall`, as in `clock`.
#' CPU time is measured for all threads of the process together. The times of single samples are unknown, so samples
#' with the same stack and labels are summed. `interval` must be at least 0.01, and samples whose functions have more
#' than 10,000 characters are missing.
#'
#' R has only one such profiler. If other code calls `Rprof()`, as `profvis::profvis()` does, this ends the profiler
#' of the agent. The agent then takes no samples until the other profiler has ended and R is idle or `agent_status()`
#' is called; this time is counted as `paused`. [record_profile()] and [start_profiler()] interrupt the agent in the
#' same way. The agent does not start while another profiler is running.
#'
#' @section Figures about memory:
#' Each profile contains these figures, in bytes except for `objects`, as attributes (`.source_attributes`). Files in a
#' folder have comments such as `profile.heap.used: 81203400` instead, which `go tool pprof -comments` shows. The
#' attributes of `resource` are comments there, too, such as `resource.service.version: 2.3`.
#'
#' | key | meaning |
#' |---|---|
#' | `profile.heap.used` | what R's objects use at the end of the part, including garbage that is not collected yet |
#' | `profile.heap.used.min` | the minimum during the part: what the last garbage collection has left, if there was one |
#' | `profile.heap.free` | the rest of the memory of R's heap |
#' | `profile.heap.objects` | the number of objects: the `Ncells` of [gc()] |
#' | `profile.heap.data` | the data of vectors: 8 times the `Vcells` of [gc()] |
#' | `profile.heap.resident` | the memory of the whole process |
#'
#' The figures of the heap are R's own counts, which `gc()` reports as well, but read from memory at each tick, without
#' a garbage collection. If they cannot be found, only the memory of the process is reported. In snapshots,
#' `profile.heap.used` and `profile.heap.free` are exact; here, as for `gc()`, each vector counts 8 bytes too much.
#'
#' @section The spool and the forwarder:
#' The thread of the agent does not use the network. It writes each part to a file in a folder, the spool; another R
#' process, the forwarder, sends the files with the package curl, as [send_otlp()] does, with the same environment
#' variables for certificates and proxies. The agent starts the forwarder, and restarts it if it is killed. All agents
#' of a user on a machine with the same target (the URL, headers, and settings for proxies and TLS) share a spool and a
#' forwarder, which uses the `timeout` of the agent that started it. The forwarder ends about five seconds after the
#' last agent, however that agent ended; if the server accepts parts, it first sends all that remain.
#'
#' The forwarder takes about 100 MB of memory, and 0.3 percent of a core while it waits. To do without it, let the agent
#' write to a folder, and call [forward_profiles()] in another container.
#'
#' The spool is a folder in `profile-spool-`, followed by the user id, next to the session's temporary directory,
#' usually in `/tmp`, or in the argument `spool`. Only this user can read it. It contains a file for each part; for the
#' fraction of a second that the forwarder takes to start, it also contains the headers, possibly with secrets. It is
#' removed when all parts are sent and there is neither an agent nor a forwarder.
#'
#' The name of a file consists of the time, an id of the agent, a number, and the number of samples, such as
#' `1795713328239-94310fa9df47-000000-18.otlp.gz`. It contains a complete message in the format of [write_otlp()], which
#' [read_otlp()] reads. A file that is being sent ends in `.sending`; one that the server has accepted or refused ends
#' in `.sent` or `.refused` until its agent has counted it.
#'
#' @seealso [start_agent()], [forward_profiles()]; `vignette("always-on", package = "profile")`
#' @name agent_details
NULL
