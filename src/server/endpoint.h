/*
 * The JSON interface: one entry for each path. docs/explorer.md says what each takes and gives.
 */
#ifndef QKV_SERVER_ENDPOINT_H
#define QKV_SERVER_ENDPOINT_H

#include "server/model_pool.h"
#include "server/reply.h"
#include "server/request.h"

/* What is asked for. */
typedef struct qkv_call {
    json_t *request; /* an object; NULL where the body is a file */
    qkv_request_common common;
    char *body; /* of malloc */
    size_t n_body;
    char *key; /* the same for requests that have the same answer; NULL: answers are not kept */
} qkv_call;

enum {
    QKV_RANK_LIGHT, /* needs no pass of the model */
    QKV_RANK_HEAD,  /* updated while a slider moves */
    QKV_RANK_REST   /* updated when the slider rests */
};

typedef struct qkv_endpoint {
    const char *path;   /* "/api/head" */
    const char *method; /* "GET" or "POST" */
    const char *fields; /* of the request, beside the common ones; NULL: the body is a file */
    int rank;
    int keeps; /* answers are kept: another pass would give the same */
    int (*run)(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
} qkv_endpoint;

/* NULL where there is none of that path. */
const qkv_endpoint *qkv_endpoint_find(const char *path);
/* NULL past the end. */
const qkv_endpoint *qkv_endpoint_get(size_t index);

/* Reads a body, which it takes over, into a call. Of the pool it asks only for what never changes, so that
 * any thread may call it. Release the call also after a failure. */
int qkv_call_read(qkv_call *call, const qkv_endpoint *endpoint, const qkv_model_pool *pool,
                  char *body, size_t n_body, qkv_error *err);
void qkv_call_release(qkv_call *call);
/* Runs it; the reply tells of failures, too. */
void qkv_call_run(const qkv_call *call, const qkv_endpoint *endpoint, qkv_model_pool *pool,
                  qkv_reply *reply);

/* The endpoints, a file for each group. */
int qkv_api_state(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_model(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_tokens(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_check(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_head(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_why(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_figure(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_kinds(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_study(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_recipe(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_overview(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_losses(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_next(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_curve(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);
int qkv_api_generate(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err);

#endif
