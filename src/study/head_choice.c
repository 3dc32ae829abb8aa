/*
 * Looks for the strongest first-token sink. Whole maps, and not the reduction pattern:first: beyond
 * 256 tokens reductions go through blocks of queries, whose products round differently, and the
 * choice between close heads should not depend on that.
 */
#include "qkv/head_choice.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/sized.h"
#include "qkv/measure.h"

/* Patterns of all layers of a long prompt do not fit in memory: they are captured in groups of
 * layers that stay below this many bytes. */
#define PATTERN_BUDGET ((int64_t)512 << 20)

typedef struct search {
    qkv_session *session;
    const int32_t *tokens;
    size_t n_tokens;
    int32_t layer, head; /* QKV_AUTO, or all that may be chosen */
    qkv_head_choice best;
} search;

static void look_at_layer(search *s, const qkv_result *result, int32_t layer) {
    qkv_tensor pattern = QKV_TENSOR_INIT;
    if (!qkv_result_get(result, 0, QKV_SITE_PATTERN, layer, &pattern)) return;
    const int64_t n_tokens = pattern.shape[1];
    for (int32_t i = 0; i < pattern.n_heads; i++) {
        const float *head = pattern.data + (int64_t)i * n_tokens * n_tokens;
        const double sink = qkv_measure_first_column(head, n_tokens);
        if (sink <= s->best.sink) continue;
        s->best.sink = sink;
        s->best.layer = layer;
        s->best.head = pattern.heads ? pattern.heads[i] : i;
    }
}

static int look_at_layers(search *s, int32_t first, int32_t last, qkv_error *err) {
    char capture[96];
    int n = snprintf(capture, sizeof capture, "pattern@%d-%d", (int)first, (int)last);
    if (first == last) n = snprintf(capture, sizeof capture, "pattern@%d", (int)first);
    if (s->head != QKV_AUTO) {
        snprintf(capture + n, sizeof capture - (size_t)n, ".h%d", (int)s->head);
    }
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int status = qkv_plan_new(&plan, qkv_session_model(s->session), s->tokens, s->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, err);
    if (status == QKV_OK) status = qkv_session_run(s->session, &result, plan, err);
    for (int32_t layer = first; layer <= last && status == QKV_OK; layer++) {
        look_at_layer(s, result, layer);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* How many layers at a time. */
static int32_t group_size(const search *s, const qkv_model_info *info, int32_t n_layers) {
    if (s->n_tokens > (size_t)info->n_ctx) return n_layers; /* the plan will refuse it */
    const int64_t n_tokens = (int64_t)s->n_tokens;
    const int64_t n_heads = s->head == QKV_AUTO ? info->n_head : 1;
    const int64_t bytes = n_heads * n_tokens * n_tokens * (int64_t)sizeof(float);
    if (bytes * n_layers <= PATTERN_BUDGET) return n_layers;
    return bytes > PATTERN_BUDGET ? 1 : (int32_t)(PATTERN_BUDGET / bytes);
}

static int run_search(search *s, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(qkv_session_model(s->session));
    const int32_t first = s->layer == QKV_AUTO ? 0 : s->layer;
    const int32_t last = s->layer == QKV_AUTO ? info->n_layer - 1 : s->layer;
    const int32_t group = group_size(s, info, last - first + 1);
    int status = QKV_OK;
    for (int32_t layer = first; layer <= last && status == QKV_OK; layer += group) {
        const int32_t end = layer + group - 1 < last ? layer + group - 1 : last;
        status = look_at_layers(s, layer, end, err);
    }
    return status;
}

static int check_index(const char *what, int32_t index, int32_t n, qkv_error *err) {
    if (index >= QKV_AUTO && index < n) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "%s %d is out of range: the model has %ss 0 to %d", what,
                    (int)index, what, (int)n - 1);
}

int qkv_choose_head(qkv_session *session, const int32_t *tokens, size_t n_tokens, int32_t layer,
                    int32_t head, qkv_head_choice *choice, qkv_error *err) {
    if (!session || !choice || (!tokens && n_tokens)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "choosing a head needs a session, tokens and a place for the choice");
    }
    const qkv_model_info *info = qkv_model_get_info(qkv_session_model(session));
    int status = check_index("layer", layer, info->n_layer, err);
    if (status == QKV_OK) status = check_index("head", head, info->n_head, err);
    if (status != QKV_OK) return status;
    search s = {session, tokens, n_tokens, layer, head, {.layer = layer, .head = head, .sink = -1}};
    if (layer == QKV_AUTO || head == QKV_AUTO) status = run_search(&s, err);
    if (status != QKV_OK) return status;
    return qkv_sized_write(choice, &s.best, sizeof s.best, "qkv_head_choice", err);
}
