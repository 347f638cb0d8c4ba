# A small HTTP server in base R, which responds by a plan and records the requests.
#
#   Rscript server.R DIR PID
#
# It writes its port and process id to DIR/address, takes its plan from DIR/plan.rds, and ends with DIR, or with the
# process PID. A plan has an `id` and `steps`, one for each request; the last step is repeated. A step is a list of
#   status, headers, body  what to answer; a length of the body is added
#   delay                  seconds before the answer, or until the client closes the connection
#   until                  the path of a file: there is no answer until it exists
#   keep                   whether the connection stays open
#   cut                    the number of bytes of the body that are held back
#   early                  bytes to send instead, before the request is read; then the
#                          connection is closed, with `keep` by the client only
#   close                  "unread" or "read": no answer, before or after the request was read
# Each request is stored in the file DIR/<id>-<number>.rds.

dir <- commandArgs(TRUE)[[1]]
parent <- as.integer(commandArgs(TRUE)[[2]])

listen <- function() {
  for (port in sample(49152:65535, 100)) {
    socket <- tryCatch(suppressWarnings(serverSocket(port)), error = function(e) NULL)
    if (!is.null(socket)) {
      return(list(socket = socket, port = port))
    }
  }
  stop("There is no free port.")
}

read_request <- function(con) {
  first <- strsplit(readLines(con, 1), " ", useBytes = TRUE)[[1]]
  if (length(first) == 0) {
    return(NULL)
  }
  headers <- list()
  while (length(line <- readLines(con, 1)) > 0 && line != "") {
    name <- tolower(sub(":.*", "", line, useBytes = TRUE))
    headers[[name]] <- sub("^[^:]*: *", "", line, useBytes = TRUE)
  }
  length <- headers[["content-length"]]
  body <- if (!is.null(length)) readBin(con, "raw", as.numeric(length))
  list(method = first[[1]], path = first[[2]], headers = headers, body = body)
}

write_answer <- function(con, step) {
  body <- if (is.character(step$body)) charToRaw(step$body) else as.raw(step$body)
  headers <- c(step$headers, "Content-Length" = length(body))
  head <- paste0(
    "HTTP/1.1 ", if (is.null(step$status)) 200 else step$status, " Planned\r\n",
    paste0(names(headers), ": ", headers, "\r\n", collapse = ""),
    if (!isTRUE(step$keep)) "Connection: close\r\n", "\r\n"
  )
  # The bytes without conversion, regardless of the encoding.
  sent <- length(body) - if (is.null(step$cut)) 0 else step$cut
  writeBin(c(charToRaw(head), body[seq_len(sent)]), con)
}

serve <- function(con, connection) {
  repeat {
    plan <- readRDS(file.path(dir, "plan.rds"))
    number <- 1 + length(list.files(dir, paste0("^", plan$id, "-")))
    step <- plan$steps[[min(number, length(plan$steps))]]
    note <- function(request) {
      request <- c(request, connection = connection, time = as.numeric(Sys.time()))
      # Under another name until it is complete, since tests read while requests arrive.
      path <- file.path(dir, paste0(plan$id, "-", number, ".rds"))
      saveRDS(request, file.path(dir, "request.new"))
      file.rename(file.path(dir, "request.new"), path)
    }
    if (identical(step$close, "unread")) {
      note(NULL)
      return()
    }
    if (!is.null(step$early)) {
      note(NULL)
      writeBin(step$early, con)
      read_request(con)
      while (isTRUE(step$keep) && length(readBin(con, "raw", 1)) > 0) {}
      return()
    }
    request <- read_request(con)
    if (is.null(request)) {
      return()
    }
    note(request)
    if (identical(step$close, "read")) {
      return()
    }
    while (!is.null(step$until) && !file.exists(step$until) && dir.exists(dir)) Sys.sleep(0.02)
    if (!is.null(step$delay)) {
      socketSelect(list(con), timeout = step$delay)
    }
    write_answer(con, step)
    if (!isTRUE(step$keep)) {
      return()
    }
  }
}

server <- listen()
address <- file.path(dir, "address")
writeLines(as.character(c(server$port, Sys.getpid())), paste0(address, ".new"))
invisible(file.rename(paste0(address, ".new"), address))

connection <- 0
while (dir.exists(dir) && tools::pskill(parent, 0)) {
  con <- tryCatch(
    suppressWarnings(socketAccept(server$socket, blocking = TRUE, open = "r+b", timeout = 1)),
    error = function(e) NULL
  )
  if (!is.null(con)) {
    connection <- connection + 1
    # Only a client that was stopped for some time is as slow as this.
    socketTimeout(con, 60)
    # The server ignores errors of the client.
    try(suppressWarnings(serve(con, connection)), silent = TRUE)
    close(con)
  }
}
