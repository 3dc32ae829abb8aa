/* See engine.h. */
#include "support/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

void expect_ok(int status, const qkv_error *err, const char *what) {
    if (status != QKV_OK) fail_msg("%s: status %d: %s", what, status, err->message);
}

void engine_renew(engine *e, const qkv_session_options *options) {
    qkv_error err = {0};
    qkv_session_free(e->session);
    expect_ok(qkv_session_new(&e->session, e->model, options, &err), &err, "session");
}

void engine_open(engine *e, const char *path, int32_t n_threads) {
    qkv_error err = {0};
    *e = (engine){0};
    expect_ok(qkv_model_open(&e->model, path, &err), &err, path);
    e->info = qkv_model_get_info(e->model);
    engine_renew(
        e, &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = n_threads});
}

void engine_close(engine *e) {
    qkv_session_free(e->session);
    qkv_model_free(e->model);
    *e = (engine){0};
}

qkv_plan *engine_plan(const engine *e, const engine_run *run) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    expect_ok(qkv_plan_new(&plan, e->model, run->tokens, run->n_tokens, &err), &err, "plan");
    if (run->source) {
        const int status = qkv_plan_add_source(plan, "src", run->source, run->n_tokens, &err);
        expect_ok(status, &err, "source");
    }
    for (size_t i = 0; run->variants && run->variants[i]; i++) {
        size_t index = 0;
        const int status = qkv_plan_add_variant(plan, run->variants[i], &index, &err);
        expect_ok(status, &err, run->variants[i]);
        assert_int_equal(index, i + 1);
    }
    for (size_t i = 0; run->captures && run->captures[i]; i++)
        expect_ok(qkv_plan_add_capture(plan, run->captures[i], &err), &err, run->captures[i]);
    return plan;
}

qkv_result *engine_execute(engine *e, const engine_run *run) {
    qkv_error err = {0};
    qkv_plan *plan = engine_plan(e, run);
    qkv_result *result = NULL;
    const int status = qkv_session_run(e->session, &result, plan, &err);
    qkv_plan_free(plan);
    expect_ok(status, &err, "run");
    assert_non_null(result);
    return result;
}

qkv_tensor engine_tensor(const qkv_result *result, size_t variant, qkv_site site, int32_t layer) {
    qkv_tensor tensor = QKV_TENSOR_INIT;
    if (!qkv_result_get(result, variant, site, layer, &tensor))
        fail_msg("variant %zu has no %s of layer %d", variant, qkv_site_name(site), (int)layer);
    return tensor;
}

size_t tensor_count(const qkv_tensor *tensor) {
    size_t count = 1;
    for (int i = 0; i < tensor->n_dims; i++) count *= (size_t)tensor->shape[i];
    return count;
}
