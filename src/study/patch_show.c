/*
 * Patching as tables and pictures.
 *
 * A panel is one site in one direction, with layers down and positions or heads across; panels by
 * position are one picture, those by head another, for each metric.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "study/patch.h"
#include "sweep/sweep.h"

enum { USUAL_TOP = 10 };

/* What all of it is made of. */
typedef struct show {
    const patch_cells *cells;
    qkv_study *study;
    const study_inputs *in;
    const patch_options *options;
    char **labels; /* of the clean prompt's positions */
    size_t n_labels;
} show;

static qkv_cell cell_at(const show *s, size_t i) {
    qkv_cell cell = QKV_CELL_INIT;
    (void)qkv_sweep_get_cell(s->cells->sweep, (int64_t)i, &cell);
    return cell;
}

static int is_denoising(const qkv_cell *cell) {
    return strcmp(cell->op, "patch:clean") == 0;
}

static const char *direction_of(const qkv_cell *cell) {
    return is_denoising(cell) ? "denoise" : "noise";
}

/* ---- titles ---- */

/* Receivers as one text; NULL: there are none, or no memory. The caller's to free. */
static char *receivers_of(const show *s) {
    qkv_text list = {0};
    for (const char *at = s->options->receiver; at && *at; at += *at == '\n') {
        const size_t n = strcspn(at, "\n");
        qkv_text_printf(&list, "%s%.*s", list.length ? ", " : "", (int)n, at);
        at += n;
    }
    if (list.failed) qkv_text_release(&list);
    return list.data;
}

static void append_title(const show *s, int by_head, size_t metric, qkv_text *title) {
    char *receivers = receivers_of(s);
    if (receivers && strcmp(receivers, "logits") == 0)
        qkv_text_printf(title, "What Heads Change Directly: %s",
                        qkv_sweep_metric(s->cells->sweep, metric));
    else if (receivers)
        qkv_text_printf(title, "What Heads Change by Way of %s: %s", receivers,
                        qkv_sweep_metric(s->cells->sweep, metric));
    else
        qkv_text_printf(title, "What Patching %sRecovers of %s", by_head ? "Single Heads " : "",
                        qkv_sweep_metric(s->cells->sweep, metric));
    free(receivers);
}

/* ---- labels ---- */

/* The token at a position, of both prompts where they differ; of pairs that differ, the position. */
static int label_position(const show *s, size_t position, qkv_text *out, qkv_error *err) {
    const qkv_own_prompt *prompts = s->in->prompts.items;
    const char *first = prompts[0].labels[position];
    const int even = prompts[0].n_tokens == prompts[1].n_tokens;
    int same = 1;
    for (size_t i = 2; i < s->in->prompts.n; i++) {
        const qkv_own_prompt *other = &prompts[i];
        same = same && position < other->n_tokens &&
               strcmp(other->labels[position], prompts[i % 2].labels[position]) == 0;
    }
    if (!same)
        qkv_text_printf(out, "%zu", position);
    else if (even && strcmp(prompts[1].labels[position], first) != 0)
        qkv_text_printf(out, "%s / %s", first, prompts[1].labels[position]);
    else
        qkv_text_puts(out, first);
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

static int make_labels(show *s, qkv_error *err) {
    s->n_labels = s->in->prompts.items[0].n_tokens;
    s->labels = qkv_calloc(s->n_labels, sizeof *s->labels);
    int status = s->labels ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < s->n_labels && status == QKV_OK; i++) {
        qkv_text label = {0};
        status = label_position(s, i, &label, err);
        s->labels[i] = label.data;
    }
    return status;
}

/* ---- tables ---- */

static study_value index_value(int64_t number) {
    return number < 0 ? STUDY_NUMBER(NAN) : STUDY_NUMBER(number);
}

static const char *const columns[] = {"metric", "direction", "site",   "layer",
                                      "head",   "position",  "token",  "recovery",
                                      "value",  "lowest",    "highest"};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

/* The lowest and the highest recovery in a single pair are told where there are several. */
static size_t n_columns(const show *s) {
    return s->cells->n_pairs > 1 ? N_COLUMNS : N_COLUMNS - 2;
}

static int add_row(const show *s, size_t i, size_t metric, qkv_error *err) {
    const qkv_cell cell = cell_at(s, i);
    const int has_token = cell.position >= 0;
    double lowest, highest;
    qkv_patch_range(s->cells, i, metric, &lowest, &highest);
    const study_value row[N_COLUMNS] = {
        STUDY_TEXT(qkv_sweep_metric(s->cells->sweep, metric)),
        STUDY_TEXT(direction_of(&cell)),
        STUDY_TEXT(cell.target),
        index_value(cell.layer),
        index_value(cell.head),
        index_value(cell.position),
        has_token ? STUDY_TEXT(s->labels[cell.position]) : STUDY_NUMBER(NAN),
        STUDY_NUMBER(qkv_patch_recovery(s->cells, i, metric)),
        STUDY_NUMBER(s->cells->means[i * s->cells->n_metrics + metric]),
        STUDY_NUMBER(lowest),
        STUDY_NUMBER(highest)};
    return qkv_study_add_row(s->study, row, err);
}

