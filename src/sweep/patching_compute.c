/*
 * Computes the cells of a block of patching: one plan, a variant for every cell, of which nothing is
 * kept but one row of logits at a time.
 *
 * All metrics are read from that row. One that compares with the clean prompt has its row from the
 * baseline where the clean prompt is run, else from a plan before: a variant in which the last layer's
 * output is the clean prompt's. In one plan with the cells it might come after some of them.
 *
 * An answer of several tokens follows both prompts in a plan of its own, and has a row for each token.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "qkv/edit_data.h"
#include "run/run.h"
#include "sweep/patching_paths.h"
#include "sweep/sweep.h"

/* One plan on one of a pair's prompts. */
typedef struct work {
    const qkv_sweep *sweep;
    size_t prompt; /* that is run */
    const qkv_patch_answer
        *answer; /* of several tokens, that follows both prompts; NULL: none does */
    qkv_plan *plan;
    size_t n_vocab;
    float *base;  /* the baseline's row */
    float *clean; /* the clean prompt's, once it is known */
    size_t clean_variant;
    double *parts; /* of each variant: those of all metrics that this plan is about */
    uint8_t *arrived;
} work;

enum { NO_VARIANT = 0 };

/* ---- what is read ---- */

static int is_same_answer(const qkv_patch_answer *a, const qkv_patch_answer *b) {
    return a->n == b->n && memcmp(a->tokens, b->tokens, a->n * sizeof *a->tokens) == 0;
}

/* The answer that a part is about. */
static const qkv_patch_answer *answer_of(const work *w, size_t part) {
    const qkv_patching *p = w->sweep->patching;
    return qkv_patching_answer(&p->metrics[part / QKV_PATCH_PARTS], &p->pairs[w->prompt / 2],
                               part % QKV_PATCH_PARTS);
}

static size_t n_parts(const work *w) {
    return w->sweep->patching->n_metrics * QKV_PATCH_PARTS;
}

static int is_part(const work *w, size_t part) {
    const qkv_patch_metric *metric = &w->sweep->patching->metrics[part / QKV_PATCH_PARTS];
    return part % QKV_PATCH_PARTS < qkv_patching_n_parts(metric);
}

/* Is a part read from the plan with this answer? */
static int is_read(const work *w, size_t part) {
    if (!is_part(w, part)) return 0;
    const qkv_patch_answer *of = answer_of(w, part);
    return w->answer ? is_same_answer(of, w->answer) : of->n < 2;
}

static void measure_rows(work *w, size_t variant, const float *rows) {
    const qkv_patching *p = w->sweep->patching;
    for (size_t i = 0; i < n_parts(w); i++) {
        if (is_read(w, i))
            w->parts[variant * n_parts(w) + i] = qkv_patching_part(
                &p->metrics[i / QKV_PATCH_PARTS], answer_of(w, i), rows, w->clean, w->n_vocab);
    }
}

/* The baseline comes first. Where the variant that stands for the clean prompt does not come, its edit
 * changed nothing. */
static int take_row(void *user, size_t variant, qkv_site site, int32_t layer,
                    const qkv_tensor *tensor, qkv_error *err) {
    work *w = user;
    const size_t size = w->n_vocab * sizeof *w->clean;
    const int is_clean = w->prompt % 2 == QKV_PATCH_CLEAN || w->clean_variant;
    (void)site, (void)layer, (void)err;
    w->arrived[variant] = 1;
    if (w->answer) {
        measure_rows(w, variant, tensor->data);
        return QKV_OK;
    }
    if (variant == 0) memcpy(w->base, tensor->data, size);
    if ((variant == 0 && is_clean) || (variant && variant == w->clean_variant))
        memcpy(w->clean, tensor->data, size);
    if (variant) measure_rows(w, variant, tensor->data);
    return QKV_OK;
}

/* ---- the plan ---- */

static size_t n_more(const work *w) {
    return w->answer ? w->answer->n - 1 : 0;
}

/* A prompt and the answer after it, whose last token nothing has to read. */
static int32_t *join(const work *w, size_t prompt, size_t *n, qkv_error *err) {
    const qkv_own_prompt *own = &w->sweep->prompts[prompt];
    *n = own->n_tokens + n_more(w);
    int32_t *text = qkv_calloc(*n, sizeof *text);
    if (!text) {
        (void)qkv_fail_memory(err);
        return NULL;
    }
    memcpy(text, own->tokens, own->n_tokens * sizeof *text);
    if (n_more(w)) memcpy(text + own->n_tokens, w->answer->tokens, n_more(w) * sizeof *text);
    return text;
}

