# Programs of public questions about copies, as short as their authors have asked them. Each function is one question; its
# vectors are large enough that the bytes of a copy are recognized. `n` is the length of a vector, 8 bytes for each element.

n <- 1e5

# "x[[i]] <- x[[i]] - medians[[i]] is slow for a data frame": https://adv-r.hadley.nz/names-values.html, hadley/adv-r#681.
medians <- function() {
  x <- data.frame(matrix(runif(500 * n / 100), ncol = 500))
  medians <- vapply(x, median, numeric(1))
  for (i in seq_along(medians)) {
    x[[i]] <- x[[i]] - medians[[i]]
  }
}

# "y[[3]] <- 5 should modify in place, but it copies again": hadley/adv-r#995, #1675 and #1753.
twice <- function() {
  x <- runif(n)
  y <- x
  y[[3]] <- 4
  y[[3]] <- 5
}

# "tracemem() shows one copy, or two": hadley/adv-r#1598, #1701 and #1059.
integers <- function() {
  x <- 1:n
  x[[3]] <- 4
}

# "To read a field of an R6 object makes the next update copy it": r-lib/R6#106.
field <- function() {
  Store <- R6::R6Class("Store",
    public = list(
      initialize = function(k) {
        private$arr <- numeric(k)
      },
      update = function(index, value) {
        temp <- private$arr[index]
        private$arr[index] <- value
      },
      get = function() private$arr
    ),
    private = list(arr = NULL)
  )
  store <- Store$new(n)
  for (i in 1:5) {
    store$update(i, 1)
  }
  kept <- store$get()
  store$update(6, 1)
}

# "data.table() copies its columns": Rdatatable/data.table#1743.
constructor <- function() {
  l <- list(a = runif(n), b = runif(n))
  df <- data.frame(a = l$a, b = l$b)
  dt <- data.table::data.table(a = l$a, b = l$b)
}

# "How to find out where R copied a data.table": Rdatatable/data.table#4875.
where <- function() {
  dt <- data.table::data.table(a = runif(n), b = runif(n))
  backup <- data.table::copy(dt)
  names(dt)[1] <- "x"
  dt[, c := 1]
  dt$b[1] <- 0
}

# "mutate() should not copy": tidyverse/dplyr#191, #614 and #198.
mutated <- function() {
  df <- data.frame(g = rep(1:10, n / 10), x = runif(n), y = runif(n))
  df <- dplyr::mutate(df, z = x * 2)
  df <- dplyr::mutate(dplyr::group_by(df, g), m = x - mean(x))
  df$x[1] <- 0
}

# "`oldClass<-`(x, \"a\") copies, oldClass(x) <- \"a\" does not": fastverse/collapse#311.
classes <- function() {
  with_arrow <- function(x) {
    oldClass(x) <- "measured"
    x
  }
  as_call <- function(x) `oldClass<-`(x, "measured")
  y <- with_arrow(runif(n))
  y <- as_call(runif(n))
}

# "Why is it slow to fill a data frame cell by cell?": https://stackoverflow.com/questions/2908822.
cells <- function() {
  df <- data.frame(id = 1:n, x = numeric(n))
  for (i in 1:10) {
    df[i, "x"] <- i
  }
}

# "rbind() in a loop is slow": https://tdhock.github.io/blog/2017/rbind-inside-outside.
rows <- function() {
  all <- NULL
  for (i in 1:100) {
    all <- rbind(all, data.frame(i = i, x = runif(100)))
  }
}

# "Why is my vector slow to grow?": the second circle of "The R Inferno" (Burns, 2011).
appended <- function() {
  x <- NULL
  sapply(1:1000, function(i) x <<- c(x, i))
}

# "Does R copy an argument that a function modifies?": https://stackoverflow.com/questions/15759117.
argument <- function() {
  scale_first <- function(m, by) {
    m[1, ] <- m[1, ] * by
    m
  }
  m <- matrix(runif(n), ncol = 100)
  for (i in 1:5) {
    m <- scale_first(m, i)
  }
}
