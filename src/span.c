// The active span of R's thread, where profilers find it: in a record at a fixed place in memory.
//
// The record is the thread context of OpenTelemetry's OTEP 4947, which is 28 bytes long here, since it has no
// attributes. Other profilers find it by the thread-local variable that the OTEP defines, and the reader of this package
// (rust/reader/src/spans.rs) by the variable `profile_thread_ctx_v1`, which is simpler to find in another process. Both
// may read it only while R's thread stands still, or else have to read it twice. A record that is being changed is not
// valid, and neither compilers nor processors may move writes across the changes of that flag.
//
// Active spans are a stack: when the innermost one ends, the one before it is active again. OpenTelemetry allows that
// an outer span is deactivated first; this ends all that were activated after it.
//
// R's own profiler does not read the record. While it runs, a log has the size of its file at each change
// (profile_log_spans()): lines before that offset were written under the span before, all others under the new one.
// R up to 4.2 buffers lines, so the buffer is flushed first.

#include "span.h"
#include "process_context.h"
#include <R_ext/Visibility.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

enum { TRACE = 16, SPAN = 8, IDS = TRACE + SPAN };

// Padded to whole words, which the reader can read without a system call.
typedef struct {
    uint8_t ids[IDS];
    volatile uint8_t valid;
    uint8_t flags;
    uint16_t attributes_size;
    uint8_t padding[4];
} Record;

typedef struct {
    uint8_t ids[IDS];
    uint8_t is_valid;
    uint8_t flags;
    double token;
} Active;

// A change of the active span: `offset` is the size of the profiler's file at that time.
typedef struct {
    double offset;
    uint8_t ids[IDS];
    uint8_t is_valid;
} Change;

attribute_visible Record profile_thread_ctx_v1 __attribute__((aligned(8)));

#ifdef __linux__
attribute_visible __thread void *otel_thread_ctx_v1;

// The address of the variable in the calling thread. OTEP 4947 requires a relocation by which other processes find it
// (TLSDESC). On x86-64, compilers make another one unless they get an option that R's checks call non-portable, so this
// is the code that they would make with it. The function that it calls keeps all registers but one; the stack is moved
// past the part that this function may use below the stack pointer, and aligned.
static void **variable_of_thread(void) {
#if defined(__x86_64__) && defined(__LP64__)
    char *offset, *thread;
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "subq $128, %%rsp\n\t"
                     "andq $-16, %%rsp\n\t"
                     "leaq otel_thread_ctx_v1@TLSDESC(%%rip), %%rax\n\t"
                     "call *otel_thread_ctx_v1@TLSCALL(%%rax)\n\t"
                     "movq %%rbx, %%rsp"
                     : "=&a"(offset)
                     :
                     : "rbx", "cc", "memory");
    __asm__("movq %%fs:0, %0" : "=r"(thread));
    return (void **) (thread + (intptr_t) offset);
#else
    return &otel_thread_ctx_v1;
#endif
}
#endif

static struct {
    Active *spans;
    size_t count, room;
    // The number of the last activation. It is not reused.
    double token;
} stack;

// Makes room for one more item. Returns 0 if there is no memory.
static int has_room(void **items, size_t count, size_t *room, size_t size) {
    if (count < *room)
        return 1;
    size_t more = *room == 0 ? 16 : 2 * *room;
    void *grown = realloc(*items, more * size);
    if (grown == NULL)
        return 0;
    *items = grown;
    *room = more;
    return 1;
}

static const Active none;

static const Active *active(void) {
    return stack.count == 0 ? &none : &stack.spans[stack.count - 1];
}

// Must be called in R's thread.
void profile_publish_span(void) {
#ifdef __linux__
    *variable_of_thread() = &profile_thread_ctx_v1;
#endif
}

static void log_change(void);

static void publish(void) {
    Record *record = &profile_thread_ctx_v1;
    const Active *span = active();
    log_change();
    // Not when the package is loaded, since most processes have no spans.
    profile_publish_process();
    record->valid = 0;
    atomic_thread_fence(memory_order_release);
    memcpy(record->ids, span->ids, IDS);
    record->flags = span->flags;
    atomic_thread_fence(memory_order_release);
    record->valid = span->is_valid;
}

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

