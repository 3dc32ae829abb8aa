/*
 * Means of maps over many prompts (figure 2 of StreamingLLM, arXiv 2309.17453): of scores and of
 * attention weights, over the first tokens of every prompt. Sums are kept, prompts are not.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "run/run.h"
#include "study/cache_study.h"

enum { MOST_MAPS = 64, USUAL_LAYERS = 8 };

typedef struct mean_map {
    int32_t layer, head;
    double *scores, *weights; /* T × T sums, then means; NaN where the query sees no key */
    char title[48];
} mean_map;

typedef struct work {
    const study_inputs *in;
    char *maps; /* LAYERS.hHEADS */
    size_t n_tokens;
    mean_map items[MOST_MAPS];
    size_t n;
} work;

/* Head 0 of all layers, or of some at equal distances with the first and the last. */
static char *usual_maps(int32_t n_layer) {
    qkv_text text = {0};
    const int32_t n = n_layer < USUAL_LAYERS ? n_layer : USUAL_LAYERS;
    for (int32_t i = 0; i < n; i++)
        qkv_text_printf(&text, "%s%d", i ? "," : "", n > 1 ? i * (n_layer - 1) / (n - 1) : 0);
    qkv_text_puts(&text, ".h0");
    if (text.failed) qkv_text_release(&text);
    return text.data;
}

static int add_capture(qkv_plan *plan, const char *site, const char *maps, qkv_error *err) {
    qkv_text text = {0};
    qkv_text_printf(&text, "%s@%s", site, maps);
    const int status =
        text.failed ? qkv_fail_memory(err) : qkv_plan_add_capture(plan, text.data, err);
    qkv_text_release(&text);
    return status;
}

static int list_maps(work *w, const qkv_result *result, qkv_error *err) {
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT;
    const size_t cells = w->n_tokens * w->n_tokens;
    for (size_t i = 0; qkv_result_item(result, i, NULL, &site, &layer, &t); i++) {
        for (int32_t h = 0; site == QKV_SITE_SCORES && h < t.n_heads; h++) {
            if (w->n == MOST_MAPS)
                return qkv_fail(err, QKV_ERR_ARGUMENT,
                                "`maps` names more than %d heads; name fewer, e.g. 0,5.h0",
                                MOST_MAPS);
            mean_map *map = &w->items[w->n++];
            *map = (mean_map){.layer = layer,
                              .head = t.heads[h],
                              .scores = qkv_calloc(cells, sizeof *map->scores),
                              .weights = qkv_calloc(cells, sizeof *map->weights)};
            if (!map->scores || !map->weights) return qkv_fail_memory(err);
            snprintf(map->title, sizeof map->title, "Layer %d, head %d", (int)layer,
                     (int)map->head);
        }
    }
    return QKV_OK;
}

static void add_tensor(const work *w, const qkv_result *result, qkv_site site) {
    qkv_tensor t = QKV_TENSOR_INIT;
    const size_t cells = w->n_tokens * w->n_tokens;
    for (size_t i = 0; i < w->n; i++) {
        const mean_map *map = &w->items[i];
        if (!qkv_result_get(result, 0, site, map->layer, &t)) continue;
        int32_t at = 0;
        while (at < t.n_heads && t.heads[at] != map->head) at++;
        const float *from = t.data + (size_t)at * cells;
        double *to = site == QKV_SITE_SCORES ? map->scores : map->weights;
        for (size_t c = 0; c < cells; c++) to[c] += (double)from[c];
    }
}

