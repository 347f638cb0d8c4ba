# Environment variables. Other programs set them, in any encoding, so a value may be any bytes.
#
# A path, and what is passed on to other programs, is used as it is. A value that must be text is used only if it is.

# The variables that this package reads. Others have an effect on R, curl and the programs that the package starts.
environment_variables <- c(
  "CI", "DISPLAY", "GIT_INDEX_FILE",
  "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY",
  "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS",
  "OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE", "OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE",
  "OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_PROFILES_HEADERS",
  "OTEL_RESOURCE_ATTRIBUTES", "OTEL_R_TRACES_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME",
  "PROFFER_PPROF_PATH", "PROFILE_PPROF",
  "R_KEEP_PKG_SOURCE", "R_LIBS", "R_PROFILE_AGENT", "R_PROFILE_AGENT_SPOOL", "R_PROFILE_RECORDING",
  "R_PROFILE_RECORDING_JOIN", "R_PROFILE_RECORDING_USER", "R_PROFILE_USER",
  "TESTTHAT", "TMPDIR", "WAYLAND_DISPLAY"
)

# The values as they are. All variables are read here, so that a test with bad values finds each of them in the list.
environment_values <- function(names, unset = "") {
  stopifnot(names %in% environment_variables)
  values <- Sys.getenv(names, unset, names = FALSE)
  # In a UTF-8 locale, R marks even invalid values as UTF-8.
  Encoding(values) <- "unknown"
  values
}

# A value in UTF-8. If it is not valid text, there is a warning, and the variable is treated as not set.
environment_text <- function(name, call) {
  value <- utf8_text(environment_values(name))
  if (is.na(value)) {
    warn_unused(name, "it is not valid text in the encoding of the locale", call)
    return("")
  }
  value
}

warn_unused <- function(name, why, call) {
  warn_profile(
    paste0("The environment variable `", name, "` is not used: ", why, "."), "profile_warning_environment",
    call = call
  )
}

# All variables of this process with their values as they are, sorted. `Sys.getenv()` fails if one is not valid text.
whole_environment <- function() {
  variables <- vapply(rust(rust_environment(), NULL), rawToChar, "", USE.NAMES = FALSE)
  part <- function(pattern) {
    part <- sub(pattern, "", variables, useBytes = TRUE)
    Encoding(part) <- "unknown"
    part
  }
  rlang::set_names(part("^[^=]*="), part("=.*"))
}
