/* The numbers of a sweep for the page of a chart. See plot_numbers.h. */
#include "study/plot_numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "measure/metric.h"
#include "qkv/measure.h"

enum { MOST_VALUES = 2 << 20, MOST_PER_PROMPT = 1 << 20 }; /* numbers of a page */

void qkv_plot_numbers_free(plot_numbers *all) {
    if (!all) return;
    json_decref(all->attention);
    for (size_t i = 0; all->metrics && i < all->n_metrics; i++) {
        plot_metric *m = &all->metrics[i];
        free(m->name);
        free(m->title);
        free(m->means);
        free(m->unedited);
        free(m->values);
    }
    free(all->metrics);
    free(all->epsilons);
    free(all->prompts);
    free(all);
}

/* ---- what there is ---- */

/* Places in ascending lists; n where the value is not there. NaN stands alone. */
static size_t find_epsilon(const plot_numbers *all, double value) {
    size_t i = 0;
    while (i < all->n_epsilons && all->epsilons[i] < value) i++;
    if (i < all->n_epsilons && isnan(value) && isnan(all->epsilons[i])) return i;
    return i < all->n_epsilons && all->epsilons[i] == value ? i : all->n_epsilons;
}

static int add_epsilon(plot_numbers *all, double value) {
    if (find_epsilon(all, value) < all->n_epsilons) return 1;
    if (!QKV_PUSH(all->epsilons, all->epsilons_capacity, all->n_epsilons, value)) return 0;
    for (size_t i = all->n_epsilons - 1; i > 0 && all->epsilons[i - 1] > value; i--) {
        all->epsilons[i] = all->epsilons[i - 1];
        all->epsilons[i - 1] = value;
    }
    return 1;
}

