#define _POSIX_C_SOURCE 200809L
#include "server/model_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "qkv/prompt.h"

enum { N_PROMPTS = 16, MOST_OPEN = 3, DEFAULT_TOKENS = 16384 };

/* A model of the list, and whether it is open. */
typedef struct pool_entry {
    qkv_pool_model facts;
    qkv_model *model; /* NULL: not open */
    int handed_over;  /* it was open when it came, and stays so */
    uint64_t last_use;
} pool_entry;

typedef struct kept_prompt {
    char *key; /* NULL: none is kept here */
    const qkv_model *model;
    qkv_own_prompt prompt;
    uint64_t last_use;
} kept_prompt;

struct qkv_model_pool {
    qkv_server_options options; /* without models */
    char *prompt;
    pool_entry *models;
    size_t n_models;
    qkv_session *sessions[2]; /* of `current`; one thread's */
    int (*stop)(void *user);
    void *user;

    pthread_mutex_t lock;     /* of what follows, and of which models are open */
    const qkv_model *current; /* whose sessions there are: they keep it alive */
    kept_prompt prompts[N_PROMPTS];
    uint64_t clock, n_opened;
};

/* ---- making ---- */

static int copy_model(pool_entry *entry, const qkv_server_model *from, qkv_error *err) {
    qkv_pool_model *to = &entry->facts;
    if (!from->name || !from->name[0])
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a model of `models` has no name");
    if (!from->path && !from->model)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the model '%s' has neither path nor model",
                        from->name);
    to->name = qkv_strdup(from->name);
    to->path = qkv_strdup(from->path);
    to->argument = qkv_strdup(from->argument);
    to->file_size = from->file_size;
    entry->model = qkv_model_retain(from->model);
    entry->handed_over = from->model != NULL;
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

/* A page that begins with a mistake would tell of it late. The library's own prompt is not looked at: a
 * model may have no tokenizer. */
static int check_prompt(qkv_model_pool *pool, const qkv_model *model, qkv_error *err) {
    qkv_own_prompt prompt = {0};
    if (!qkv_utf8_valid(pool->prompt, strlen(pool->prompt)))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`prompt` is not valid UTF-8, which a page needs");
    const int status = qkv_model_pool_prompt(pool, model, NULL, &prompt, err);
    qkv_own_prompt_release(&prompt);
    return status;
}

