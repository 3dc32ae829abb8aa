/* Computing means over a set, as far as a plan's edits need them. */
#include "run/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/plan/edit_data.h"
#include "run/plan/planner.h"

void qkv_set_means_release(qkv_set_means *means) {
    for (size_t i = 0; means->tensors && i < means->n; i++) free(means->tensors[i]);
    free((void *)means->tensors);
    free(means->n_rows);
    *means = (qkv_set_means){0};
}

/* ---- what is needed ---- */

/* Positions that the plan's edits can ask for. */
static int64_t n_positions(const qkv_plan *plan) {
    const int64_t longest = (int64_t)plan->data->set->longest;
    return longest < plan->text.n_positions ? longest : plan->text.n_positions;
}

static int64_t rows_of(const qkv_plan *plan, size_t index) {
    return index < qkv_n_places(plan) ? 1 : n_positions(plan);
}

static size_t count_marks(const uint8_t *marks, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += marks[i];
    return count;
}

/* Marks the means that edits take. */
static void mark_needed(const qkv_plan *plan, uint8_t *needed) {
    const int32_t n_layer = plan->model->hp.n_layer;
    for (size_t v = 0; v < plan->n_variants; v++) {
        for (size_t i = 0; i < plan->variants[v].n_edits; i++) {
            const qkv_edit *edit = &plan->variants[v].edits[i];
            if (!(edit->flags & QKV_EDIT_TAKES_SET)) continue;
            uint8_t *kind = needed + qkv_edit_mean_kind(edit) * qkv_n_places(plan);
            for (int32_t il = 0; il <= n_layer; il++) {
                const int acts =
                    edit->where.layers ? il < n_layer && edit->where.layers[il] : il == n_layer;
                if (acts) kind[qkv_place(qkv_site_unedited(edit->where.site), il)] = 1;
            }
        }
    }
}

static int is_known(const qkv_plan *plan, const qkv_set_means *known, size_t index) {
    return known->tensors && strcmp(known->hash, plan->data->set->hash) == 0 &&
           known->tensors[index] && known->n_rows[index] >= rows_of(plan, index);
}

/* Takes away the marks of what the session has; returns how many are left. */
static size_t unmark_known(const qkv_planner *p, uint8_t *needed) {
    const size_t n = QKV_SET_MEANS * qkv_n_places(p->plan);
    for (size_t i = 0; i < n; i++) {
        if (needed[i] && is_known(p->plan, &p->session->means, i)) needed[i] = 0;
    }
    return count_marks(needed, n);
}

/* ---- adding up ---- */

typedef struct sums {
    const qkv_plan *plan;
    const uint8_t *needed;
    double **rows;   /* as qkv_set_means.tensors */
    int64_t *widths; /* of one row */
} sums;

static int add_rows(sums *s, size_t index, const struct ggml_tensor *tensor, int64_t n_tokens,
                    qkv_error *err) {
    const int by_position = index >= qkv_n_places(s->plan);
    const int64_t n_rows = rows_of(s->plan, index), width = ggml_nelements(tensor) / n_tokens;
    const int64_t n_added = by_position && n_rows < n_tokens ? n_rows : n_tokens;
    const float *data = tensor->data;
    if (!s->rows[index]) s->rows[index] = qkv_calloc((size_t)(n_rows * width), sizeof(double));
    if (!s->rows[index]) return qkv_fail_memory(err);
    s->widths[index] = width;
    for (int64_t t = 0; t < n_added; t++) {
        double *to = s->rows[index] + (by_position ? t * width : 0);
        for (int64_t c = 0; c < width; c++) to[c] += (double)data[t * width + c];
    }
    return QKV_OK;
}

static int add_prompt(void *user, const qkv_graph *g, qkv_error *err) {
    sums *s = user;
    int status = QKV_OK;
    for (size_t i = 0; i < g->n_kept && status == QKV_OK; i++) {
        const size_t place = qkv_place(g->kept[i].site, g->kept[i].layer);
        for (size_t kind = 0; kind < QKV_SET_MEANS && status == QKV_OK; kind++) {
            const size_t index = kind * qkv_n_places(s->plan) + place;
            if (s->needed[index]) status = add_rows(s, index, g->kept[i].tensor, g->n_tokens, err);
        }
    }
    return status;
}

/* How many tokens were added up to a row. */
static size_t count_tokens(const sums *s, size_t index, int64_t row) {
    const qkv_prompt_set *set = s->plan->data->set;
    size_t n = 0;
    if (index < qkv_n_places(s->plan)) return set->n_tokens;
    for (size_t i = 0; i < set->n; i++) n += set->lengths[i] > (size_t)row;
    return n;
}

static float *divide(const sums *s, size_t index) {
    const int64_t n_rows = rows_of(s->plan, index), width = s->widths[index];
    float *mean = qkv_calloc((size_t)(n_rows * width), sizeof *mean);
    for (int64_t t = 0; mean && t < n_rows; t++) {
        const double n = (double)count_tokens(s, index, t);
        for (int64_t c = 0; c < width; c++)
            mean[t * width + c] = (float)(s->rows[index][t * width + c] / n);
    }
    return mean;
}

/* ---- the session's ---- */

static int start_known(qkv_set_means *known, const qkv_plan *plan, qkv_error *err) {
    const qkv_prompt_set *set = plan->data->set;
    if (known->tensors && strcmp(known->hash, set->hash) == 0) return QKV_OK;
    qkv_set_means_release(known);
    known->n = QKV_SET_MEANS * qkv_n_places(plan);
    known->tensors = qkv_calloc(known->n, sizeof *known->tensors);
    known->n_rows = qkv_calloc(known->n, sizeof *known->n_rows);
    memcpy(known->hash, set->hash, sizeof known->hash);
    return known->tensors && known->n_rows ? QKV_OK : qkv_fail_memory(err);
}

