/*
 * The study `massive`: massive activations (Sun et al., arXiv 2402.17762). Looks at the residual stream
 * after every layer for elements that are far above the rest, says in which channels and at which tokens
 * they are, and what the model is worth without them.
 *
 * Here: looking for them. A layer's states are looked at and dropped; as many layers as fit into a
 * few megabytes go into one run.
 */
#include "study/massive.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/median.h"
#include "base/memory.h"
#include "qkv/head_choice.h"
#include "qkv/session.h"

#define USUAL_SIZE 100
#define USUAL_RATIO 1000
#define STATES_AT_A_TIME ((size_t)64 << 20)
enum { MOST_FINDS = 1 << 20 };

static const field fields[] = {
    FIELD(massive_settings, size, REAL, "X", 1e-30, 1e30,
          "massive elements are above this (default 100)"),
    FIELD(massive_settings, ratio, REAL, "X", 1e-30, 1e30,
          "and above this many times the median of their layer (default 1000)"),
    FIELD(massive_settings, layer, INDEX, "LAYER", 0, 1 << 20,
          "the layer whose massive elements are changed (default: the first that has any)"),
};

/* ---- one layer ---- */

static void take_top(double top[MASSIVE_TOP], double size) {
    for (int i = 0; i < MASSIVE_TOP; i++) {
        if (size <= top[i]) continue;
        for (int k = MASSIVE_TOP - 1; k > i; k--) top[k] = top[k - 1];
        top[i] = size;
        return;
    }
}

static int add_find(massive_work *w, massive_find find, qkv_error *err) {
    if (w->n_finds == MOST_FINDS)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "more than %d activations are above these thresholds: raise `size` or "
                        "`ratio`",
                        (int)MOST_FINDS);
    return QKV_PUSH(w->finds, w->capacity, w->n_finds, find) ? QKV_OK : qkv_fail_memory(err);
}

/* Elements after one layer; `sizes` has room for them. */
static int look_at_layer(massive_work *w, uint32_t prompt, int32_t layer, const qkv_tensor *states,
                         float *sizes, qkv_error *err) {
    const size_t n = (size_t)(states->shape[0] * states->shape[1]);
    massive_layer *to = &w->layers[layer];
    double top[MASSIVE_TOP] = {0}, median = 0;
    int status = QKV_OK;
    for (size_t i = 0; i < n; i++) {
        sizes[i] = fabsf(states->data[i]);
        take_top(top, (double)sizes[i]);
    }
    if (!qkv_median(&median, sizes, n)) return qkv_fail_memory(err);
    for (int i = 0; i < MASSIVE_TOP; i++) to->top[i] += top[i];
    to->median += median;
    to->largest = fmax(to->largest, top[0]);
    if (median > 0) to->largest_ratio = fmax(to->largest_ratio, top[0] / median);
    if (top[0] <= w->how.size || top[0] <= w->how.ratio * median) return QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const double size = (double)sizes[i];
        if (size <= w->how.size || size <= w->how.ratio * median) continue;
        const massive_find find = {.prompt = prompt,
                                   .layer = layer,
                                   .position = (int32_t)(i / (size_t)w->n_embd),
                                   .channel = (int32_t)(i % (size_t)w->n_embd),
                                   .value = states->data[i]};
        to->count += 1;
        status = add_find(w, find, err);
    }
    return status;
}

/* ---- all of them ---- */

