sum_up <- function(sales) {
  total <- sum(sales$price * sales$pieces)
  data.frame(shop = sales$shop[[1]], total = total)
}

by_shop <- function(sales) {
  shops <- split(sales, sales$shop)
  rows <- lapply(shops, sum_up)
  do.call(rbind, rows)
}

fit <- function(sales) {
  model <- lm(pieces ~ price + shop, data = sales)
  summary(model)
}

report <- function(n) {
  raw <- make_sales(n)
  sales <- clean_sales(raw)
  totals <- by_shop(sales)
  model <- fit(sales)
  capture.output(print(totals), print(model))
}
