# Runs two chains of calls in turns. A stack with calls of both never exists.
chain <- function(letter, length) {
  name <- function(i) paste0(letter, i)
  for (i in seq_len(length)) {
    body <- if (i < length) paste0(name(i + 1), "(n)") else "{\n  x <- 0\n  while (x < n) x <- x + 1\n}"
    eval(parse(text = paste0(name(i), " <- function(n) ", body)), globalenv())
  }
}
chain("a", 12)
chain("b", 12)
both <- function() {
  a1(20)
  b1(20)
}
# Repeated until the functions are compiled.
for (i in 1:100) both()
ready()
repeat both()
