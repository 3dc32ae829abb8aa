/* The values that are drawn, and the unedited ones they are compared with. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "study/plot.h"

/* ---- the unedited cells ---- */

typedef struct baseline {
    qkv_sweep_row *rows; /* sorted by prompt, layer, head */
    size_t n, capacity;
} baseline;

static int by_place(const void *a, const void *b) {
    const qkv_sweep_row *x = a, *y = b;
    if (x->prompt != y->prompt) return x->prompt < y->prompt ? -1 : 1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return (x->head > y->head) - (x->head < y->head);
}

static int find_baseline(const qkv_plot *p, baseline *base, qkv_error *err) {
    for (size_t i = 0; i < p->n_rows; i++) {
        if (!qkv_plot_is_baseline(p, &p->rows[i])) continue;
        if (!QKV_PUSH(base->rows, base->capacity, base->n, p->rows[i])) {
            return qkv_fail_memory(err);
        }
    }
    if (base->n) qsort(base->rows, base->n, sizeof *base->rows, by_place);
    return QKV_OK;
}

static const qkv_sweep_row *lookup(const baseline *base, int64_t prompt, int32_t layer,
                                   int32_t head) {
    const qkv_sweep_row key = {
        .size = sizeof(qkv_sweep_row), .prompt = prompt, .layer = layer, .head = head};
    return base->n ? bsearch(&key, base->rows, base->n, sizeof *base->rows, by_place) : NULL;
}

/* The unedited value beside a cell: of the same head, or the one there is where a metric is not
 * measured per head or not per layer. NULL: none. */
static const qkv_sweep_row *beside(const baseline *base, int64_t prompt, int32_t layer,
                                   int32_t head) {
    const qkv_sweep_row *row = lookup(base, prompt, layer, head);
    if (!row) row = lookup(base, prompt, layer, -1);
    return row ? row : lookup(base, prompt, -1, -1);
}

/* ---- cells ---- */

/* 0 where the row is not part of the plot. */
static int place_cell(const qkv_plot *p, const qkv_sweep_row *row, plot_cell *cell) {
    if (row->op != p->op) return 0;
    cell->prompt = row->prompt;
    cell->target = qkv_plot_find(&p->targets, row->target);
    cell->layer = qkv_plot_find(&p->layers, row->layer);
    cell->head = qkv_plot_find(&p->heads, row->head);
    cell->epsilon = isnan(row->epsilon) && isnan(p->epsilons[0]) ? 0 : -1;
    const size_t at = qkv_plot_find_epsilon(p, row->epsilon);
    if (at < p->n_epsilons && p->epsilons[at] == row->epsilon) cell->epsilon = (int32_t)at;
    cell->value = row->value;
    return cell->target >= 0 && cell->layer >= 0 && cell->head >= 0 && cell->epsilon >= 0;
}

static int collect_cells(qkv_plot *p, const baseline *base, qkv_error *err) {
    for (size_t i = 0; i < p->n_rows; i++) {
        const qkv_sweep_row *row = &p->rows[i];
        plot_cell cell;
        int missing = row->missing;
        if (!place_cell(p, row, &cell)) continue;
        if (p->options.change) {
            const qkv_sweep_row *from = beside(base, row->prompt, row->layer, row->head);
            cell.value -= from ? from->value : (double)NAN;
            missing |= from && from->missing;
        }
        if (!QKV_PUSH(p->cells, p->cells_capacity, p->n_cells, cell)) return qkv_fail_memory(err);
        p->n_missing += missing != 0;
        p->n_undefined += !missing && isnan(cell.value);
    }
    return QKV_OK;
}

/* The mean of the unedited cells that stand beside those drawn. */
static void set_reference(qkv_plot *p, const baseline *base) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        const plot_cell *cell = &p->cells[i];
        if (cell->epsilon > 0 || cell->target > 0) continue; /* once for every place */
        const qkv_sweep_row *row =
            beside(base, cell->prompt, p->layers.at[cell->layer], p->heads.at[cell->head]);
        if (!row || isnan(row->value)) continue;
        sum += row->value;
        n++;
    }
    p->reference = n ? sum / (double)n : (double)NAN;
}

static int check_cells(const qkv_plot *p, qkv_error *err) {
    if (p->n_missing + p->n_undefined < p->n_cells) return QKV_OK;
    if (p->n_missing < p->n_cells) {
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        p->options.change
                            ? "no change of %s can be drawn: it is defined nowhere in "
                              "what was chosen, or not where nothing is edited"
                            : "%s is not defined anywhere in what was chosen",
                        p->metric);
    }
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "nothing of what was chosen is in %s yet: %zu cells are missing", p->info->path,
                    p->n_missing);
}

/* The plot outlives the file. */
static int copy_names(qkv_plot *p, qkv_error *err) {
    p->target_names = qkv_calloc(p->targets.n, sizeof *p->target_names);
    p->op_name = qkv_strdup(qkv_sweep_reader_op(p->file, (size_t)p->op));
    int there = p->target_names && p->op_name;
    for (size_t i = 0; there && i < p->targets.n; i++) {
        p->target_names[i] = qkv_strdup(qkv_sweep_reader_target(p->file, (size_t)p->targets.at[i]));
        there = p->target_names[i] != NULL;
    }
    return there ? QKV_OK : qkv_fail_memory(err);
}

int qkv_plot_select(qkv_plot *p, qkv_error *err) {
    baseline base = {0};
    p->reference = (double)NAN;
    int status = qkv_plot_choose(p, err);
    if (status == QKV_OK) status = copy_names(p, err);
    if (status == QKV_OK) status = find_baseline(p, &base, err);
    if (status == QKV_OK && p->options.change && base.n == 0) {
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "`change` is the difference from the unedited cells, and %s has none",
                          p->info->path);
    }
    if (status == QKV_OK) status = collect_cells(p, &base, err);
    if (status == QKV_OK) status = check_cells(p, err);
    if (status == QKV_OK && p->kind == QKV_PLOT_LINES && p->by == QKV_PLOT_BY_TARGET &&
        !p->options.change) {
        set_reference(p, &base);
    }
    free(base.rows);
    return status;
}