static int add_prompt(work *w, const qkv_own_prompt *prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int status = qkv_plan_new(&plan, w->in->model, prompt->tokens, w->n_tokens, err);
    if (status == QKV_OK) status = add_capture(plan, "scores", w->maps, err);
    if (status == QKV_OK) status = add_capture(plan, "pattern", w->maps, err);
    if (status == QKV_OK) status = qkv_session_run(w->in->session, &result, plan, err);
    if (status == QKV_OK && !w->n) status = list_maps(w, result, err);
    if (status == QKV_OK) {
        add_tensor(w, result, QKV_SITE_SCORES);
        add_tensor(w, result, QKV_SITE_PATTERN);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

static void take_means(const work *w) {
    const double n = (double)w->in->prompts.n;
    for (size_t i = 0; i < w->n; i++) {
        for (size_t q = 0; q < w->n_tokens; q++) {
            int64_t first, end;
            qkv_visible_keys(w->in->model, w->items[i].layer, (int64_t)w->n_tokens, (int64_t)q,
                             &first, &end);
            for (size_t k = 0; k < w->n_tokens; k++) {
                const int seen = (int64_t)k >= first && (int64_t)k < end;
                double *score = &w->items[i].scores[q * w->n_tokens + k];
                double *weight = &w->items[i].weights[q * w->n_tokens + k];
                *score = seen ? *score / n : (double)NAN;
                *weight = seen ? *weight / n : (double)NAN;
            }
        }
    }
}

/* ---- showing ---- */

static int draw(const work *w, qkv_study *study, int scores, qkv_error *err) {
    qkv_heatmap_panel panels[MOST_MAPS];
    for (size_t i = 0; i < w->n; i++) {
        panels[i] = (qkv_heatmap_panel)QKV_HEATMAP_PANEL_INIT;
        panels[i].values = scores ? w->items[i].scores : w->items[i].weights;
        panels[i].n_rows = panels[i].n_cols = (int32_t)w->n_tokens;
        panels[i].title = w->items[i].title;
    }
    qkv_heatmap map = QKV_HEATMAP_INIT;
    map.panels = panels;
    map.n_panels = w->n;
    map.row_axis = "Query";
    map.col_axis = "Key";
    map.color.label = scores ? "mean score" : "mean attention weight";
    map.diverging = scores;
    return qkv_study_add_heatmap(
        study, scores ? "scores" : "patterns",
        scores ? "Scores, Mean over the Prompts" : "Attention, Mean over the Prompts", &map, err);
}

static int add_table(const work *w, qkv_study *study, qkv_error *err) {
    static const char *const columns[] = {"layer", "head", "query", "key", "score", "weight"};
    int status = qkv_study_add_table(study, "maps", "Mean maps", columns, 6, err);
    const size_t cells = w->n_tokens * w->n_tokens;
    for (size_t i = 0; i < w->n * cells && status == QKV_OK; i++) {
        const mean_map *map = &w->items[i / cells];
        const size_t c = i % cells, query = c / w->n_tokens, key = c % w->n_tokens;
        if (isnan(map->weights[c])) continue;
        const study_value row[] = {STUDY_NUMBER(map->layer),     STUDY_NUMBER(map->head),
                                   STUDY_NUMBER(query),          STUDY_NUMBER(key),
                                   STUDY_NUMBER(map->scores[c]), STUDY_NUMBER(map->weights[c])};
        status = qkv_study_add_row(study, row, err);
    }
    return status;
}

static int run(work *w, qkv_study *study, qkv_error *err) {
    int status = qkv_study_begin(w->in, "prompts", w->in->prompts.n, err);
    if (status != QKV_OK) return status;
    for (size_t p = 0; p < w->in->prompts.n && status == QKV_OK; p++) {
        const qkv_own_prompt *prompt = &w->in->prompts.items[p];
        status = prompt->n_tokens < w->n_tokens
                     ? qkv_fail(err, QKV_ERR_ARGUMENT,
                                "prompt %zu has %zu tokens; a mean map is over the first %zu of "
                                "each (`map_length`)",
                                p + 1, prompt->n_tokens, w->n_tokens)
                     : add_prompt(w, prompt, err);
    }
    status = qkv_study_end(w->in, status);
    if (status != QKV_OK) return status;
    take_means(w);
    qkv_study_note(study,
                   "mean maps: the first %zu tokens of %zu prompt%s; scores before the softmax",
                   w->n_tokens, w->in->prompts.n, qkv_plural(w->in->prompts.n));
    status = add_table(w, study, err);
    if (status == QKV_OK) status = draw(w, study, 1, err);
    return status == QKV_OK ? draw(w, study, 0, err) : status;
}

int qkv_mean_maps(qkv_study *study, const study_inputs *in, const char *maps, int64_t length,
                  qkv_error *err) {
    work w = {.in = in,
              .maps = maps ? qkv_strdup(maps) : usual_maps(qkv_model_get_info(in->model)->n_layer),
              .n_tokens = (size_t)length};
    const int status = w.maps ? run(&w, study, err) : qkv_fail_memory(err);
    for (size_t i = 0; i < w.n; i++) {
        free(w.items[i].scores);
        free(w.items[i].weights);
    }
    free(w.maps);
    return status;
}
