/*
 * Computes the cells of a block of patching: one plan, a variant for every cell, of which nothing is
 * kept but one row of logits at a time.
 *
 * All metrics are read from that row. One that compares with the clean prompt has its row from the
 * baseline where the clean prompt is run, else from a plan before: a variant in which the last layer's
 * output is the clean prompt's. In one plan with the cells it might come behind some of them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "qkv/observe.h"
#include "sweep/patching.h"

/* One plan on one of a pair's prompts. */
typedef struct work {
    const qkv_sweep *sweep;
    size_t prompt; /* that is run */
    qkv_plan *plan;
    size_t n_vocab;
    float *base;  /* the baseline's row */
    float *clean; /* the clean prompt's, once it is known */
    size_t clean_variant;
    double *values; /* of each variant: n_metrics */
    uint8_t *arrived;
} work;

enum { NO_VARIANT = 0 };

static void measure_row(work *w, size_t variant, const float *row) {
    const qkv_patching *p = w->sweep->patching;
    for (size_t m = 0; m < p->n_metrics; m++)
        w->values[variant * p->n_metrics + m] = qkv_patching_measure(
            &p->metrics[m], &p->pairs[w->prompt / 2], row, w->clean, w->n_vocab);
}

/* The baseline comes first. Where the variant that stands for the clean prompt does not come, its edit
 * changed nothing. */
static int take_row(void *user, size_t variant, qkv_site site, int32_t layer,
                    const qkv_tensor *tensor, qkv_error *err) {
    work *w = user;
    const size_t size = w->n_vocab * sizeof *w->clean;
    const int is_clean = w->prompt % 2 == QKV_PATCH_CLEAN || w->clean_variant;
    (void)site, (void)layer, (void)err;
    if (variant == 0) memcpy(w->base, tensor->data, size);
    if ((variant == 0 && is_clean) || (variant && variant == w->clean_variant))
        memcpy(w->clean, tensor->data, size);
    if (variant) measure_row(w, variant, tensor->data);
    w->arrived[variant] = 1;
    return QKV_OK;
}

/* ---- the plan ---- */

