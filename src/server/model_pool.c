#include "server/model_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "qkv/prompt.h"
#include "server/pooled_prompt.h"

enum { N_PROMPTS = 16, MOST_OPEN = 3, DEFAULT_TOKENS = 16384 };

struct qkv_model_pool {
    qkv_server_options options; /* without models */
    char *prompt;
    qkv_pool_model *models;
    size_t n_models;
    const qkv_pool_model *current; /* whose sessions there are */
    qkv_session *sessions[2];
    qkv_pooled_prompt prompts[N_PROMPTS];
    uint64_t clock;
    int (*stop)(void *user);
    void *user;
};

/* ---- making ---- */

static int copy_model(qkv_pool_model *to, const qkv_server_model *from, qkv_error *err) {
    if (!from->name || !from->name[0])
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a model of `models` has no name");
    if (!from->path && !from->model)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the model '%s' has neither path nor model",
                        from->name);
    to->name = qkv_strdup(from->name);
    to->path = qkv_strdup(from->path);
    to->argument = qkv_strdup(from->argument);
    to->file_size = from->file_size;
    to->model = qkv_model_retain(from->model);
    to->handed_over = from->model != NULL;
    const int failed = !to->name || (from->path && !to->path) || (from->argument && !to->argument);
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static int copy_models(qkv_model_pool *pool, const qkv_server_options *options, qkv_error *err) {
    int status = QKV_OK;
    if (!options->models || options->n_models == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`models` is empty: there is nothing to explore");
    pool->models = qkv_calloc(options->n_models, sizeof *pool->models);
    if (!pool->models) return qkv_fail_memory(err);
    pool->n_models = options->n_models;
    for (size_t i = 0; i < pool->n_models && status == QKV_OK; i++) {
        qkv_server_model model = QKV_SERVER_MODEL_INIT;
        status =
            qkv_sized_read_item(&model, sizeof model, options->models, i, "qkv_server_model", err);
        if (status == QKV_OK) status = copy_model(&pool->models[i], &model, err);
    }
    return status;
}

int qkv_model_pool_new(qkv_model_pool **out, const qkv_server_options *options, qkv_error *err) {
    qkv_model_pool *pool = *out = qkv_calloc(1, sizeof *pool);
    const qkv_pool_model *first;
    if (!pool) return qkv_fail_memory(err);
    pool->options = *options;
    pool->options.models = NULL;
    if (pool->options.max_tokens == 0) pool->options.max_tokens = DEFAULT_TOKENS;
    pool->prompt = qkv_strdup(options->prompt ? options->prompt : qkv_default_prompt(0));
    pool->options.prompt = pool->prompt;
    int status = pool->prompt ? copy_models(pool, options, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_model_pool_open(pool, NULL, &first, err);
    if (status == QKV_OK) return QKV_OK;
    qkv_model_pool_free(pool);
    *out = NULL;
    return status;
}

static void drop_sessions(qkv_model_pool *pool) {
    for (size_t i = 0; i < 2; i++) {
        qkv_session_free(pool->sessions[i]);
        pool->sessions[i] = NULL;
    }
    pool->current = NULL;
}

void qkv_model_pool_free(qkv_model_pool *pool) {
    if (!pool) return;
    drop_sessions(pool);
    for (size_t i = 0; i < N_PROMPTS; i++) qkv_pooled_prompt_release(&pool->prompts[i]);
    for (size_t i = 0; i < pool->n_models; i++) {
        free(pool->models[i].name);
        free(pool->models[i].path);
        free(pool->models[i].argument);
        qkv_model_free(pool->models[i].model);
    }
    free(pool->models);
    free(pool->prompt);
    free(pool);
}

void qkv_model_pool_watch(qkv_model_pool *pool, int (*stop)(void *user), void *user) {
    pool->stop = stop;
    pool->user = user;
}

const qkv_pool_model *qkv_model_pool_get(const qkv_model_pool *pool, size_t index) {
    return index < pool->n_models ? &pool->models[index] : NULL;
}

const qkv_server_options *qkv_model_pool_options(const qkv_model_pool *pool) {
    return &pool->options;
}

/* ---- models ---- */

static void forget_prompts(qkv_model_pool *pool, const qkv_model *model) {
    for (size_t i = 0; i < N_PROMPTS; i++) {
        if (pool->prompts[i].model == model) qkv_pooled_prompt_release(&pool->prompts[i]);
    }
}

/* Closes the models used longest ago, so that no more than a few are open. */
static void close_oldest(qkv_model_pool *pool) {
    for (;;) {
        qkv_pool_model *oldest = NULL;
        size_t n = 0;
        for (size_t i = 0; i < pool->n_models; i++) {
            qkv_pool_model *model = &pool->models[i];
            if (!model->model || model->handed_over) continue;
            n++;
            if (!oldest || model->last_use < oldest->last_use) oldest = model;
        }
        if (n < MOST_OPEN) return;
        if (pool->current == oldest) drop_sessions(pool);
        forget_prompts(pool, oldest->model);
        qkv_model_free(oldest->model);
        oldest->model = NULL;
    }
}

static qkv_pool_model *find_model(const qkv_model_pool *pool, const char *name) {
    for (size_t i = 0; i < pool->n_models; i++) {
        if (!name || strcmp(pool->models[i].name, name) == 0) return &pool->models[i];
    }
    return NULL;
}

int qkv_model_pool_open(qkv_model_pool *pool, const char *name, const qkv_pool_model **out,
                        qkv_error *err) {
    qkv_pool_model *model = find_model(pool, name);
    if (!model)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no model of that name in the list");
    int status = QKV_OK;
    if (!model->model) {
        close_oldest(pool);
        status = qkv_model_open(&model->model, model->path, err);
    }
    model->last_use = ++pool->clock;
    *out = model;
    return status;
}

/* ---- sessions ---- */

static int on_step(void *user, const char *what, double done, double total) {
    const qkv_model_pool *pool = user;
    (void)what;
    (void)done;
    (void)total;
    return pool->stop ? pool->stop(pool->user) : 0;
}

static int open_session(qkv_model_pool *pool, const qkv_pool_model *model, size_t which,
                        qkv_session **out, qkv_error *err) {
    const qkv_session_options options = {.size = sizeof options,
                                         .n_threads = pool->options.n_threads,
                                         .memory_budget = pool->options.memory_budget};
    const qkv_progress progress = {sizeof progress, on_step, pool};
    int status = QKV_OK;
    if (pool->current != model) drop_sessions(pool);
    pool->current = model;
    if (!pool->sessions[which]) {
        status = qkv_session_new(&pool->sessions[which], model->model, &options, err);
        if (status == QKV_OK)
            status = qkv_session_set_progress(pool->sessions[which], &progress, err);
    }
    *out = pool->sessions[which];
    return status;
}

int qkv_model_pool_head_session(qkv_model_pool *pool, const qkv_pool_model *model,
                                qkv_session **out, qkv_error *err) {
    return open_session(pool, model, 0, out, err);
}

int qkv_model_pool_session(qkv_model_pool *pool, const qkv_pool_model *model, qkv_session **out,
                           qkv_error *err) {
    return open_session(pool, model, 1, out, err);
}

/* ---- prompts ---- */

static int check_length(const qkv_model_pool *pool, const qkv_model *model, size_t n,
                        qkv_error *err) {
    const int64_t n_ctx = qkv_model_get_info(model)->n_ctx, most = pool->options.max_tokens;
    const int64_t limit = n_ctx < most ? n_ctx : most;
    if ((int64_t)n <= limit) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt has %zu tokens; %lld are the most %s", n,
                    (long long)limit, n_ctx <= most ? "that the model takes" : "here");
}

/* Where a prompt is kept, or the place of the one used longest ago. */
static qkv_pooled_prompt *find_prompt(qkv_model_pool *pool, const qkv_model *model,
                                      const char *key) {
    qkv_pooled_prompt *oldest = &pool->prompts[0];
    for (size_t i = 0; i < N_PROMPTS; i++) {
        qkv_pooled_prompt *prompt = &pool->prompts[i];
        if (prompt->key && prompt->model == model && strcmp(prompt->key, key) == 0) return prompt;
        if (prompt->last_use < oldest->last_use) oldest = prompt;
    }
    qkv_pooled_prompt_release(oldest);
    return oldest;
}

static int use_prompt(qkv_model_pool *pool, const qkv_model *model,
                      const qkv_request_prompt *wanted, const qkv_pooled_prompt **out,
                      qkv_error *err) {
    qkv_pooled_prompt *prompt = find_prompt(pool, model, wanted->key);
    int status = prompt->key ? QKV_OK : qkv_pooled_prompt_make(prompt, model, wanted, err);
    if (status == QKV_OK) status = check_length(pool, model, prompt->n_tokens, err);
    if (status != QKV_OK) {
        qkv_pooled_prompt_release(prompt);
        return status;
    }
    prompt->last_use = ++pool->clock;
    *out = prompt;
    return QKV_OK;
}

int qkv_model_pool_prompt(qkv_model_pool *pool, const qkv_pool_model *model, const json_t *request,
                          const qkv_pooled_prompt **out, qkv_error *err) {
    const json_t *given = json_object_get(request, "prompt");
    json_t *usual = given ? NULL : json_pack("{s:s}", "text", pool->prompt);
    qkv_request_prompt wanted = {0};
    int status = given || usual ? qkv_request_prompt_read(&wanted, given ? given : usual, err)
                                : qkv_fail_memory(err);
    if (status == QKV_OK) status = use_prompt(pool, model->model, &wanted, out, err);
    qkv_request_prompt_release(&wanted);
    json_decref(usual);
    return status;
}
