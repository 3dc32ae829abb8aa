/*
 * Files in memory, promises checked, and two traps that sanitizers do not set by themselves:
 *
 * - Bytes after the end of a mapped file, up to the end of its page, read as zeros. They are
 *   poisoned (the linker sends mmap and munmap here), so that a read beyond the file is found.
 * - Memory in use is added up, so that a file that makes the library allocate more than a small
 *   multiple of its size is found however small the single pieces are.
 */
#define _GNU_SOURCE

#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gguf.h"
#include "model/model.h"

_Noreturn void fuzz_fail(const char *condition, const char *file, int line) {
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, condition);
    abort();
}

const char *fuzz_file(const void *data, size_t size) {
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("qkv-fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    FUZZ_REQUIRE(fd >= 0 && ftruncate(fd, 0) == 0);
    FUZZ_REQUIRE(pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}

/* ---- a directory ---- */

static char directory[256], names[8][32];
static pid_t owner; /* libFuzzer's workers are other processes */

static void remove_directory(void) {
    if (getpid() != owner) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[sizeof names[0]];
        memcpy(name, names[i], sizeof name);
        if (name[0]) fuzz_put(name, NULL, 0);
    }
    rmdir(directory);
}

const char *fuzz_directory(void) {
    if (!directory[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(directory, sizeof directory, "%s/qkv-fuzz-XXXXXX", base ? base : "/tmp");
        FUZZ_REQUIRE(mkdtemp(directory));
        owner = getpid();
        atexit(remove_directory);
    }
    return directory;
}

static void forget_name(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) names[i][0] = '\0';
    }
}

static void remember_name(const char *name) {
    forget_name(name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i][0]) continue;
        snprintf(names[i], sizeof names[i], "%s", name);
        return;
    }
    FUZZ_REQUIRE(!"room for the name of another file");
}

