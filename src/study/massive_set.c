/*
 * What a model is worth when its massive activations are set: after one layer, at their own tokens, to
 * zero or to their mean over prompts. As a control, as many channels of the same tokens whose size is
 * nearest to the layer's median are set to zero.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/median.h"
#include "base/memory.h"
#include "qkv/next.h"
#include "study/massive.h"

/* The finds of one prompt after the layer. */
typedef struct prompt_finds {
    const massive_find **items;
    size_t n;
} prompt_finds;

static int gather(const massive_work *w, size_t number, prompt_finds *out, qkv_error *err) {
    *out = (prompt_finds){0};
    out->items = qkv_calloc(w->n_finds, sizeof *out->items);
    if (!out->items) return qkv_fail_memory(err);
    for (size_t i = 0; i < w->n_finds; i++) {
        if (w->finds[i].prompt == number && w->finds[i].layer == w->layer)
            out->items[out->n++] = &w->finds[i];
    }
    return QKV_OK;
}

/* ---- edits ---- */

static void append_edit(qkv_text *out, int32_t layer, int32_t position, int32_t channel,
                        double value) {
    qkv_text_printf(out, "%sresid_post@%d[%d]{%d}=set:%.9g", out->length ? " + " : "", (int)layer,
                    (int)position, (int)channel, value);
}

static void append_edits(const massive_work *w, const prompt_finds *finds, massive_change change,
                         qkv_text *out) {
    for (size_t i = 0; i < finds->n; i++) {
        const massive_find *f = finds->items[i];
        const double mean = qkv_massive_mean(w, f->channel, f->position == 0);
        append_edit(out, f->layer, f->position, f->channel, change == MASSIVE_MEAN ? mean : 0);
    }
}

/* ---- the control ---- */

/* The channel of a token whose size is nearest to the median, among those not yet taken. */
static int32_t nearest_channel(const float *state, int32_t n, double median, const uint8_t *taken) {
    int32_t best = -1;
    double least = INFINITY;
    for (int32_t c = 0; c < n; c++) {
        const double distance = fabs(fabs((double)state[c]) - median);
        if (taken[c] || distance >= least) continue;
        least = distance;
        best = c;
    }
    return best;
}

static int choose_controls(const massive_work *w, const prompt_finds *finds,
                           const qkv_tensor *states, qkv_text *out, qkv_error *err) {
    const size_t n = (size_t)(states->shape[0] * states->shape[1]);
    float *sizes = qkv_calloc(n, sizeof *sizes);
    uint8_t *taken = qkv_calloc(n, 1);
    double median = 0;
    int status = sizes && taken ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) sizes[i] = fabsf(states->data[i]);
    if (status == QKV_OK && !qkv_median(&median, sizes, n)) status = qkv_fail_memory(err);
    for (size_t i = 0; i < finds->n && status == QKV_OK; i++)
        taken[finds->items[i]->position * w->n_embd + finds->items[i]->channel] = 1;
    for (size_t i = 0; i < finds->n && status == QKV_OK; i++) {
        const int32_t position = finds->items[i]->position;
        uint8_t *of_token = taken + (size_t)position * (size_t)w->n_embd;
        const float *state = states->data + (size_t)position * (size_t)w->n_embd;
        const int32_t channel = nearest_channel(state, w->n_embd, median, of_token);
        if (channel < 0) continue; /* more than half of the channels are massive */
        of_token[channel] = 1;
        append_edit(out, w->layer, position, channel, 0);
    }
    free(sizes);
    free(taken);
    return status;
}

static int append_controls(const massive_work *w, size_t number, const prompt_finds *finds,
                           qkv_text *out, qkv_error *err) {
    const qkv_own_prompt *prompt = &w->in->prompts.items[number];
    char capture[64];
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor states = QKV_TENSOR_INIT;
    snprintf(capture, sizeof capture, "resid_post@%d", (int)w->layer);
    int status = qkv_plan_new(&plan, w->in->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, capture, err);
    if (status == QKV_OK) status = qkv_session_run(w->in->session, &result, plan, err);
    if (status == QKV_OK && qkv_result_get(result, 0, QKV_SITE_RESID_POST, w->layer, &states))
        status = choose_controls(w, finds, &states, out, err);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* ---- losses ---- */

/* `edits` are those of all changes but the first; none where the prompt has nothing to set. */
static int add_losses(massive_work *w, size_t number, const qkv_text *edits, qkv_error *err) {
    const qkv_own_prompt *prompt = &w->in->prompts.items[number];
    const char *variants[MASSIVE_CHANGES - 1];
    qkv_next_options how = QKV_NEXT_OPTIONS_INIT;
    qkv_next *next = NULL;
    for (int c = 1; c < MASSIVE_CHANGES; c++) variants[c - 1] = edits[c].data;
    how.all = 1;
    how.variants = variants;
    how.n_variants = edits[1].length ? MASSIVE_CHANGES - 1 : 0;
    const int status =
        qkv_next_new(&next, w->in->session, prompt->tokens, prompt->n_tokens, &how, err);
    const double n = (double)(prompt->n_tokens - 1);
    for (int c = 0; c < MASSIVE_CHANGES && status == QKV_OK; c++) {
        const size_t variant = how.n_variants ? (size_t)c : 0;
        w->loss[c] += n * qkv_next_mean_loss(next, variant);
    }
    w->n_losses += prompt->n_tokens - 1;
    qkv_next_free(next);
    return status;
}

static int set_prompt(massive_work *w, size_t number, qkv_error *err) {
    qkv_text edits[MASSIVE_CHANGES] = {{0}};
    prompt_finds finds;
    int status = gather(w, number, &finds, err);
    if (status == QKV_OK && finds.n) {
        append_edits(w, &finds, MASSIVE_ZERO, &edits[MASSIVE_ZERO]);
        append_edits(w, &finds, MASSIVE_MEAN, &edits[MASSIVE_MEAN]);
        status = append_controls(w, number, &finds, &edits[MASSIVE_CONTROL], err);
    }
    for (int c = 0; c < MASSIVE_CHANGES; c++) {
        if (status == QKV_OK && edits[c].failed) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = add_losses(w, number, edits, err);
    for (int c = 0; c < MASSIVE_CHANGES; c++) qkv_text_release(&edits[c]);
    free((void *)finds.items);
    return status;
}

int qkv_massive_set(massive_work *w, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < w->in->prompts.n && status == QKV_OK; i++) {
        qkv_error why = {0};
        status = qkv_study_reach(w->in, (double)(w->in->prompts.n + i), 1, &why);
        if (status == QKV_OK) status = set_prompt(w, i, &why);
        if (status != QKV_OK) return qkv_fail(err, status, "prompt %zu: %s", i, why.message);
    }
    return status;
}
