# Progress bars for what takes long. The package cli draws them: only in interactive sessions, after two seconds, and as
# its options say.

# A function that is called with c(done, total), either of which may be NA, and shows this as a bar until the function of
# `frame` returns; NULL if bars are not shown. `type` is cli's: "download" for bytes, "tasks" for counts, "iterator" for a
# share.
progress_report <- function(what, type, frame = parent.frame()) {
  if (!rlang::is_interactive()) {
    return(NULL)
  }
  force(what)
  force(type)
  force(frame)
  bar <- NULL
  function(progress) {
    done <- if (is.na(progress[[1]])) 0 else progress[[1]]
    # The position in a file that still grows may be beyond its size.
    total <- if (is.finite(progress[[2]])) max(progress[[2]], done) else NA
    if (is.null(bar)) {
      # Without a total, and after all bytes were read, work goes on.
      bar <<- cli::cli_progress_bar(what, type = type, total = total, auto_terminate = FALSE, .envir = frame)
    }
    cli::cli_progress_update(set = done, total = total, id = bar, .envir = frame)
  }
}

# Shows that `done` of `total` are done; `report` is of `progress_report()`.
show_progress <- function(report, done, total) {
  if (!is.null(report)) {
    report(c(done, total))
  }
}
