/* POST /api/generate: continues the text, with and without the edits. As `qkv generate` does it. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "qkv/generate.h"
#include "server/limits.h"
#include "server/request_plan.h"

enum { DEFAULT_NEW = 32, MOST_VARIANTS = 2 };

typedef struct generation {
    qkv_request_plan request;
    int64_t n;
    qkv_sampler_options sampler;
    qkv_generator *generator;
    size_t n_variants;
    int32_t *tokens[MOST_VARIANTS]; /* the last token of the prompt, then the new ones */
    size_t n_tokens[MOST_VARIANTS]; /* new ones */
    int ended[MOST_VARIANTS];
} generation;

static int read_options(generation *g, const qkv_call *call, qkv_error *err) {
    const json_t *request = call->request;
    int64_t seed = 0;
    g->n = DEFAULT_NEW;
    g->sampler = (qkv_sampler_options)QKV_SAMPLER_OPTIONS_INIT;
    int status = qkv_request_integer(request, "n", 1, QKV_LIMIT_GENERATE, &g->n, err);
    if (status == QKV_OK)
        status = qkv_request_real(request, "temperature", 0, 1e6, &g->sampler.temperature, err);
    if (status == QKV_OK)
        status = qkv_request_integer(request, "top_k", 0, INT32_MAX, &g->sampler.top_k, err);
    if (status == QKV_OK) status = qkv_request_real(request, "top_p", 0, 1, &g->sampler.top_p, err);
    if (status == QKV_OK) status = qkv_request_real(request, "min_p", 0, 1, &g->sampler.min_p, err);
    if (status == QKV_OK) status = qkv_request_integer(request, "seed", 0, INT64_MAX, &seed, err);
    g->sampler.seed = (uint64_t)seed;
    static const char *const drawing[] = {"top_k", "top_p", "min_p", "seed"};
    for (size_t i = 0; i < 4 && status == QKV_OK && g->sampler.temperature == 0; i++) {
        if (json_object_get(request, drawing[i]))
            status = qkv_fail(err, QKV_ERR_ARGUMENT,
                              "at temperature 0 nothing is drawn: leave out `%s`", drawing[i]);
    }
    const int64_t room = g->request.info->n_ctx - (int64_t)g->request.prompt.n_tokens;
    if (status == QKV_OK && room < 1)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt is as long as the model takes");
    if (g->n > room) g->n = room;
    return status == QKV_OK ? qkv_sampler_check(&g->sampler, err) : status;
}

static int prepare(generation *g, qkv_error *err) {
    const qkv_own_prompt *prompt = &g->request.prompt;
    qkv_generator_options options = QKV_GENERATOR_OPTIONS_INIT;
    options.max_new = (size_t)g->n;
    options.variants = &g->request.edits;
    options.n_variants = (size_t)qkv_request_plan_has_edits(&g->request);
    g->n_variants = options.n_variants + 1;
    for (size_t v = 0; v < g->n_variants; v++) {
        g->tokens[v] = qkv_calloc((size_t)g->n + 1, sizeof *g->tokens[v]);
        if (!g->tokens[v]) return qkv_fail_memory(err);
        g->tokens[v][0] = prompt->tokens[prompt->n_tokens - 1];
    }
    return qkv_generator_new(&g->generator, g->request.model, prompt->tokens, prompt->n_tokens,
                             &options, err);
}

/* Draws a token for a variant; next[v] is the token that it is continued with. */
static int draw(generation *g, size_t v, uint64_t step, int32_t *next, qkv_error *err) {
    const float *logits = qkv_generator_logits(g->generator, v);
    int32_t token;
    *next = QKV_NO_NEXT;
    if (g->ended[v] || !logits) return QKV_OK;
    const int status =
        qkv_sample(&g->sampler, logits, (size_t)g->request.info->n_vocab, step, &token, err);
    if (status != QKV_OK) return status;
    g->tokens[v][++g->n_tokens[v]] = token;
    g->ended[v] = qkv_is_end_token(g->request.model, token) || (int64_t)g->n_tokens[v] == g->n;
    if (!g->ended[v]) *next = token;
    return QKV_OK;
}

