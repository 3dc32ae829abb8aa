/*
 * Memory that runs out inside ggml is an error of ours: the process neither ends nor
 * hangs. Children with less and less address space open a model and run it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "model/synthetic.h"
#include "qkv/session.h"
#include "support/engine.h"
#include "support/scratch.h"

enum { T = 100, STEPS = 60, SECONDS = 60 };

static size_t address_space(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int run(const char *path, int n_threads) {
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int32_t tokens[T];
    for (int t = 0; t < T; t++) tokens[t] = 1 + t;
    int status = qkv_model_open(&model, path, NULL);
    if (status == QKV_OK)
        status = qkv_session_new(
            &session, model,
            &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = n_threads},
            NULL);
    if (status == QKV_OK) status = qkv_plan_new(&plan, model, tokens, T, NULL);
    if (status == QKV_OK) status = qkv_plan_add_variant(plan, "q@0=zero", NULL, NULL);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "resid_post", NULL);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, NULL);
    return status;
}

/* The status of a run with so much more than there is now, or -1000 when the child did not end by
 * itself. */
static int run_with(const char *path, int n_threads, size_t more) {
    const pid_t child = fork();
    if (child == 0) {
        const rlim_t most = (rlim_t)(address_space() + more);
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
        alarm(SECONDS);
        _exit(-run(path, n_threads));
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    return WIFEXITED(ended) ? -WEXITSTATUS(ended) : -1000;
}

static void less_and_less(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its own memory does not fit into a limit */
#endif
    qkv_error err = {0};
    const char *path = scratch_path("low.gguf");
    expect_ok(qkv_synthetic_write(path, "8,4,4,128,256,300", "q8_0", 1, &err), &err, "writing");
    assert_int_equal(run_with(path, 1, (size_t)8 << 30), QKV_OK);
    int n_short = 0;
    for (size_t i = 0; i < STEPS; i++) {
        const int status = run_with(path, 1, i << 20);
        if (status != QKV_OK && status != QKV_ERR_MEMORY && status != QKV_ERR_IO)
            fail_msg("with %zu MiB: status %d", i, status);
        n_short += status == QKV_ERR_MEMORY;
    }
    assert_true(n_short > 0);
}

/* Threads take room for their stacks, which OpenMP does not ask for in advance. */
static void threads_and_stacks(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    qkv_error err = {0};
    const char *path = scratch_path("wide.gguf");
    expect_ok(qkv_synthetic_write(path, "1,4,4,512,1024,300", "f32", 1, &err), &err, "writing");
    for (size_t mib = 100; mib < 300; mib += 8) {
        const int status = run_with(path, 2, mib << 20);
        if (status != QKV_OK && status != QKV_ERR_MEMORY && status != QKV_ERR_IO)
            fail_msg("with %zu MiB: status %d", mib, status);
    }
}

/* Bytes of a file in memory are all there, or it is an error. */
static void output_in_memory(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    enum { PIECE = 1 << 20, PIECES = 64 };
    static char piece[PIECE];
    for (size_t mib = 8; mib <= 1024; mib *= 128) {
        const pid_t child = fork();
        if (child == 0) {
            const rlim_t most = (rlim_t)(address_space() + (mib << 20));
            setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
            qkv_output out;
            char *bytes = NULL;
            size_t n = 0;
            int status = qkv_output_open_memory(&out, NULL);
            for (int i = 0; i < PIECES && status == QKV_OK; i++)
                fwrite(piece, 1, PIECE, out.stream);
            if (status == QKV_OK) status = qkv_output_take(&out, &bytes, &n, NULL);
            _exit(status != QKV_OK ? -status : n == (size_t)PIECE * PIECES ? 0 : 100);
        }
        int ended = 0;
        waitpid(child, &ended, 0);
        assert_true(WIFEXITED(ended));
        assert_int_equal(-WEXITSTATUS(ended), mib < PIECES ? QKV_ERR_MEMORY : QKV_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(less_and_less),
                                       cmocka_unit_test(threads_and_stacks),
                                       cmocka_unit_test(output_in_memory)};
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
