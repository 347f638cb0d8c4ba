make_sales <- function(n) {
  shop <- sample(sprintf("shop %02d", 1:20), n, replace = TRUE)
  price <- paste(round(runif(n, 1, 99), 2), "EUR")
  data.frame(shop = shop, price = price, pieces = rpois(n, 3))
}

parse_price <- function(text) {
  as.numeric(sub(" *EUR$", "", text))
}

clean_sales <- function(sales) {
  sales$price <- parse_price(sales$price)
  sales[sales$pieces > 0, ]
}
