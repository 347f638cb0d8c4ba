// The active span of R's thread, where profilers find it: in a record at a fixed place in memory.
//
// The record is the thread context of OpenTelemetry's OTEP 4947: 28 bytes, and an attribute if the name of the span is
// known. Other profilers find it by the thread-local variable that the OTEP defines, and the reader of this package
// (rust/reader/src/stack/spans.rs) by the variable `profile_thread_ctx_v1`, which is simpler to find in another process. Both
// may read it only while R's thread stands still, or else have to read it twice. A record that is being changed is not
// valid, and neither compilers nor processors may move writes across the changes of that flag.
//
// The name of a span is in the record itself, so there is nothing else to be read for it.
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

// The limits on the number of different names and on the length of each. A length in a record is one byte.
enum { MOST_NAMES = 1000, MOST_CHARACTERS = 100, MOST_BYTES = 255 };

// `key` is the place of the attribute's key in the list that process_context.c publishes. If that is of another library,
// `attributes_size` is 0, and the package's own reader finds the attribute by reading `length`.
typedef struct {
    uint8_t ids[IDS];
    volatile uint8_t valid;
    uint8_t flags;
    uint16_t attributes_size;
    uint8_t key;
    uint8_t length;
    char text[MOST_BYTES];
} Record;

// `name` is the number of the name, see number_of().
typedef struct {
    uint8_t ids[IDS];
    uint8_t is_valid;
    uint8_t flags;
    uint16_t name;
    double token;
} Active;

// A change of the active span: `offset` is the size of the profiler's file at that time.
typedef struct {
    double offset;
    uint8_t ids[IDS];
    uint8_t is_valid;
    uint16_t name;
} Change;

typedef struct {
    uint8_t length;
    char text[MOST_BYTES];
} Name;

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

// ---- Names -------------------------------------------------------------------------------

// The names of spans, which become labels of samples. Their number is limited like the number of sets of labels
// (R/label-sets.R): a name that contains the id of a user would otherwise be a label with a value for each user.
static struct {
    Name *items;
    size_t count, room;
    // The numbers of names, at places that depend on their content. At least half of them are 0, which is no name.
    uint16_t places[2048];
} names;

// The number of all further names. Their attribute has another key, and says which one is missing.
enum { FURTHER = MOST_NAMES + 1 };
static const Name further = {sizeof PROFILE_SPAN_NAME - 1, PROFILE_SPAN_NAME};

static const Name *name_of(uint16_t number) {
    static const Name empty;
    return number == 0 ? &empty : number == FURTHER ? &further : &names.items[number - 1];
}

// The number of bytes of the character in UTF-8; 0 if it is invalid. The text ends with a zero.
static int size_of_character(const char *text) {
    const uint8_t *bytes = (const uint8_t *) text;
    if (bytes[0] < 0x80)
        return 1;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
        return 0;
    int size = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    uint32_t code = bytes[0] & (0x7f >> size);
    for (int i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (bytes[i] & 0x3f);
    }
    uint32_t least = size == 4 ? 0x10000 : size == 3 ? 0x800 : 0x80;
    return code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : size;
}

// Cuts text that is too long, and replaces bytes that are not UTF-8.
static Name name_from(const char *text) {
    Name name = {0};
    // Where the text is cut if it is too long.
    size_t length = 0, cut = 0;
    for (int count = 1; *text != 0; count++) {
        int size = size_of_character(text);
        size_t bytes = size == 0 ? 1 : (size_t) size;
        if (count > MOST_CHARACTERS || length + bytes > MOST_BYTES) {
            memcpy(name.text + cut, "...", 3);
            memset(name.text + cut + 3, 0, MOST_BYTES - cut - 3);
            length = cut + 3;
            break;
        }
        memcpy(name.text + length, size == 0 ? "?" : text, bytes);
        text += bytes;
        length += bytes;
        if (count <= MOST_CHARACTERS - 3 && length <= MOST_BYTES - 3)
            cut = length;
    }
    name.length = (uint8_t) length;
    return name;
}

// The number of a name, which remains the same as long as the package is loaded; 0 for text without characters.
static uint16_t number_of(const char *text) {
    Name name = name_from(text);
    if (name.length == 0)
        return 0;
    uint32_t place = 2166136261u;
    for (int i = 0; i < name.length; i++)
        place = (place ^ (uint8_t) name.text[i]) * 16777619u;
    place ^= place >> 16;
    enum { PLACES = sizeof names.places / sizeof names.places[0] };
    for (place %= PLACES; names.places[place] != 0; place = (place + 1) % PLACES) {
        const Name *known = &names.items[names.places[place] - 1];
        if (known->length == name.length && memcmp(known->text, name.text, name.length) == 0)
            return names.places[place];
    }
    if (names.count == MOST_NAMES || !has_room((void **) &names.items, names.count, &names.room, sizeof(Name)))
        return FURTHER;
    names.items[names.count++] = name;
    return names.places[place] = (uint16_t) names.count;
}