void fuzz_put(const char *name, const void *data, size_t size) {
    char path[sizeof directory + sizeof names[0] + 1];
    const int length = snprintf(path, sizeof path, "%s/%s", fuzz_directory(), name);
    FUZZ_REQUIRE(length > 0 && (size_t)length < sizeof path);
    if (!data) {
        unlink(path);
        forget_name(name);
        return;
    }
    remember_name(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

/* ---- promises ---- */

void fuzz_check_status(int status, const void *object, const qkv_error *err) {
    FUZZ_REQUIRE((status == QKV_OK) == (object != NULL));
    if (status == QKV_OK) return;
    FUZZ_REQUIRE(err->status == status && err->message[0] && !strchr(err->message, '\n'));
}

/* ---- what sanitizers are told ---- */

#ifdef QKV_FUZZ_TRAPS
#include <sanitizer/allocator_interface.h>
#include <sanitizer/asan_interface.h>

/* What opening takes whatever the file: mostly compiled patterns of pre-tokenisers. */
#define ALLOWED_ALWAYS ((int64_t)1 << 20)

static int64_t in_use, most_in_use, allowed;

static void count_malloc(const volatile void *block, size_t size) {
    (void)block;
    in_use += (int64_t)size;
    if (in_use > most_in_use) most_in_use = in_use;
}

static void count_free(const volatile void *block) {
    if (block) in_use -= (int64_t)__sanitizer_get_allocated_size((const void *)block);
}

void fuzz_watch_memory(size_t size, size_t multiple) {
    static int installed;
    if (!installed) installed = __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
    in_use = most_in_use = 0;
    allowed = ALLOWED_ALWAYS + (int64_t)(multiple * size);
}

void fuzz_check_memory(void) {
    if (most_in_use <= allowed) return;
    fprintf(stderr, "%lld bytes in use, %lld allowed\n", (long long)most_in_use,
            (long long)allowed);
    fuzz_fail("most_in_use <= allowed", __FILE__, __LINE__);
}

static size_t behind_end(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (page - size % page) % page;
}

void *__real_mmap(void *address, size_t size, int access, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t size);
void *__wrap_mmap(void *address, size_t size, int access, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t size);

void *__wrap_mmap(void *address, size_t size, int access, int flags, int fd, off_t offset) {
    char *map = __real_mmap(address, size, access, flags, fd, offset);
    if (map != MAP_FAILED && fd >= 0) ASAN_POISON_MEMORY_REGION(map + size, behind_end(size));
    return map;
}

int __wrap_munmap(void *address, size_t size) {
    ASAN_UNPOISON_MEMORY_REGION((char *)address + size, behind_end(size));
    return __real_munmap(address, size);
}

#else
void fuzz_watch_memory(size_t size, size_t multiple) {
    (void)size;
    (void)multiple;
}

void fuzz_check_memory(void) {
}
#endif

/* ---- using a model ---- */

enum { RUN_TOKENS = 4, SHOWN_TOKENS = 16 };

void fuzz_use_text(const qkv_model *model, const char *text, size_t length) {
    for (unsigned flags = 0; flags < 4; flags++) {
        int32_t *tokens = NULL;
        size_t n = 0, n_text = 0;
        char *back = NULL;
        qkv_error err = {0};
        int status = qkv_tokenize(model, &tokens, &n, text, length, flags, &err);
        fuzz_check_status(status, tokens, &err);
        if (status != QKV_OK) continue;
        for (size_t i = 0; i < n; i++)
            FUZZ_REQUIRE(tokens[i] >= 0 && tokens[i] < qkv_model_get_info(model)->n_vocab);
        status = qkv_detokenize(model, &back, &n_text, tokens, n, flags & 1, &err);
        fuzz_check_status(status, back, &err);
        qkv_text_free(back);
        qkv_tokens_free(tokens);
    }
}

void fuzz_show_tokens(const qkv_model *model) {
    int32_t n = qkv_model_get_info(model)->n_vocab;
    for (int32_t i = -1; i <= n && i < SHOWN_TOKENS; i++) {
        char *text = NULL;
        size_t length = 0;
        qkv_error err = {0};
        int status = qkv_token_text(model, &text, &length, i, &err);
        fuzz_check_status(status, text, &err);
        if (status == QKV_OK) FUZZ_REQUIRE(strlen(text) <= length);
        qkv_text_free(text);
    }
}

static void run(const qkv_model *model) {
    const qkv_model_info *info = qkv_model_get_info(model);
    int32_t tokens[RUN_TOKENS];
    size_t n = info->n_ctx < RUN_TOKENS ? (size_t)info->n_ctx : RUN_TOKENS;
    for (size_t i = 0; i < n; i++) tokens[i] = (int32_t)(i * 7 % (size_t)info->n_vocab);
    qkv_plan *plan = NULL;
    qkv_session *session = NULL;
    qkv_result *result = NULL;
    qkv_error err = {0};
    const qkv_session_options options = {.size = sizeof(qkv_session_options), .n_threads = 1};
    FUZZ_REQUIRE(qkv_plan_new(&plan, model, tokens, n, &err) == QKV_OK);
    FUZZ_REQUIRE(qkv_plan_add_capture(plan, "pattern", &err) == QKV_OK);
    qkv_plan_add_capture(plan, "logits[-1]", NULL); /* encoders have none */
    FUZZ_REQUIRE(qkv_plan_add_variant(plan, "k@0[0]=scale:0.5", NULL, &err) == QKV_OK);
    FUZZ_REQUIRE(qkv_session_new(&session, model, &options, &err) == QKV_OK);
    int status = qkv_session_run(session, &result, plan, &err);
    fuzz_check_status(status, result, &err);
    /* Weights may be anything, so results may be infinite; nothing else can go wrong. */
    FUZZ_REQUIRE(status == QKV_OK || status == QKV_ERR_NUMERIC);
    qkv_result_free(result);
    qkv_session_free(session);
    qkv_plan_free(plan);
}

void fuzz_use_model(const qkv_model *model) {
    static const char text[] = " the thin\t<s>\xc3\xa9 12\xff in</s>  ";
    char hash[33];
    const qkv_model_info *info = qkv_model_get_info(model);
    FUZZ_REQUIRE(info->path && info->name && info->architecture && info->position &&
                 info->tensor_types && info->tokenizer);
    FUZZ_REQUIRE(qkv_model_hash(model, hash, NULL) == QKV_OK && strlen(hash) == 32);
    fuzz_use_text(model, text, sizeof text - 1);
    fuzz_show_tokens(model);
    run(model);
}

void fuzz_use_vocab(const struct gguf_context *meta, const char *text, size_t length) {
    qkv_model model = {0};
    qkv_error err = {0};
    int status = qkv_vocab_load(&model.vocab, meta, "the tokenizer", &err);
    if (status != QKV_OK) fuzz_check_status(status, model.vocab, &err);
    if (model.vocab) {
        model.info.n_vocab = qkv_vocab_size(model.vocab);
        fuzz_use_text(&model, text, length);
        fuzz_show_tokens(&model);
    }
    qkv_vocab_free(model.vocab);
}
