# Takes snapshots of R's heap with `snapshot_memory()`. The core finds all objects and what holds them, see
# src/rust/reader/src/heap.

#' Who holds the memory?
#'
#' @description
#' `snapshot_memory()` takes a snapshot of all objects in the memory of R, of this session or of another R process, and of
#' what holds them. The result is a profile like any other: print it, or use [holders()] for a table, [call_tree()] for all
#' paths, [profile_page()] for a picture, and [compare_profiles()] for what has grown between two snapshots. The
#' process needs no preparation.
#'
#' @details
#' R frees an object when nothing refers to it any more. So memory is occupied by what somebody holds, often without
#' knowing: a model keeps the data of the function that made it, a callback keeps the session that registered it. A
#' snapshot shows for all objects the path by which they are held, such as
#' `globalenv > $fits > [[*]] <lm> > $terms <terms> > attr ".Environment" > $raw <data.frame>`.
#'
#' The size of a path is exactly what would be freed if its last step were removed. An object that is held in several
#' ways belongs to the last object that they have in common. There, its step is the shortest of these ways, followed by
#' `[shared]`. An object that several roots hold has a root of its own that names two of them:
#' `globalenv $p & namespace:app $plots [shared]`. Steps are
#'
#' - `$name`, a variable of an environment or a named element of a list, with its class, or `()` if it is a function;
#' - `[[*]]`, all other elements of a list together;
#' - `attr "name"`, an attribute; `in code`, a constant or function in the code of a function;
#' - `closure env`, `promise env` and `parent env`, the environments of functions, of arguments that were not evaluated
#'   yet, and around an environment;
#' - `kept by pointer` and `pointer tag`, what an external pointer protects, and its tag;
#' - `value` and `finalizer` of a weak reference, such as those of [reg.finalizer()]. Both live as long as its key.
#'
#' Only what holds 1/20,000 of all objects or more has a step of its own. The rest is counted for its holder, by type.
#' Steps that repeat, as in a list of lists of lists, are one step.
#'
#' The first frames, roots, are tried in this order, and an object belongs to the first group of roots that reaches it:
#' the global environment, namespaces and `base`; calls that are running (`call of f()`); copies of namespaces, such as
#' attached packages (`package:stats`), other attached objects (`attached mtcars`) and imports; R's stacks; callbacks of
#' [addTaskCallback()] (`task callback 1`), what was written to open connections (`connection 3 <rawConnection>`) and drawn
#' on graphics devices that keep it (`graphics device 2`); finalizers and weak references; variables in C code of packages
#' (`C variables of Rcpp.so`), and of R. Objects to which nothing leads are `garbage not collected yet`, which R would free
#' at a garbage collection, or `no holder found` if garbage has just been collected.
#'
#' Two roots are not objects of R: `free cells of R` is memory that R keeps for new objects, and `not R's heap` is the
#' rest of the memory of the process, see below. R does not know the memory of external pointers and of ALTREP objects of
#' packages. Such objects have types that say so, such as `external pointer (native memory unknown)`.
#'
#' @section Memory that is not R's heap:
#' The system knows how much of each part of the address space is in RAM (*resident*). Printing a snapshot shows the sum,
#' the resident set size of the process, and what it consists of. All parts but R's heap are also paths below the root
#' `not R's heap`:
#'
#' - `libraries`, by name: `code`, which other processes that use the library share, and `data`, the pages that this
#'   process has changed;
#' - `native memory`: what C and C++ code has allocated, by `malloc()` or as mappings of its own;
#' - `free in malloc`: memory that was freed, but not returned to the system, at least so much. Only the process itself
#'   knows it, and only if its allocator is that of glibc 2.33 or later. Otherwise, `native memory, used or free` is both;
#' - `pool of arrow`: the memory that the package arrow has allocated for its own arrays, by its own figure, if it is
#'   loaded in this session. Arrays that arrow takes from R without copying them are objects of R;
#' - `stacks of threads`: memory that follows inaccessible memory, as the C library maps it for stacks, up to 8 MB each; from
#'   Linux 6.7 on, also memory that never has huge pages, as the kernel maps it for stacks;
#' - `R's stacks`: the stack of the first thread, and those that R has for byte code and protected objects;
#' - `mapped files`, such as data that is read as if it were memory, and `shared memory`, by name.
#'
#' R's heap is the objects that are the other paths, as far as they are resident. A vector that was allocated and never
#' written has no pages in RAM. Its path has its size nevertheless, so the sum of all paths is the resident set size and
#' what is printed as `Absent`.
#'
#' Memory that is shared with other processes counts for each of them. It is code of libraries, and, after a fork, what
#' neither of the two processes has changed since.
#'
#' A snapshot of this session collects garbage first, so the process may have become smaller: `Released` is by how much
#' R's heap has. If much is free in malloc, the function `malloc_trim()` of the C library returns most of it to the system:
#'
#' ```r
#' Rcpp::cppFunction("int trim() { return malloc_trim(0); }", includes = "#include <malloc.h>")
#' trim()
#' ```
#'
#' @section Another process:
#' It is stopped by `ptrace()`, as in [profile_process()], while its objects are copied: about 0.1 seconds for a million
#' objects. Only the start of vectors of numbers is copied, not the numbers. The copy takes as much memory as these
#' objects. Permissions are those of [profile_process()]. A process that another one traces cannot be stopped.
#'
#' If R is just collecting garbage or changing its objects, the process goes on and is stopped again some milliseconds
#' later: as long as all stops take less than a second in total, and no more than five seconds have passed. If no
#' snapshot is complete, the result is the one with the fewest references that lead to no object, see
#' `profile.heap.wrong_references` below. If two snapshots have the same ones, they are damaged, and there is no further
#' attempt. An error says what cannot be read if there is no snapshot at all.
#'
#' @section Parallel code:
#' With `children = TRUE`, the snapshot also contains the R processes that work for the process at this moment: those
#' that it has started, such as forks of `parallel::mclapply()`, and workers on this machine, as in [profile_process()].
#' Each is a source with a role, such as `worker 1 of 2`. They are read one after the other, so their moments differ.
#'
#' - Printing and [holders()] add up all processes. [`summary(x, by = "process")`][summary.profile_data] has a row for
#'   each.
#' - `holders(x, by = "process")` keeps them apart. One of them is
#'   `filter_profile(x, labels = c(process = "worker 1 of 2, pid 1234"))`.
#' - `compare_profiles(before, after)` compares each process with itself, or with the one of the same role.
#' - Files of [write_otlp()] and databases keep all of this. Files of [write_pprof()] have the names of processes as a label.
#'
#' Forks share memory with the process of which they are copies, until one of them changes it. It counts for each of
#' them, so the sum may be more than is in use.
#'
#' This session reads its own memory itself. Its children are read by another R process that it starts, since the stops
#' of children would be reported to [system()] and others that wait for them. Under Yama, see [profile_process()], only
#' root can read them.
#'
#' A warning names the processes that could not be read, for example because they have ended. At most 256 processes
#' belong to a snapshot.
#'
#' @param pid The id of an R process, see [list_r_processes()]; `NULL` for this session.
#' @param ... Must be empty.
#' @param gc Whether to collect garbage first, so that only objects that something holds are left. Garbage is collected
#'   twice, since finalizers of the first collection may release objects. Other processes are never made to collect
#'   garbage.
#' @param children Whether to include the R processes that work for this one, see *Parallel code*. The ids of processes, or
#'   a cluster of [parallel::makeCluster()], for workers that would not be found.
#'
#' @return A profile of version 2.0, see [profile_data]. A sample is a group of objects of one type and path; its stack is
#'   the path, from the type (innermost) to the root. Sample types are `inuse_space`, in bytes, and `inuse_objects`, a count.
#'   The source has the type `"heap"`, and the column `.frame_type` of `locations` contains the kinds of frames, see below.
#'
#'   `.source_attributes` contains what is known about the process, and, with sizes in bytes: `profile.heap.used` and
#'   `profile.heap.objects`, all objects; `profile.heap.data`, the data of vectors, which is 8 times the `Vcells` of
#'   [gc()]; `profile.heap.free`; `profile.heap.unheld`, objects without holders; `profile.heap.unchecked`, the number of
#'   vectors that may be larger than their length indicates, if R does not use the allocator of glibc: sizes are "at least" then;
#'   `profile.heap.resident`, all memory of the process that is in RAM, and `profile.heap.with_others`, the part of it that
#'   is shared with other processes; `profile.heap.not_resident`, the part of R's heap that is not in RAM;
#'   `profile.heap.swapped`, what was swapped out; `profile.heap.unsure`, the bytes of which the system does not say whether
#'   they are R's heap; `profile.heap.released`, by how much R's heap was larger before garbage was collected;
#'   `profile.heap.wrong_references`, the number of references that lead to no object, 0 unless the heap is damaged or was
#'   being changed; `profile.process.allocator`, the name of the allocator, in this session; for another process
#'   `profile.pauses` and `profile.pauses.total`, how often it was stopped, and how long, in nanoseconds; and, if there are
#'   several processes, `profile.process.role`.
#'
#' @eval source("tools/help.R")$value$heap_frames
#'
#' @section Errors:
#' - `profile_error_process` if there is no such process, if it does not run R, if its objects are stored in an unknown
#'   way, if it cannot be stopped, or if the system does not permit it; the message gives the reason;
#' - `profile_error_unsupported` on systems other than `r live_platforms()`;
#' - `profile_error_memory` if there is not enough memory for the snapshot;
#' - `profile_error_argument` for invalid arguments.
#' @seealso [holders()], [compare_profiles()]
#' @export
#' @examplesIf profile:::is_live_platform()
#' before <- snapshot_memory()
#' handlers <- lapply(1:3, function(i) {
#'   data <- runif(1e5)
#'   function() mean(data)
#' })
#' after <- snapshot_memory()
#' holders(after, n = 3)
#' compare_profiles(before, after)
snapshot_memory <- function(pid = NULL, ..., gc = TRUE, children = FALSE) {
  call <- call_without_dots()
  check_flag(gc, "gc", call)
  pid <- if (is.null(pid)) Sys.getpid() else check_pid(pid, call)
  children <- check_children(children, call)
  lazy <- lazy_columns(call)
  if (!children$any) {
    return(heap_of(pid, gc, lazy, call))
  }
  family <- rust(rust_family(pid, children$pids), call)
  members <- family$members
  heaps <- heaps_of_members(members$pid, gc, lazy, call)
  is_missing <- vapply(heaps, inherits, NA, "error")
  if (is_missing[[1]]) {
    heaps[[1]]$call <- call
    rlang::cnd_signal(heaps[[1]])
  }
  missing <- members[is_missing, ]
  words <- c(
    sprintf("%s, pid %d: %s", missing$role, missing$pid, vapply(heaps[is_missing], conditionMessage, "")),
    if (family$left_out > 0) paste0("Further processes, beyond the first 256: ", format_count(family$left_out), ".")
  )
  if (length(words) > 0) {
    warn_profile(
      c("Not all processes could be read.", rlang::set_names(words, "x")), "profile_warning_incomplete",
      unread = missing$pid, call = call
    )
  }
  x <- bind_profiles(heaps[!is_missing], call)
  with_roles(x, members$role[!is_missing])
}