// ---- Active spans ------------------------------------------------------------------------

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
    const Name *name = name_of(span->name);
    log_change();
    // Not when the package is loaded, since most processes have no spans.
    int are_keys_known = profile_publish_process();
    record->valid = 0;
    atomic_thread_fence(memory_order_release);
    memcpy(record->ids, span->ids, IDS);
    record->flags = span->flags;
    record->attributes_size = are_keys_known && name->length > 0 ? (uint16_t) (2 + name->length) : 0;
    record->key = span->name == FURTHER;
    record->length = name->length;
    memcpy(record->text, name->text, name->length);
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
// of the trace and the span, the flags, the number of the name, and NULL or an environment and a call: when the frame of
// that environment ends, the activation does, too. The call is that of on.exit() with a call of the R function
// pop_span(), in which the token is inserted. In R code, this would take three times as long as all the rest.
SEXP profile_push_span(SEXP arguments) {
    SEXP trace = CADR(arguments), span = CADDR(arguments), flags = CADDDR(arguments);
    SEXP rest = CDR(CDDDR(arguments));
    int name = Rf_asInteger(CAR(rest));
    SEXP frame = CADR(rest);
    Active new = none;
    new.is_valid = read_id(trace, new.ids, TRACE) && read_id(span, new.ids + TRACE, SPAN);
    if (new.is_valid) {
        new.flags = TYPEOF(flags) == INTSXP && XLENGTH(flags) == 1 ? (uint8_t) INTEGER(flags)[0] : 0;
        // The number is used as an index.
        new.name = (name > 0 && (size_t) name <= names.count) || name == FURTHER ? (uint16_t) name : 0;
    } else {
        memset(new.ids, 0, IDS);
    }
    // Before anything is changed, since this allocates memory and may jump.
    double token = stack.token + 1;
    SEXP result = PROTECT(Rf_ScalarReal(new.is_valid ? token : -token));
    if (TYPEOF(frame) == ENVSXP)
        end_with_frame(result, frame, CADDR(rest));
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

// The number of a name, for profile_push_span(); that of the active span if the argument is NULL.
SEXP profile_span_name(SEXP arguments) {
    SEXP text = CADR(arguments);
    if (text == R_NilValue)
        return Rf_ScalarInteger(active()->name);
    if (TYPEOF(text) != STRSXP || XLENGTH(text) != 1)
        return Rf_ScalarInteger(0);
    text = STRING_ELT(text, 0);
    // Text of unknown encoding cannot be converted.
    if (text == NA_STRING || Rf_getCharCE(text) == CE_BYTES)
        return Rf_ScalarInteger(0);
    const void *memory = vmaxget();
    uint16_t number = number_of(Rf_translateCharUTF8(text));
    vmaxset(memory);
    return Rf_ScalarInteger(number);
}

// The record as it is, as raw bytes.
SEXP profile_active_span(SEXP arguments) {
    (void) arguments;
    size_t size = 28 + (size_t) profile_thread_ctx_v1.attributes_size;
    SEXP bytes = Rf_allocVector(RAWSXP, (R_xlen_t) size);
    memcpy(RAW(bytes), &profile_thread_ctx_v1, size);
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

// Writes what R has buffered of its profiler's file. Must not be called in a forked process.
static void flush_streams(void) {
    // The stream is R's own, and is not known here. R's handler of the signal writes to it.
    sigset_t profiler, before;
    sigemptyset(&profiler);
    sigaddset(&profiler, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &profiler, &before);
    fflush(NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// A script that is recorded calls this without the package (inst/record/places.R).
attribute_visible SEXP profile_flush_streams(void) {
    flush_streams();
    return R_NilValue;
}

static double size_of_file(void) {
    if (log_.is_buffered)
        flush_streams();
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
    change->name = span->name;
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

// Ends the log. Returns list(offset, trace_id, span_id, key, value), where the last two are the label with the name;
// NULL if there is none.
SEXP profile_logged_spans(SEXP arguments) {
    (void) arguments;
    if (log_.file < 0)
        return R_NilValue;
    R_xlen_t count = (R_xlen_t) log_.count;
    const char *names[] = {"offset", "trace_id", "span_id", "key", "value", ""};
    SEXP result = PROTECT(Rf_mkNamed(VECSXP, names));
    SET_VECTOR_ELT(result, 0, Rf_allocVector(REALSXP, count));
    for (int column = 1; column < 5; column++)
        SET_VECTOR_ELT(result, column, Rf_allocVector(STRSXP, count));
    for (R_xlen_t i = 0; i < count; i++) {
        const Change *change = &log_.changes[i];
        REAL(VECTOR_ELT(result, 0))[i] = change->offset;
        SEXP trace = change->is_valid ? hexadecimal(change->ids, TRACE) : NA_STRING;
        SET_STRING_ELT(VECTOR_ELT(result, 1), i, trace);
        SEXP span = change->is_valid ? hexadecimal(change->ids + TRACE, SPAN) : NA_STRING;
        SET_STRING_ELT(VECTOR_ELT(result, 2), i, span);
        const Name *name = name_of(change->name);
        const char *key = change->name == FURTHER ? PROFILE_OVERFLOW : PROFILE_SPAN_NAME;
        SET_STRING_ELT(VECTOR_ELT(result, 3), i, name->length == 0 ? NA_STRING : Rf_mkChar(key));
        SEXP value = name->length == 0 ? NA_STRING : Rf_mkCharLenCE(name->text, name->length, CE_UTF8);
        SET_STRING_ELT(VECTOR_ELT(result, 4), i, value);
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
    free(names.items);
    memset(&names, 0, sizeof names);
}