/* A plan with nothing but both prompts. */
static int make_plan(const work *w, qkv_plan **plan, qkv_error *err) {
    size_t n_own = 0, n_other = 0;
    int32_t *own = join(w, w->prompt, &n_own, err);
    int32_t *other = own ? join(w, w->prompt ^ 1u, &n_other, err) : NULL;
    int status = other ? qkv_plan_new(plan, w->sweep->model, own, n_own, err) : QKV_ERR_MEMORY;
    if (status == QKV_OK)
        status = qkv_plan_add_source(*plan, w->prompt % 2 == QKV_PATCH_CLEAN ? "corrupt" : "clean",
                                     other, n_other, err);
    free(own);
    free(other);
    return status;
}

static int begin(work *w, qkv_error *err) {
    const int64_t at = qkv_patching_at(w->sweep, w->prompt);
    char capture[64];
    snprintf(capture, sizeof capture, "logits[%" PRId64 ":%" PRId64 "]", at,
             at + 1 + (int64_t)n_more(w));
    const int status = make_plan(w, &w->plan, err);
    return status == QKV_OK ? qkv_plan_add_capture(w->plan, capture, err) : status;
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
    char *edit = qkv_patching_edit(w->sweep, cell, n_more(w));
    const int status =
        edit ? qkv_plan_add_variant(w->plan, edit, variant, err) : qkv_fail_memory(err);
    free(edit);
    return status;
}

/* What an edit does not reach or change is the baseline's. */
static void take_baseline(work *w, size_t variant) {
    for (size_t i = 0; i < n_parts(w); i++) {
        if (is_read(w, i)) w->parts[variant * n_parts(w) + i] = w->parts[i];
    }
}

static int observe(work *w, qkv_session *session, qkv_error *err) {
    const size_t n = qkv_plan_n_variants(w->plan);
    qkv_observer observer = QKV_OBSERVER_INIT;
    qkv_result *result = NULL;
    observer.tensor = take_row;
    observer.user = w;
    w->parts = qkv_calloc(n * n_parts(w), sizeof *w->parts);
    w->arrived = qkv_calloc(n, 1);
    if (!w->parts || !w->arrived) return qkv_fail_memory(err);
    const int status = qkv_session_observe(session, &result, w->plan, &observer, err);
    qkv_result_free(result);
    if (status == QKV_OK && !w->answer) measure_rows(w, 0, w->base);
    for (size_t v = 1; v < n && status == QKV_OK; v++) {
        if (!w->arrived[v]) take_baseline(w, v);
    }
    return status;
}

/* What belongs to one plan. */
static void release(work *w) {
    qkv_plan_free(w->plan);
    free(w->parts);
    free(w->arrived);
    w->plan = NULL;
    w->parts = NULL;
    w->arrived = NULL;
    w->clean_variant = NO_VARIANT;
}

/* ---- blocks ---- */

/* The clean prompt's row, before a run of the corrupt one is measured. */
static int take_clean(work *w, qkv_session *session, qkv_error *err) {
    if (!w->sweep->patching->needs_clean || w->prompt % 2 == QKV_PATCH_CLEAN) return QKV_OK;
    int status = begin(w, err);
    if (status == QKV_OK) status = qkv_plan_prepare(w->plan, "resid_pre", err);
    if (status == QKV_OK) status = add_clean(w, err);
    if (status == QKV_OK) status = observe(w, session, err);
    release(w);
    return status;
}

typedef int run_answer(work *w, qkv_session *session, int64_t first, size_t n, double *parts,
                       qkv_error *err);

/* Has a part before this one the same answer? */
static int is_run(const work *w, size_t part) {
    for (size_t i = 0; i < part; i++) {
        if (is_part(w, i) && is_same_answer(answer_of(w, i), answer_of(w, part))) return 1;
    }
    return 0;
}

/* One plan for all parts that are read after the prompt, and one for each answer of several tokens. */
static int run_answers(work *w, qkv_session *session, int64_t first, size_t n, run_answer *run,
                       double *parts, qkv_error *err) {
    int status = QKV_OK, is_behind = 0;
    for (size_t i = 0; i < n_parts(w); i++) is_behind |= is_read(w, i);
    if (is_behind) status = run(w, session, first, n, parts, err);
    for (size_t i = 0; i < n_parts(w) && status == QKV_OK; i++) {
        if (!is_part(w, i) || answer_of(w, i)->n < 2 || is_run(w, i)) continue;
        w->answer = answer_of(w, i);
        status = run(w, session, first, n, parts, err);
        w->answer = NULL;
    }
    return status;
}

