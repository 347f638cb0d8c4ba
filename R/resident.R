# The memory of the processes of a snapshot that is in RAM: what it consists of, and what is worth to know about it. The
# core reads and divides it, see src/rust/reader/src/heap/resident.

# Facts for print() and describe_profile(), named by their labels; empty if the snapshot does not have them, for example
# because it is from a file that cannot store them.
resident_facts <- function(x) {
  of <- function(key) sum(as.numeric(stats::na.omit(source_attribute(x, paste0("profile.heap.", key)))))
  not_resident <- source_attribute(x, "profile.heap.not_resident")
  if (length(not_resident) == 0 || anyNA(not_resident)) {
    return(character())
  }
  resident <- of("resident")
  bytes <- function(amount) format_amount(amount, "bytes")
  parts <- resident_parts(x)
  parts <- c("R's heap" = resident - sum(parts), parts)
  parts <- parts[parts >= resident / 1000]
  absent <- of("not_resident")
  swapped <- of("swapped")
  free <- parts["free in malloc"]
  allocator <- unique(stats::na.omit(source_attribute(x, "profile.process.allocator")))
  other <- setdiff(allocator, "glibc")
  c(
    Resident = paste0(
      bytes(resident), ": ", paste(names(parts), bytes(parts), collapse = ", "),
      if (of("with_others") > 0) paste0("; ", bytes(of("with_others")), " of it shared with other processes"),
      if (of("unsure") > resident / 100) paste0("; ", bytes(of("unsure")), " of it is assigned by estimation"),
      if (length(other) > 0) paste0("; allocator: ", paste(shown_name(other, 40), collapse = ", "), ", not split")
    ),
    # Less than a page for each of some objects is not worth mentioning.
    Absent = if (absent > max(2^20, resident / 1000)) {
      paste0(
        bytes(absent), " of R's heap: ", if (swapped > 0) "swapped out, or allocated and never written" else "allocated, but never written",
        if (swapped > 0) paste0("; ", bytes(swapped), " of the process were swapped out")
      )
    },
    Released = if (of("released") > max(2^20, resident / 100)) {
      paste(bytes(of("released")), "by the collection that this snapshot made")
    },
    Hint = if (isTRUE(free >= max(2^25, resident / 10))) {
      paste0(
        "malloc_trim() returns free memory of malloc to the system: ",
        "Rcpp::cppFunction(\"int trim() { return malloc_trim(0); }\", includes = \"#include <malloc.h>\"); trim()"
      )
    }
  )
}

# The bytes of each part of what is not R's heap, the largest first.
resident_parts <- function(x) {
  names <- x$functions$name[match(x$locations$function_id, x$functions$function_id)]
  frames <- x$sample_locations
  frames <- frames[order(frames$sample_id, -frames$depth, method = "radix"), ]
  name <- names[match(frames$location_id, x$locations$location_id)]
  roots <- which(!duplicated(frames$sample_id) & name == data_model()$not_r)
  # Each has at least the type of the memory below the root.
  part <- rlang::set_names(name[roots + 1], frames$sample_id[roots])
  types <- types_with_role(unique(x$sample_values$type), "in use", "bytes")
  values <- x$sample_values[x$sample_values$type %in% types & x$sample_values$sample_id %in% frames$sample_id[roots], ]
  sums <- tapply(values$value, part[as.character(values$sample_id)], sum)
  sort(rlang::set_names(as.vector(sums), names(sums)), decreasing = TRUE)
}

# Lines such as `Resident:  120MB: ...`.
format_resident <- function(x, width) {
  facts <- resident_facts(x)
  unlist(Map(function(label, fact) wrap(formatC(paste0(label, ":"), width = -11), fact, width), names(facts), facts))
}
