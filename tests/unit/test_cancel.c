/*
 * A callback that stops the work, of every kind: the function says so, nothing is left behind, and
 * the same session then gives the bits of one that was never stopped.
 */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <omp.h>

#define QKV_UNSTABLE
#include "model/synthetic.h"
#include "qkv/qkv.h"
#include "run/run.h"
#include "run/session.h"
#include "study/figure.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "support/values.h"
#include "sweep/sweep.h"

enum { T = 64, VOCABULARY = 300 };

static const char *model_path;

/* What the callback saw, and after how many calls it wants to stop. */
typedef struct watcher {
    int calls, limit; /* below 0: never */
    double done, total;
    int went_back; /* `done` became less, or more than total */
    pthread_t thread;
    int elsewhere; /* calls in another thread */
    const char *what;
} watcher;

static int step(void *user, const char *what, double done, double total) {
    watcher *w = user;
    w->calls++;
    w->elsewhere += !pthread_equal(pthread_self(), w->thread);
    w->went_back += (w->what == what && done < w->done) || done > total;
    w->done = done;
    w->total = total;
    w->what = what;
    return w->limit >= 0 && w->calls >= w->limit;
}

static qkv_progress progress_of(watcher *w, int limit) {
    *w = (watcher){.limit = limit, .thread = pthread_self()};
    qkv_progress progress = QKV_PROGRESS_INIT;
    progress.step = step;
    progress.user = w;
    return progress;
}

/* `each`: after every operation, in place of now and then. */
static void watch(engine *e, watcher *w, int limit, int each) {
    qkv_error err = {0};
    const qkv_progress progress = progress_of(w, limit);
    expect_ok(qkv_session_set_progress(e->session, &progress, &err), &err, "watching");
    if (each) e->session->steps.interval = 0;
}

static void unwatch(engine *e) {
    qkv_error err = {0};
    expect_ok(qkv_session_set_progress(e->session, NULL, &err), &err, "not watching");
}

static qkv_plan *make_plan(const engine *e) {
    static int32_t tokens[T], other[T];
    static const char *const variants[] = {"q@0.h1=scale:0.5", "k@1=zero + v@1.g0=scale:2",
                                           "q@1=patch:src", NULL};
    static const char *const captures[] = {"pattern", "resid_post@2", "logits", NULL};
    for (int i = 0; i < T; i++) tokens[i] = i * 7 % VOCABULARY, other[i] = i * 11 % VOCABULARY;
    return engine_plan(e, &(engine_run){tokens, T, variants, captures, other});
}

static void expect_same(const qkv_result *a, const qkv_result *b) {
    size_t variant, n = 0;
    qkv_site site;
    int32_t layer;
    qkv_tensor x = QKV_TENSOR_INIT, y = QKV_TENSOR_INIT;
    for (; qkv_result_item(a, n, &variant, &site, &layer, &x); n++) {
        assert_true(qkv_result_get(b, variant, site, layer, &y));
        assert_true(same_bits(x.data, y.data, tensor_count(&x)));
    }
    assert_true(n > 0);
}

static qkv_result *run_fresh(int n_threads) {
    engine e;
    qkv_error err = {0};
    qkv_result *result = NULL;
    engine_open(&e, model_path, n_threads);
    qkv_plan *plan = make_plan(&e);
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "a fresh session");
    qkv_plan_free(plan);
    engine_close(&e);
    return result;
}

/* Stops a run at call after call, until one is not reached any more. Returns how many there are. */
static int stop_everywhere(engine *e, qkv_plan *plan, const qkv_result *right, int stride) {
    watcher w;
    qkv_error err = {0};
    for (int limit = 1;; limit += stride) {
        qkv_result *result = NULL;
        watch(e, &w, limit, 1);
        const int status = qkv_session_run(e->session, &result, plan, &err);
        assert_int_equal(w.went_back, 0);
        assert_int_equal(w.elsewhere, 0);
        if (status == QKV_OK) {
            expect_same(right, result);
            qkv_result_free(result);
            return w.calls;
        }
        assert_int_equal(status, QKV_ERR_CANCELLED);
        assert_string_equal(err.message, "stopped");
        assert_null(result);
        assert_int_equal(w.calls, limit); /* not asked again */
        if (limit % 3) continue;          /* sometimes several are stopped one after the other */
        unwatch(e);
        expect_ok(qkv_session_run(e->session, &result, plan, &err), &err, "after a stop");
        expect_same(right, result);
        qkv_result_free(result);
    }
}

static void runs(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        engine e;
        engine_open(&e, model_path, n_threads);
        qkv_plan *plan = make_plan(&e);
        qkv_result *right = run_fresh(n_threads);
        assert_true(stop_everywhere(&e, plan, right, 7) > 100);
        qkv_result_free(right);
        qkv_plan_free(plan);
        engine_close(&e);
    }
}