static int run(generation *g, qkv_session *session, qkv_error *err) {
    int32_t next[MOST_VARIANTS];
    int status = qkv_session_feed(session, g->generator, NULL, err);
    for (uint64_t step = 0; status == QKV_OK; step++) {
        int going = 0;
        for (size_t v = 0; v < g->n_variants && status == QKV_OK; v++) {
            status = draw(g, v, step, &next[v], err);
            going |= next[v] != QKV_NO_NEXT;
        }
        if (status != QKV_OK || !going) break;
        status = qkv_session_feed(session, g->generator, next, err);
    }
    return status;
}

/* ---- texts ---- */

/* What each new token adds to the text. A character of several tokens comes with its last one. */
static json_t *list_pieces(const generation *g, size_t v) {
    json_t *list = json_array();
    size_t shown = 0;
    for (size_t i = 0; i <= g->n_tokens[v]; i++) {
        char *text = NULL;
        size_t length = 0;
        if (qkv_detokenize(g->request.model, &text, &length, g->tokens[v], i + 1, 0, NULL) !=
            QKV_OK) {
            json_t *id = i ? json_sprintf(" %d", (int)g->tokens[v][i]) : NULL;
            if (id) qkv_json_push(list, id); /* a model without a tokenizer */
            continue;
        }
        const int last = i == g->n_tokens[v];
        size_t end = last ? length : length - qkv_utf8_unfinished(text, length);
        if (end < shown) end = shown;
        if (i) qkv_json_push(list, qkv_json_string(text + shown, end - shown));
        shown = i ? end : length;
        qkv_text_free(text);
    }
    return list;
}

static json_t *list_ids(const generation *g, size_t v) {
    json_t *list = json_array();
    for (size_t i = 1; i <= g->n_tokens[v]; i++) qkv_json_push(list, json_integer(g->tokens[v][i]));
    return list;
}

/* The number of the first new token that differs; null: none. */
static json_t *find_difference(const generation *g) {
    if (g->n_variants < 2) return json_null();
    const size_t n = g->n_tokens[0] < g->n_tokens[1] ? g->n_tokens[0] : g->n_tokens[1];
    for (size_t i = 0; i < n; i++) {
        if (g->tokens[0][i + 1] != g->tokens[1][i + 1]) return json_integer((json_int_t)i);
    }
    return g->n_tokens[0] == g->n_tokens[1] ? json_null() : json_integer((json_int_t)n);
}

static int send_texts(const generation *g, qkv_reply *reply, qkv_error *err) {
    json_t *json = json_pack("{s:o, s:o, s:o}", "baseline", list_pieces(g, 0), "baseline_ids",
                             list_ids(g, 0), "differs_at", find_difference(g));
    if (json && g->n_variants > 1) {
        qkv_json_put(json, "variant", list_pieces(g, 1));
        qkv_json_put(json, "variant_ids", list_ids(g, 1));
    }
    return qkv_reply_json(reply, json, err);
}

int qkv_api_generate(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    generation g = {0};
    qkv_session *session = NULL;
    int status = qkv_request_plan_open(&g.request, pool, call, reply, err);
    if (status == QKV_OK) status = read_options(&g, call, err);
    if (status == QKV_OK) status = prepare(&g, err);
    if (status == QKV_OK) status = qkv_model_pool_session(pool, g.request.model, &session, err);
    if (status == QKV_OK) status = run(&g, session, err);
    if (status == QKV_OK) status = send_texts(&g, reply, err);
    qkv_generator_free(g.generator);
    for (size_t v = 0; v < MOST_VARIANTS; v++) free(g.tokens[v]);
    qkv_request_plan_release(&g.request);
    return status;
}
