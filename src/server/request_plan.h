/*
 * What most requests name: a model, a prompt and edits, as a plan. And parts of answers that several
 * have in common.
 */
#ifndef QKV_SERVER_REQUEST_PLAN_H
#define QKV_SERVER_REQUEST_PLAN_H

#include "qkv/plan.h"
#include "server/endpoint.h"

typedef struct qkv_request_plan {
    const qkv_pool_model *pool_model;
    qkv_model *model;
    const qkv_model_info *info;
    qkv_own_prompt prompt;
    const char *edits; /* "": none */
    qkv_plan *plan;    /* with the edits as variant 1, where there are any */
} qkv_request_plan;

/* A reply learns where in the edits a mistake is. Release it also after a failure. */
int qkv_request_plan_open(qkv_request_plan *request, qkv_model_pool *pool, const qkv_call *call,
                          qkv_reply *reply, qkv_error *err);
/* The same without a plan, and without reading edits. Release it, too. */
int qkv_request_plan_tokens(qkv_request_plan *request, qkv_model_pool *pool, const qkv_call *call,
                            qkv_error *err);
void qkv_request_plan_release(qkv_request_plan *request);

/* Are there edits with anything in them? */
int qkv_request_plan_has_edits(const qkv_request_plan *request);
/* `layer` and `head` of a request, which both must be there. */
int qkv_request_plan_head(const qkv_request_plan *request, const qkv_call *call, int32_t *layer,
                          int32_t *head, qkv_error *err);

/* What a token stands for, as text that can be shown. NULL when memory is short. */
json_t *qkv_request_plan_token_text(const qkv_model *model, int32_t token);
/* What each edit of variant 1 did: text, selected, changed, ran. */
json_t *qkv_request_plan_changes(const qkv_result *result);
/* Adds what everybody should know about a model. */
json_t *qkv_request_plan_facts(const qkv_pool_model *which, const qkv_model *model);

#endif
