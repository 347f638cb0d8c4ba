// R calls on behalf of Rust.
//
// R reports errors and interrupts by jumping to an earlier frame, and a jump
// over a Rust frame is undefined behaviour. So every R call that may jump is
// made here under R_UnwindProtect(): a jump ends in `guarded()`, which returns
// NULL; Rust unwinds by returning an error; the entry point (entrypoint.c)
// calls profile_resume() and R goes on with its own jump. An error of R's thus
// reaches the user as R raised it, and Ctrl-C stays Ctrl-C.

#include "shim.h"
#include <R_ext/Utils.h>
#include <setjmp.h>
#include <string.h>

static SEXP token = NULL;
static int jumped = 0;

void profile_shim_init(void) {
    token = R_MakeUnwindCont();
    R_PreserveObject(token);
}

static void leave(void *target, Rboolean jump) {
    if (jump)
        longjmp(*(jmp_buf *) target, 1);
}

static SEXP guarded(SEXP (*body)(void *), void *data) {
    jmp_buf target;
    if (setjmp(target)) {
        jumped = 1;
        return NULL;
    }
    return R_UnwindProtect(body, data, leave, &target, token);
}

SEXP profile_resume(SEXP result) {
    if (jumped) {
        jumped = 0;
        R_ContinueUnwind(token);
    }
    return result;
}

static SEXP do_check(void *data) {
    (void) data;
    R_CheckUserInterrupt();
    return R_NilValue;
}

int profile_uninterrupted(void) {
    return guarded(do_check, NULL) != NULL;
}

struct vector {
    int type;
    R_xlen_t length;
};

static SEXP do_alloc(void *data) {
    const struct vector *v = data;
    return Rf_allocVector((SEXPTYPE) v->type, v->length);
}

SEXP profile_alloc(int type, R_xlen_t length) {
    struct vector v = {type, length};
    return guarded(do_alloc, &v);
}

// A character vector from few distinct strings: one CHARSXP for each of them,
// then one pointer for each row. Index -1 is NA.
struct strings {
    SEXP out;
    const char *const *bytes;
    const int *sizes;
    R_xlen_t distinct;
    const int *index;
};

static SEXP do_fill_strings(void *data) {
    const struct strings *s = data;
    R_xlen_t n = Rf_xlength(s->out);
    SEXP pool = PROTECT(Rf_allocVector(STRSXP, s->distinct));
    for (R_xlen_t i = 0; i < s->distinct; ++i)
        SET_STRING_ELT(pool, i, Rf_mkCharLenCE(s->bytes[i], s->sizes[i], CE_UTF8));
    const SEXP *chars = STRING_PTR_RO(pool);
    for (R_xlen_t i = 0; i < n; ++i)
        SET_STRING_ELT(s->out, i, s->index[i] < 0 ? NA_STRING : chars[s->index[i]]);
    UNPROTECT(1);
    return s->out;
}

int profile_fill_strings(SEXP out, const char *const *bytes, const int *sizes,
                         R_xlen_t distinct, const int *index) {
    struct strings s = {out, bytes, sizes, distinct, index};
    return guarded(do_fill_strings, &s) != NULL;
}

static SEXP tibble_class(void) {
    SEXP class = PROTECT(Rf_allocVector(STRSXP, 3));
    SET_STRING_ELT(class, 0, Rf_mkChar("tbl_df"));
    SET_STRING_ELT(class, 1, Rf_mkChar("tbl"));
    SET_STRING_ELT(class, 2, Rf_mkChar("data.frame"));
    UNPROTECT(1);
    return class;
}

// Row names in R's compact form, c(NA, -rows).
static SEXP compact_row_names(R_xlen_t rows) {
    SEXP names = Rf_allocVector(INTSXP, 2);
    INTEGER(names)[0] = NA_INTEGER;
    INTEGER(names)[1] = -(int) rows;
    return names;
}

// v1's `samples$locations`: one tibble(location_id) for each distinct stack,
// shared by all samples that have it.
struct stacks {
    SEXP out;
    const int *frames;
    const size_t *ends;
    R_xlen_t count;
    const int *stack_of;
};

static SEXP do_fill_stacks(void *data) {
    const struct stacks *s = data;
    SEXP pool = PROTECT(Rf_allocVector(VECSXP, s->count));
    SEXP names = PROTECT(Rf_mkString("location_id"));
    SEXP class = PROTECT(tibble_class());
    size_t start = 0;
    for (R_xlen_t i = 0; i < s->count; ++i) {
        size_t length = s->ends[i] - start;
        SEXP tibble = Rf_allocVector(VECSXP, 1);
        SET_VECTOR_ELT(pool, i, tibble);
        SEXP ids = Rf_allocVector(INTSXP, (R_xlen_t) length);
        SET_VECTOR_ELT(tibble, 0, ids);
        if (length > 0)
            memcpy(INTEGER(ids), s->frames + start, length * sizeof(int));
        SEXP rows = PROTECT(compact_row_names((R_xlen_t) length));
        Rf_setAttrib(tibble, R_NamesSymbol, names);
        Rf_setAttrib(tibble, R_RowNamesSymbol, rows);
        Rf_setAttrib(tibble, R_ClassSymbol, class);
        UNPROTECT(1);
        start = s->ends[i];
    }
    R_xlen_t n = Rf_xlength(s->out);
    for (R_xlen_t i = 0; i < n; ++i)
        SET_VECTOR_ELT(s->out, i, VECTOR_ELT(pool, s->stack_of[i]));
    UNPROTECT(3);
    return s->out;
}

