/* The attention that a chart is about. See plot_heads.h. */
#include "study/plot_heads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/living.h"
#include "sweep/sweep.h"

enum { MOST_NUMBERS = 1 << 20, MOST_PROMPTS = 8 }; /* of a page */

void qkv_plot_heads_free(plot_heads *all, const qkv_plot *p) {
    if (!all) return;
    const size_t n = all->prompts.n * p->layers.n * p->heads.n;
    for (size_t i = 0; all->scores && i < n; i++) free(all->scores[i]);
    free(all->scores);
    free(all->ids);
    free(all->sinks);
    free(all->windows);
    qkv_own_prompts_release(&all->prompts);
    free(all);
}

/* ---- the model ---- */

static int check_model(const qkv_plot *p, const qkv_model *model, qkv_error *err) {
    char hash[33];
    const qkv_model_info *info = qkv_model_get_info(model);
    const int status = qkv_model_hash(model, hash, err);
    if (status != QKV_OK) return status;
    if (strcmp(hash, p->info->model_hash) != 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the model is not the sweep's, which was made with %s",
                        p->info->model_path[0] ? p->info->model_path : "one of another hash");
    }
    for (size_t l = 0; l < p->layers.n; l++) {
        if (p->layers.at[l] >= info->n_layer) {
            return qkv_fail(err, QKV_ERR_FORMAT, "the sweep has a layer that its model has not");
        }
    }
    for (size_t h = 0; h < p->heads.n; h++) {
        if (p->heads.at[h] >= info->n_head) {
            return qkv_fail(err, QKV_ERR_FORMAT, "the sweep has a head that its model has not");
        }
    }
    return QKV_OK;
}

static int take_model(plot_heads *all, const qkv_plot *p, const qkv_model *model, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(model);
    int status = QKV_OK;
    all->causal = info->causal;
    all->softcap = info->attn_softcap;
    all->sinks = qkv_calloc(p->layers.n * p->heads.n, sizeof *all->sinks);
    all->windows = qkv_calloc(p->layers.n, sizeof *all->windows);
    if (!all->sinks || !all->windows) return qkv_fail_memory(err);
    for (size_t l = 0; l < p->layers.n && status == QKV_OK; l++) {
        all->windows[l] = qkv_model_window(model, p->layers.at[l]);
        for (size_t h = 0; h < p->heads.n && status == QKV_OK; h++) {
            double *sink = &all->sinks[l * p->heads.n + h];
            *sink = (double)NAN;
            if (!info->has_sink || p->layers.at[l] < 0 || p->heads.at[h] < 0) continue;
            status = qkv_model_sink(model, p->layers.at[l], p->heads.at[h], sink, err);
        }
    }
    return status;
}

/* ---- prompts ---- */

/* As many of the first prompts as a page has room for. */
static int take_prompts(plot_heads *all, const qkv_plot *p, const qkv_model *model,
                        const int64_t *ids, size_t n, qkv_error *err) {
    const size_t most = n < MOST_PROMPTS ? n : MOST_PROMPTS;
    size_t numbers = 0;
    int status = QKV_OK;
    all->prompts.items = qkv_calloc(most, sizeof *all->prompts.items);
    all->ids = qkv_calloc(most, sizeof *all->ids);
    if (!all->prompts.items || !all->ids) return qkv_fail_memory(err);
    for (size_t i = 0; i < most && status == QKV_OK; i++) {
        qkv_own_prompt prompt = {0};
        status = qkv_sweep_reader_prompt(p->file, ids[i], &prompt.tokens, &prompt.n_tokens, err);
        const size_t tokens = prompt.n_tokens;
        numbers +=
            p->layers.n * p->heads.n * (all->causal ? tokens * (tokens + 1) / 2 : tokens * tokens);
        if (status == QKV_OK && numbers > MOST_NUMBERS) {
            qkv_tokens_free(prompt.tokens);
            break;
        }
        all->ids[i] = ids[i];
        all->prompts.items[all->prompts.n++] = prompt;
        if (status == QKV_OK) status = qkv_prompt_make_labels(&all->prompts.items[i], model, err);
    }
    return status;
}

/* ---- scores ---- */

static int keep_head(plot_heads *all, const qkv_plot *p, size_t prompt, size_t layer,
                     const qkv_tensor *found, qkv_error *err) {
    const size_t tokens = all->prompts.items[prompt].n_tokens, n = tokens * tokens;
    for (size_t h = 0; h < p->heads.n; h++) {
        const int32_t head = p->heads.at[h];
        if (head < 0) continue;
        float *map = qkv_calloc(n, sizeof *map);
        if (!map) return qkv_fail_memory(err);
        all->scores[(prompt * p->layers.n + layer) * p->heads.n + h] = map;
        qkv_living_uncap(map, found->data + (size_t)head * n, n, all->softcap);
    }
    return QKV_OK;
}

static int take_layer(plot_heads *all, const qkv_plot *p, qkv_session *session, size_t prompt,
                      size_t layer, qkv_error *err) {
    const qkv_own_prompt *input = &all->prompts.items[prompt];
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor found = QKV_TENSOR_INIT;
    const int32_t l = p->layers.at[layer];
    int status =
        qkv_plan_new(&plan, qkv_session_model(session), input->tokens, input->n_tokens, err);
    if (status == QKV_OK) status = qkv_living_add_scores(plan, l, -1, all->softcap, err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    if (status == QKV_OK &&
        !qkv_result_get(result, all->softcap != 0, QKV_SITE_SCORES, l, &found)) {
        status =
            qkv_fail(err, QKV_ERR_BACKEND, "the run did not return scores of layer %d", (int)l);
    }
    if (status == QKV_OK) status = keep_head(all, p, prompt, layer, &found, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

int qkv_plot_heads_new(plot_heads **out, const qkv_plot *p, qkv_session *session,
                       const int64_t *prompts, size_t n_prompts, qkv_error *err) {
    const qkv_model *model = qkv_session_model(session);
    plot_heads *all = *out = qkv_calloc(1, sizeof *all);
    if (!all) return qkv_fail_memory(err);
    int status = check_model(p, model, err);
    if (status == QKV_OK) status = take_model(all, p, model, err);
    if (status == QKV_OK) status = take_prompts(all, p, model, prompts, n_prompts, err);
    if (status != QKV_OK) return status;
    all->scores = qkv_calloc(all->prompts.n * p->layers.n * p->heads.n, sizeof *all->scores);
    if (!all->scores) return qkv_fail_memory(err);
    for (size_t i = 0; i < all->prompts.n * p->layers.n && status == QKV_OK; i++) {
        if (p->layers.at[i % p->layers.n] < 0) continue;
        status = take_layer(all, p, session, i / p->layers.n, i % p->layers.n, err);
    }
    return status;
}
