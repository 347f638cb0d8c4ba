/* What the C files of the test library share.
 *
 * A tail call is compiled to a jump, and the caller's frame is gone. So every
 * function that a test wants to see in a stack does something with the result of
 * what it called. None of them is static, so that a stripped library still has
 * their names. */

#ifndef NATIVE_H
#define NATIVE_H

#include <R.h>
#include <Rinternals.h>

#define NOINLINE __attribute__((noinline))

/* Burns CPU time; the time is proportional to n. */
double c_spin(int n);

/* CPU time of the calling thread, in seconds. */
double thread_cpu(void);

#endif