# A snapshot of this session or of another process, with what its `malloc()` says, if that is known.
heap_of <- function(pid, gc, lazy, call, malloc = NULL) {
  if (pid != Sys.getpid()) {
    return(new_profile_data(rust(rust_process_heap(pid, malloc, lazy), call), "2.0"))
  }
  before <- numeric()
  if (gc) {
    before <- rust(rust_own_size(), call)
    base::gc()
  }
  pools <- memory_pools()
  if (gc) base::gc()
  new_profile_data(rust(rust_own_heap(numeric(), before, pools, lazy), call), "2.0")
}

# The memory that loaded packages have allocated by themselves, by their own figures, as columns.
memory_pools <- function() {
  none <- list(package = character(), allocator = character(), bytes = numeric())
  if (!isNamespaceLoaded("arrow")) {
    return(none)
  }
  pool <- tryCatch(
    {
      pool <- arrow::default_memory_pool()
      list(package = "arrow", allocator = as.character(pool$backend_name), bytes = as.double(pool$bytes_allocated))
    },
    error = function(error) none
  )
  if (all(lengths(pool) == 1) && isTRUE(pool$bytes >= 0)) pool else none
}

# For each process a snapshot, or the error that prevented it. A session must not stop its own children, see children.R,
# so that a helper reads them.
heaps_of_members <- function(pids, gc, lazy, call) {
  is_own <- pids == Sys.getpid()
  if (!any(is_own)) {
    return(lapply(pids, heap_or_error, lazy))
  }
  heaps <- vector("list", length(pids))
  heaps[[which(is_own)]] <- heap_of(Sys.getpid(), gc, lazy, call)
  if (any(!is_own)) {
    heaps[!is_own] <- heaps_by_helper(pids[!is_own], call)
  }
  heaps
}

heap_or_error <- function(pid, lazy, malloc = NULL) {
  tryCatch(heap_of(pid, FALSE, lazy, NULL, malloc), profile_error = identity)
}

with_roles <- function(x, roles) {
  known <- !is.na(roles)
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, tibble::tibble(
    source_id = x$sources$source_id[known], key = "profile.process.role", type = "string", value = roles[known]
  ))
  x
}