/* Takes those of a variant that this plan is about. */
static void take_parts(const work *w, size_t variant, double *parts) {
    for (size_t i = 0; i < n_parts(w); i++) {
        if (is_read(w, i)) parts[i] = w->parts[variant * n_parts(w) + i];
    }
}

/* Does a first plan find out what receivers read? */
static int has_paths(const qkv_sweep *s) {
    return s->patching->n_receivers && !s->patching->to_logits;
}

static int collect(const work *w, qkv_session *session, int64_t first, size_t n,
                   qkv_path_inputs *inputs, qkv_error *err) {
    qkv_plan *plan = NULL;
    int status = make_plan(w, &plan, err);
    if (status == QKV_OK) status = qkv_path_plan(w->sweep, plan, first, n, n_more(w), err);
    if (status == QKV_OK) status = qkv_path_collect(w->sweep, session, plan, first, n, inputs, err);
    qkv_plan_free(plan);
    return status;
}

static int add_edit(work *w, const char *edit, size_t *variant, qkv_error *err) {
    *variant = NO_VARIANT;
    return edit ? qkv_plan_add_variant(w->plan, edit, variant, err) : QKV_OK;
}

/* `inputs` are what receivers read; NULL: there are none. */
static int add_cells(work *w, int64_t first, size_t n, const qkv_path_inputs *inputs,
                     size_t *variants, qkv_error *err) {
    int status = inputs ? qkv_plan_set_edit_data(w->plan, inputs->data, err) : QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const qkv_cell cell = qkv_patching_cell(w->sweep, first + (int64_t)i);
        status = inputs && i < inputs->n ? add_edit(w, inputs->edits[i], &variants[i], err)
                                         : add_cell(w, &cell, &variants[i], err);
    }
    return status;
}

