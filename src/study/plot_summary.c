/*
 * Means and bands over the prompts. Cells of one group and prompt (heads of a line, say) are
 * averaged first, so that a band is over prompts and nothing else.
 */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "study/plot.h"

enum { MOST_GROUPS = 1 << 22, MOST_SERIES = 24, DEFAULT_TOP = 20 };

typedef struct item {
    size_t group;
    int64_t prompt;
    double value;
} item;

static size_t head_index(const qkv_plot *p, const plot_cell *cell) {
    return (size_t)cell->layer * p->heads.n + (size_t)cell->head;
}

size_t qkv_plot_n_series(const qkv_plot *p) {
    if (p->by == QKV_PLOT_BY_TARGET) return p->targets.n;
    return p->by == QKV_PLOT_BY_LAYER ? p->layers.n : p->layers.n * p->heads.n;
}

size_t qkv_plot_group(const qkv_plot *p, const plot_cell *cell) {
    if (p->kind != QKV_PLOT_LINES) {
        return (size_t)cell->target * p->layers.n * p->heads.n + head_index(p, cell);
    }
    size_t series = head_index(p, cell);
    if (p->by == QKV_PLOT_BY_TARGET) series = (size_t)cell->target;
    if (p->by == QKV_PLOT_BY_LAYER) series = (size_t)cell->layer;
    return series * p->n_epsilons + (size_t)cell->epsilon;
}

static int by_group(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return (x->prompt > y->prompt) - (x->prompt < y->prompt);
}

/* Replaces the items of a group and prompt by one, their mean. Returns how many are left. */
static size_t merge_items(item *items, size_t n) {
    size_t kept = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double sum = 0;
        for (end = i; end < n && by_group(&items[i], &items[end]) == 0; end++) {
            sum += items[end].value;
        }
        items[kept] = items[i];
        items[kept++].value = sum / (double)(end - i);
    }
    return kept;
}

static plot_summary summary_of(const item *items, size_t n, qkv_plot_band band) {
    double sum = 0, squares = 0, least = items[0].value, most = items[0].value;
    for (size_t i = 0; i < n; i++) {
        sum += items[i].value;
        least = fmin(least, items[i].value);
        most = fmax(most, items[i].value);
    }
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (items[i].value - mean) * (items[i].value - mean);
    const double sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    if (n < 2 || band == QKV_PLOT_BAND_NONE) return (plot_summary){mean, mean, mean, n};
    if (band == QKV_PLOT_BAND_SD) return (plot_summary){mean, mean - sd, mean + sd, n};
    return (plot_summary){mean, least, most, n};
}

static void fill_groups(qkv_plot *p, item *items, size_t n) {
    if (n) qsort(items, n, sizeof *items, by_group);
    n = merge_items(items, n);
    for (size_t i = 0; i < p->n_groups; i++) {
        p->groups[i] = (plot_summary){(double)NAN, (double)NAN, (double)NAN, 0};
    }
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && items[end].group == items[i].group; end++) {}
        p->groups[items[i].group] = summary_of(items + i, end - i, p->options.band);
        if (end - i > p->most_prompts) p->most_prompts = end - i;
    }
}

/* ---- ranking ---- */

typedef struct ranked {
    double key; /* the largest comes first */
    size_t group;
} ranked;

static int by_key(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

static double sort_key(const qkv_plot *p, double mean) {
    qkv_plot_order order = p->options.order;
    if (order == QKV_PLOT_ORDER_AUTO) {
        order = p->options.change ? QKV_PLOT_ORDER_MAGNITUDE : QKV_PLOT_ORDER_LARGEST;
    }
    if (order == QKV_PLOT_ORDER_SMALLEST) return -mean;
    return order == QKV_PLOT_ORDER_MAGNITUDE ? fabs(mean) : mean;
}

/* The first of the groups with values, in order. */
static int rank_groups(qkv_plot *p, qkv_error *err) {
    const size_t top = p->options.top ? (size_t)p->options.top : DEFAULT_TOP;
    ranked *list = qkv_calloc(p->n_groups, sizeof *list);
    size_t n = 0;
    if (!list) return qkv_fail_memory(err);
    for (size_t i = 0; i < p->n_groups; i++) {
        if (!p->groups[i].prompts) continue;
        list[n++] = (ranked){sort_key(p, p->groups[i].mean), i};
    }
    if (n) qsort(list, n, sizeof *list, by_key);
    p->n_shown = n < top ? n : top;
    for (size_t i = 0; i < p->n_shown; i++) p->shown[i] = list[i].group;
    free(list);
    return QKV_OK;
}

/* All groups as they are numbered, or those of a ranking. */
static int order_groups(qkv_plot *p, qkv_error *err) {
    p->shown = qkv_calloc(p->n_groups, sizeof *p->shown);
    if (!p->shown) return qkv_fail_memory(err);
    if (p->kind == QKV_PLOT_RANKING) return rank_groups(p, err);
    p->n_shown = p->n_groups;
    for (size_t i = 0; i < p->n_groups; i++) p->shown[i] = i;
    return QKV_OK;
}

/* ---- the whole ---- */

static int check_log(const qkv_plot *p, qkv_error *err) {
    if (p->kind != QKV_PLOT_LINES || p->options.scale != QKV_PLOT_SCALE_LOG) return QKV_OK;
    for (size_t i = 0; i < p->n_groups; i++) {
        if (isnan(p->groups[i].mean) || p->groups[i].mean > 0) continue;
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "`scale` log cannot show values of 0 or below, and a mean is %g",
                        p->groups[i].mean);
    }
    return QKV_OK;
}

static int check_size(const qkv_plot *p, qkv_error *err) {
    const size_t places = p->layers.n * p->heads.n;
    if (places > MOST_GROUPS || p->targets.n * places > MOST_GROUPS) {
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%zu layers and %zu heads are too many to draw",
                        p->layers.n, p->heads.n);
    }
    if (p->kind == QKV_PLOT_LINES && qkv_plot_n_series(p) > MOST_SERIES) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%zu lines cannot be told apart: choose at most %d with `layers` and "
                        "`heads`",
                        qkv_plot_n_series(p), MOST_SERIES);
    }
    return QKV_OK;
}

int qkv_plot_summarize(qkv_plot *p, qkv_error *err) {
    int status = check_size(p, err);
    if (status != QKV_OK) return status;
    p->n_groups = p->kind == QKV_PLOT_LINES ? qkv_plot_n_series(p) * p->n_epsilons
                                            : p->targets.n * p->layers.n * p->heads.n;
    p->groups = qkv_calloc(p->n_groups, sizeof *p->groups);
    item *items = qkv_calloc(p->n_cells, sizeof *items);
    if (!p->groups || !items) {
        free(items);
        return qkv_fail_memory(err);
    }
    size_t n = 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        const plot_cell *cell = &p->cells[i];
        if (isnan(cell->value)) continue;
        items[n++] = (item){qkv_plot_group(p, cell), cell->prompt, cell->value};
    }
    fill_groups(p, items, n);
    free(items);
    status = check_log(p, err);
    return status == QKV_OK ? order_groups(p, err) : status;
}
