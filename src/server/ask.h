/*
 * What most requests name: a model, a prompt and edits, as a plan. And parts of answers that several
 * have in common.
 */
#ifndef QKV_SERVER_ASK_H
#define QKV_SERVER_ASK_H

#include "qkv/plan.h"
#include "server/endpoint.h"

typedef struct qkv_ask {
    const qkv_shop_model *shop_model;
    const qkv_model *model;
    const qkv_model_info *info;
    const qkv_shop_prompt *prompt;
    const char *edits; /* "": none */
    qkv_plan *plan;    /* with the edits as variant 1, where there are any */
} qkv_ask;

/* A reply learns where in the edits a mistake is. Release it also after a failure. */
int qkv_ask_open(qkv_ask *ask, qkv_workshop *shop, const qkv_call *call, qkv_reply *reply,
                 qkv_error *err);
/* The same without a plan, and without reading edits. */
int qkv_ask_prompt(qkv_ask *ask, qkv_workshop *shop, const qkv_call *call, qkv_error *err);
void qkv_ask_release(qkv_ask *ask);

/* Are there edits with anything in them? */
int qkv_ask_has_edits(const qkv_ask *ask);
/* `layer` and `head` of a request, which both must be there. */
int qkv_ask_head(const qkv_ask *ask, const qkv_call *call, int32_t *layer, int32_t *head,
                 qkv_error *err);

/* What a token stands for, as text that can be shown. NULL when memory is short. */
json_t *qkv_ask_token_text(const qkv_model *model, int32_t token);
/* What each edit of variant 1 did: text, selected, changed, ran. */
json_t *qkv_ask_changes(const qkv_result *result);
/* Adds what everybody should know about a model. */
json_t *qkv_ask_facts(const qkv_shop_model *model);

#endif
