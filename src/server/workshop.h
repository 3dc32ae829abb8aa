/*
 * What computes: the models that may be chosen, those that are open, their sessions, and prompts
 * that were tokenized before. It belongs to one thread.
 *
 * A model is opened when it is first asked for. Sessions are those of the model used last: one for
 * what follows the hand, one for the rest, so that each keeps the trunk it needs (qkv_plan_prepare).
 */
#ifndef QKV_SERVER_WORKSHOP_H
#define QKV_SERVER_WORKSHOP_H

#include "qkv/server.h"
#include "qkv/session.h"
#include "server/request.h"

typedef struct qkv_workshop qkv_workshop;

/* A model to compute with. */
typedef struct qkv_shop_model {
    char *name, *path, *argument; /* as in qkv_server_model */
    uint64_t file_size;
    qkv_model *model; /* NULL: not open */
    int handed_over;  /* it was open when it came, and stays so */
    uint64_t last_use;
} qkv_shop_model;

/* A prompt with its tokens. */
typedef struct qkv_shop_prompt {
    char *key;
    const qkv_model *model;
    int32_t *tokens;
    size_t n_tokens;
    char *text; /* what was fed, of a chat what the template made of it; NULL: token ids */
    size_t length;
    uint64_t last_use;
} qkv_shop_prompt;

int qkv_workshop_new(qkv_workshop **out, const qkv_server_options *options, qkv_error *err);
void qkv_workshop_free(qkv_workshop *shop);
/* Asked while something is computed: anything but 0 stops it. `user` is borrowed. */
void qkv_workshop_watch(qkv_workshop *shop, int (*stop)(void *user), void *user);

/* The models; NULL past the end. */
const qkv_shop_model *qkv_workshop_get(const qkv_workshop *shop, size_t index);
const qkv_server_options *qkv_workshop_options(const qkv_workshop *shop);

/* A model by its name, opened; NULL: the first. */
int qkv_workshop_open(qkv_workshop *shop, const char *name, const qkv_shop_model **out,
                      qkv_error *err);
/* The sessions of an open model. They stay until another model is asked for. */
int qkv_workshop_head_session(qkv_workshop *shop, const qkv_shop_model *model, qkv_session **out,
                              qkv_error *err);
int qkv_workshop_session(qkv_workshop *shop, const qkv_shop_model *model, qkv_session **out,
                         qkv_error *err);
/* The tokens of the `prompt` of a request; of one without, those of the prompt the page begins with.
 * They stay until the next call. */
int qkv_workshop_prompt(qkv_workshop *shop, const qkv_shop_model *model, const json_t *request,
                        const qkv_shop_prompt **out, qkv_error *err);

#endif
