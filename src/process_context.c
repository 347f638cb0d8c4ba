// Announces to other profilers that this process has records of active spans (span.c).
//
// OpenTelemetry's OTEP 4719 defines where: in a mapping that is named OTEL_CTX, whose header refers to a message of
// protobuf. OTEP 4947 defines the two attributes that the message contains here: the kind of records, and the keys of
// the attributes in records. Profilers ignore the records of a process without this mapping.
//
// A process has at most one such mapping. If another library has published one, it is left as it is.

// For memfd_create() and mmap().
#define _GNU_SOURCE
#include "process_context.h"

#ifdef __linux__
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

// These are missing in older headers.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef PR_SET_VMA_ANON_NAME
#define PR_SET_VMA_ANON_NAME 0
#endif

#define NAME "OTEL_CTX"

typedef struct {
    char signature[8];
    uint32_t version;
    uint32_t size;
    // 0 while the rest is not complete.
    _Atomic uint64_t published;
    uint64_t payload;
} Header;

typedef struct {
    uint8_t bytes[256];
    size_t size;
} Message;

static void add(Message *to, uint8_t field, const void *content, size_t size) {
    // Wire type 2, and a length below 128, which takes one byte.
    to->bytes[to->size++] = (uint8_t) (field << 3 | 2);
    to->bytes[to->size++] = (uint8_t) size;
    memcpy(to->bytes + to->size, content, size);
    to->size += size;
}

// Adds an AnyValue with text as a field.
static void add_text(Message *to, uint8_t field, const char *text) {
    Message value = {.size = 0};
    add(&value, 1, text, strlen(text));
    add(to, field, value.bytes, value.size);
}

// Adds an attribute: a KeyValue in the field `attributes` of the ProcessContext. `kind` is the field of AnyValue.
static void add_attribute(Message *to, const char *key, uint8_t kind, const void *content, size_t size) {
    Message value = {.size = 0}, pair = {.size = 0};
    add(&value, kind, content, size);
    add(&pair, 1, key, strlen(key));
    add(&pair, 2, value.bytes, value.size);
    add(to, 2, pair.bytes, pair.size);
}

static int is_published(void) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return 1;
    char line[512];
    int found = 0;
    while (!found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, "[anon_shmem:" NAME "]") != NULL || strstr(line, "[anon:" NAME "]") != NULL ||
                strstr(line, "/memfd:" NAME) != NULL;
    fclose(maps);
    return found;
}

static void *new_mapping(size_t size, int *has_name) {
    int file = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (file < 0)
        file = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && ftruncate(file, (off_t) size) != 0) {
        close(file);
        file = -1;
    }
    *has_name = file >= 0;
    int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0);
    void *mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, file, 0);
    if (file >= 0)
        close(file);
    return mapping;
}

int profile_publish_process(void) {
    // A forked process does not inherit the mapping.
    static pid_t tried;
    static int is_done;
    if (tried == getpid())
        return is_done;
    tried = getpid();
    is_done = 0;
    if (is_published())
        return 0;
    static Message message;
    message.size = 0;
    const char *version = "tlsdesc_v1_dev";
    add_attribute(&message, "threadlocal.schema_version", 1, version, strlen(version));
    Message keys = {.size = 0};
    add_text(&keys, 1, PROFILE_SPAN_NAME);
    add_text(&keys, 1, PROFILE_OVERFLOW);
    add_attribute(&message, "threadlocal.attribute_key_map", 5, keys.bytes, keys.size);

    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    size_t size = (size_t) sysconf(_SC_PAGESIZE);
    int has_name;
    Header *header = new_mapping(size, &has_name);
    if (header == MAP_FAILED)
        return 0;
    if (madvise(header, size, MADV_DONTFORK) != 0) {
        munmap(header, size);
        return 0;
    }
    memcpy(header->signature, NAME, sizeof header->signature);
    header->version = 2;
    header->size = (uint32_t) message.size;
    // In the same page, so that it outlives the library.
    memcpy(header + 1, message.bytes, message.size);
    header->payload = (uint64_t) (uintptr_t) (header + 1);
    uint64_t published = (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
    atomic_store(&header->published, published == 0 ? 1 : published);
    if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, header, size, NAME) != 0 && !has_name)
        munmap(header, size);
    else
        is_done = 1;
    return is_done;
}
#else
int profile_publish_process(void) {
    return 0;
}
#endif