int profile_fill_stacks(SEXP out, const int *frames, const size_t *ends,
                        R_xlen_t stacks, const int *stack_of) {
    struct stacks s = {out, frames, ends, stacks, stack_of};
    return guarded(do_fill_stacks, &s) != NULL;
}

struct names {
    SEXP list;
    const char *const *names;
};

static SEXP do_set_names(void *data) {
    const struct names *n = data;
    R_xlen_t length = Rf_xlength(n->list);
    SEXP names = PROTECT(Rf_allocVector(STRSXP, length));
    for (R_xlen_t i = 0; i < length; ++i)
        SET_STRING_ELT(names, i, Rf_mkCharCE(n->names[i], CE_UTF8));
    Rf_setAttrib(n->list, R_NamesSymbol, names);
    UNPROTECT(1);
    return n->list;
}

int profile_set_names(SEXP list, const char *const *names) {
    struct names n = {list, names};
    return guarded(do_set_names, &n) != NULL;
}

static SEXP do_set_tibble(void *data) {
    const struct vector *v = ((void **) data)[1];
    SEXP list = ((SEXP *) data)[0];
    SEXP rows = PROTECT(compact_row_names(v->length));
    Rf_setAttrib(list, R_RowNamesSymbol, rows);
    SEXP class = PROTECT(tibble_class());
    Rf_setAttrib(list, R_ClassSymbol, class);
    UNPROTECT(2);
    return list;
}

int profile_set_tibble(SEXP list, R_xlen_t rows) {
    struct vector v = {VECSXP, rows};
    void *data[] = {list, &v};
    return guarded(do_set_tibble, data) != NULL;
}

// The data pointers of an ALTREP vector are made on demand, which allocates.
static SEXP do_data(void *data) {
    void **request = data;
    SEXP x = request[0];
    switch (TYPEOF(x)) {
    case LGLSXP:
        request[1] = (void *) LOGICAL_RO(x);
        break;
    case INTSXP:
        request[1] = (void *) INTEGER_RO(x);
        break;
    case REALSXP:
        request[1] = (void *) REAL_RO(x);
        break;
    case RAWSXP:
        request[1] = (void *) RAW_RO(x);
        break;
    case STRSXP:
        request[1] = (void *) STRING_PTR_RO(x);
        break;
    default:
        request[1] = NULL;
    }
    return x;
}

static const void *data_of(SEXP x) {
    void *request[] = {x, NULL};
    return guarded(do_data, request) == NULL ? NULL : request[1];
}

const int *profile_integers(SEXP x) { return data_of(x); }
const double *profile_doubles(SEXP x) { return data_of(x); }
const unsigned char *profile_bytes(SEXP x) { return data_of(x); }
const SEXP *profile_strings(SEXP x) { return data_of(x); }

// As they are, in whatever encoding.
const char *profile_native(SEXP string, int *size) {
    *size = (int) Rf_xlength(string);
    return CHAR(string);
}

// The string as UTF-8. Without text the pointer is not NULL either: NA is size -1, bytes
// without an encoding are size -2.
static SEXP do_utf8(void *data) {
    void **request = data;
    request[1] = (void *) Rf_translateCharUTF8(request[0]);
    return R_NilValue;
}

const char *profile_utf8(SEXP string, int *size) {
    if (string == NA_STRING) {
        *size = -1;
        return "";
    }
    // Not text in any encoding: to translate it would be an error.
    if (Rf_getCharCE(string) == CE_BYTES) {
        *size = -2;
        return "";
    }
    void *request[] = {string, NULL};
    if (guarded(do_utf8, request) == NULL)
        return NULL;
    *size = (int) strlen(request[1]);
    return request[1];
}

int profile_type(SEXP x) { return TYPEOF(x); }
int profile_inherits(SEXP x, const char *class) { return Rf_inherits(x, class); }
R_xlen_t profile_length(SEXP x) { return Rf_xlength(x); }
SEXP profile_element(SEXP list, R_xlen_t i) { return VECTOR_ELT(list, i); }

// Whether it is what its type says and nothing more: without a class or dimensions.
int profile_is_plain(SEXP x) {
    return !Rf_isObject(x) && Rf_getAttrib(x, R_DimSymbol) == R_NilValue;
}

// The attribute, or R's NULL.
SEXP profile_class(SEXP x) { return Rf_getAttrib(x, R_ClassSymbol); }

// R's NULL where there are none. The names of a list are an attribute, which is
// looked up without allocating.
SEXP profile_names(SEXP x) { return Rf_getAttrib(x, R_NamesSymbol); }

void profile_set_element(SEXP list, R_xlen_t i, SEXP value) { SET_VECTOR_ELT(list, i, value); }
int *profile_integer_slots(SEXP x) { return TYPEOF(x) == LGLSXP ? LOGICAL(x) : INTEGER(x); }
double *profile_double_slots(SEXP x) { return REAL(x); }
unsigned char *profile_byte_slots(SEXP x) { return RAW(x); }
void profile_protect(SEXP x) { PROTECT(x); }
void profile_unprotect(void) { UNPROTECT(1); }