// Reads hexadecimal digits. Returns 0 unless `text` is a string with as many as needed, and not all are zero.
static int read_id(SEXP text, uint8_t *id, int bytes) {
    if (TYPEOF(text) != STRSXP || XLENGTH(text) != 1 || STRING_ELT(text, 0) == NA_STRING)
        return 0;
    const char *digits = CHAR(STRING_ELT(text, 0));
    if (strlen(digits) != 2 * (size_t) bytes)
        return 0;
    int any = 0;
    for (int i = 0; i < bytes; i++) {
        int high = digit(digits[2 * i]), low = digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        id[i] = (uint8_t) (16 * high + low);
        any |= id[i];
    }
    return any != 0;
}

static void end_with_frame(SEXP token, SEXP frame, SEXP call) {
    SEXP pop = CADR(call);
    pop = PROTECT(Rf_lang2(CAR(pop), token));
    call = PROTECT(Rf_lang4(CAR(call), pop, CADDR(call), CADDDR(call)));
    Rf_eval(call, frame);
    UNPROTECT(2);
}

// Activates the span with these ids; if they are invalid, no span is active from now on. Returns a token for
// profile_pop_span(), which is negative if the ids are invalid, and 0 if there is no memory. The arguments are the ids
// of the trace and the span, the flags, and NULL or an environment and a call: when the frame of that environment ends,
// the activation does, too. The call is that of on.exit() with a call of the R function pop_span(), in which the token
// is inserted. In R code, this would take three times as long as all the rest.
SEXP profile_push_span(SEXP arguments) {
    SEXP trace = CADR(arguments), span = CADDR(arguments), flags = CADDDR(arguments);
    SEXP frame = CAD4R(arguments);
    Active new = none;
    new.is_valid = read_id(trace, new.ids, TRACE) && read_id(span, new.ids + TRACE, SPAN);
    if (new.is_valid)
        new.flags = TYPEOF(flags) == INTSXP && XLENGTH(flags) == 1 ? (uint8_t) INTEGER(flags)[0] : 0;
    else
        memset(new.ids, 0, IDS);
    // Before anything is changed, since this allocates memory and may jump.
    double token = stack.token + 1;
    SEXP result = PROTECT(Rf_ScalarReal(new.is_valid ? token : -token));
    if (TYPEOF(frame) == ENVSXP)
        end_with_frame(result, frame, CAR(CDR(CDDDR(CDR(arguments)))));
    UNPROTECT(1);
    if (!has_room((void **) &stack.spans, stack.count, &stack.room, sizeof(Active))) {
        REAL(result)[0] = 0;
        return result;
    }
    stack.token = new.token = token;
    stack.spans[stack.count++] = new;
    publish();
    return result;
}

// Ends the activation with this token, and all that are inside it. Does nothing if it has ended.
SEXP profile_pop_span(SEXP arguments) {
    SEXP token = CADR(arguments);
    if (TYPEOF(token) != REALSXP || XLENGTH(token) != 1)
        return R_NilValue;
    double wanted = REAL(token)[0] < 0 ? -REAL(token)[0] : REAL(token)[0];
    for (size_t i = stack.count; i > 0 && stack.spans[i - 1].token >= wanted; i--) {
        if (stack.spans[i - 1].token == wanted) {
            stack.count = i - 1;
            publish();
            break;
        }
    }
    return R_NilValue;
}

// The record as it is, as raw bytes, and whether it is published.
SEXP profile_active_span(SEXP arguments) {
    (void) arguments;
    SEXP bytes = Rf_allocVector(RAWSXP, 28);
    memcpy(RAW(bytes), &profile_thread_ctx_v1, 28);
    return bytes;
}

// ---- The log -----------------------------------------------------------------------------

#ifndef _WIN32

static struct {
    int file;
    // A forked process must not flush R's buffer, which contains lines of its parent.
    long process;
    // Whether R buffers what it writes to the file.
    int is_buffered;
    Change *changes;
    size_t count, room;
} log_ = {.file = -1};