/* There the session computes in another thread; the callback must not. */
static void inside_a_team(void **state) {
    (void)state;
    engine e;
    engine_open(&e, model_path, 2);
    qkv_plan *plan = make_plan(&e);
    watcher w;
    qkv_result *result = NULL;
    int status = QKV_OK;
    watch(&e, &w, 2, 1);
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        status = qkv_session_run(e.session, &result, plan, NULL);
    }
    assert_int_equal(status, QKV_ERR_CANCELLED);
    assert_int_equal(w.elsewhere, 0);
    qkv_plan_free(plan);
    engine_close(&e);
}

/* Unwatched and watched, the bits are the same. */
static void watching_changes_nothing(void **state) {
    (void)state;
    engine e;
    engine_open(&e, model_path, 1);
    qkv_plan *plan = make_plan(&e);
    qkv_result *right = run_fresh(1), *result = NULL;
    watcher w;
    qkv_error err = {0};
    watch(&e, &w, -1, 0);
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "watched");
    expect_same(right, result);
    assert_true(w.calls >= 4); /* once a pass at least */
    assert_string_equal(w.what, "variants");
    assert_true(w.total == 5 && w.done == 5); /* four variants and a prompt to patch from */
    qkv_result_free(result);
    qkv_result_free(right);
    qkv_plan_free(plan);
    engine_close(&e);
}

static int measure_once(engine *e, qkv_table **table, qkv_error *err) {
    qkv_measure *measure = NULL;
    qkv_plan *plan = make_plan(e);
    int status = qkv_measure_new(&measure, "sink,entropy,tv,effective_rank,output_kl", NULL, err);
    if (status == QKV_OK) status = qkv_measure_run(measure, table, e->session, plan, err);
    qkv_measure_free(measure);
    qkv_plan_free(plan);
    return status;
}

static void measures(void **state) {
    (void)state;
    engine e, fresh;
    watcher w;
    qkv_error err = {0};
    qkv_table *right = NULL, *table = NULL;
    engine_open(&e, model_path, 2);
    engine_open(&fresh, model_path, 2);
    expect_ok(measure_once(&fresh, &right, &err), &err, "fresh");
    for (int limit = 1; limit < 200; limit += 13) {
        watch(&e, &w, limit, 1);
        assert_int_equal(measure_once(&e, &table, &err), QKV_ERR_CANCELLED);
        assert_null(table);
    }
    unwatch(&e);
    expect_ok(measure_once(&e, &table, &err), &err, "after stops");
    assert_int_equal(qkv_table_size(table), qkv_table_size(right));
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        const double a = table_row(table, i).value, b = table_row(right, i).value;
        assert_memory_equal(&a, &b, sizeof a);
    }
    qkv_table_free(table);
    qkv_table_free(right);
    engine_close(&e);
    engine_close(&fresh);
}

static int figure_once(engine *e, char **bytes, size_t *n_bytes, qkv_error *err) {
    static int32_t tokens[T];
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    qkv_prompt prompt = QKV_PROMPT_INIT;
    qkv_figure *figure = NULL;
    for (int i = 0; i < T; i++) tokens[i] = i * 7 % VOCABULARY;
    prompt.tokens = tokens;
    prompt.n_tokens = T;
    options.prompts = &prompt;
    options.n_prompts = 1;
    options.report = 1;
    int status = qkv_figure_make(&figure, e->session, QKV_FIGURE_MODIFY, &options, err);
    if (status == QKV_OK) status = qkv_figure_render(figure, "svg", bytes, n_bytes, err);
    qkv_figure_free(figure);
    return status;
}

static void figures(void **state) {
    (void)state;
    engine e, fresh;
    watcher w;
    qkv_error err = {0};
    char *right = NULL, *bytes = NULL;
    size_t n_right = 0, n_bytes = 0;
    engine_open(&e, model_path, 1);
    engine_open(&fresh, model_path, 1);
    expect_ok(figure_once(&fresh, &right, &n_right, &err), &err, "fresh");
    int n_stops = 0;
    for (int limit = 1;; limit += 17, n_stops++) {
        watch(&e, &w, limit, 1);
        const int status = figure_once(&e, &bytes, &n_bytes, &err);
        if (status == QKV_OK) break;
        assert_int_equal(status, QKV_ERR_CANCELLED);
        assert_null(bytes);
    }
    assert_true(n_stops > 5);
    qkv_bytes_free(bytes);
    unwatch(&e);
    expect_ok(figure_once(&e, &bytes, &n_bytes, &err), &err, "after stops");
    assert_int_equal(n_bytes, n_right);
    assert_memory_equal(bytes, right, n_right);
    qkv_bytes_free(bytes);
    qkv_bytes_free(right);
    engine_close(&e);
    engine_close(&fresh);
}

/* Files of the scratch directory that begin with the name. */
static int n_files(const char *name) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", scratch_path(""));
    DIR *directory = opendir(folder);
    int n = 0;
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        n += strncmp(entry->d_name, name, strlen(name)) == 0;
    closedir(directory);
    return n;
}

