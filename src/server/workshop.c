#include "server/workshop.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "qkv/prompt.h"
#include "server/shop_prompt.h"

enum { N_PROMPTS = 16, MOST_OPEN = 3, DEFAULT_TOKENS = 16384 };

struct qkv_workshop {
    qkv_server_options options; /* without models */
    char *prompt;
    qkv_shop_model *models;
    size_t n_models;
    const qkv_shop_model *current; /* whose sessions there are */
    qkv_session *sessions[2];
    qkv_shop_prompt prompts[N_PROMPTS];
    uint64_t clock;
    int (*stop)(void *user);
    void *user;
};

/* ---- making ---- */

static int copy_model(qkv_shop_model *to, const qkv_server_model *from, qkv_error *err) {
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

static int copy_models(qkv_workshop *shop, const qkv_server_options *options, qkv_error *err) {
    int status = QKV_OK;
    if (!options->models || options->n_models == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`models` is empty: there is nothing to explore");
    shop->models = qkv_calloc(options->n_models, sizeof *shop->models);
    if (!shop->models) return qkv_fail_memory(err);
    shop->n_models = options->n_models;
    for (size_t i = 0; i < shop->n_models && status == QKV_OK; i++) {
        qkv_server_model model = QKV_SERVER_MODEL_INIT;
        status =
            qkv_sized_read_item(&model, sizeof model, options->models, i, "qkv_server_model", err);
        if (status == QKV_OK) status = copy_model(&shop->models[i], &model, err);
    }
    return status;
}

int qkv_workshop_new(qkv_workshop **out, const qkv_server_options *options, qkv_error *err) {
    qkv_workshop *shop = *out = qkv_calloc(1, sizeof *shop);
    const qkv_shop_model *first;
    if (!shop) return qkv_fail_memory(err);
    shop->options = *options;
    shop->options.models = NULL;
    if (shop->options.max_tokens == 0) shop->options.max_tokens = DEFAULT_TOKENS;
    shop->prompt = qkv_strdup(options->prompt ? options->prompt : qkv_default_prompt(0));
    shop->options.prompt = shop->prompt;
    int status = shop->prompt ? copy_models(shop, options, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_workshop_open(shop, NULL, &first, err);
    if (status == QKV_OK) return QKV_OK;
    qkv_workshop_free(shop);
    *out = NULL;
    return status;
}

static void drop_sessions(qkv_workshop *shop) {
    for (size_t i = 0; i < 2; i++) {
        qkv_session_free(shop->sessions[i]);
        shop->sessions[i] = NULL;
    }
    shop->current = NULL;
}

void qkv_workshop_free(qkv_workshop *shop) {
    if (!shop) return;
    drop_sessions(shop);
    for (size_t i = 0; i < N_PROMPTS; i++) qkv_shop_prompt_release(&shop->prompts[i]);
    for (size_t i = 0; i < shop->n_models; i++) {
        free(shop->models[i].name);
        free(shop->models[i].path);
        free(shop->models[i].argument);
        qkv_model_free(shop->models[i].model);
    }
    free(shop->models);
    free(shop->prompt);
    free(shop);
}

void qkv_workshop_watch(qkv_workshop *shop, int (*stop)(void *user), void *user) {
    shop->stop = stop;
    shop->user = user;
}

const qkv_shop_model *qkv_workshop_get(const qkv_workshop *shop, size_t index) {
    return index < shop->n_models ? &shop->models[index] : NULL;
}

const qkv_server_options *qkv_workshop_options(const qkv_workshop *shop) {
    return &shop->options;
}

/* ---- models ---- */

static void forget_prompts(qkv_workshop *shop, const qkv_model *model) {
    for (size_t i = 0; i < N_PROMPTS; i++) {
        if (shop->prompts[i].model == model) qkv_shop_prompt_release(&shop->prompts[i]);
    }
}

/* Closes the models used longest ago, so that no more than a few are open. */
static void close_oldest(qkv_workshop *shop) {
    for (;;) {
        qkv_shop_model *oldest = NULL;
        size_t n = 0;
        for (size_t i = 0; i < shop->n_models; i++) {
            qkv_shop_model *model = &shop->models[i];
            if (!model->model || model->handed_over) continue;
            n++;
            if (!oldest || model->last_use < oldest->last_use) oldest = model;
        }
        if (n < MOST_OPEN) return;
        if (shop->current == oldest) drop_sessions(shop);
        forget_prompts(shop, oldest->model);
        qkv_model_free(oldest->model);
        oldest->model = NULL;
    }
}

static qkv_shop_model *find_model(const qkv_workshop *shop, const char *name) {
    for (size_t i = 0; i < shop->n_models; i++) {
        if (!name || strcmp(shop->models[i].name, name) == 0) return &shop->models[i];
    }
    return NULL;
}

int qkv_workshop_open(qkv_workshop *shop, const char *name, const qkv_shop_model **out,
                      qkv_error *err) {
    qkv_shop_model *model = find_model(shop, name);
    if (!model)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no model of that name in the list");
    int status = QKV_OK;
    if (!model->model) {
        close_oldest(shop);
        status = qkv_model_open(&model->model, model->path, err);
    }
    model->last_use = ++shop->clock;
    *out = model;
    return status;
}

/* ---- sessions ---- */

static int on_step(void *user, const char *what, double done, double total) {
    const qkv_workshop *shop = user;
    (void)what;
    (void)done;
    (void)total;
    return shop->stop ? shop->stop(shop->user) : 0;
}

static int open_session(qkv_workshop *shop, const qkv_shop_model *model, size_t which,
                        qkv_session **out, qkv_error *err) {
    const qkv_session_options options = {.size = sizeof options,
                                         .n_threads = shop->options.n_threads,
                                         .memory_budget = shop->options.memory_budget};
    const qkv_progress progress = {sizeof progress, on_step, shop};
    int status = QKV_OK;
    if (shop->current != model) drop_sessions(shop);
    shop->current = model;
    if (!shop->sessions[which]) {
        status = qkv_session_new(&shop->sessions[which], model->model, &options, err);
        if (status == QKV_OK)
            status = qkv_session_set_progress(shop->sessions[which], &progress, err);
    }
    *out = shop->sessions[which];
    return status;
}

int qkv_workshop_head_session(qkv_workshop *shop, const qkv_shop_model *model, qkv_session **out,
                              qkv_error *err) {
    return open_session(shop, model, 0, out, err);
}

int qkv_workshop_session(qkv_workshop *shop, const qkv_shop_model *model, qkv_session **out,
                         qkv_error *err) {
    return open_session(shop, model, 1, out, err);
}

/* ---- prompts ---- */

static int check_length(const qkv_workshop *shop, const qkv_model *model, size_t n,
                        qkv_error *err) {
    const int64_t n_ctx = qkv_model_get_info(model)->n_ctx, most = shop->options.max_tokens;
    const int64_t limit = n_ctx < most ? n_ctx : most;
    if ((int64_t)n <= limit) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt has %zu tokens; %lld are the most %s", n,
                    (long long)limit, n_ctx <= most ? "that the model takes" : "here");
}

/* Where a prompt is kept, or the place of the one used longest ago. */
static qkv_shop_prompt *find_prompt(qkv_workshop *shop, const qkv_model *model, const char *key) {
    qkv_shop_prompt *oldest = &shop->prompts[0];
    for (size_t i = 0; i < N_PROMPTS; i++) {
        qkv_shop_prompt *prompt = &shop->prompts[i];
        if (prompt->key && prompt->model == model && strcmp(prompt->key, key) == 0) return prompt;
        if (prompt->last_use < oldest->last_use) oldest = prompt;
    }
    qkv_shop_prompt_release(oldest);
    return oldest;
}

static int use_prompt(qkv_workshop *shop, const qkv_model *model, const qkv_request_prompt *wanted,
                      const qkv_shop_prompt **out, qkv_error *err) {
    qkv_shop_prompt *prompt = find_prompt(shop, model, wanted->key);
    int status = prompt->key ? QKV_OK : qkv_shop_prompt_make(prompt, model, wanted, err);
    if (status == QKV_OK) status = check_length(shop, model, prompt->n_tokens, err);
    if (status != QKV_OK) {
        qkv_shop_prompt_release(prompt);
        return status;
    }
    prompt->last_use = ++shop->clock;
    *out = prompt;
    return QKV_OK;
}

int qkv_workshop_prompt(qkv_workshop *shop, const qkv_shop_model *model, const json_t *request,
                        const qkv_shop_prompt **out, qkv_error *err) {
    const json_t *given = json_object_get(request, "prompt");
    json_t *usual = given ? NULL : json_pack("{s:s}", "text", shop->prompt);
    qkv_request_prompt wanted = {0};
    int status = given || usual ? qkv_request_prompt_read(&wanted, given ? given : usual, err)
                                : qkv_fail_memory(err);
    if (status == QKV_OK) status = use_prompt(shop, model->model, &wanted, out, err);
    qkv_request_prompt_release(&wanted);
    json_decref(usual);
    return status;
}
