/*
 * Computes the cells of one block.
 *
 * Edits of different heads do not meet in the patterns of their own layer, and all edits of a
 * variant read the unedited tensor. So where every metric looks at its own head only, one variant
 * edits all heads of the layer and gives the values of all their cells, bit for bit what each of
 * them gives alone. Otherwise every cell is a variant, and the planner batches them. Either way the
 * session keeps the prompt's trunk from one layer to the next.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "measure/metric_sums.h"
#include "run/run.h"
#include "sweep/patching.h"
#include "sweep/sweep.h"

/* Variants that are measured in one plan. */
enum { LARGEST_PLAN = 64 };

/* One plan for some of the cells. */
typedef struct slice {
    const qkv_sweep *sweep;
    qkv_plan *plan;
    qkv_measure *measure;
    int64_t variants[LARGEST_PLAN + 1]; /* which they are; [0] is the baseline, -1 */
    size_t n_variants;                  /* with it */
    int bare;                           /* leave the others out: what does the baseline cost? */
} slice;

static size_t find_variant(const slice *s, int64_t variant) {
    size_t i = 0;
    while (i < s->n_variants && s->variants[i] != variant) i++;
    return i;
}

/* Of what is measured: the block's layer or layers. */
static int make_measure(slice *s, int32_t layer, qkv_error *err) {
    const qkv_sweep *w = s->sweep;
    qkv_measure_options where = QKV_MEASURE_OPTIONS_INIT;
    char *layers = NULL, *heads = NULL;
    int status = QKV_OK;
    if (!w->at_output) {
        layers = w->n_targets ? qkv_sweep_list(&layer, 1) : qkv_sweep_list(w->layers, w->n_layers);
        heads = qkv_sweep_list(w->heads, w->n_heads);
        where.layers = layers;
        where.heads = heads;
        if (!layers || !heads) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = qkv_measure_new(&s->measure, w->metrics, &where, err);
    free(layers);
    free(heads);
    return status;
}

static int add_variant(slice *s, int64_t id, qkv_error *err) {
    char *text = NULL;
    qkv_cell_variant_text(s->sweep, id, &text);
    int status = text ? qkv_plan_add_variant(s->plan, text, NULL, err) : qkv_fail_memory(err);
    free(text);
    return status;
}

/* A variant that changes nothing but shows in whatever is looked at in the layer: the planner keeps
 * the trunk where variants fork, and the next layer starts from it. */
static int add_anchor(slice *s, int32_t layer, qkv_error *err) {
    char text[128];
    int n = (int)layer;
    snprintf(text, sizeof text, "q@%d.h0=scale:1 + k@%d.g0=scale:1 + v@%d.g0=scale:1", n, n, n);
    return qkv_plan_add_variant(s->plan, text, NULL, err);
}

/* The variants of the cells, until the plan is full. */
static int add_variants(slice *s, const int64_t *cells, size_t n, qkv_error *err) {
    int status = QKV_OK;
    s->variants[0] = -1;
    s->n_variants = 1;
    for (size_t i = 0; i < n && !s->bare && s->n_variants <= LARGEST_PLAN && status == QKV_OK;
         i++) {
        int64_t variant = qkv_cell_variant(s->sweep, cells[i]);
        if (find_variant(s, variant) < s->n_variants) continue;
        s->variants[s->n_variants++] = variant;
        status = add_variant(s, cells[i], err);
    }
    return status;
}

static int make_slice(slice *s, const int64_t *cells, size_t n, qkv_error *err) {
    qkv_cell first = QKV_CELL_INIT;
    qkv_sweep_get_cell(s->sweep, cells[0], &first);
    const qkv_own_prompt *prompt = &s->sweep->prompts[first.prompt];
    int status = qkv_plan_new(&s->plan, s->sweep->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = add_variants(s, cells, n, err);
    if (status == QKV_OK && s->sweep->anchored && s->sweep->n_targets && !s->bare)
        status = add_anchor(s, first.layer, err);
    if (status == QKV_OK) status = make_measure(s, first.layer, err);
    return status;
}

static void release_slice(slice *s) {
    qkv_plan_free(s->plan);
    qkv_measure_free(s->measure);
}

/* ---- reading what was measured ---- */

/* The values of a table by variant, layer, head and metric; -1 counts as a layer and a head. */
typedef struct lookup {
    double *values;
    size_t n_layers, n_heads, n_metrics;
} lookup;

static double *entry(const lookup *l, size_t variant, int32_t layer, int32_t head, size_t metric) {
    size_t place = (variant * l->n_layers + (size_t)(layer + 1)) * l->n_heads + (size_t)(head + 1);
    return &l->values[place * l->n_metrics + metric];
}

static int read_table(lookup *l, const slice *s, const qkv_table *table, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(s->sweep->model);
    size_t n_variants = qkv_plan_n_variants(s->plan);
    *l = (lookup){.n_layers = (size_t)info->n_layer + 1,
                  .n_heads = (size_t)info->n_head + 1,
                  .n_metrics = s->sweep->n_metrics};
    l->values = qkv_calloc(n_variants * l->n_layers * l->n_heads * l->n_metrics, sizeof *l->values);
    if (!l->values) return qkv_fail_memory(err);
    qkv_measurement m = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; qkv_table_get(table, i, &m); i++) {
        *entry(l, m.variant, m.layer, m.head, m.metric) = m.value;
    }
    return QKV_OK;
}

static void read_cell(const lookup *l, const slice *s, int64_t id, double *values) {
    qkv_cell cell = QKV_CELL_INIT;
    qkv_sweep_get_cell(s->sweep, id, &cell);
    size_t variant = find_variant(s, qkv_cell_variant(s->sweep, id));
    for (size_t m = 0; m < l->n_metrics; m++) {
        qkv_metric_scope scope = qkv_measure_info(s->measure, m)->scope;
        values[m] = *entry(l, variant, scope == QKV_SCOPE_VARIANT ? -1 : cell.layer,
                           scope == QKV_SCOPE_HEAD ? cell.head : -1, m);
    }
}

/* `values` are those of the block, which begins with the cell `first`. */
static int compute_slice(slice *s, qkv_session *session, const int64_t *cells, size_t n,
                         int64_t first, double *values, qkv_error *err) {
    qkv_table *table = NULL;
    lookup found = {0};
    int status = qkv_measure_run(s->measure, &table, session, s->plan, err);
    if (status == QKV_OK) status = read_table(&found, s, table, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        read_cell(&found, s, cells[i], values + (size_t)(cells[i] - first) * found.n_metrics);
    free(found.values);
    qkv_table_free(table);
    return status;
}

/* Takes the cells of the slice out of those of a block that are left to do: those of one variant
 * lie apart, one in every head. Returns how many are left. */
static size_t take_out(const slice *s, int64_t *left, size_t n, int64_t *taken, size_t *n_taken) {
    size_t n_left = 0;
    *n_taken = 0;
    for (size_t i = 0; i < n; i++) {
        if (find_variant(s, qkv_cell_variant(s->sweep, left[i])) < s->n_variants)
            taken[(*n_taken)++] = left[i];
        else
            left[n_left++] = left[i];
    }
    return n_left;
}

int qkv_sweep_compute(const qkv_sweep *sweep, qkv_session *session, int64_t block, double *values,
                      qkv_error *err) {
    int64_t count;
    QKV_NEED(err, sweep);
    QKV_NEED(err, session);
    QKV_NEED(err, values);
    int64_t first = qkv_sweep_block(sweep, block, &count);
    if (first < 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the sweep has no block %lld", (long long)block);
    if (sweep->patching) return qkv_patching_compute(sweep, session, block, values, err);
    size_t n = (size_t)count;
    int64_t *left = qkv_calloc(2 * n, sizeof *left);
    if (!left) return qkv_fail_memory(err);
    int64_t *taken = left + n;
    int status = QKV_OK;
    for (size_t i = 0; i < n; i++) left[i] = first + (int64_t)i;
    while (n && status == QKV_OK) {
        slice s = {.sweep = sweep};
        size_t n_taken = 0;
        status = make_slice(&s, left, n, err);
        if (status == QKV_OK) {
            n = take_out(&s, left, n, taken, &n_taken);
            status = compute_slice(&s, session, taken, n_taken, first, values, err);
        }
        release_slice(&s);
    }
    free(left);
    return status;
}

/* ---- how much it is ---- */

static int estimate_slice(slice *s, qkv_session *session, const int64_t *cells, size_t n,
                          qkv_run_stats *stats, qkv_error *err) {
    int status = make_slice(s, cells, n, err);
    if (status == QKV_OK) status = qkv_measure_add_captures(s->measure, s->plan, err);
    if (status == QKV_OK) status = qkv_session_estimate(session, stats, s->plan, err);
    release_slice(s);
    return status;
}

/* What the variants of a block's layer cost, beyond the baseline that they start from, and that
 * baseline. */
static int estimate_layer(const qkv_sweep *sweep, qkv_session *session, int64_t block,
                          qkv_run_stats *edited, qkv_run_stats *bare, qkv_error *err) {
    int64_t n;
    int64_t first = qkv_sweep_block(sweep, block, &n);
    int64_t *cells = qkv_calloc((size_t)n, sizeof *cells);
    if (!cells) return qkv_fail_memory(err);
    for (int64_t i = 0; i < n; i++) cells[i] = first + i;
    slice some = {.sweep = sweep}, none = {.sweep = sweep, .bare = 1};
    int status = estimate_slice(&none, session, cells, (size_t)n, bare, err);
    if (status == QKV_OK) status = estimate_slice(&some, session, cells, (size_t)n, edited, err);
    free(cells);
    if (status != QKV_OK || some.n_variants < 2) return status;
    int64_t variants = sweep->isolated ? sweep->per_layer : sweep->per_head;
    double times = (double)variants / (double)(some.n_variants - 1);
    edited->flop = (edited->flop - bare->flop) * times;
    edited->n_passes = (uint64_t)((double)(edited->n_passes - bare->n_passes) * times + 0.999);
    return QKV_OK;
}

/* The first and the last layer of one prompt stand for all. */
int qkv_sweep_estimate(const qkv_sweep *sweep, qkv_session *session, qkv_run_stats *stats,
                       qkv_error *err) {
    QKV_NEED(err, sweep);
    QKV_NEED(err, session);
    QKV_NEED(err, stats);
    if (sweep->patching) return qkv_patching_estimate(sweep, session, stats, err);
    double tokens = 0;
    for (size_t i = 0; i < sweep->n_prompts; i++) tokens += (double)sweep->prompts[i].n_tokens;
    double prompts = tokens / (double)sweep->prompts[0].n_tokens;
    qkv_run_stats edited[2] = {QKV_RUN_STATS_INIT, QKV_RUN_STATS_INIT};
    qkv_run_stats bare[2] = {QKV_RUN_STATS_INIT, QKV_RUN_STATS_INIT}, all = QKV_RUN_STATS_INIT;
    int64_t first = sweep->n_targets ? sweep->first_baseline : 0;
    int status = estimate_layer(sweep, session, first, &edited[0], &bare[0], err);
    if (status == QKV_OK)
        status =
            estimate_layer(sweep, session, sweep->prompt_blocks - 1, &edited[1], &bare[1], err);
    if (status != QKV_OK) return status;
    double layers = sweep->n_targets ? (double)sweep->n_layers : 0;
    all.flop = prompts * (bare[1].flop + layers * (edited[0].flop + edited[1].flop) / 2);
    double passes = layers * (1 + (double)(edited[0].n_passes + edited[1].n_passes) / 2);
    all.n_passes = (uint64_t)((double)sweep->n_prompts * (layers > 0 ? passes : 1));
    return qkv_sized_write(stats, &all, sizeof all, "qkv_run_stats", err);
}