typedef struct ranked {
    size_t cell;
    size_t site; /* number of the list that it stands in */
    double effect;
} ranked;

static int by_effect(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->site != y->site) return x->site < y->site ? -1 : 1;
    if (x->effect != y->effect) return x->effect < y->effect ? 1 : -1;
    return (x->cell > y->cell) - (x->cell < y->cell);
}

/* The recovery of the run as it is without the patch. */
static double unpatched(const qkv_cell *cell) {
    return is_denoising(cell) ? 0 : 1;
}

/* How far a patch moves the run away from that. */
static double effect_of(const show *s, size_t i) {
    const qkv_cell cell = cell_at(s, i);
    return fabs(qkv_patch_recovery(s->cells, i, 0) - unpatched(&cell));
}

/* Cells from one layer to the next. */
static size_t cells_per_layer(const show *s, size_t first, size_t end) {
    const int32_t layer = cell_at(s, first).layer;
    size_t i = first;
    while (i < end && cell_at(s, i).layer == layer) i++;
    return i - first;
}

/* The number of the list of each cell of a layer: of its site's first cell there. */
static int number_sites(const show *s, size_t per_layer, size_t *sites) {
    for (size_t i = 0; i < per_layer; i++) {
        const qkv_cell cell = cell_at(s, 2 + i), before = cell_at(s, i ? 1 + i : 2);
        const int same =
            strcmp(before.target, cell.target) == 0 && (before.head < 0) == (cell.head < 0);
        sites[i] = i && same ? sites[i - 1] : i;
    }
    return per_layer && sites[per_layer - 1] > 0;
}

/* The largest effects of each site: those of one would fill the list, since the residual stream at the
 * token that differs brings everything back. */
static int add_top(const show *s, int32_t wanted, qkv_error *err) {
    const size_t n = s->cells->n - 2, most = (size_t)(wanted ? wanted : USUAL_TOP);
    const size_t per_layer = cells_per_layer(s, 2, s->cells->n);
    ranked *list = qkv_calloc(n, sizeof *list);
    size_t *sites = qkv_calloc(per_layer, sizeof *sites);
    char title[200];
    if (!list || !sites) {
        free(list);
        free(sites);
        return qkv_fail_memory(err);
    }
    const int several = number_sites(s, per_layer, sites);
    for (size_t i = 0; i < n; i++)
        list[i] = (ranked){i + 2, sites[per_layer ? i % per_layer : 0], effect_of(s, i + 2)};
    qsort(list, n, sizeof *list, by_effect);
    qkv_format(title, sizeof title, "The largest effects of %s%zu cells; clean %.4g, corrupt %.4g",
               several ? "each site, of " : "", n, s->cells->means[0],
               s->cells->means[s->cells->n_metrics]);
    int status = qkv_study_add_table(s->study, "top", title, columns, n_columns(s), err);
    for (size_t i = 0, rank = 0; i < n && status == QKV_OK; i++, rank++) {
        if (i && list[i].site != list[i - 1].site) rank = 0;
        if (rank < most) status = add_row(s, list[i].cell, 0, err);
    }
    free(list);
    free(sites);
    return status;
}

static int add_cells(const show *s, qkv_error *err) {
    int status = qkv_study_add_table(s->study, "cells", "Every cell", columns, n_columns(s), err);
    for (size_t m = 0; m < s->cells->n_metrics; m++) {
        for (size_t i = 2; i < s->cells->n && status == QKV_OK; i++) status = add_row(s, i, m, err);
    }
    return status;
}

static int add_unedited(const show *s, qkv_error *err) {
    static const char *const names[] = {"metric", "clean", "corrupt"};
    const patch_cells *c = s->cells;
    int status =
        qkv_study_add_table(s->study, "unedited", "The prompts as they are", names, 3, err);
    for (size_t m = 0; m < c->n_metrics && status == QKV_OK; m++) {
        const study_value row[] = {STUDY_TEXT(qkv_sweep_metric(c->sweep, m)),
                                   STUDY_NUMBER(c->means[m]),
                                   STUDY_NUMBER(c->means[c->n_metrics + m])};
        status = qkv_study_add_row(s->study, row, err);
    }
    return status;
}

/* ---- pictures ---- */

