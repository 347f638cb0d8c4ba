// C++: names with a namespace, a template, and the unwinder itself at work.

#include "native.h"
#include <Rinternals.h>
#include <stdexcept>

namespace kernel {

template <typename T> __attribute__((noinline)) T spin(int n) {
  T x = 1;
  for (int i = 0; i < n; i++) {
    if (unit_steps == 0) {
      GIVE_TICK();
    }
    for (int j = 0; j < unit_steps; j++) {
      x = x * T(0.999) + T(j % 5);
    }
  }
  return x;
}

// Works while an exception passes.
struct Passed {
  int n;
  __attribute__((noinline)) ~Passed() {
    volatile double x = c_spin(n);
    (void)x;
  }
};

__attribute__((noinline)) double thrown(int n) {
  Passed passed = {n};
  double x = c_spin(n);
  if (x > -1) {
    throw std::runtime_error("caught in cplusplus.cpp");
  }
  return x + 1;
}

}  // namespace kernel

template double kernel::spin<double>(int n);

extern "C" {

SEXP cpp_inner(SEXP n) { return Rf_ScalarReal(kernel::spin<double>(Rf_asInteger(n)) + 1); }

// Throws and catches exceptions: `n` of them, with a unit of work before each one, one while it passes, and one while it
// is handled. Without work before it, a profiler with a timer finds mostly the unwinder.
SEXP cpp_catch(SEXP n, SEXP work) {
  double x = 0;
  int units = Rf_asInteger(work);
  for (int i = 0; i < Rf_asInteger(n); i++) {
    try {
      x += kernel::thrown(units);
    } catch (const std::runtime_error &) {
      x += c_spin(units);
    }
  }
  return Rf_ScalarReal(x);
}
}