static int begin(work *w, qkv_error *err) {
    const qkv_sweep *s = w->sweep;
    const qkv_sweep_prompt *own = &s->prompts[w->prompt], *other = &s->prompts[w->prompt ^ 1u];
    const int64_t at = qkv_patching_at(s, w->prompt);
    char capture[64];
    snprintf(capture, sizeof capture, "logits[%" PRId64 "]", at);
    int status = qkv_plan_new(&w->plan, s->model, own->tokens, own->n_tokens, err);
    if (status == QKV_OK)
        status =
            qkv_plan_add_source(w->plan, w->prompt % 2 == QKV_PATCH_CLEAN ? "corrupt" : "clean",
                                other->tokens, other->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(w->plan, capture, err);
    return status;
}

/* What the clean prompt's own logits are, in a run of the corrupt one. */
static int add_clean(work *w, qkv_error *err) {
    const qkv_sweep *s = w->sweep;
    const int last = (int)qkv_model_get_info(s->model)->n_layer - 1;
    const int64_t to = qkv_patching_at(s, w->prompt), from = qkv_patching_at(s, w->prompt ^ 1u);
    char edit[128];
    if (!s->patching->needs_clean || w->prompt % 2 == QKV_PATCH_CLEAN) return QKV_OK;
    if (to == from && qkv_patching_is_one_length(s, w->prompt / 2))
        snprintf(edit, sizeof edit, "resid_post@%d[%" PRId64 "]=patch:clean", last, to);
    else
        snprintf(edit, sizeof edit, "resid_post@%d[%" PRId64 "<-%" PRId64 "]=patch:clean", last, to,
                 from);
    return qkv_plan_add_variant(w->plan, edit, &w->clean_variant, err);
}

static int add_cell(work *w, const qkv_cell *cell, size_t *variant, qkv_error *err) {
    *variant = NO_VARIANT;
    if (!cell->op[0] || qkv_patching_is_idle(w->sweep, cell)) return QKV_OK;
    char *edit = qkv_patching_edit(w->sweep, cell);
    const int status =
        edit ? qkv_plan_add_variant(w->plan, edit, variant, err) : qkv_fail_memory(err);
    free(edit);
    return status;
}

static int observe(work *w, qkv_session *session, qkv_error *err) {
    const size_t n = qkv_plan_n_variants(w->plan), n_metrics = w->sweep->n_metrics;
    qkv_observer observer = QKV_OBSERVER_INIT;
    qkv_result *result = NULL;
    observer.tensor = take_row;
    observer.user = w;
    w->values = qkv_calloc(n * n_metrics, sizeof *w->values);
    w->arrived = qkv_calloc(n, 1);
    if (!w->values || !w->arrived) return qkv_fail_memory(err);
    const int status = qkv_session_observe(session, &result, w->plan, &observer, err);
    qkv_result_free(result);
    if (status == QKV_OK) measure_row(w, 0, w->base);
    /* What an edit does not reach or change is the baseline's. */
    for (size_t v = 1; v < n && status == QKV_OK; v++) {
        if (!w->arrived[v])
            memcpy(w->values + v * n_metrics, w->values, n_metrics * sizeof *w->values);
    }
    return status;
}

static void release(work *w) {
    qkv_plan_free(w->plan);
    free(w->values);
    free(w->arrived);
    *w = (work){.sweep = w->sweep, .n_vocab = w->n_vocab, .base = w->base, .clean = w->clean};
}

/* ---- blocks ---- */

/* The clean prompt's row, before a run of the corrupt one is measured. */
static int take_clean(work *w, qkv_session *session, qkv_error *err) {
    const size_t prompt = w->prompt;
    if (!w->sweep->patching->needs_clean || prompt % 2 == QKV_PATCH_CLEAN) return QKV_OK;
    int status = begin(w, err);
    if (status == QKV_OK) status = qkv_plan_prepare(w->plan, "resid_pre", err);
    if (status == QKV_OK) status = add_clean(w, err);
    if (status == QKV_OK) status = observe(w, session, err);
    release(w);
    w->prompt = prompt;
    return status;
}

static int compute_edited(work *w, qkv_session *session, int64_t first, size_t n, double *values,
                          qkv_error *err) {
    const size_t n_metrics = w->sweep->n_metrics;
    size_t *variants = qkv_calloc(n, sizeof *variants);
    if (!variants) return qkv_fail_memory(err);
    int status = take_clean(w, session, err);
    if (status == QKV_OK) status = begin(w, err);
    if (status == QKV_OK) status = qkv_plan_prepare(w->plan, "resid_pre", err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const qkv_cell cell = qkv_patching_cell(w->sweep, first + (int64_t)i);
        status = add_cell(w, &cell, &variants[i], err);
    }
    if (status == QKV_OK) status = observe(w, session, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        memcpy(values + i * n_metrics, w->values + variants[i] * n_metrics,
               n_metrics * sizeof *values);
    free(variants);
    return status;
}

/* There is nothing to recover where both prompts have the same value; of several pairs only their
 * means must differ. */
static int check_difference(const qkv_sweep *s, const double *values, qkv_error *err) {
    for (size_t m = 0; m < s->n_metrics && s->patching->n_pairs == 1; m++) {
        if (values[m] != values[s->n_metrics + m]) continue;
        return qkv_fail(err, QKV_ERR_PLAN,
                        "%s is %g for the clean and for the corrupt prompt: there is nothing to "
                        "recover",
                        s->patching->metrics[m].text, values[m]);
    }
    return QKV_OK;
}

static int compute_unedited(work *w, qkv_session *session, size_t pair, double *values,
                            qkv_error *err) {
    const size_t n_metrics = w->sweep->n_metrics;
    int status = QKV_OK;
    for (size_t role = 0; role < 2 && status == QKV_OK; role++) {
        w->prompt = 2 * pair + role;
        status = begin(w, err);
        if (status == QKV_OK) status = observe(w, session, err);
        if (status == QKV_OK)
            memcpy(values + role * n_metrics, w->values, n_metrics * sizeof *values);
        release(w);
    }
    return status == QKV_OK ? check_difference(w->sweep, values, err) : status;
}

int qkv_patching_compute(const qkv_sweep *sweep, qkv_session *session, int64_t block,
                         double *values, qkv_error *err) {
    int64_t n = 0;
    const int64_t first = qkv_patching_block(sweep, block, &n);
    const qkv_cell cell = qkv_patching_cell(sweep, first);
    work w = {.sweep = sweep,
              .prompt = cell.prompt,
              .n_vocab = (size_t)qkv_model_get_info(sweep->model)->n_vocab};
    w.base = qkv_calloc(2 * w.n_vocab, sizeof *w.base);
    if (!w.base) return qkv_fail_memory(err);
    w.clean = w.base + w.n_vocab;
    const int status = cell.op[0] ? compute_edited(&w, session, first, (size_t)n, values, err)
                                  : compute_unedited(&w, session, cell.prompt / 2, values, err);
    release(&w);
    free(w.base);
    return status;
}

/* ---- how much it is ---- */

static int estimate_block(const qkv_sweep *s, qkv_session *session, int64_t block,
                          qkv_run_stats *stats, qkv_error *err) {
    int64_t n = 0;
    const int64_t first = qkv_patching_block(s, block, &n);
    work w = {.sweep = s, .prompt = qkv_patching_cell(s, first).prompt};
    int status = begin(&w, err);
    if (status == QKV_OK) status = qkv_plan_prepare(w.plan, "resid_pre", err);
    if (status == QKV_OK) status = add_clean(&w, err);
    for (int64_t i = 0; i < n && status == QKV_OK; i++) {
        const qkv_cell cell = qkv_patching_cell(s, first + i);
        size_t ignored;
        status = add_cell(&w, &cell, &ignored, err);
    }
    if (status == QKV_OK) status = qkv_session_estimate(session, stats, w.plan, err);
    release(&w);
    return status;
}

/* The first and the last layer of one direction stand for all. */
int qkv_patching_estimate(const qkv_sweep *s, qkv_session *session, qkv_run_stats *stats,
                          qkv_error *err) {
    const int64_t per_run = s->layer_blocks * (int64_t)s->n_layers;
    double tokens = 0;
    for (size_t i = 0; i < s->n_prompts; i++) tokens += (double)s->prompts[i].n_tokens;
    const double runs =
        tokens / (double)s->prompts[0].n_tokens / 2 * (double)s->patching->n_directions;
    qkv_run_stats first = QKV_RUN_STATS_INIT, last = QKV_RUN_STATS_INIT, all = QKV_RUN_STATS_INIT;
    int status = estimate_block(s, session, 1, &first, err);
    if (status == QKV_OK) status = estimate_block(s, session, per_run, &last, err);
    if (status != QKV_OK) return status;
    all.flop = runs * (double)per_run * (first.flop + last.flop) / 2;
    all.n_passes = (uint64_t)((double)(s->patching->n_pairs * s->patching->n_directions) *
                              (double)per_run * (double)(first.n_passes + last.n_passes) / 2);
    return qkv_sized_write(stats, &all, sizeof all, "qkv_run_stats", err);
}
