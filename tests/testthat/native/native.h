/* What the C files of the test library share.
 *
 * A tail call is compiled to a jump, and the caller's frame is gone. So every
 * function that a test wants to see in a stack does something with the result of
 * what it called. None of them is static, so that a stripped library still has
 * their names. */

#ifndef NATIVE_H
#define NATIVE_H

#define NOINLINE __attribute__((noinline))

#ifdef __cplusplus
extern "C" {
#endif

/* What a unit of work is: 0 for a tick that is given to the profiler, or so many steps of
 * computing, for a profiler with a timer. */
extern int unit_steps;

/* Does `units` units of work. */
double c_spin(int units);

/* One tick, and `unit_steps`: for languages that cannot use them directly. */
void c_tick(void);
int c_steps(void);

#ifdef __cplusplus
}
#endif

/* Sends SIGPROF to this thread: getpid(), gettid(), tgkill(). By system calls, so that the signal finds the function that
 * contains this, and no function of the C library; the `nop` is the instruction that it interrupts, and belongs to the
 * same line. */
#ifdef __aarch64__
#define GIVE_TICK()                                                                                                    \
  __asm__ volatile("mov x8, #172\n\tsvc #0\n\tmov x9, x0\n\t"                                                          \
                   "mov x8, #178\n\tsvc #0\n\tmov x1, x0\n\tmov x0, x9\n\t"                                           \
                   "mov x2, #27\n\tmov x8, #131\n\tsvc #0\n\tnop"                                                    \
                   :                                                                                                   \
                   :                                                                                                   \
                   : "x0", "x1", "x2", "x8", "x9", "memory")
#else
#define GIVE_TICK()                                                                                                    \
  __asm__ volatile("movl $39, %%eax\n\tsyscall\n\tmovl %%eax, %%edi\n\t"                                               \
                   "movl $186, %%eax\n\tsyscall\n\tmovl %%eax, %%esi\n\t"                                              \
                   "movl $27, %%edx\n\tmovl $234, %%eax\n\tsyscall\n\tnop"                                             \
                   :                                                                                                   \
                   :                                                                                                   \
                   : "rax", "rdi", "rsi", "rdx", "rcx", "r11", "memory")
#endif

#endif
