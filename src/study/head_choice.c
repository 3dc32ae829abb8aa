/*
 * Looks for the strongest first-token sink: one pass, of which the weights on the first token are
 * all that is kept of the maps.
 *
 * What is drawn next is a whole map of one of these layers under edits, of the same prompt. The pass
 * prepares for that (qkv_plan_prepare): its attention is cut as that of whole maps, so the choice
 * and the figure see the same bits, and the figure starts from what the pass leaves in the session.
 */
#include "study/figure.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/sized.h"

typedef struct search {
    qkv_session *session;
    const int32_t *tokens;
    size_t n_tokens;
    int32_t layer, head; /* QKV_AUTO, or all that may be chosen */
    qkv_head_choice best;
} search;

/* qkv_measure_first_column, of the column alone. */
static double mean_weight(const float *column, int64_t n_tokens) {
    double sum = 0;
    for (int64_t i = 1; i < n_tokens; i++) sum += column[i];
    return n_tokens > 1 ? sum / (double)(n_tokens - 1) : 1;
}

static void look_at_layer(search *s, const qkv_result *result, int32_t layer) {
    qkv_tensor first = QKV_TENSOR_INIT;
    if (!qkv_result_get_reduced(result, 0, QKV_REDUCTION_FIRST, layer, &first)) return;
    const int64_t n_tokens = first.shape[1];
    for (int32_t i = 0; i < first.n_heads; i++) {
        const double sink = mean_weight(first.data + (int64_t)i * n_tokens, n_tokens);
        if (sink <= s->best.sink) continue;
        s->best.sink = sink;
        s->best.layer = layer;
        s->best.head = first.heads[i];
    }
}

static int has_attention(const qkv_model *model, int32_t layer) {
    qkv_layer_info info = QKV_LAYER_INFO_INIT;
    return qkv_model_get_layer(model, layer, &info) && info.n_head > 0;
}

/* Edits of a figure may be in any layer up to the one that it shows. */
static int make_plan(const search *s, int32_t first, int32_t last, qkv_plan **plan,
                     qkv_error *err) {
    char capture[96], heads[32] = "";
    if (s->head != QKV_AUTO) snprintf(heads, sizeof heads, ".h%d", (int)s->head);
    const qkv_model *model = qkv_session_model(s->session);
    int status = qkv_plan_new(plan, model, s->tokens, s->n_tokens, err);
    for (int32_t layer = 0; layer <= last && status == QKV_OK; layer++) {
        const int is_asked = first == last && layer == first; /* then it is the plan that refuses */
        if (!has_attention(model, layer) && !is_asked) continue;
        snprintf(capture, sizeof capture, "pattern@%d%s:first", (int)layer, heads);
        if (layer >= first) status = qkv_plan_add_capture(*plan, capture, err);
        snprintf(capture, sizeof capture, "pattern@%d", (int)layer);
        if (status == QKV_OK) status = qkv_plan_prepare(*plan, capture, err);
    }
    return status;
}

static int run_search(search *s, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(qkv_session_model(s->session));
    const int32_t first = s->layer == QKV_AUTO ? 0 : s->layer;
    const int32_t last = s->layer == QKV_AUTO ? info->n_layer - 1 : s->layer;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int status = make_plan(s, first, last, &plan, err);
    if (status == QKV_OK) status = qkv_session_run(s->session, &result, plan, err);
    for (int32_t layer = first; layer <= last && status == QKV_OK; layer++) {
        look_at_layer(s, result, layer);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* Counted from the end, it gets its number. */
static int resolve(const char *what, int32_t *index, int32_t n, qkv_error *err) {
    const int32_t given = *index < QKV_AUTO ? *index - QKV_AUTO : *index; /* as it is written */
    if (*index < QKV_AUTO && given >= -n) *index = n + given;
    if (*index >= QKV_AUTO && *index < n) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "%s %d is out of range: the model has %ss 0 to %d", what,
                    (int)given, what, (int)n - 1);
}

int qkv_resolve_head(const qkv_model *model, int32_t *layer, int32_t *head, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(model);
    const int status = resolve("layer", layer, info->n_layer, err);
    return status == QKV_OK ? resolve("head", head, info->n_head, err) : status;
}

int qkv_choose_head(qkv_session *session, const int32_t *tokens, size_t n_tokens, int32_t layer,
                    int32_t head, qkv_head_choice *choice, qkv_error *err) {
    if (!session || !choice || (!tokens && n_tokens)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "choosing a head needs a session, tokens and a place for the choice");
    }
    int status = qkv_resolve_head(qkv_session_model(session), &layer, &head, err);
    if (status != QKV_OK) return status;
    search s = {session, tokens, n_tokens, layer, head, {.layer = layer, .head = head, .sink = -1}};
    if (layer == QKV_AUTO || head == QKV_AUTO) status = run_search(&s, err);
    if (status != QKV_OK) return status;
    return qkv_sized_write(choice, &s.best, sizeof s.best, "qkv_head_choice", err);
}
