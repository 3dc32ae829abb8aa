/*
 * The attention that cells of a page open: the scores of heads, unedited and before the cap, for some prompts. The
 * page makes maps of them, at any factor (attention.js).
 */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/model.h"
#include "study/figure_scores.h"
#include "study/head_scores.h"
#include "study/html_page.h"

static int32_t place_at(const int32_t *list, size_t i) {
    return list ? list[i] : (int32_t)i;
}

size_t qkv_html_attention_count(const html_places *places, const qkv_own_prompt *prompt,
                                int causal) {
    const size_t n = prompt->n_tokens;
    return places->n_layers * places->n_heads * (causal ? n * (n + 1) / 2 : n * n);
}

json_t *qkv_html_attention_prompt(int64_t id, const qkv_own_prompt *prompt) {
    return json_pack("{s:I, s:o, s:o}", "id", (json_int_t)id, "tokens",
                     qkv_html_texts((const char *const *)prompt->labels, prompt->n_tokens),
                     "scores", json_array());
}

/* null where there is no single map. */
static int add_heads(json_t *list, const html_places *places, const html_map *map,
                     const qkv_tensor *found, const qkv_model *model, int32_t layer, float *values,
                     qkv_error *err) {
    const size_t n = map->rows * map->cols;
    const double softcap = qkv_model_get_info(model)->attn_softcap;
    for (size_t h = 0; h < places->n_heads; h++) {
        const int32_t head = place_at(places->heads, h);
        const int there = found->data && head >= 0;
        if (there)
            qkv_scores_plain(values, found->data + (size_t)head * n, map->rows, softcap,
                             qkv_head_slope(model, layer, head));
        if (qkv_json_push(list, there ? qkv_html_map_json(map, HTML_F32) : json_null()) != 0)
            return qkv_fail_memory(err);
    }
    return QKV_OK;
}

int qkv_html_attention_add(json_t *entry, const html_places *places, size_t layer,
                           qkv_session *session, const qkv_own_prompt *prompt, qkv_error *err) {
    const qkv_model *model = qkv_session_model(session);
    const qkv_model_info *info = qkv_model_get_info(model);
    const int32_t number = place_at(places->layers, layer);
    const int32_t window = number < 0 ? 0 : qkv_model_window(model, number);
    const size_t n = prompt->n_tokens;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor found = QKV_TENSOR_INIT;
    float *values = qkv_calloc(n * n, sizeof *values);
    const html_map map = {.values = values,
                          .rows = n,
                          .cols = n,
                          .step = 1,
                          .causal = info->causal,
                          .window = window,
                          .is_masked = info->causal || window > 0};
    int status = values ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && number >= 0) {
        status = qkv_plan_new(&plan, model, prompt->tokens, n, err);
        if (status == QKV_OK)
            status = qkv_scores_capture(plan, number, -1, info->attn_softcap, err);
        if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
        if (status == QKV_OK)
            qkv_result_get(result, info->attn_softcap != 0, QKV_SITE_SCORES, number, &found);
    }
    if (status == QKV_OK)
        status = add_heads(json_object_get(entry, "scores"), places, &map, &found, model, number,
                           values, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    free(values);
    return status;
}

json_t *qkv_html_attention(const html_places *places, const qkv_model *model,
                           const char *const names[2], json_t *prompts) {
    const qkv_model_info *info = qkv_model_get_info(model);
    json_t *windows = json_array(), *sinks = json_array(), *slopes = json_array();
    for (size_t l = 0; l < places->n_layers; l++) {
        const int32_t layer = place_at(places->layers, l);
        qkv_json_push(windows, json_integer(layer < 0 ? 0 : qkv_model_window(model, layer)));
        for (size_t h = 0; h < places->n_heads; h++) {
            const int32_t head = place_at(places->heads, h);
            const int has_sink = info->has_sink && layer >= 0 && head >= 0;
            double sink = NAN;
            const int status = has_sink ? qkv_model_sink(model, layer, head, &sink, NULL) : QKV_OK;
            qkv_json_push(slopes, qkv_json_exact(qkv_head_slope(model, layer, head)));
            qkv_json_push(sinks, status == QKV_OK ? qkv_json_exact(sink) : NULL);
        }
    }
    json_t *named = names[0] ? json_pack("[s, s]", names[0], names[1]) : json_null();
    return json_pack("{s:b, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "causal", info->causal, "softcap",
                     qkv_json_exact(info->attn_softcap), "heads", (json_int_t)places->n_heads,
                     "windows", windows, "sinks", sinks, "slopes", slopes, "names", named,
                     "prompts", prompts);
}
