/*
 * Four threads with sessions of their own on one model: tokens, hash, runs and metrics are what one
 * thread alone gets. The model is a directory some of whose weights are made when they are first
 * needed, which all threads do at once. And the explorer's pool of models, asked by three threads.
 *
 * `make test-tsan` runs this under ThreadSanitizer; sessions have one thread each, since it does not
 * understand libgomp's barriers.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "qkv/measure.h"
#include "qkv/model.h"
#include "server/endpoint.h"
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

/* ---- the explorer's pool of models ---- */

/* More models than are kept open, so that one is closed while another thread uses it. */
static const char *const families[] = {"llama_gqa", "mistral", "qwen2", "gemma", "phi3"};
enum { FAMILIES = sizeof families / sizeof *families, ASKERS = 3, POOL_ROUNDS = 4 };

typedef struct asker {
    qkv_model_pool *pool;
    const char *path, *fields; /* of the requests */
    char *answers[FAMILIES];
    size_t lengths[FAMILIES];
    int failed;
} asker;

static void ask_once(asker *a, size_t family) {
    const qkv_endpoint *endpoint = qkv_endpoint_find(a->path);
    qkv_reply reply = QKV_REPLY_INIT;
    qkv_call call;
    qkv_text body = {0};
    qkv_text_printf(&body, "{\"model\": \"%s\"%s}", families[family], a->fields);
    if (qkv_call_read(&call, endpoint, a->pool, body.data, body.length, NULL) == QKV_OK)
        qkv_call_run(&call, endpoint, a->pool, &reply);
    a->failed |= reply.status != 200;
    if (a->answers[family])
        a->failed |= reply.n_bytes != a->lengths[family] ||
                     memcmp(reply.bytes, a->answers[family], reply.n_bytes) != 0;
    else {
        a->answers[family] = reply.bytes;
        a->lengths[family] = reply.n_bytes;
        reply.bytes = NULL;
    }
    qkv_reply_release(&reply);
    qkv_call_release(&call);
}

static void *ask_all(void *user) {
    for (size_t i = 0; i < (size_t)POOL_ROUNDS * FAMILIES; i++) ask_once(user, i % FAMILIES);
    return NULL;
}

/* One thread computes, two ask for what needs no pass: all get what they would get alone. */
static void a_pool_of_models(void **state) {
    (void)state;
    static char paths[FAMILIES][512];
    asker askers[ASKERS] = {
        {.path = "/api/overview", .fields = ", \"prompt\": {\"tokens\": [1, 5, 9]}"},
        {.path = "/api/tokens", .fields = ", \"prompt\": {\"tokens\": [1, 5, 9]}"},
        {.path = "/api/check",
         .fields = ", \"prompt\": {\"tokens\": [1, 5, 9]}, \"edits\": \"q@0=zero\""}};
    qkv_server_model models[FAMILIES];
    qkv_server_options options = QKV_SERVER_OPTIONS_INIT;
    qkv_model_pool *pool = NULL;
    pthread_t threads[ASKERS];
    qkv_error err;
    for (size_t i = 0; i < FAMILIES; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/vectors/%s/model.gguf", QKV_TEST_SOURCE_DIR,
                 families[i]);
        models[i] = (qkv_server_model)QKV_SERVER_MODEL_INIT;
        models[i].name = families[i];
        models[i].path = paths[i];
    }
    options.models = models;
    options.n_models = FAMILIES;
    options.n_threads = 1;
    for (size_t i = 0; i < ASKERS; i++) { /* alone */
        expect_ok(qkv_model_pool_new(&pool, &options, &err), &err, "the pool");
        askers[i].pool = pool;
        ask_all(&askers[i]);
        qkv_model_pool_free(pool);
    }
    expect_ok(qkv_model_pool_new(&pool, &options, &err), &err, "the pool");
    for (size_t i = 0; i < ASKERS; i++) {
        askers[i].pool = pool;
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all, &askers[i]), 0);
    }
    for (size_t i = 0; i < ASKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    qkv_model_pool_free(pool);
    for (size_t i = 0; i < ASKERS; i++) {
        if (askers[i].failed) fail_msg("%s: another answer than alone", askers[i].path);
        for (size_t f = 0; f < FAMILIES; f++) free(askers[i].answers[f]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gguf_file), cmocka_unit_test(a_directory),
                                       cmocka_unit_test(a_pool_of_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
