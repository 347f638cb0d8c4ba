# A process that sleeps in functions that are called without their names.
Counter <- R6::R6Class("Counter",
  public = list(
    run = function() private$secret(),
    start = function() self$run()
  ),
  private = list(secret = function() self$value),
  active = list(value = function() lapply(1, clean))
)
Derived <- R6::R6Class("Derived", inherit = Counter, public = list(
  start = function() super$start()
))
Account <- setRefClass("Account", methods = list(
  deposit = function() Derived$new()$start()
))
clean <- function(...) {
  (function() {
    Map(function(i) holder$total, 1)
  })()
}
holder <- new.env()
makeActiveBinding("total", function() {
  ready()
  Sys.sleep(1e6)
}, holder)
do.call(function() {
  account <- Account$new()
  account$deposit()
}, list())