/* One site in one direction: cells that lie together in every layer. */
typedef struct panel {
    size_t first; /* its first cell */
    size_t n_rows, n_cols;
    size_t stride; /* cells from one layer to the next */
    int by_head;
    char title[96];
    double *values;
    const char **rows, **cols;
    char *numbers; /* texts of layers and heads */
} panel;

enum { NUMBER_SIZE = 12, MOST_PANELS = 64 };

static int is_same_panel(const qkv_cell *a, const qkv_cell *b) {
    return strcmp(a->target, b->target) == 0 && strcmp(a->op, b->op) == 0 &&
           (a->head < 0) == (b->head < 0);
}

static int fill_panel(const show *s, panel *p, size_t metric, qkv_error *err) {
    const qkv_cell start = cell_at(s, p->first);
    snprintf(p->title, sizeof p->title, "%s%s, %s",
             s->options->receiver ? "senders\xe2\x80\x99 " : "", start.target,
             is_denoising(&start) ? "clean into corrupt" : "corrupt into clean");
    p->values = qkv_calloc(p->n_rows * p->n_cols, sizeof *p->values);
    p->rows = qkv_calloc(p->n_rows + p->n_cols, sizeof *p->rows);
    p->numbers = qkv_calloc(p->n_rows + p->n_cols, NUMBER_SIZE);
    if (!p->values || !p->rows || !p->numbers) return qkv_fail_memory(err);
    p->cols = p->rows + p->n_rows;
    for (size_t r = 0; r < p->n_rows; r++) {
        for (size_t c = 0; c < p->n_cols; c++) {
            const size_t at = p->first + r * p->stride + c;
            const qkv_cell cell = cell_at(s, at);
            char *row = p->numbers + r * NUMBER_SIZE,
                 *col = p->numbers + (p->n_rows + c) * NUMBER_SIZE;
            p->values[r * p->n_cols + c] =
                qkv_patch_recovery(s->cells, at, metric) - unpatched(&cell);
            snprintf(row, NUMBER_SIZE, "%d", (int)cell.layer);
            snprintf(col, NUMBER_SIZE, "%d", (int)cell.head);
            p->rows[r] = row;
            p->cols[c] = p->by_head ? col : s->labels[cell.position];
        }
    }
    return QKV_OK;
}

static void release_panels(panel *panels, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(panels[i].values);
        free((void *)panels[i].rows);
        free(panels[i].numbers);
    }
}

/* Those of the first layer of one direction, whose cells begin at `first`; layers follow one another. */
static size_t find_panels(const show *s, size_t first, size_t per_run, int by_head, panel *panels) {
    const size_t per_layer = cells_per_layer(s, first, first + per_run), end = first + per_layer;
    size_t n = 0;
    for (size_t i = first; i < end && n < MOST_PANELS / 2;) {
        const qkv_cell cell = cell_at(s, i);
        panel p = {.first = i, .n_rows = per_run / per_layer, .stride = per_layer};
        p.by_head = cell.head >= 0;
        for (; i < end; i++, p.n_cols++) {
            const qkv_cell next = cell_at(s, i);
            if (!is_same_panel(&cell, &next)) break;
        }
        if (p.by_head == by_head) panels[n++] = p;
    }
    return n;
}

static size_t find_all_panels(const show *s, int by_head, panel *panels) {
    const size_t all = s->cells->n - 2;
    const qkv_cell first = cell_at(s, 2), last = cell_at(s, s->cells->n - 1);
    if (strcmp(first.op, last.op) == 0) return find_panels(s, 2, all, by_head, panels);
    const size_t n = find_panels(s, 2, all / 2, by_head, panels);
    return n + find_panels(s, 2 + all / 2, all / 2, by_head, panels + n);
}

/* Whether a run of the clean prompt is among them, whose recovery is 1 without a patch. */
static int has_noising(const show *s) {
    const qkv_cell first = cell_at(s, 2), last = cell_at(s, s->cells->n - 1);
    return !is_denoising(&first) || !is_denoising(&last);
}

/* All panels of a picture have the same layers and columns. */
static int link_cells(const show *s, const panel *p, qkv_error *err) {
    int32_t *layers = qkv_calloc(p->n_rows + p->n_cols, sizeof *layers);
    if (!layers) return qkv_fail_memory(err);
    int32_t *numbers = layers + p->n_rows;
    for (size_t r = 0; r < p->n_rows; r++) layers[r] = cell_at(s, p->first + r * p->stride).layer;
    for (size_t c = 0; c < p->n_cols; c++) {
        const qkv_cell cell = cell_at(s, p->first + c);
        numbers[c] = p->by_head ? cell.head : (int32_t)cell.position;
    }
    qkv_study_link(s->study, p->by_head ? STUDY_LAYERS_HEADS : STUDY_LAYERS_TOKENS, 0);
    qkv_study_link_places(s->study, layers, numbers);
    free(layers);
    return QKV_OK;
}

