/* See study_maps.h. */
#include "study/study_maps.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "study/living.h"

enum { MOST_NUMBERS = 3 << 20, MOST_PROMPTS = 8 }; /* of a page */

static size_t count_numbers(const study_inputs *in, size_t prompt) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    const size_t n = in->prompts.items[prompt].n_tokens;
    return (size_t)info->n_layer * (size_t)info->n_head * (info->causal ? n * (n + 1) / 2 : n * n);
}

/* ---- one prompt ---- */

static int add_layer(json_t *list, const study_inputs *in, const study_prompt *prompt,
                     int32_t layer, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    const size_t n = prompt->n_tokens;
    const int32_t window = qkv_model_window(in->model, layer);
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor found = QKV_TENSOR_INIT;
    float *map = qkv_calloc(n * n, sizeof *map);
    int status =
        map ? qkv_plan_new(&plan, in->model, prompt->tokens, n, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_living_add_scores(plan, layer, -1, info->attn_softcap, err);
    if (status == QKV_OK) status = qkv_session_run(in->session, &result, plan, err);
    const int there = status == QKV_OK && qkv_result_get(result, info->attn_softcap != 0,
                                                         QKV_SITE_SCORES, layer, &found);
    for (int32_t h = 0; h < info->n_head && status == QKV_OK; h++) {
        const living_map stored = {.values = map,
                                   .rows = n,
                                   .cols = n,
                                   .step = 1,
                                   .causal = info->causal,
                                   .window = window,
                                   .is_masked = info->causal || window > 0};
        if (there) qkv_living_uncap(map, found.data + (size_t)h * n * n, n * n, info->attn_softcap);
        json_t *json = there ? qkv_living_map_json(&stored, LIVING_F32) : json_null();
        if (json_array_append_new(list, json) != 0) status = qkv_fail_memory(err);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    free(map);
    return status;
}

static int add_prompt(json_t *list, const study_inputs *in, size_t number, qkv_error *err) {
    const study_prompt *prompt = &in->prompts.items[number];
    json_t *tokens = json_array(), *scores = json_array();
    int status = QKV_OK;
    for (size_t i = 0; i < prompt->n_tokens; i++)
        json_array_append_new(tokens, qkv_json_text(prompt->labels[i]));
    for (int32_t i = 0; i < qkv_model_get_info(in->model)->n_layer && status == QKV_OK; i++)
        status = add_layer(scores, in, prompt, i, err);
    json_t *entry =
        json_pack("{s:I, s:o, s:o}", "id", (json_int_t)number, "tokens", tokens, "scores", scores);
    if (status == QKV_OK && json_array_append(list, entry) != 0) status = qkv_fail_memory(err);
    json_decref(entry);
    return status;
}

/* ---- all of them ---- */

static int is_linked(const qkv_study *study, size_t prompt) {
    for (size_t i = 0; i < study->n_pictures; i++) {
        const study_picture *picture = &study->pictures[i];
        if (picture->cells != STUDY_NO_CELLS && picture->prompt == prompt) return 1;
    }
    return 0;
}

static json_t *describe_model(const study_inputs *in, json_t *prompts) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    json_t *windows = json_array(), *sinks = json_array();
    for (int32_t i = 0; i < info->n_layer; i++) {
        json_array_append_new(windows, json_integer(qkv_model_window(in->model, i)));
        for (int32_t h = 0; h < info->n_head; h++) {
            double sink = NAN;
            if (info->has_sink) (void)qkv_model_sink(in->model, i, h, &sink, NULL);
            json_array_append_new(sinks, qkv_json_real(sink));
        }
    }
    return json_pack("{s:b, s:o, s:i, s:o, s:o, s:o}", "causal", info->causal, "softcap",
                     qkv_json_exact(info->attn_softcap), "heads", (int)info->n_head, "windows",
                     windows, "sinks", sinks, "prompts", prompts);
}

int qkv_study_take_maps(qkv_study *study, const study_inputs *in, qkv_error *err) {
    size_t numbers = 0;
    int status = QKV_OK;
    json_t *prompts = json_array();
    for (size_t i = 0; i < in->prompts.n && i < MOST_PROMPTS && status == QKV_OK; i++) {
        if (!is_linked(study, i)) continue;
        numbers += count_numbers(in, i);
        if (numbers > MOST_NUMBERS) break;
        status = add_prompt(prompts, in, i, err);
    }
    if (status == QKV_OK && json_array_size(prompts))
        study->attention = describe_model(in, prompts);
    else
        json_decref(prompts);
    return status;
}