int qkv_model_pool_new(qkv_model_pool **out, const qkv_server_options *options, qkv_error *err) {
    qkv_model_pool *pool = *out = qkv_calloc(1, sizeof *pool);
    const qkv_pool_model *first;
    qkv_model *model = NULL;
    if (!pool) return qkv_fail_memory(err);
    pthread_mutex_init(&pool->lock, NULL);
    pool->options = *options;
    pool->options.models = NULL;
    if (pool->options.max_tokens == 0) pool->options.max_tokens = DEFAULT_TOKENS;
    pool->prompt = qkv_strdup(options->prompt ? options->prompt : qkv_default_prompt(0));
    pool->options.prompt = pool->prompt;
    int status = pool->prompt ? copy_models(pool, options, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_model_pool_open(pool, NULL, &first, &model, err);
    if (status == QKV_OK && options->prompt) status = check_prompt(pool, model, err);
    qkv_model_free(model);
    if (status == QKV_OK) return QKV_OK;
    qkv_model_pool_free(pool);
    *out = NULL;
    return status;
}

static void forget_prompt(kept_prompt *kept) {
    free(kept->key);
    qkv_own_prompt_release(&kept->prompt);
    *kept = (kept_prompt){0};
}

void qkv_model_pool_free(qkv_model_pool *pool) {
    if (!pool) return;
    for (size_t i = 0; i < 2; i++) qkv_session_free(pool->sessions[i]);
    for (size_t i = 0; i < N_PROMPTS; i++) forget_prompt(&pool->prompts[i]);
    for (size_t i = 0; i < pool->n_models; i++) {
        free(pool->models[i].facts.name);
        free(pool->models[i].facts.path);
        free(pool->models[i].facts.argument);
        qkv_model_free(pool->models[i].model);
    }
    free(pool->models);
    free(pool->prompt);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void qkv_model_pool_watch(qkv_model_pool *pool, int (*stop)(void *user), void *user) {
    pool->stop = stop;
    pool->user = user;
}

int qkv_model_pool_check(const qkv_model_pool *pool, qkv_error *err) {
    if (!pool->stop || !pool->stop(pool->user)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_CANCELLED, "the client no longer waits for it");
}

const qkv_pool_model *qkv_model_pool_get(const qkv_model_pool *pool, size_t index) {
    return index < pool->n_models ? &pool->models[index].facts : NULL;
}

int qkv_model_pool_is_open(qkv_model_pool *pool, size_t index) {
    pthread_mutex_lock(&pool->lock);
    const int open = index < pool->n_models && pool->models[index].model;
    pthread_mutex_unlock(&pool->lock);
    return open;
}

const qkv_server_options *qkv_model_pool_options(const qkv_model_pool *pool) {
    return &pool->options;
}

/* ---- models ---- */

static void forget_prompts(qkv_model_pool *pool, const qkv_model *model) {
    for (size_t i = 0; i < N_PROMPTS; i++) {
        if (pool->prompts[i].model == model) forget_prompt(&pool->prompts[i]);
    }
}

/* Closes the models used longest ago, so that no more than a few are open. The one with sessions stays:
 * they would keep it all the same. */
static void close_oldest(qkv_model_pool *pool) {
    for (;;) {
        pool_entry *oldest = NULL;
        size_t n = 0;
        for (size_t i = 0; i < pool->n_models; i++) {
            pool_entry *entry = &pool->models[i];
            if (!entry->model || entry->handed_over) continue;
            n++;
            if (entry->model == pool->current) continue;
            if (!oldest || entry->last_use < oldest->last_use) oldest = entry;
        }
        if (n < MOST_OPEN || !oldest) return;
        forget_prompts(pool, oldest->model);
        qkv_model_free(oldest->model);
        oldest->model = NULL;
    }
}

static pool_entry *find_model(const qkv_model_pool *pool, const char *name) {
    for (size_t i = 0; i < pool->n_models; i++) {
        if (!name || strcmp(pool->models[i].facts.name, name) == 0) return &pool->models[i];
    }
    return NULL;
}

int qkv_model_pool_open(qkv_model_pool *pool, const char *name, const qkv_pool_model **which,
                        qkv_model **out, qkv_error *err) {
    pool_entry *entry = find_model(pool, name);
    int status = QKV_OK;
    *out = NULL;
    if (!entry)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no model of that name in the list");
    pthread_mutex_lock(&pool->lock);
    if (!entry->model) {
        close_oldest(pool);
        status = qkv_model_open(&entry->model, entry->facts.path, err);
        pool->n_opened++;
    }
    entry->last_use = ++pool->clock;
    *which = &entry->facts;
    if (status == QKV_OK) *out = qkv_model_retain(entry->model);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

uint64_t qkv_model_pool_n_opened(qkv_model_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    const uint64_t n = pool->n_opened;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

/* ---- sessions ---- */

static int on_step(void *user, const char *what, double done, double total) {
    const qkv_model_pool *pool = user;
    (void)what;
    (void)done;
    (void)total;
    return pool->stop ? pool->stop(pool->user) : 0;
}

/* Sessions of another model go. */
static void use_model(qkv_model_pool *pool, const qkv_model *model) {
    if (pool->current == model) return; /* written by this thread alone */
    for (size_t i = 0; i < 2; i++) {
        qkv_session_free(pool->sessions[i]);
        pool->sessions[i] = NULL;
    }
    pthread_mutex_lock(&pool->lock);
    pool->current = model;
    pthread_mutex_unlock(&pool->lock);
}

int qkv_model_pool_new_session(qkv_model_pool *pool, const qkv_model *model, qkv_session **out,
                               qkv_error *err) {
    const qkv_session_options options = {.size = sizeof options,
                                         .n_threads = pool->options.n_threads,
                                         .memory_budget = pool->options.memory_budget};
    const qkv_progress progress = {sizeof progress, on_step, pool};
    const int status = qkv_session_new(out, model, &options, err);
    return status == QKV_OK ? qkv_session_set_progress(*out, &progress, err) : status;
}

static int open_session(qkv_model_pool *pool, const qkv_model *model, size_t which,
                        qkv_session **out, qkv_error *err) {
    int status = QKV_OK;
    use_model(pool, model);
    if (!pool->sessions[which])
        status = qkv_model_pool_new_session(pool, model, &pool->sessions[which], err);
    *out = pool->sessions[which];
    return status;
}

int qkv_model_pool_head_session(qkv_model_pool *pool, const qkv_model *model, qkv_session **out,
                                qkv_error *err) {
    return open_session(pool, model, 0, out, err);
}

int qkv_model_pool_session(qkv_model_pool *pool, const qkv_model *model, qkv_session **out,
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

/* NULL: it is not kept. */
static kept_prompt *find_prompt(qkv_model_pool *pool, const qkv_model *model, const char *key) {
    for (size_t i = 0; i < N_PROMPTS; i++) {
        kept_prompt *kept = &pool->prompts[i];
        if (kept->key && kept->model == model && strcmp(kept->key, key) == 0) return kept;
    }
    return NULL;
}

/* In place of the one used longest ago. What cannot be kept is made again. */
static void keep_prompt(qkv_model_pool *pool, const qkv_model *model, const char *key,
                        const qkv_own_prompt *prompt) {
    kept_prompt *place = &pool->prompts[0];
    for (size_t i = 1; i < N_PROMPTS; i++) {
        if (pool->prompts[i].last_use < place->last_use) place = &pool->prompts[i];
    }
    forget_prompt(place);
    *place = (kept_prompt){qkv_strdup(key), model, {0}, ++pool->clock};
    if (!place->key || qkv_own_prompt_copy(&place->prompt, prompt, NULL) != QKV_OK)
        forget_prompt(place);
}

/* Is it a model of the list, and open? Prompts of others would never be forgotten. */
static int is_listed(const qkv_model_pool *pool, const qkv_model *model) {
    for (size_t i = 0; i < pool->n_models; i++) {
        if (pool->models[i].model == model) return 1;
    }
    return 0;
}

/* Tokens are made without the lock: a long text would keep others waiting. */
static int make_prompt(qkv_model_pool *pool, const qkv_model *model,
                       const qkv_request_prompt *wanted, qkv_own_prompt *out, qkv_error *err) {
    int status = qkv_pooled_prompt_make(out, model, wanted, err);
    if (status == QKV_OK) status = check_length(pool, model, out->n_tokens, err);
    if (status != QKV_OK) return status;
    pthread_mutex_lock(&pool->lock);
    if (is_listed(pool, model) && !find_prompt(pool, model, wanted->key))
        keep_prompt(pool, model, wanted->key, out);
    pthread_mutex_unlock(&pool->lock);
    return QKV_OK;
}

static int use_prompt(qkv_model_pool *pool, const qkv_model *model,
                      const qkv_request_prompt *wanted, qkv_own_prompt *out, qkv_error *err) {
    int status = QKV_OK;
    pthread_mutex_lock(&pool->lock);
    kept_prompt *kept = find_prompt(pool, model, wanted->key);
    if (kept) {
        kept->last_use = ++pool->clock;
        status = qkv_own_prompt_copy(out, &kept->prompt, err);
    }
    pthread_mutex_unlock(&pool->lock);
    return kept ? status : make_prompt(pool, model, wanted, out, err);
}

int qkv_model_pool_prompt(qkv_model_pool *pool, const qkv_model *model, const json_t *request,
                          qkv_own_prompt *out, qkv_error *err) {
    const json_t *field = json_object_get(request, "prompt");
    const json_t *given = json_is_null(field) ? NULL : field;
    json_t *usual = given ? NULL : json_pack("{s:s}", "text", pool->prompt);
    qkv_request_prompt wanted = {0};
    *out = (qkv_own_prompt){0};
    int status = given || usual ? qkv_request_prompt_read(&wanted, given ? given : usual, err)
                                : qkv_fail_memory(err);
    if (status == QKV_OK) status = use_prompt(pool, model, &wanted, out, err);
    qkv_request_prompt_release(&wanted);
    json_decref(usual);
    return status;
}
