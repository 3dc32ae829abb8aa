/* See study_maps.h. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "study/html_page.h"

enum { MOST_NUMBERS = 3 << 20, MOST_PROMPTS = 8 }; /* of a page */

static html_places all_places(const qkv_model *model) {
    const qkv_model_info *info = qkv_model_get_info(model);
    return (html_places){.n_layers = (size_t)info->n_layer, .n_heads = (size_t)info->n_head};
}

/* ---- the second map ---- */

static int has_second(const qkv_study *study, const study_inputs *in, size_t number) {
    const size_t other = study->second.prompt;
    if (!study->second.names[0]) return 0;
    return in->other || in->prompts.items[other].n_tokens == in->prompts.items[number].n_tokens;
}

/* As patterns, with the edits in them: no page changes these. */
static int add_second_layer(json_t *list, const study_second *second, const study_inputs *in,
                            const qkv_own_prompt *prompt, int32_t layer, qkv_error *err) {
    const qkv_model *model = in->other ? in->other_model : in->model;
    const int is_edited = second->edits && second->edits[0];
    const size_t n = prompt->n_tokens;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor found = QKV_TENSOR_INIT;
    char capture[32];
    snprintf(capture, sizeof capture, "pattern@%d", (int)layer);
    int status = qkv_plan_new(&plan, model, prompt->tokens, n, err);
    if (status == QKV_OK && is_edited)
        status = qkv_plan_add_variant(plan, second->edits, NULL, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, err);
    if (status == QKV_OK)
        status = qkv_session_run(in->other ? in->other : in->session, &result, plan, err);
    const int there = status == QKV_OK &&
                      qkv_result_get(result, (size_t)is_edited, QKV_SITE_PATTERN, layer, &found);
    for (int32_t h = 0; h < qkv_model_get_info(model)->n_head && status == QKV_OK; h++) {
        const html_map map = {
            .values = found.data + (size_t)h * n * n, .rows = n, .cols = n, .step = 1};
        json_t *json = there ? qkv_html_map_json(&map, HTML_F32) : json_null();
        if (qkv_json_push(list, json) != 0) status = qkv_fail_memory(err);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* `done`: layers by now, counted on. */
static int add_second(json_t *entry, const qkv_study *study, const study_inputs *in, size_t number,
                      double *done, qkv_error *err) {
    const qkv_own_prompt *prompt = &in->prompts.items[in->other ? number : study->second.prompt];
    json_t *patterns = json_array();
    int status = QKV_OK;
    for (int32_t i = 0; i < qkv_model_get_info(in->model)->n_layer && status == QKV_OK; i++) {
        status = qkv_study_reach(in, (*done)++, 1, err);
        if (status == QKV_OK)
            status = add_second_layer(patterns, &study->second, in, prompt, i, err);
    }
    qkv_json_put(entry, "second", patterns);
    for (size_t i = 0; i < prompt->n_tokens && !in->other; i++) {
        const char *first = in->prompts.items[number].labels[i];
        if (strcmp(first, prompt->labels[i]) != 0)
            qkv_json_replace(json_object_get(entry, "tokens"), i,
                             json_sprintf("%s / %s", first, prompt->labels[i]));
    }
    return status;
}

/* ---- all of them ---- */

static int add_prompt(json_t *list, const qkv_study *study, const study_inputs *in, size_t number,
                      double *done, qkv_error *err) {
    const qkv_own_prompt *prompt = &in->prompts.items[number];
    const html_places places = all_places(in->model);
    json_t *entry = qkv_html_attention_prompt((int64_t)number, prompt);
    int status = QKV_OK;
    for (size_t i = 0; i < places.n_layers && status == QKV_OK; i++) {
        status = qkv_study_reach(in, (*done)++, 1, err);
        if (status == QKV_OK)
            status = qkv_html_attention_add(entry, &places, i, in->session, prompt, err);
    }
    if (status == QKV_OK && has_second(study, in, number))
        status = add_second(entry, study, in, number, done, err);
    if (status == QKV_OK && qkv_json_push(list, json_incref(entry)) != 0)
        status = qkv_fail_memory(err);
    json_decref(entry);
    return status;
}

static int is_linked(const qkv_study *study, size_t prompt) {
    for (size_t i = 0; i < study->n_pictures; i++) {
        const study_picture *picture = &study->pictures[i];
        if (picture->cells != STUDY_NO_CELLS && picture->prompt == prompt) return 1;
    }
    return 0;
}

static size_t count_layers(const qkv_study *study, const study_inputs *in) {
    size_t n = 0;
    for (size_t i = 0; i < in->prompts.n && i < MOST_PROMPTS; i++)
        n += is_linked(study, i) ? 1 + (size_t)has_second(study, in, i) : 0;
    return n * (size_t)qkv_model_get_info(in->model)->n_layer;
}

static int take_maps(qkv_study *study, const study_inputs *in, qkv_error *err) {
    const html_places places = all_places(in->model);
    size_t numbers = 0;
    double done = 0;
    int status = qkv_study_begin(in, "layers", count_layers(study, in), err);
    if (status != QKV_OK) return status;
    json_t *prompts = json_array();
    if (!prompts) status = qkv_fail_memory(err);
    for (size_t i = 0; i < in->prompts.n && i < MOST_PROMPTS && status == QKV_OK; i++) {
        if (!is_linked(study, i)) continue;
        numbers += qkv_html_attention_count(&places, &in->prompts.items[i],
                                            qkv_model_get_info(in->model)->causal) *
                   (1 + (size_t)has_second(study, in, i));
        study->is_too_large = numbers > MOST_NUMBERS;
        if (study->is_too_large) break;
        status = add_prompt(prompts, study, in, i, &done, err);
    }
    status = qkv_study_end(in, status);
    if (status != QKV_OK || !json_array_size(prompts)) {
        json_decref(prompts);
        return status;
    }
    study->attention = qkv_html_attention(&places, in->model, study->second.names, prompts);
    return study->attention ? QKV_OK : qkv_fail_memory(err);
}

int qkv_study_take_maps(qkv_study *study, const study_inputs *in, qkv_error *err) {
    study_inputs linked = *in;
    if (study->linked.n) linked.prompts = study->linked;
    return take_maps(study, &linked, err);
}
