/*
 * Four threads with sessions of their own on one model: tokens, hash, runs and metrics are what one
 * thread alone gets. The model is a directory some of whose weights are made when they are first
 * needed, which all threads do at once. `make test-tsan` runs this under ThreadSanitizer; sessions
 * have one thread each, since it does not understand libgomp's barriers.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/measure.h"
#include "qkv/model.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/values.h"

enum { THREADS = 4, ROUNDS = 3, LENGTH = 12, METRIC_VALUES = 512 };

static const char text[] = "The river runs past the old mill.";
static const int32_t tokens[LENGTH] = {1, 5, 9, 2, 7, 3, 8, 4, 6, 10, 11, 12};

/* What a thread gets. cmocka's assertions belong to the main thread: this is compared there. */
typedef struct harvest {
    const qkv_model *model;
    int status;
    char hash[33];
    size_t n_text;
    float pattern[4096];
    size_t n_pattern;
    double metrics[METRIC_VALUES];
    size_t n_metrics;
} harvest;

static int run_plan(harvest *h, qkv_session *session, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor t = QKV_TENSOR_INIT;
    int status = qkv_plan_new(&plan, h->model, tokens, LENGTH, err);
    if (status == QKV_OK) status = qkv_plan_add_variant(plan, "q@0=scale:0.5", NULL, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "pattern@1", err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    if (status == QKV_OK && !qkv_result_get(result, 1, QKV_SITE_PATTERN, 1, &t)) status = 1;
    if (status == QKV_OK) {
        h->n_pattern = tensor_count(&t);
        if (h->n_pattern > sizeof h->pattern / sizeof *h->pattern) status = 1;
    }
    if (status == QKV_OK) memcpy(h->pattern, t.data, h->n_pattern * sizeof *t.data);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

static int measure_plan(harvest *h, qkv_session *session, qkv_error *err) {
    qkv_measure *measure = NULL;
    qkv_plan *plan = NULL;
    qkv_table *table = NULL;
    int status = qkv_measure_new(&measure, "sink,entropy,tv", NULL, err);
    if (status == QKV_OK) status = qkv_plan_new(&plan, h->model, tokens, LENGTH, err);
    if (status == QKV_OK) status = qkv_plan_add_variant(plan, "k@1=zero", NULL, err);
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, session, plan, err);
    if (status == QKV_OK) h->n_metrics = qkv_table_size(table);
    if (status == QKV_OK && h->n_metrics > METRIC_VALUES) status = 1;
    for (size_t i = 0; status == QKV_OK && i < h->n_metrics; i++) {
        h->metrics[i] = table_row(table, i).value;
    }
    qkv_table_free(table);
    qkv_plan_free(plan);
    qkv_measure_free(measure);
    return status;
}

static int work_once(harvest *h, qkv_error *err) {
    const qkv_session_options options = {.size = sizeof(qkv_session_options), .n_threads = 1};
    qkv_session *session = NULL;
    int32_t *ids = NULL;
    int status = qkv_tokenize(h->model, &ids, &h->n_text, text, strlen(text), 0, err);
    qkv_tokens_free(ids);
    if (status == QKV_OK) status = qkv_model_hash(h->model, h->hash, err);
    if (status == QKV_OK) status = qkv_session_new(&session, h->model, &options, err);
    if (status == QKV_OK) status = run_plan(h, session, err);
    if (status == QKV_OK) status = measure_plan(h, session, err);
    qkv_session_free(session);
    return status;
}

static void *work(void *argument) {
    harvest *h = argument;
    qkv_error err;
    for (int i = 0; i < ROUNDS && h->status == QKV_OK; i++) h->status = work_once(h, &err);
    return NULL;
}

static void expect_equal(const harvest *a, const harvest *b) {
    assert_int_equal(a->status, QKV_OK);
    assert_string_equal(a->hash, b->hash);
    assert_int_equal(a->n_text, b->n_text);
    assert_true(a->n_pattern > 0 && a->n_pattern == b->n_pattern);
    assert_true(same_bits(a->pattern, b->pattern, a->n_pattern));
    assert_true(a->n_metrics > 0 && a->n_metrics == b->n_metrics);
    assert_memory_equal(a->metrics, b->metrics, a->n_metrics * sizeof *a->metrics);
}

static void check_model(const char *path) {
    static harvest alone, shared[THREADS];
    pthread_t threads[THREADS];
    qkv_error err;
    qkv_model *model = NULL;
    memset(&alone, 0, sizeof alone);
    memset(shared, 0, sizeof shared);
    expect_ok(qkv_model_open(&model, path, &err), &err, path);
    for (int i = 0; i < THREADS; i++) {
        shared[i].model = model;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &shared[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    qkv_model_free(model);
    /* Opened anew: nothing has been made or hashed for it yet. */
    expect_ok(qkv_model_open(&model, path, &err), &err, path);
    alone.model = model;
    work(&alone);
    for (int i = 0; i < THREADS; i++) expect_equal(&shared[i], &alone);
    qkv_model_free(model);
}

static void a_gguf_file(void **state) {
    (void)state;
    check_model(QKV_TEST_SOURCE_DIR "/vectors/llama_gqa/model.gguf");
}

/* Its matrices lie the other way round, so that they are made when a layer is first needed. */
static void a_directory(void **state) {
    (void)state;
    check_model(QKV_TEST_SOURCE_DIR "/vectors/gpt2/hf");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gguf_file),
                                       cmocka_unit_test(a_directory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
