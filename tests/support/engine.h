/*
 * The library as most tests use it: a model with a session, and plans that are expected to run.
 * Whatever fails here fails the running cmocka test, with the library's own message.
 */
#ifndef QKV_TESTS_ENGINE_H
#define QKV_TESTS_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/edit_data.h"
#include "qkv/session.h"

typedef struct engine {
    qkv_model *model;
    qkv_session *session;
    const qkv_model_info *info;
} engine;

/* n_threads 0: all cores. Tiny models are faster with 1. */
void engine_open(engine *e, const char *path, int32_t n_threads);
void engine_close(engine *e);
/* Another session on the same model, which has computed nothing yet. */
void engine_renew(engine *e, const qkv_session_options *options);

/* The n-th layer with attention; the last one where there are fewer. */
int32_t engine_attention_layer(const engine *e, int n);

/* Fails the test when status is not QKV_OK; `what` says what was tried. */
void expect_ok(int status, const qkv_error *err, const char *what);

/* What a run is made of. Lists end with NULL and may be NULL. */
typedef struct engine_run {
    const int32_t *tokens;
    size_t n_tokens;
    const char *const *variants;
    const char *const *captures;
    const int32_t *source; /* n_tokens tokens, named "src"; NULL when there is none */
} engine_run;

/* The vectors (ref_edit.h) and the set of prompts (ref_other.h) of the reference that edits name, for a
 * prompt; the caller's to free. */
qkv_edit_data *engine_data(const engine *e, const char *const *variants, const int32_t *tokens,
                           size_t n_tokens);
/* The plan alone, the caller's to free. */
qkv_plan *engine_plan(const engine *e, const engine_run *run);
/* The same, with what the edits of `named` need, for variants to come. */
qkv_plan *engine_plan_for(const engine *e, const engine_run *run, const char *const *named);
/* The result is the caller's to free. */
qkv_result *engine_execute(engine *e, const engine_run *run);

/* A captured tensor that must be there. */
qkv_tensor engine_tensor(const qkv_result *result, size_t variant, qkv_site site, int32_t layer);
size_t tensor_count(const qkv_tensor *tensor);

#endif
