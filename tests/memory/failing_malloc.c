/*
 * Preloaded into a program (LD_PRELOAD): memory runs out at the n-th allocation, and is there again after it.
 *
 *     FAIL_AT=N         the allocation that gives NULL, counted from 1
 *     FAIL_ALL=1        and so do all that follow
 *     FAIL_LOG=FILE     gets N for each allocation whose stack of calls was not seen before
 *     FAIL_STACK=FILE   gets the stack of calls of the N-th allocation, innermost first
 *
 * Only allocations are counted that somebody could answer for: those made by the program (ggml and the engine of
 * chat templates are part of it) and by libraries that report what they were denied. Left alone are
 *
 *     those of GLib, which ends the process by design, and with it Pango; of the dynamic linker, OpenMP, MPI, BLAS and
 *     OpenSSL, which end the process too; of HarfBuzz, Fontconfig and FreeType, which take other letters
 *     what these, or Cairo, asked the C library or zlib for, and what Pango asked Cairo for
 *     what Cairo needs to end a PDF: it describes fonts in another way then, and does not say so
 *     the buffer of jansson's reader for one word: letters are lost, unsaid; qkv_json_parse asks for it before
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

/* ---- who asks ---- */

enum { NOBODY, PROGRAM, REPORTS, JANSSON, CAIRO, ASKED_BY_OTHERS };

typedef struct code_range {
    uintptr_t begin, end;
    int owner;
} code_range;

enum { MOST_RANGES = 512, MOST_FRAMES = 24, MOST_SEEN = 1 << 17 };

static code_range ranges[MOST_RANGES];
static size_t n_ranges;

static int owner_of_name(const char *name) {
    static const char *const reporting[] = {"libsqlite3.", "libpcre2-8.", "libutf8proc.",
                                            "libpng16.",   "libcurl.",    "libmicrohttpd.",
                                            "libxxhash."};
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    if (strncmp(base, "libc.so", 7) == 0 || strncmp(base, "libstdc++", 9) == 0 ||
        strncmp(base, "libz.", 5) == 0)
        return ASKED_BY_OTHERS;
    if (strncmp(base, "libcairo.", 9) == 0) return CAIRO;
    if (strncmp(base, "libjansson.", 11) == 0) return JANSSON;
    for (size_t i = 0; i < sizeof reporting / sizeof *reporting; i++) {
        if (strncmp(base, reporting[i], strlen(reporting[i])) == 0) return REPORTS;
    }
    return NOBODY;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *is_first) {
    (void)size;
    const int owner = *(int *)is_first ? PROGRAM : owner_of_name(info->dlpi_name);
    *(int *)is_first = 0;
    for (int i = 0; i < info->dlpi_phnum && n_ranges < MOST_RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        ranges[n_ranges++] = (code_range){begin, begin + part->p_memsz, owner};
    }
    return 0;
}

static int owner_of(const void *address) {
    const uintptr_t at = (uintptr_t)address;
    for (size_t i = 0; i < n_ranges; i++) {
        if (at >= ranges[i].begin && at < ranges[i].end) return ranges[i].owner;
    }
    return NOBODY;
}

/* ---- which of them fails ---- */

static long fail_at;
static int fails_on, log_file = -1, stack_file = -1;
static atomic_long n_counted;
static _Thread_local int is_inside; /* what the shim itself calls is left alone */

static uint64_t seen[MOST_SEEN];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static int is_new(uint64_t stack) {
    size_t at = (size_t)(stack % MOST_SEEN);
    for (size_t i = 0; i < MOST_SEEN; i++, at = (at + 1) % MOST_SEEN) {
        if (seen[at] == stack) return 0;
        if (seen[at] == 0) return seen[at] = stack, 1;
    }
    return 0;
}

