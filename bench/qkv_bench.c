/*
 * What a grid of edits costs, as a ratio to a plain forward pass.
 *
 *     qkv_bench [MODEL]
 *
 * Compared are, on the same tokens: the baseline's logits (a plain forward pass), and the baseline plus {q, k, v} × three ε
 * seen in one layer's pattern. The measurements are interleaved and repeated; medians are printed, because machines are noisy.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <qkv/qkv.h>

#define REPEATS 15
#define MAX_TOKENS 128

static qkv_error err;

static void check(int status) {
    if (status == QKV_OK) return;
    fprintf(stderr, "qkv_bench: %s\n", err.message);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_run(qkv_session *session, const qkv_plan *plan) {
    qkv_result *result;
    double start = now();
    check(qkv_session_run(session, &result, plan, &err));
    double seconds = now() - start;
    qkv_result_free(result);
    return seconds;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, ascending);
    return values[n / 2];
}

static qkv_plan *plan_of(const qkv_model *model, const int32_t *tokens, size_t n,
                         const char *capture) {
    qkv_plan *plan;
    check(qkv_plan_new(&plan, model, tokens, n, &err));
    check(qkv_plan_add_capture(plan, capture, &err));
    return plan;
}

static void add_grid(qkv_plan *plan, int32_t layer) {
    static const char *const sites[] = {"q", "k", "v"};
    static const char *const strengths[] = {"5e-1", "1e-3", "1e-10"};
    for (int i = 0; i < 9; i++) {
        char edit[64];
        snprintf(edit, sizeof edit, "%s@%d=scale:%s", sites[i / 3], layer, strengths[i % 3]);
        check(qkv_plan_add_variant(plan, edit, NULL, &err));
    }
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : QKV_BENCH_MODEL;
    qkv_model *model;
    qkv_session *session;
    check(qkv_model_open(&model, path, &err));
    check(qkv_session_new(&session, model, NULL, &err));
    const qkv_model_info *info = qkv_model_get_info(model);

    int32_t tokens[MAX_TOKENS];
    size_t n = info->n_ctx < MAX_TOKENS ? (size_t)info->n_ctx : MAX_TOKENS;
    for (size_t i = 0; i < n; i++) tokens[i] = (int32_t)((i * 31 + 7) % (size_t)info->n_vocab);
    char capture[32];
    int32_t layer = info->n_layer / 2;
    snprintf(capture, sizeof capture, "pattern@%d", layer);
    qkv_plan *forward = plan_of(model, tokens, n, "logits");
    qkv_plan *trunk = plan_of(model, tokens, n, capture);
    qkv_plan *grid = plan_of(model, tokens, n, capture);
    add_grid(grid, layer);

    double forward_s[REPEATS], trunk_s[REPEATS], grid_s[REPEATS];
    time_run(session, forward); /* the first one reads the weights from the disk */
    for (int i = 0; i < REPEATS; i++) {
        forward_s[i] = time_run(session, forward);
        trunk_s[i] = time_run(session, trunk);
        grid_s[i] = time_run(session, grid);
    }
    double f = median(forward_s, REPEATS), t = median(trunk_s, REPEATS),
           g = median(grid_s, REPEATS);
    printf("%s: %zu tokens, median of %d\n", path, n, REPEATS);
    printf("%-34s %8.2f ms\n", "forward pass to the logits", 1e3 * f);
    printf("%-34s %8.2f ms   %5.2f x forward\n", "pattern of the middle layer", 1e3 * t, t / f);
    printf("%-34s %8.2f ms   %5.2f x forward\n", "the same and nine edits of it", 1e3 * g, g / f);

    qkv_plan_free(grid);
    qkv_plan_free(trunk);
    qkv_plan_free(forward);
    qkv_session_free(session);
    qkv_model_free(model);
    return 0;
}
