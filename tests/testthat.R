# testthat loads processx, which otherwise keeps parallel from seeing that its children ended.
Sys.setenv(PROCESSX_NOTIFY_OLD_SIGCHLD = "true")
library(testthat)
library(profile)

test_check("profile")
