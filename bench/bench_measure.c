/*
 * The measurements. Each is one function that gives one sample.
 *
 * A fresh session stands for a prompt that has not been run before: nothing of an earlier plan can
 * be reused, so that trunk, grid, sweep and forward pass are compared on equal terms.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/number.h"
#include "bench.h"
#include "qkv/generate.h"
#include "sweep/sweep.h"

#define BENCH_NAME(id, function, name, what) name,
const char *const bench_names[BENCH_COUNT] = {BENCH_LIST(BENCH_NAME)};
#undef BENCH_NAME
#define BENCH_WHAT(id, function, name, what) what,
const char *const bench_whats[BENCH_COUNT] = {BENCH_LIST(BENCH_WHAT)};
#undef BENCH_WHAT

typedef int (*measurement)(bench_case *c, double *sample, qkv_error *err);

/* ---- running plans ---- */

static int new_session(const bench_case *c, qkv_session **out, qkv_error *err) {
    const qkv_session_options options = {.size = sizeof(qkv_session_options),
                                         .n_threads = c->setting->n_threads};
    return qkv_session_new(out, c->model, &options, err);
}

static int run_plans(qkv_session *session, qkv_plan *const *plans, int32_t n, double *seconds,
                     qkv_error *err) {
    int status = QKV_OK;
    const double start = bench_now();
    for (int32_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_result *result = NULL;
        status = qkv_session_run(session, &result, plans[i], err);
        qkv_result_free(result);
    }
    *seconds = bench_now() - start;
    return status;
}

static int run_fresh(const bench_case *c, qkv_plan *const *plans, int32_t n, double *seconds,
                     qkv_error *err) {
    qkv_session *session = NULL;
    int status = new_session(c, &session, err);
    if (status == QKV_OK) status = run_plans(session, plans, n, seconds, err);
    qkv_session_free(session);
    return status;
}

/* ---- one function for every line of BENCH_LIST ---- */

static int measure_load(bench_case *c, double *sample, qkv_error *err) {
    qkv_model *model = NULL;
    const double start = bench_now();
    const int status = qkv_model_open(&model, c->path, err);
    *sample = bench_now() - start;
    qkv_model_free(model);
    return status;
}

static int measure_forward(bench_case *c, double *sample, qkv_error *err) {
    return run_fresh(c, &c->forward, 1, sample, err);
}

static int measure_forward_last(bench_case *c, double *sample, qkv_error *err) {
    return run_fresh(c, &c->last, 1, sample, err);
}

static int measure_trunk(bench_case *c, double *sample, qkv_error *err) {
    return run_fresh(c, &c->trunk, 1, sample, err);
}

static int measure_grid(bench_case *c, double *sample, qkv_error *err) {
    return run_fresh(c, &c->grids[c->layer], 1, sample, err);
}

static int measure_grid_warm(bench_case *c, double *sample, qkv_error *err) {
    return run_plans(c->warm, &c->grids[c->layer], 1, sample, err);
}

/* The blocks of a sweep, one after the other, as they come in a run; what is stored of them is not
 * part of it. */
static int run_sweep(const bench_case *c, const qkv_sweep *sweep, double *seconds, qkv_error *err) {
    qkv_session *session = NULL;
    const size_t n = (size_t)qkv_sweep_n_cells(sweep) * qkv_sweep_n_metrics(sweep);
    double *values = qkv_calloc(n, sizeof *values);
    int status = values ? new_session(c, &session, err) : qkv_fail_memory(err);
    const double start = bench_now();
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep) && status == QKV_OK; b++) {
        status = qkv_sweep_compute(sweep, session, b, values, err);
    }
    *seconds = bench_now() - start;
    qkv_session_free(session);
    free(values);
    return status;
}

static int measure_sweep(bench_case *c, double *sample, qkv_error *err) {
    return run_sweep(c, c->sweep, sample, err);
}

static int measure_outputs(bench_case *c, double *sample, qkv_error *err) {
    return run_sweep(c, c->outputs, sample, err);
}