static int store(const sums *s, qkv_set_means *known, qkv_error *err) {
    int status = start_known(known, s->plan, err);
    for (size_t i = 0; i < known->n && status == QKV_OK; i++) {
        if (!s->needed[i]) continue;
        float *mean = divide(s, i);
        if (!mean) return qkv_fail_memory(err);
        free(known->tensors[i]);
        known->tensors[i] = mean;
        known->n_rows[i] = rows_of(s->plan, i);
    }
    return status;
}

static int run_prompts(qkv_planner *p, const uint8_t *needed, sums *s, qkv_error *err) {
    const size_t n_places = qkv_n_places(p->plan);
    const qkv_prompt_set *set = p->plan->data->set;
    int status = QKV_OK;
    for (size_t i = 0; i < n_places; i++)
        p->keep[i] = needed[i] || needed[n_places + i] ? QKV_KEEP_WHOLE : 0;
    for (size_t i = 0; i < set->n && status == QKV_OK; i++)
        status = qkv_planner_run_other(p, set->tokens[i], set->lengths[i], add_prompt, s, err);
    return status;
}

/* One line for all prompts. */
static int explain_prompts(qkv_planner *p, const uint8_t *needed, sums *s, qkv_error *err) {
    const qkv_run_stats before = p->result->stats, *after = &p->result->stats;
    const qkv_prompt_set *set = p->plan->data->set;
    const size_t n = count_marks(needed, QKV_SET_MEANS * qkv_n_places(p->plan));
    qkv_text passes = {0}, *out = p->explanation;
    p->explanation = &passes;
    const int status = run_prompts(p, needed, s, err);
    p->explanation = out;
    qkv_text_release(&passes);
    if (status != QKV_OK) return status;
    qkv_text_printf(
        out,
        "set of %zu prompts, %zu tokens: each by itself; keeps the mean of %zu tensor%s; "
        "%llu products with weights, %llu in attention, %.3g GFLOP\n",
        set->n, set->n_tokens, n, qkv_plural(n),
        (unsigned long long)(after->n_matmul - before.n_matmul),
        (unsigned long long)(after->n_attention - before.n_attention),
        (after->flop - before.flop) / 1e9);
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

static int compute(qkv_planner *p, const uint8_t *needed, qkv_error *err) {
    const size_t n = QKV_SET_MEANS * qkv_n_places(p->plan);
    sums s = {.plan = p->plan,
              .needed = needed,
              .rows = qkv_calloc(n, sizeof *s.rows),
              .widths = qkv_calloc(n, sizeof *s.widths)};
    int status = s.rows && s.widths ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK && p->explanation)
        status = explain_prompts(p, needed, &s, err);
    else if (status == QKV_OK)
        status = run_prompts(p, needed, &s, err);
    if (status == QKV_OK && !p->explanation) status = store(&s, &p->session->means, err);
    for (size_t i = 0; s.rows && i < n; i++) free(s.rows[i]);
    free((void *)s.rows);
    free(s.widths);
    return status;
}

/* The plan's own, so that another plan of the session can have another set. */
static int copy_means(qkv_planner *p, const uint8_t *needed, qkv_error *err) {
    const qkv_set_means *known = &p->session->means;
    p->patches.n_means = QKV_SET_MEANS * qkv_n_places(p->plan);
    p->patches.means = qkv_calloc(p->patches.n_means, sizeof *p->patches.means);
    if (!p->patches.means) return qkv_fail_memory(err);
    for (size_t i = 0; i < p->patches.n_means && !p->explanation; i++) {
        if (!needed[i]) continue;
        const qkv_site site = (qkv_site)(i % QKV_SITE_COUNT);
        const int32_t il = (int32_t)(i % qkv_n_places(p->plan) / QKV_SITE_COUNT);
        const int32_t heads = qkv_site_n_heads(site, &p->plan->model->hp, il);
        const size_t width = (size_t)qkv_site_width(site, &p->plan->model->hp, il, 0);
        const size_t n = (size_t)rows_of(p->plan, i) * (size_t)(heads ? heads : 1) * width;
        p->patches.means[i] = qkv_calloc(n, sizeof(float));
        if (!p->patches.means[i]) return qkv_fail_memory(err);
        memcpy(p->patches.means[i], known->tensors[i], n * sizeof(float));
    }
    return QKV_OK;
}

size_t qkv_planner_n_set_prompts(const qkv_planner *p) {
    const size_t n = QKV_SET_MEANS * qkv_n_places(p->plan);
    if (!p->plan->data || !p->plan->data->set) return 0;
    uint8_t *needed = qkv_calloc(n, 1);
    if (!needed) return 0;
    mark_needed(p->plan, needed);
    const size_t left = unmark_known(p, needed);
    free(needed);
    return left ? p->plan->data->set->n : 0;
}

int qkv_planner_means(qkv_planner *p, qkv_error *err) {
    const size_t n = QKV_SET_MEANS * qkv_n_places(p->plan);
    uint8_t *needed = qkv_calloc(n, 1), *missing = qkv_calloc(n, 1);
    int status = needed && missing ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) {
        mark_needed(p->plan, needed);
        memcpy(missing, needed, n);
    }
    if (status == QKV_OK && count_marks(needed, n)) {
        if (unmark_known(p, missing)) status = compute(p, missing, err);
        if (status == QKV_OK) status = copy_means(p, needed, err);
    }
    free(needed);
    free(missing);
    return status;
}