static void conversions(void **state) {
    (void)state;
    watcher w;
    qkv_error err = {0};
    const char *out = scratch_path("converted.gguf");
    qkv_convert_options options = {.size = sizeof options, .type = "q8_0"};
    int limit = 1, status;
    for (;; limit += 5) {
        const qkv_progress progress = progress_of(&w, limit);
        options.progress = &progress;
        status = qkv_model_convert(model_path, out, &options, &err);
        assert_int_equal(w.went_back, 0);
        if (status != QKV_ERR_CANCELLED) break;
        assert_int_equal(n_files("converted"), 0);
    }
    expect_ok(status, &err, "converting");
    assert_true(limit > 5);
    assert_string_equal(w.what, "bytes");
    assert_true(w.total > 0 && w.done == w.total);
    assert_int_equal(n_files("converted"), 1);
}

static int64_t count(qkv_sweep_writer *results) {
    int64_t n = -1;
    qkv_error err = {0};
    expect_ok(qkv_sweep_writer_n_done(results, &n, &err), &err, "counting");
    return n;
}

static int sweep_once(engine *e, const qkv_sweep *sweep, const char *path, int64_t *done,
                      qkv_error *err) {
    qkv_sweep_writer *results = NULL;
    int stopped = 0;
    expect_ok(qkv_sweep_writer_open(&results, sweep, path, NULL, err), err, path);
    const int status = qkv_sweep_run(sweep, e->session, results, NULL, &stopped, err);
    assert_int_equal(stopped, 0); /* that is the sweep's own callback */
    *done = count(results);
    qkv_error closing = {0};
    expect_ok(qkv_sweep_writer_close(results, &closing), &closing, "closing");
    return status;
}

static char *export_of(const char *path) {
    qkv_error err = {0};
    const char *out = scratch_path("rows.csv");
    qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
    expect_ok(qkv_sweep_export(path, out, &summary, &err), &err, "exporting");
    FILE *file = fopen(out, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* In the middle of a block; what is stored stays, and the sweep resumes from there. */
static void sweeps(void **state) {
    (void)state;
    engine e, fresh;
    watcher w;
    qkv_error err = {0};
    qkv_sweep *sweep = NULL, *whole = NULL;
    static const char spec[] =
        "{\"prompts\": [[1,2,3,4,5,6,7,8]], \"targets\": \"q\", \"epsilon\": \"0.5\","
        " \"at\": \"output\", \"metrics\": \"output_kl\"}";
    engine_open(&e, model_path, 1);
    engine_open(&fresh, model_path, 1);
    expect_ok(qkv_sweep_new(&sweep, e.model, spec, &err), &err, "sweep");
    expect_ok(qkv_sweep_new(&whole, fresh.model, spec, &err), &err, "sweep");
    const char *path = scratch_path("stopped.sqlite"), *other = scratch_path("whole.sqlite");
    int64_t done = 0, before = 0;
    expect_ok(sweep_once(&fresh, whole, other, &done, &err), &err, "in one piece");
    for (int limit = 10;; limit += 20, before = done) {
        watch(&e, &w, limit, 1);
        const int status = sweep_once(&e, sweep, path, &done, &err);
        if (status == QKV_OK) break;
        assert_int_equal(status, QKV_ERR_CANCELLED);
        assert_true(done >= before && done < qkv_sweep_n_cells(sweep));
    }
    assert_true(before > 0); /* some blocks were stored before another one was stopped */
    assert_int_equal(done, qkv_sweep_n_cells(sweep));
    char *a = export_of(path), *b = export_of(other);
    assert_string_equal(a, b);
    free(a);
    free(b);
    qkv_sweep_free(sweep);
    qkv_sweep_free(whole);
    engine_close(&e);
    engine_close(&fresh);
}

static void arguments(void **state) {
    (void)state;
    engine e;
    watcher w;
    qkv_error err = {0};
    engine_open(&e, model_path, 1);
    qkv_progress progress = progress_of(&w, 1);
    assert_int_equal(qkv_session_set_progress(NULL, &progress, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_session_report(NULL, "x", 0, 0, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_session_report(e.session, NULL, 0, 0, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_session_report(e.session, "x", 0, 0, &err), QKV_OK); /* no callback */
    progress.size = 0;
    assert_int_equal(qkv_session_set_progress(e.session, &progress, &err), QKV_ERR_ARGUMENT);
    progress.size = sizeof progress;
    expect_ok(qkv_session_set_progress(e.session, &progress, &err), &err, "watching");
    assert_int_equal(qkv_session_report(e.session, "prompts", 1, 3, &err), QKV_ERR_CANCELLED);
    assert_true(w.calls == 1 && w.done == 1 && w.total == 3);
    assert_string_equal(qkv_status_text(QKV_ERR_CANCELLED), "stopped");
    engine_close(&e);
}

static int make_model(void **state) {
    (void)state;
    static char path[4096];
    qkv_error err = {0};
    snprintf(path, sizeof path, "%s", scratch_path("cancel.gguf"));
    expect_ok(qkv_synthetic_write(path, "3,4,2,256,512,300", "f16", 1, &err), &err, "writing");
    model_path = path;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),
        cmocka_unit_test(inside_a_team),
        cmocka_unit_test(watching_changes_nothing),
        cmocka_unit_test(measures),
        cmocka_unit_test(figures),
        cmocka_unit_test(conversions),
        cmocka_unit_test(sweeps),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, make_model, remove_scratch);
}
