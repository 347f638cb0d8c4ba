// C++: names with a namespace, a template, and the unwinder itself at work.

#include <Rinternals.h>
#include <stdexcept>

extern "C" double c_spin(int n);

namespace kernel {

template <typename T> __attribute__((noinline)) T spin(int n) {
  T x = 1;
  for (int i = 0; i < n; i++) {
    x = x * T(0.999) + T(i % 5);
  }
  return x;
}

__attribute__((noinline)) double thrown(int n) {
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

// Throws and catches exceptions, so many that samples are taken within the unwinder
// itself where `each`, the work before one, is little.
SEXP cpp_catch(SEXP n, SEXP each) {
  double x = 0;
  for (int i = 0; i < Rf_asInteger(n); i += Rf_asInteger(each)) {
    try {
      x += kernel::thrown(Rf_asInteger(each));
    } catch (const std::runtime_error &) {
      x += 1;
    }
  }
  return Rf_ScalarReal(x);
}
}
