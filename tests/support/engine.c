/* See engine.h. */
#include "support/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/edit_words.h"
#include "reference/ref_edit.h"
#include "reference/ref_other.h"

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

/* The vectors of the reference that an edit names. */
static void add_vectors(qkv_edit_data *data, const char *edits) {
    size_t length = 0;
    qkv_error err = {0};
    for (const char *at = qkv_vector_name_next(edits, &length); at;
         at = qkv_vector_name_next(at, &length)) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const ref_shape s = ref_vector_named(name);
        const int64_t all[] = {s.tokens, s.heads, s.width};
        int64_t shape[3], n = 1;
        int32_t n_dims = 0;
        for (int i = 0; i < 3; i++) {
            if (!all[i]) continue;
            shape[n_dims++] = all[i];
            n *= all[i];
        }
        float *values = calloc((size_t)n, sizeof *values);
        const int heads = s.heads ? s.heads : 1;
        assert_non_null(values);
        for (int i = 0; i < (int)n; i++)
            values[i] =
                (float)ref_vector_value(&s, i / s.width % heads, i / s.width / heads, i % s.width);
        const int status = qkv_edit_data_add_vector(data, name, values, shape, n_dims, &err);
        if (!strstr(err.message, "two vectors")) expect_ok(status, &err, name);
        free(values);
    }
}

static int any_says(const char *const *variants, const char *word) {
    for (size_t i = 0; variants && variants[i]; i++) {
        if (strstr(variants[i], word)) return 1;
    }
    return 0;
}

static void add_set(const engine *e, qkv_edit_data *data, const int32_t *tokens, size_t n_tokens) {
    qkv_error err = {0};
    int32_t *prompts[REF_SET_SIZE];
    size_t lengths[REF_SET_SIZE];
    for (int i = 0; i < REF_SET_SIZE; i++) {
        int n;
        prompts[i] = ref_set_prompt(i, tokens, (int)n_tokens, e->info->n_vocab, &n);
        lengths[i] = (size_t)n;
    }
    const int status = qkv_edit_data_set_prompts(data, (const int32_t *const *)prompts, lengths,
                                                 REF_SET_SIZE, &err);
    expect_ok(status, &err, "set");
    for (int i = 0; i < REF_SET_SIZE; i++) free(prompts[i]);
}

qkv_edit_data *engine_data(const engine *e, const char *const *variants, const int32_t *tokens,
                           size_t n_tokens) {
    qkv_error err = {0};
    qkv_edit_data *data = NULL;
    expect_ok(qkv_edit_data_new(&data, &err), &err, "data");
    for (size_t i = 0; variants && variants[i]; i++) add_vectors(data, variants[i]);
    if (any_says(variants, "mean:set") || any_says(variants, "patch:resample"))
        add_set(e, data, tokens, n_tokens);
    return data;
}

/* The prompt of another length. */
static void add_far(const engine *e, qkv_plan *plan, const engine_run *run) {
    qkv_error err = {0};
    int n;
    int32_t *far = ref_set_prompt(REF_FAR, run->tokens, (int)run->n_tokens, e->info->n_vocab, &n);
    expect_ok(qkv_plan_add_source(plan, "far", far, (size_t)n, &err), &err, "far");
    free(far);
}

qkv_plan *engine_plan_for(const engine *e, const engine_run *run, const char *const *named) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    expect_ok(qkv_plan_new(&plan, e->model, run->tokens, run->n_tokens, &err), &err, "plan");
    if (run->source) {
        const int status = qkv_plan_add_source(plan, "src", run->source, run->n_tokens, &err);
        expect_ok(status, &err, "source");
    }
    if (any_says(named, "patch:far")) add_far(e, plan, run);
    qkv_edit_data *data = engine_data(e, named, run->tokens, run->n_tokens);
    expect_ok(qkv_plan_set_edit_data(plan, data, &err), &err, "data");
    qkv_edit_data_free(data);
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

qkv_plan *engine_plan(const engine *e, const engine_run *run) {
    return engine_plan_for(e, run, run->variants);
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