static SEXP hexadecimal(const uint8_t *id, int bytes) {
    char text[2 * TRACE + 1];
    for (int i = 0; i < bytes; i++) {
        text[2 * i] = "0123456789abcdef"[id[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
    }
    return Rf_mkCharLen(text, 2 * bytes);
}
static double size_of_file(void) {
    if (log_.is_buffered) {
        // The stream is R's own, and is not known here. R's handler of the signal writes to it.
        sigset_t profiler, before;
        sigemptyset(&profiler);
        sigaddset(&profiler, SIGPROF);
        pthread_sigmask(SIG_BLOCK, &profiler, &before);
        fflush(NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    struct stat about;
    return fstat(log_.file, &about) == 0 ? (double) about.st_size : -1;
}

static void close_log(void) {
    if (log_.file >= 0)
        close(log_.file);
    free(log_.changes);
    log_.file = -1;
    log_.changes = NULL;
    log_.count = log_.room = 0;
}

// Adds the span that becomes active. The last change at an offset replaces those before it, so that the log is not
// longer than the file.
static void log_change(void) {
    if (log_.file < 0 || log_.process != (long) getpid())
        return;
    double offset = size_of_file();
    const Active *span = active();
    if (log_.count == 0 || log_.changes[log_.count - 1].offset != offset) {
        if (!has_room((void **) &log_.changes, log_.count, &log_.room, sizeof(Change))) {
            // Without this change, the ids of later samples would be wrong.
            close_log();
            return;
        }
        log_.count++;
    }
    Change *change = &log_.changes[log_.count - 1];
    change->offset = offset;
    memcpy(change->ids, span->ids, IDS);
    change->is_valid = span->is_valid;
}

// Begins a log for the file with this path, to which R's profiler writes. The second argument is whether R buffers it.
SEXP profile_log_spans(SEXP arguments) {
    SEXP path = CADR(arguments);
    close_log();
    if (TYPEOF(path) != STRSXP || XLENGTH(path) != 1)
        return R_NilValue;
    log_.is_buffered = Rf_asLogical(CADDR(arguments)) != 0;
    log_.process = (long) getpid();
    log_.file = open(CHAR(STRING_ELT(path, 0)), O_RDONLY | O_CLOEXEC);
    log_change();
    return R_NilValue;
}

// Ends the log. Returns list(offset, trace_id, span_id); NULL if there is none.
SEXP profile_logged_spans(SEXP arguments) {
    (void) arguments;
    if (log_.file < 0)
        return R_NilValue;
    R_xlen_t count = (R_xlen_t) log_.count;
    const char *names[] = {"offset", "trace_id", "span_id", ""};
    SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
    SET_VECTOR_ELT(result, 0, Rf_allocVector(REALSXP, count));
    SET_VECTOR_ELT(result, 1, Rf_allocVector(STRSXP, count));
    SET_VECTOR_ELT(result, 2, Rf_allocVector(STRSXP, count));
    for (R_xlen_t i = 0; i < count; i++) {
        const Change *change = &log_.changes[i];
        REAL(VECTOR_ELT(result, 0))[i] = change->offset;
        SEXP trace = change->is_valid ? hexadecimal(change->ids, TRACE) : NA_STRING;
        SET_STRING_ELT(VECTOR_ELT(result, 1), i, trace);
        SEXP span = change->is_valid ? hexadecimal(change->ids + TRACE, SPAN) : NA_STRING;
        SET_STRING_ELT(VECTOR_ELT(result, 2), i, span);
    }
    close_log();
    UNPROTECT(1);
    return result;
}
#else
// On Windows the size of a file that is being written is not reliable.
static void log_change(void) {}
static void close_log(void) {}

SEXP profile_log_spans(SEXP arguments) {
    (void) arguments;
    return R_NilValue;
}

SEXP profile_logged_spans(SEXP arguments) {
    (void) arguments;
    return R_NilValue;
}
#endif

// Ends everything before the library is unloaded. Its code and variables may stay in memory (loading.c), where a later
// load would find them.
void profile_end_spans(void) {
    close_log();
    if (stack.count > 0) {
        stack.count = 0;
        publish();
    }
    free(stack.spans);
    stack.spans = NULL;
    stack.room = 0;
}