static size_t find_prompt(const plot_numbers *all, int64_t prompt) {
    size_t low = 0, high = all->n_prompts;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (all->prompts[middle] < prompt) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Rows come in the order of the sweep, so that most are there already, or go to the end. */
static int add_prompt(plot_numbers *all, int64_t prompt) {
    const size_t at = find_prompt(all, prompt);
    if (at < all->n_prompts && all->prompts[at] == prompt) return 1;
    if (!QKV_PUSH(all->prompts, all->prompts_capacity, all->n_prompts, prompt)) return 0;
    memmove(all->prompts + at + 1, all->prompts + at,
            (all->n_prompts - 1 - at) * sizeof *all->prompts);
    all->prompts[at] = prompt;
    return 1;
}

static int is_drawn(const qkv_plot *p, const qkv_sweep_row *row) {
    return row->op == p->op && qkv_plot_find(&p->targets, row->target) >= 0 &&
           qkv_plot_find(&p->layers, row->layer) >= 0 && qkv_plot_find(&p->heads, row->head) >= 0;
}

static int list_axes(plot_numbers *all, const qkv_plot *p, qkv_error *err) {
    for (size_t i = 0; i < p->n_rows; i++) {
        const qkv_sweep_row *row = &p->rows[i];
        if (!is_drawn(p, row)) continue;
        if (!add_epsilon(all, row->epsilon) || !add_prompt(all, row->prompt)) {
            return qkv_fail_memory(err);
        }
    }
    all->n_cells = p->targets.n * all->n_epsilons * p->layers.n * p->heads.n;
    return QKV_OK;
}

/* ---- values ---- */

static size_t cell_of(const plot_numbers *all, const qkv_plot *p, const qkv_sweep_row *row) {
    const size_t target = (size_t)qkv_plot_find(&p->targets, row->target);
    const size_t layer = (size_t)qkv_plot_find(&p->layers, row->layer);
    const size_t head = (size_t)qkv_plot_find(&p->heads, row->head);
    const size_t epsilon = find_epsilon(all, row->epsilon);
    return ((target * all->n_epsilons + epsilon) * p->layers.n + layer) * p->heads.n + head;
}

/* Sums of what a place has: [layers + 1, heads + 1], the last for what is measured for all together. */
typedef struct place_sums {
    double *sums;
    size_t *counts;
    size_t rows, cols;
} place_sums;

static size_t place_at(const place_sums *s, int32_t layer, int32_t head) {
    return (layer < 0 ? s->rows - 1 : (size_t)layer) * s->cols +
           (head < 0 ? s->cols - 1 : (size_t)head);
}

static double mean_at(const place_sums *s, size_t at) {
    return s->counts[at] ? s->sums[at] / (double)s->counts[at] : (double)NAN;
}

/* Beside a cell: of the same head, or what there is where a metric is not measured per head. */
static float unedited_at(const place_sums *s, int32_t layer, int32_t head) {
    double mean = mean_at(s, place_at(s, layer, head));
    if (isnan(mean)) mean = mean_at(s, place_at(s, layer, -1));
    if (isnan(mean)) mean = mean_at(s, place_at(s, -1, -1));
    return isnan(mean) ? NAN : (float)mean;
}

static int take_unedited(plot_metric *m, const qkv_plot *p, const qkv_sweep_rows *rows,
                         qkv_error *err) {
    place_sums s = {.rows = p->layers.n + 1, .cols = p->heads.n + 1};
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    s.sums = qkv_calloc(s.rows * s.cols, sizeof *s.sums);
    s.counts = qkv_calloc(s.rows * s.cols, sizeof *s.counts);
    m->unedited = qkv_calloc(p->layers.n * p->heads.n, sizeof *m->unedited);
    const int there = s.sums && s.counts && m->unedited;
    for (size_t i = 0; there && qkv_sweep_rows_get(rows, i, &row); i++) {
        if (!qkv_plot_is_baseline(p, &row) || isnan(row.value)) continue;
        const int32_t layer = qkv_plot_find(&p->layers, row.layer);
        const int32_t head = qkv_plot_find(&p->heads, row.head);
        if ((row.layer >= 0 && layer < 0) || (row.head >= 0 && head < 0)) continue;
        s.sums[place_at(&s, layer, head)] += row.value;
        s.counts[place_at(&s, layer, head)]++;
    }
    for (size_t i = 0; there && i < p->layers.n * p->heads.n; i++) {
        m->unedited[i] = unedited_at(&s, (int32_t)(i / p->heads.n), (int32_t)(i % p->heads.n));
    }
    free(s.sums);
    free(s.counts);
    return there ? QKV_OK : qkv_fail_memory(err);
}

static int take_values(plot_metric *m, const plot_numbers *all, const qkv_plot *p,
                       const qkv_sweep_rows *rows, qkv_error *err) {
    const size_t n = all->n_cells;
    double *sums = qkv_calloc(n, sizeof *sums);
    size_t *counts = qkv_calloc(n, sizeof *counts);
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    m->means = qkv_calloc(n, sizeof *m->means);
    const int there = sums && counts && m->means;
    for (size_t i = 0; m->values && i < all->n_prompts * n; i++) m->values[i] = NAN;
    for (size_t i = 0; there && qkv_sweep_rows_get(rows, i, &row); i++) {
        if (!is_drawn(p, &row) || isnan(row.value)) continue;
        const size_t cell = cell_of(all, p, &row), prompt = find_prompt(all, row.prompt);
        sums[cell] += row.value;
        counts[cell]++;
        if (m->values) m->values[prompt * n + cell] = (float)row.value;
    }
    for (size_t i = 0; there && i < n; i++) {
        m->means[i] = counts[i] ? (float)(sums[i] / (double)counts[i]) : NAN;
    }
    free(sums);
    free(counts);
    return there ? QKV_OK : qkv_fail_memory(err);
}

static int take_metric(plot_metric *m, const plot_numbers *all, const qkv_plot *p, const char *name,
                       int per_prompt, qkv_error *err) {
    qkv_sweep_rows *rows = NULL;
    m->name = qkv_strdup(name);
    if (per_prompt) m->values = qkv_calloc(all->n_prompts * all->n_cells, sizeof *m->values);
    if (!m->name || (per_prompt && !m->values)) return qkv_fail_memory(err);
    int status = qkv_metric_title(name, &m->title, err);
    if (status == QKV_OK) status = qkv_sweep_reader_rows(p->file, name, &rows, err);
    if (status == QKV_OK) status = take_values(m, all, p, rows, err);
    if (status == QKV_OK) status = take_unedited(m, p, rows, err);
    qkv_sweep_rows_free(rows);
    return status;
}

/* The metric that is drawn is the first; others follow where there is room. */
static int take_metrics(plot_numbers *all, const qkv_plot *p, qkv_error *err) {
    size_t n = p->info->n_metrics;
    if (n * all->n_cells > MOST_VALUES) {
        all->left_out = n > 1;
        n = 1;
    }
    const int per_prompt =
        all->n_prompts > 1 && n * all->n_cells * all->n_prompts <= MOST_PER_PROMPT;
    all->metrics = qkv_calloc(n, sizeof *all->metrics);
    if (!all->metrics) return qkv_fail_memory(err);
    int status = take_metric(&all->metrics[all->n_metrics++], all, p, p->metric, per_prompt, err);
    for (size_t i = 0; i < p->info->n_metrics && status == QKV_OK && n > 1; i++) {
        const char *name = qkv_sweep_reader_metric(p->file, i);
        if (strcmp(name, p->metric) == 0) continue;
        status = take_metric(&all->metrics[all->n_metrics++], all, p, name, per_prompt, err);
    }
    return status;
}

int qkv_plot_numbers_new(plot_numbers **out, const qkv_plot *p, qkv_error *err) {
    plot_numbers *all = *out = qkv_calloc(1, sizeof *all);
    if (!all) return qkv_fail_memory(err);
    int status = list_axes(all, p, err);
    if (status == QKV_OK) status = take_metrics(all, p, err);
    if (status != QKV_OK || !p->options.session) return status;
    return qkv_plot_take_attention(&all->attention, p, all->prompts, all->n_prompts, err);
}
