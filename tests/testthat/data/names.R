Counter <- R6::R6Class("Counter",
  public = list(
    run = function() self$value,
    all = function(...) tick()
  ),
  private = list(
    secret = function() tick()
  ),
  active = list(
    value = function() private$secret()
  )
)
Derived <- R6::R6Class("Derived",
  inherit = Counter,
  public = list(
    run = function() {
      super$run()
      self$all()
    }
  )
)
Derived$set("public", "more", function() {
  tick()
})
Account <- setRefClass("Account",
  methods = list(
    deposit = function() {
      tick()
      spend()
    }
  ),
  where = environment()
)
Account$methods(
  spend = function() tick()
)
holder <- new.env()
makeActiveBinding("total", function() {
  tick()
}, holder)
clean <- function(...) {
  tick()
}
`%with%` <- function(a, b) {
  tick()
}
`[.zebra` <- function(x, i) tick()
other <- list(
  clean = clean,
  own = function() {
    tick()
  }
)
work <- function() {
  lapply(1, clean)
  do.call(clean, list())
  match.fun(clean)()
  sapply(1, function(i) tick())
  (function() {
    tick()
  })()
  tryCatch(Map(function(a) tick(), 1), error = identity)
  holder$total
  other$clean()
  other[[2]]()
  1 %with% 2
  structure(1, class = "zebra")[1]
  counter <- Derived$new()
  counter$run()
  counter$more()
  Account$new()$deposit()
  # The argument is evaluated in another function, but belongs to this one.
  (function(expr) expr)({
    tick()
  })
  other$own()
}