static int add_picture(const show *s, int by_head, size_t metric, qkv_error *err) {
    panel panels[MOST_PANELS];
    qkv_heatmap_panel drawn[MOST_PANELS];
    qkv_heatmap map = QKV_HEATMAP_INIT;
    const size_t n = find_all_panels(s, by_head, panels);
    char name[40];
    qkv_text title = {0};
    int status = QKV_OK;
    for (size_t i = 0; i < n; i++) {
        if (status == QKV_OK) status = fill_panel(s, &panels[i], metric, err);
        drawn[i] = (qkv_heatmap_panel)QKV_HEATMAP_PANEL_INIT;
        drawn[i].values = panels[i].values;
        drawn[i].n_rows = (int32_t)panels[i].n_rows;
        drawn[i].n_cols = (int32_t)panels[i].n_cols;
        drawn[i].title = panels[i].title;
        drawn[i].row_labels = panels[i].rows;
        drawn[i].col_labels = panels[i].cols;
    }
    map.panels = drawn;
    map.n_panels = n;
    const int has_paths = s->options->receiver != NULL;
    map.row_axis = has_paths ? "Sender\xe2\x80\x99s Layer" : "Layer";
    map.col_axis = has_paths ? "Sender\xe2\x80\x99s Head" : by_head ? "Head" : "Token";
    map.diverging = 1;
    map.color.label = has_noising(s) ? "change of recovery" : "recovery (clean 1, corrupt 0)";
    snprintf(name, sizeof name, metric ? "%s_%zu" : "%s", by_head ? "heads" : "positions",
             metric + 1);
    append_title(s, by_head, metric, &title);
    if (status == QKV_OK && title.failed) status = qkv_fail_memory(err);
    if (n && status == QKV_OK)
        status = qkv_study_add_heatmap(s->study, name, title.data, &map, err);
    if (n && status == QKV_OK) status = link_cells(s, &panels[0], err);
    release_panels(panels, n);
    qkv_text_release(&title);
    return status;
}

/* ---- small print ---- */

static void add_notes(const show *s) {
    const patch_cells *c = s->cells;
    const qkv_own_prompt *prompts = s->in->prompts.items;
    for (size_t i = 0; i < 2 && c->n_pairs == 1; i++) {
        if (prompts[i].text)
            qkv_study_note(s->study, "%s: %s", i ? "corrupt" : "clean", prompts[i].text);
    }
    char *receivers = receivers_of(s);
    if (receivers)
        qkv_study_note(
            s->study,
            "path patching: a sender's z is the other prompt's, and later heads%s are frozen%s",
            s->options->freeze_mlps ? " and feed-forward blocks" : "",
            s->options->freeze_mlps ? "" : "; feed-forward blocks are not");
    if (receivers && strcmp(receivers, "logits") != 0)
        qkv_study_note(s->study, "what %s would read then is put into a run with nothing frozen",
                       receivers);
    free(receivers);
    if (c->n_pairs > 1) qkv_study_note(s->study, "means over %zu pairs of prompts", c->n_pairs);
    qkv_study_note(s->study,
                   "recovery: (m - corrupt) / (clean - corrupt), m being %s, clean %.4g, corrupt "
                   "%.4g",
                   qkv_sweep_metric(c->sweep, 0), c->means[0], c->means[c->n_metrics]);
    if (has_noising(s))
        qkv_study_note(s->study,
                       "change: recovery when clean goes into corrupt, recovery minus 1 the other "
                       "way round");
}

int qkv_patch_show(const patch_cells *cells, qkv_study *study, const study_inputs *in,
                   const patch_options *options, qkv_error *err) {
    show s = {.cells = cells, .study = study, .in = in, .options = options};
    qkv_text title = {0};
    int status = make_labels(&s, err);
    append_title(&s, 0, 0, &title);
    if (!title.failed) qkv_study_set_title(study, "%s", title.data);
    qkv_text_release(&title);
    if (status == QKV_OK) status = add_top(&s, options->top, err);
    if (status == QKV_OK) status = add_cells(&s, err);
    if (status == QKV_OK) status = add_unedited(&s, err);
    for (size_t m = 0; m < cells->n_metrics && status == QKV_OK; m++) {
        status = add_picture(&s, 0, m, err);
        if (status == QKV_OK) status = add_picture(&s, 1, m, err);
    }
    if (status == QKV_OK) add_notes(&s);
    qkv_study_link_second(study, &(study_second){.names = {"clean", "corrupt"}, .prompt = 1});
    study->numbers_table = 1;
    for (size_t i = 0; s.labels && i < s.n_labels; i++) free(s.labels[i]);
    free(s.labels);
    return status;
}