static int run_layers(massive_work *w, size_t number, int32_t first, int32_t end, float *sizes,
                      qkv_error *err) {
    const qkv_own_prompt *prompt = &w->in->prompts.items[number];
    char capture[64];
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    snprintf(capture, sizeof capture, "resid_post@%" PRId32 "-%" PRId32, first, end - 1);
    int status = qkv_plan_new(&plan, w->in->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, err);
    if (status == QKV_OK) status = qkv_session_run(w->in->session, &result, plan, err);
    for (int32_t l = first; l < end && status == QKV_OK; l++) {
        qkv_tensor states = QKV_TENSOR_INIT;
        if (qkv_result_get(result, 0, QKV_SITE_RESID_POST, l, &states))
            status = look_at_layer(w, (uint32_t)number, l, &states, sizes, err);
    }
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

static int look_at_prompt(massive_work *w, size_t number, qkv_error *err) {
    const size_t n = w->in->prompts.items[number].n_tokens * (size_t)w->n_embd;
    const size_t fit = STATES_AT_A_TIME / (n * sizeof(float));
    const int32_t step = fit < 1 ? 1 : fit > (size_t)w->n_layer ? w->n_layer : (int32_t)fit;
    float *sizes = qkv_calloc(n, sizeof *sizes);
    int status = sizes ? QKV_OK : qkv_fail_memory(err);
    for (int32_t l = 0; l < w->n_layer && status == QKV_OK; l += step) {
        const int32_t end = l + step < w->n_layer ? l + step : w->n_layer;
        status = run_layers(w, number, l, end, sizes, err);
    }
    free(sizes);
    return status;
}

static void choose_layer(massive_work *w) {
    w->layer = -1;
    for (size_t i = 0; i < w->n_finds; i++) {
        const int32_t layer = w->finds[i].layer;
        if (w->how.layer != QKV_AUTO ? layer == w->how.layer : w->layer < 0 || layer < w->layer)
            w->layer = layer;
    }
}

double qkv_massive_mean(const massive_work *w, int32_t channel, int is_first) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < w->n_finds; i++) {
        const massive_find *f = &w->finds[i];
        if (f->layer != w->layer || f->channel != channel || (f->position == 0) != is_first)
            continue;
        sum += (double)f->value;
        n += 1;
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* ---- the study ---- */

static int begin(massive_work *w, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(w->in->model);
    w->n_layer = info->n_layer;
    w->n_embd = info->n_embd;
    if (w->how.size <= 0) w->how.size = USUAL_SIZE;
    if (w->how.ratio <= 0) w->how.ratio = USUAL_RATIO;
    if (!info->has_logits || !info->causal)
        return qkv_fail(err, QKV_ERR_PLAN, "%s is an encoder, which has no perplexity", info->path);
    if (w->how.layer >= info->n_layer)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "layer %" PRId32 " is out of range; the model has layers 0 to %" PRId32,
                        w->how.layer, info->n_layer - 1);
    w->layers = qkv_calloc((size_t)info->n_layer, sizeof *w->layers);
    return w->layers ? QKV_OK : qkv_fail_memory(err);
}

/* What is above the thresholds nowhere is not hidden: the largest there is. */
static void warn_none(const massive_work *w) {
    int32_t size = 0, ratio = 0;
    for (int32_t l = 1; l < w->n_layer; l++) {
        if (w->layers[l].largest > w->layers[size].largest) size = l;
        if (w->layers[l].largest_ratio > w->layers[ratio].largest_ratio) ratio = l;
    }
    if (w->n_finds)
        qkv_study_warn(w->study,
                       "layer %" PRId32 " has no massive activation at these thresholds, others do",
                       w->how.layer);
    else
        qkv_study_warn(w->study,
                       "no activation is above %g and above %g times the median of its layer: the "
                       "largest is %.4g (layer %" PRId32 "), the farthest above its median %.4g "
                       "times (layer %" PRId32 "): lower size and ratio",
                       w->how.size, w->how.ratio, w->layers[size].largest, size,
                       w->layers[ratio].largest_ratio, ratio);
}

/* Each prompt is looked at, and then run with what was found set to other values. */
static int compute(massive_work *w, qkv_error *err) {
    const size_t n = w->in->prompts.n;
    int status = qkv_study_begin(w->in, "prompts", 2 * n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = qkv_study_reach(w->in, (double)i, 1, err);
        if (status == QKV_OK) status = look_at_prompt(w, i, err);
    }
    choose_layer(w);
    if (status == QKV_OK && w->layer < 0) warn_none(w);
    if (status == QKV_OK) status = qkv_massive_set(w, err);
    return qkv_study_end(w->in, status);
}

static int make_massive(qkv_study *study, const study_inputs *in, const void *options,
                        qkv_error *err) {
    massive_work w = {.study = study, .in = in, .how = *(const massive_settings *)options};
    int status = begin(&w, err);
    if (status == QKV_OK) status = compute(&w, err);
    if (status == QKV_OK) status = qkv_massive_show(&w, err);
    free(w.layers);
    free(w.finds);
    return status;
}

const study_kind qkv_study_massive = {
    .name = "massive",
    .title = "massive activations: their channels and tokens, and the perplexity without them",
    .description =
        "Massive activations (Sun et al., arXiv 2402.17762): elements of a layer's output that are above "
        "`size` and above `ratio` times the median of their layer. In which channels and at which tokens "
        "they are, how large after every layer, and the perplexity after setting them to zero or to their "
        "mean over prompts. Small models may have none at the usual thresholds.\n",
    .examples = "qkv massive -f prompts.txt --size 50 --ratio 100 -o massive.png\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(massive_settings),
    .least_prompts = 2, /* a mean over prompts */
    .most_prompts = UINT32_MAX,
    .n_printed = 2,
    .make = make_massive,
};
