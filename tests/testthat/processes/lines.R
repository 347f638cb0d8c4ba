# Functions whose lines are known.
inner <- function(n) {
  s <- 0
  for (i in seq_len(n)) {
    s <- s + sqrt(i) * sin(i)
  }
  s
}
outer <- function() {
  inner(3e4)
  inner(1e4)
}
for (i in 1:5) outer()
ready()
repeat outer()
