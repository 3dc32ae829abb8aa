/*
 * What computes: the models that may be chosen, those that are open, their sessions, and prompts
 * that were tokenized before.
 *
 * A model is opened when it is first asked for. Sessions are those of the model used last: one for
 * maps that follow a slider, one for the rest, so that each keeps the trunk it needs (qkv_plan_prepare).
 *
 * Any thread may ask for models and prompts; what it gets is its own, so that a model which is closed
 * meanwhile stays until its last user releases it. Sessions belong to one thread.
 */
#ifndef QKV_SERVER_MODEL_POOL_H
#define QKV_SERVER_MODEL_POOL_H

#include "base/prompt.h"
#include "qkv/server.h"
#include "qkv/session.h"
#include "server/request.h"

typedef struct qkv_model_pool qkv_model_pool;

/* A model that may be chosen. It stays as it is for as long as the pool. */
typedef struct qkv_pool_model {
    char *name, *path, *argument; /* as in qkv_server_model */
    uint64_t file_size;
} qkv_pool_model;

int qkv_model_pool_new(qkv_model_pool **out, const qkv_server_options *options, qkv_error *err);
void qkv_model_pool_free(qkv_model_pool *pool);
/* Asked while something is computed: anything but 0 stops it. `user` is borrowed. */
void qkv_model_pool_watch(qkv_model_pool *pool, int (*stop)(void *user), void *user);
/* Asks it: QKV_ERR_CANCELLED where it is to stop. For work that no session does. */
int qkv_model_pool_check(const qkv_model_pool *pool, qkv_error *err);

/* The models; NULL past the end. */
const qkv_pool_model *qkv_model_pool_get(const qkv_model_pool *pool, size_t index);
int qkv_model_pool_is_open(qkv_model_pool *pool, size_t index);
const qkv_server_options *qkv_model_pool_options(const qkv_model_pool *pool);

/* A model by its name (NULL: the first), opened: qkv_model_free it. */
int qkv_model_pool_open(qkv_model_pool *pool, const char *name, const qkv_pool_model **which,
                        qkv_model **out, qkv_error *err);
/* How many models were opened so far: while it is the same, a name means the same model. */
uint64_t qkv_model_pool_n_opened(qkv_model_pool *pool);
/* The sessions of an open model. They stay until another model is asked for. */
int qkv_model_pool_head_session(qkv_model_pool *pool, const qkv_model *model, qkv_session **out,
                                qkv_error *err);
int qkv_model_pool_session(qkv_model_pool *pool, const qkv_model *model, qkv_session **out,
                           qkv_error *err);
/* One that the caller frees, also after a failure: of the second model of a comparison. */
int qkv_model_pool_new_session(qkv_model_pool *pool, const qkv_model *model, qkv_session **out,
                               qkv_error *err);
/* The tokens of the `prompt` of a request; of one without, those of the prompt the page begins with.
 * Release it also after a failure. */
int qkv_model_pool_prompt(qkv_model_pool *pool, const qkv_model *model, const json_t *request,
                          qkv_own_prompt *out, qkv_error *err);

/* ---- pooled_prompt.c: from the prompt of a request to tokens ---- */

/* Fills an empty one. Release it also after a failure. */
int qkv_pooled_prompt_make(qkv_own_prompt *out, const qkv_model *model,
                           const qkv_request_prompt *wanted, qkv_error *err);

#endif