/* What somebody at a slider waits for: making the plan is part of it. */
static int measure_epsilon(bench_case *c, double *sample, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    char capture[BENCH_EDIT_SIZE], edit[BENCH_EDIT_SIZE];
    snprintf(capture, sizeof capture, "pattern@%d", (int)c->layer);
    qkv_format(edit, sizeof edit, "q@%d=scale:%.9g", (int)c->layer, 1.0 / (3 + c->epsilons++));
    const double start = bench_now();
    int status = qkv_plan_new(&plan, c->model, c->tokens, c->setting->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, err);
    if (status == QKV_OK) status = qkv_plan_add_variant(plan, edit, NULL, err);
    if (status == QKV_OK) status = qkv_session_run(c->warm, &result, plan, err);
    *sample = bench_now() - start;
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* A token after the prompt, of several that follow each other: the first one builds the graph. */
static int measure_generation(bench_case *c, size_t n_variants, double *sample, qkv_error *err) {
    enum { STEPS = 8, MOST = 4 };
    static const char *const variants[] = {"z@0=scale:0.9", "z@0=scale:0.8", "z@0=scale:0.7"};
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    qkv_generator *generator = NULL;
    qkv_session *session = NULL;
    const qkv_session_options options = {.size = sizeof options,
                                         .n_threads = c->setting->n_threads};
    const int32_t next[MOST] = {c->tokens[0], c->tokens[0], c->tokens[0], c->tokens[0]};
    const size_t n = c->setting->n_tokens > STEPS ? c->setting->n_tokens - STEPS : 1;
    how.max_new = STEPS;
    how.variants = variants;
    how.n_variants = n_variants;
    int status = qkv_session_new(&session, c->model, &options, err);
    if (status == QKV_OK) status = qkv_generator_new(&generator, c->model, c->tokens, n, &how, err);
    if (status == QKV_OK) status = qkv_session_feed(session, generator, NULL, err);
    if (status == QKV_OK) status = qkv_session_feed(session, generator, next, err);
    const double start = bench_now();
    for (int i = 1; i < STEPS && status == QKV_OK; i++)
        status = qkv_session_feed(session, generator, next, err);
    *sample = (bench_now() - start) / (STEPS - 1);
    qkv_generator_free(generator);
    qkv_session_free(session);
    return status;
}

static int measure_token(bench_case *c, double *sample, qkv_error *err) {
    return measure_generation(c, 0, sample, err);
}

static int measure_tokens(bench_case *c, double *sample, qkv_error *err) {
    return measure_generation(c, 3, sample, err);
}

static int measure_start(bench_case *c, double *sample, qkv_error *err) {
    double peak;
    return bench_child(c, sample, &peak, err);
}

static int measure_memory(bench_case *c, double *sample, qkv_error *err) {
    double seconds;
    return bench_child(c, &seconds, sample, err);
}

#define BENCH_FUNCTION(id, function, name, what) measure_##function,
static const measurement measurements[BENCH_COUNT] = {BENCH_LIST(BENCH_FUNCTION)};
#undef BENCH_FUNCTION

/* ---- rounds ---- */

static int take(bench_case *c, int id, qkv_error *err) {
    bench_samples *samples = &c->samples[id];
    if (!samples->values) return QKV_OK;
    const int status = measurements[id](c, &samples->values[samples->n], err);
    samples->n += status == QKV_OK;
    return status;
}

int bench_memory(bench_case *c, qkv_error *err) {
    return take(c, BENCH_MEMORY, err);
}

int bench_warm_up(bench_case *c, qkv_error *err) {
    const bench_samples *s = c->samples;
    double seconds;
    int status = QKV_OK;
    if (s[BENCH_FORWARD].values || s[BENCH_SWEEP].values) {
        status = run_fresh(c, &c->forward, 1, &seconds, err);
    } else if (s[BENCH_FORWARD_LAST].values) {
        status = run_fresh(c, &c->last, 1, &seconds, err);
    } else if (s[BENCH_TRUNK].values || s[BENCH_GRID].values) {
        status = run_fresh(c, &c->trunk, 1, &seconds, err);
    }
    if (status != QKV_OK || (!s[BENCH_GRID_WARM].values && !s[BENCH_EPSILON].values)) return status;
    status = new_session(c, &c->warm, err);
    return status == QKV_OK ? run_plans(c->warm, &c->grids[c->layer], 1, &seconds, err) : status;
}

int bench_round(bench_case *c, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < BENCH_COUNT && status == QKV_OK; i++) {
        if (i != BENCH_MEMORY) status = take(c, i, err);
    }
    return status;
}