static int compute_some(work *w, qkv_session *session, int64_t first, size_t n, double *parts,
                        qkv_error *err) {
    qkv_path_inputs inputs = {0};
    size_t *variants = qkv_calloc(n, sizeof *variants);
    int status = variants ? QKV_OK : qkv_fail_memory(err);
    const int by_paths = has_paths(w->sweep);
    if (status == QKV_OK && by_paths) status = collect(w, session, first, n, &inputs, err);
    if (status == QKV_OK) status = begin(w, err);
    if (status == QKV_OK) status = qkv_plan_prepare(w->plan, "resid_pre", err);
    if (status == QKV_OK) status = add_cells(w, first, n, by_paths ? &inputs : NULL, variants, err);
    if (status == QKV_OK) status = observe(w, session, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        take_parts(w, variants[i], parts + i * n_parts(w));
    qkv_path_inputs_release(&inputs);
    free(variants);
    release(w);
    return status;
}

static int compute_cells(work *w, qkv_session *session, int64_t first, size_t n, double *parts,
                         qkv_error *err) {
    const size_t n_tokens = w->sweep->prompts[w->prompt].n_tokens + n_more(w);
    const size_t most = has_paths(w->sweep) ? qkv_path_most_cells(w->sweep, n_tokens) : n;
    int status = w->answer ? QKV_OK : take_clean(w, session, err);
    for (size_t i = 0; i < n && status == QKV_OK; i += most)
        status = compute_some(w, session, first + (int64_t)i, n - i < most ? n - i : most,
                              parts + i * n_parts(w), err);
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

static int compute_prompt(work *w, qkv_session *session, int64_t first, size_t n, double *parts,
                          qkv_error *err) {
    (void)first, (void)n;
    int status = begin(w, err);
    if (status == QKV_OK) status = observe(w, session, err);
    if (status == QKV_OK) take_parts(w, 0, parts);
    release(w);
    return status;
}

static int compute_unedited(work *w, qkv_session *session, double *parts, qkv_error *err) {
    const size_t clean = w->prompt;
    int status = QKV_OK;
    for (size_t role = 0; role < 2 && status == QKV_OK; role++) {
        w->prompt = clean + role;
        status = run_answers(w, session, 0, 1, compute_prompt, parts + role * n_parts(w), err);
    }
    return status;
}

int qkv_patching_compute(const qkv_sweep *sweep, qkv_session *session, int64_t block,
                         double *values, qkv_error *err) {
    int64_t n = 0;
    const int64_t first = qkv_patching_block(sweep, block, &n);
    const qkv_cell cell = qkv_patching_cell(sweep, first);
    const qkv_patching *p = sweep->patching;
    work w = {.sweep = sweep,
              .prompt = cell.prompt,
              .n_vocab = (size_t)qkv_model_get_info(sweep->model)->n_vocab};
    w.base = qkv_calloc(2 * w.n_vocab, sizeof *w.base);
    double *parts = qkv_calloc((size_t)n * n_parts(&w), sizeof *parts);
    int status = w.base && parts ? QKV_OK : qkv_fail_memory(err);
    w.clean = w.base ? w.base + w.n_vocab : NULL;
    if (status == QKV_OK)
        status = cell.op[0] ? run_answers(&w, session, first, (size_t)n, compute_cells, parts, err)
                            : compute_unedited(&w, session, parts, err);
    for (size_t i = 0; i < (size_t)n * p->n_metrics && status == QKV_OK; i++)
        values[i] = qkv_patching_value(&p->metrics[i % p->n_metrics], parts + i * QKV_PATCH_PARTS);
    if (status == QKV_OK && !cell.op[0]) status = check_difference(sweep, values, err);
    free(parts);
    free(w.base);
    return status;
}

/* ---- how much it is ---- */

static int estimate_plan(const qkv_plan *plan, qkv_session *session, double *parts,
                         qkv_error *err) {
    qkv_run_stats own = QKV_RUN_STATS_INIT;
    const int status = qkv_session_estimate(session, &own, plan, err);
    parts[0] += own.flop;
    parts[1] += (double)own.n_passes;
    return status;
}

static int estimate_senders(const work *w, qkv_session *session, int64_t first, size_t n,
                            double *parts, qkv_error *err) {
    qkv_plan *plan = NULL;
    int status = make_plan(w, &plan, err);
    if (status == QKV_OK) status = qkv_path_plan(w->sweep, plan, first, n, n_more(w), err);
    if (status == QKV_OK) status = estimate_plan(plan, session, parts, err);
    qkv_plan_free(plan);
    return status;
}

/* Edits with zeros take as much as those with what receivers read. */
static int add_zeros(work *w, int64_t first, size_t n, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const qkv_cell cell = qkv_patching_cell(w->sweep, first + (int64_t)i);
        size_t ignored;
        char *zeros = NULL;
        status = qkv_path_zero_edit(w->sweep, &cell, &zeros, err);
        if (status == QKV_OK) status = add_edit(w, zeros, &ignored, err);
        free(zeros);
    }
    return status;
}

/* Adds to the work of a block what its plans take: `parts` are operations and passes. */
static int estimate_cells(work *w, qkv_session *session, int64_t first, size_t n, double *parts,
                          qkv_error *err) {
    const int by_paths = has_paths(w->sweep);
    size_t *variants = qkv_calloc(n, sizeof *variants);
    int status = variants ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && by_paths) status = estimate_senders(w, session, first, n, parts, err);
    if (status == QKV_OK) status = begin(w, err);
    if (status == QKV_OK) status = qkv_plan_prepare(w->plan, "resid_pre", err);
    if (status == QKV_OK && !w->answer) status = add_clean(w, err);
    if (status == QKV_OK)
        status =
            by_paths ? add_zeros(w, first, n, err) : add_cells(w, first, n, NULL, variants, err);
    if (status == QKV_OK) status = estimate_plan(w->plan, session, parts, err);
    free(variants);
    release(w);
    return status;
}

static int estimate_block(const qkv_sweep *s, qkv_session *session, int64_t block, double *work_of,
                          qkv_error *err) {
    int64_t n = 0;
    const int64_t first = qkv_patching_block(s, block, &n);
    work w = {.sweep = s, .prompt = qkv_patching_cell(s, first).prompt};
    return run_answers(&w, session, first, (size_t)n, estimate_cells, work_of, err);
}

/* The first and the last layer of one direction stand for all. */
int qkv_patching_estimate(const qkv_sweep *s, qkv_session *session, qkv_run_stats *stats,
                          qkv_error *err) {
    const int64_t per_run = s->layer_blocks * (int64_t)s->n_layers;
    double tokens = 0;
    for (size_t i = 0; i < s->n_prompts; i++) tokens += (double)s->prompts[i].n_tokens;
    const double runs =
        tokens / (double)s->prompts[0].n_tokens / 2 * (double)s->patching->n_directions;
    qkv_run_stats all = QKV_RUN_STATS_INIT;
    double work_of[2] = {0}; /* of both: operations and passes */
    int status = estimate_block(s, session, 1, work_of, err);
    if (status == QKV_OK) status = estimate_block(s, session, per_run, work_of, err);
    if (status != QKV_OK) return status;
    all.flop = runs * (double)per_run * work_of[0] / 2;
    all.n_passes = (uint64_t)((double)(s->patching->n_pairs * s->patching->n_directions) *
                              (double)per_run * work_of[1] / 2);
    return qkv_sized_write(stats, &all, sizeof all, "qkv_run_stats", err);
}
