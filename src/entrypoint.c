// What R may call: each entry point hands over to Rust (rust/src/lib.rs) and
// then lets R go on with a jump that was caught meanwhile (shim.c).

#include "shim.h"
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

#define ENTRY_0(name)                                                          \
    SEXP profile_rust_##name(void);                                            \
    static SEXP name(void) { return profile_resume(profile_rust_##name()); }
#define ENTRY_1(name)                                                          \
    SEXP profile_rust_##name(SEXP);                                            \
    static SEXP name(SEXP a) { return profile_resume(profile_rust_##name(a)); }
#define ENTRY_2(name)                                                          \
    SEXP profile_rust_##name(SEXP, SEXP);                                      \
    static SEXP name(SEXP a, SEXP b) {                                         \
        return profile_resume(profile_rust_##name(a, b));                      \
    }
#define ENTRY_3(name)                                                          \
    SEXP profile_rust_##name(SEXP, SEXP, SEXP);                                \
    static SEXP name(SEXP a, SEXP b, SEXP c) {                                 \
        return profile_resume(profile_rust_##name(a, b, c));                   \
    }
#define ENTRY_4(name)                                                          \
    SEXP profile_rust_##name(SEXP, SEXP, SEXP, SEXP);                          \
    static SEXP name(SEXP a, SEXP b, SEXP c, SEXP d) {                         \
        return profile_resume(profile_rust_##name(a, b, c, d));                \
    }
#define ENTRY_5(name)                                                          \
    SEXP profile_rust_##name(SEXP, SEXP, SEXP, SEXP, SEXP);                    \
    static SEXP name(SEXP a, SEXP b, SEXP c, SEXP d, SEXP e) {                 \
        return profile_resume(profile_rust_##name(a, b, c, d, e));             \
    }
#define ENTRY_6(name)                                                          \
    SEXP profile_rust_##name(SEXP, SEXP, SEXP, SEXP, SEXP, SEXP);              \
    static SEXP name(SEXP a, SEXP b, SEXP c, SEXP d, SEXP e, SEXP f) {         \
        return profile_resume(profile_rust_##name(a, b, c, d, e, f));          \
    }
ENTRY_5(read_rprof)
ENTRY_5(read_pprof)
ENTRY_6(read_otlp)
ENTRY_5(read_profile)
ENTRY_2(write_rprof)
ENTRY_4(write_pprof)
ENTRY_4(write_otlp)
ENTRY_2(otlp_message)
ENTRY_3(otlp_answer)
ENTRY_2(convert)
ENTRY_1(validate)
ENTRY_2(summarise)
ENTRY_1(frames)
ENTRY_0(schema)
ENTRY_1(file_format)
ENTRY_4(remap)
ENTRY_4(filter)
ENTRY_1(joint_check)
ENTRY_1(joint_block)
ENTRY_1(joint_start)
ENTRY_0(joint_state)
ENTRY_4(joint_stop)
ENTRY_0(joint_drop)

#define CALL(name, arguments) {#name, (DL_FUNC) &name, arguments}

static const R_CallMethodDef calls[] = {
    CALL(read_rprof, 5),
    CALL(read_pprof, 5),
    CALL(read_otlp, 6),
    CALL(read_profile, 5),
    CALL(write_rprof, 2),
    CALL(write_pprof, 4),
    CALL(write_otlp, 4),
    CALL(otlp_message, 2),
    CALL(otlp_answer, 3),
    CALL(convert, 2),
    CALL(validate, 1),
    CALL(summarise, 2),
    CALL(frames, 1),
    CALL(schema, 0),
    CALL(file_format, 1),
    CALL(remap, 4),
    CALL(filter, 4),
    CALL(joint_check, 1),
    CALL(joint_block, 1),
    CALL(joint_start, 1),
    CALL(joint_state, 0),
    CALL(joint_stop, 4),
    CALL(joint_drop, 0),
    {NULL, NULL, 0},
};

attribute_visible void R_init_profile(DllInfo *dll) {
    R_registerRoutines(dll, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(dll, FALSE);
    R_forceSymbols(dll, TRUE);
    profile_shim_init();
}

void profile_rust_unload(void);

attribute_visible void R_unload_profile(DllInfo *dll) {
    (void) dll;
    profile_rust_unload();
}