static void log_stack(long n) {
    void *frames[MOST_FRAMES];
    const int n_frames = backtrace(frames, MOST_FRAMES);
    uint64_t stack = 14695981039346656037u;
    for (int i = 2; i < n_frames; i++) stack = (stack ^ (uintptr_t)frames[i]) * 1099511628211u;
    pthread_mutex_lock(&log_lock);
    if (is_new(stack | 1)) dprintf(log_file, "%ld\n", n);
    pthread_mutex_unlock(&log_lock);
}

static void write_stack(const void *caller) {
    void *frames[MOST_FRAMES];
    const int n_frames = backtrace(frames, MOST_FRAMES);
    int first = 0;
    while (first < n_frames && frames[first] != caller) first++;
    if (first == n_frames) first = 0; /* it was called in place of a return */
    backtrace_symbols_fd(frames + first, n_frames - first, stack_file);
}

/* The first one after the caller that is not `owner` himself. */
static int owner_behind(const void *caller, int owner) {
    void *frames[MOST_FRAMES];
    const int n_frames = backtrace(frames, MOST_FRAMES);
    int i = 0;
    while (i < n_frames && frames[i] != caller) i++;
    for (; i < n_frames; i++) {
        if (owner_of(frames[i]) != owner) return owner_of(frames[i]);
    }
    return NOBODY;
}

/* Is a function of this name, or one that begins with it, among those that wait for the allocation? */
static int is_within(const char *name) {
    void *frames[MOST_FRAMES];
    const int n_frames = backtrace(frames, MOST_FRAMES);
    for (int i = 0; i < n_frames; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) && info.dli_sname &&
            strncmp(info.dli_sname, name, strlen(name)) == 0)
            return 1;
    }
    return 0;
}

/* Inside jansson's reader, and of a size that its buffer for a word could have. */
static int is_word_buffer(size_t size) {
    return size >= 32 && (size & (size - 1)) == 0 && is_within("json_load");
}

static int must_fail(const void *caller, size_t size) {
    if (!n_ranges || is_inside) return 0;
    int owner = owner_of(caller);
    if (owner == NOBODY) return 0;
    is_inside = 1;
    if (owner == JANSSON) {
        owner = is_word_buffer(size) ? NOBODY : REPORTS;
    } else if (owner == ASKED_BY_OTHERS) {
        owner = owner_behind(caller, ASKED_BY_OTHERS);
        if (owner == CAIRO) owner = NOBODY;
    } else if (owner == CAIRO) {
        owner = owner_behind(caller, CAIRO);
        if (owner != PROGRAM || is_within("cairo_surface_finish")) owner = NOBODY;
    }
    int fails = 0;
    if (owner != NOBODY) {
        const long n = atomic_fetch_add(&n_counted, 1) + 1;
        if (log_file >= 0) log_stack(n);
        fails = fail_at && (n == fail_at || (fails_on && n > fail_at));
        if (fails && n == fail_at && stack_file >= 0) write_stack(caller);
    }
    is_inside = 0;
    if (fails) errno = ENOMEM;
    return fails;
}

static int open_file(const char *variable) {
    const char *name = getenv(variable);
    return name ? open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600) : -1;
}

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FAIL_AT");
    void *frames[MOST_FRAMES];
    int is_first = 1;
    backtrace(frames, MOST_FRAMES); /* it loads a library the first time */
    fail_at = at ? atol(at) : 0;
    fails_on = getenv("FAIL_ALL") != NULL;
    log_file = open_file("FAIL_LOG");
    stack_file = open_file("FAIL_STACK");
    dl_iterate_phdr(add_ranges, &is_first);
}

void *malloc(size_t size) {
    return must_fail(__builtin_return_address(0), size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    return must_fail(__builtin_return_address(0), n * size) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *block, size_t size) {
    return must_fail(__builtin_return_address(0), size) ? NULL : __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    return must_fail(__builtin_return_address(0), size) ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return must_fail(__builtin_return_address(0), size) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (must_fail(__builtin_return_address(0), size)) return ENOMEM;
    void *made = __libc_memalign(alignment, size);
    if (!made) return ENOMEM;
    *block = made;
    return 0;
}
