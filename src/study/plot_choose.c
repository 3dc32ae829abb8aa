/* What of a sweep is drawn: named by the user, or the only one there is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/number_list.h"
#include "study/plot.h"

int qkv_plot_is_baseline(const qkv_plot *p, const qkv_sweep_row *row) {
    return strcmp(qkv_sweep_reader_target(p->file, (size_t)row->target), "none") == 0;
}

int32_t qkv_plot_find(const plot_indices *list, int32_t value) {
    size_t low = 0, high = list->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (list->at[middle] == value) return (int32_t)middle;
        if (list->at[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

/* Keeps the list ascending and free of repetitions. */
static int insert(plot_indices *list, int32_t value, qkv_error *err) {
    if (qkv_plot_find(list, value) >= 0) return QKV_OK;
    if (!QKV_PUSH(list->at, list->capacity, list->n, value)) return qkv_fail_memory(err);
    for (size_t i = list->n - 1; i > 0 && list->at[i - 1] > value; i--) {
        list->at[i] = list->at[i - 1];
        list->at[i - 1] = value;
    }
    return QKV_OK;
}

/* ---- choices in errors ---- */

static void add_choice(qkv_text *text, const char *choice) {
    qkv_text_printf(text, "%s%s", text->length ? ", " : "", choice);
}

static void add_number(qkv_text *text, double number) {
    qkv_text_printf(text, "%s%g", text->length ? ", " : "", number);
}

/* An error with the choices after it, which are released. */
static int fail_choice(qkv_text *choices, const char *what, qkv_error *err) {
    if (choices->failed) {
        qkv_text_release(choices);
        return qkv_fail_memory(err);
    }
    const int status =
        qkv_fail(err, QKV_ERR_ARGUMENT, "%s: %s", what, choices->data ? choices->data : "");
    qkv_text_release(choices);
    return status;
}

/* The same, for one that was given and is not there. */
static int fail_unknown(qkv_text *choices, const char *option, const char *value, size_t length,
                        qkv_error *err) {
    char what[160];
    snprintf(what, sizeof what, "`%s` %.*s is not in the file, which has", option,
             length < 80 ? (int)length : 80, value);
    return fail_choice(choices, what, err);
}

/* ---- the metric ---- */

/* A file that was opened before there were results learns of metrics when rows are read. */
static int learn_metrics(qkv_plot *p, qkv_error *err) {
    qkv_sweep_rows *rows = NULL;
    if (p->info->n_metrics) return QKV_OK;
    const int status = qkv_sweep_reader_rows(p->file, "", &rows, err);
    qkv_sweep_rows_free(rows);
    return status;
}

static int choose_metric(qkv_plot *p, qkv_error *err) {
    const char *wanted = p->options.metric;
    qkv_text choices = {0};
    if (p->info->n_metrics == 0) {
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s holds no results yet", p->info->path);
    }
    for (size_t i = 0; i < p->info->n_metrics; i++) {
        const char *name = qkv_sweep_reader_metric(p->file, i);
        if (wanted ? strcmp(name, wanted) == 0 : p->info->n_metrics == 1) {
            p->metric = qkv_strdup(name);
            qkv_text_release(&choices);
            return p->metric ? QKV_OK : qkv_fail_memory(err);
        }
        add_choice(&choices, name);
    }
    if (wanted) return fail_unknown(&choices, "metric", wanted, strlen(wanted), err);
    return fail_choice(&choices, "which metric? Name one of these with `metric`", err);
}

/* ---- targets ---- */

static int add_target(qkv_plot *p, const char *name, size_t length, qkv_error *err) {
    qkv_text choices = {0};
    for (size_t i = 0; i < p->info->n_targets; i++) {
        const char *known = qkv_sweep_reader_target(p->file, i);
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            qkv_text_release(&choices);
            return insert(&p->targets, (int32_t)i, err);
        }
        add_choice(&choices, known);
    }
    return fail_unknown(&choices, "target", name, length, err);
}

/* All that are edited, unless nothing is. */
static int choose_targets(qkv_plot *p, qkv_error *err) {
    int status = QKV_OK;
    for (const char *at = p->options.target; at && status == QKV_OK;) {
        const size_t length = strcspn(at, ",");
        status = add_target(p, at, length, err);
        at = at[length] ? at + length + 1 : NULL;
    }
    if (p->options.target) return status;
    for (size_t i = 0; i < p->info->n_targets && status == QKV_OK; i++) {
        if (strcmp(qkv_sweep_reader_target(p->file, i), "none") == 0 && p->info->n_targets > 1) {
            continue;
        }
        status = insert(&p->targets, (int32_t)i, err);
    }
    return status;
}

/* ---- the operation and its ε ---- */

static int is_target(const qkv_plot *p, const qkv_sweep_row *row) {
    return qkv_plot_find(&p->targets, row->target) >= 0;
}

/* The operations of the chosen targets; for lines those with an ε, unless one is named. */
static int find_ops(const qkv_plot *p, plot_indices *ops, qkv_error *err) {
    const int with_epsilon = p->options.kind == QKV_PLOT_LINES && !p->options.op;
    int status = QKV_OK;
    for (size_t i = 0; i < p->n_rows && status == QKV_OK; i++) {
        const qkv_sweep_row *row = &p->rows[i];
        if (!is_target(p, row) || (with_epsilon && isnan(row->epsilon))) continue;
        status = insert(ops, row->op, err);
    }
    return status;
}

static int pick_op(qkv_plot *p, const plot_indices *ops, qkv_error *err) {
    const char *wanted = p->options.op;
    qkv_text choices = {0};
    if (ops->n == 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "nothing of what was chosen has an \xce\xb5 for lines to go along; "
                        "draw a heatmap");
    }
    for (size_t i = 0; i < ops->n; i++) {
        const char *name = qkv_sweep_reader_op(p->file, (size_t)ops->at[i]);
        if (wanted ? strcmp(name, wanted) == 0 : ops->n == 1) {
            p->op = ops->at[i];
            qkv_text_release(&choices);
            return QKV_OK;
        }
        add_choice(&choices, name[0] ? name : "''");
    }
    if (wanted) return fail_unknown(&choices, "op", wanted, strlen(wanted), err);
    return fail_choice(&choices, "which operation? Name one of these with `op`", err);
}

static int choose_op(qkv_plot *p, qkv_error *err) {
    plot_indices ops = {0};
    int status = find_ops(p, &ops, err);
    if (status == QKV_OK) status = pick_op(p, &ops, err);
    free(ops.at);
    return status;
}

/* As exact as messages print them: what they list can be given back. */
static int same_number(double a, double b) {
    return fabs(a - b) <= 1e-5 * fmax(fabs(a), fabs(b));
}

enum { MOST_EPSILONS = 10000 };

size_t qkv_plot_find_epsilon(const qkv_plot *p, double value) {
    size_t low = 0, high = p->n_epsilons;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (p->epsilons[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int add_epsilon(qkv_plot *p, double value, qkv_error *err) {
    const size_t at = qkv_plot_find_epsilon(p, value);
    if (at < p->n_epsilons && p->epsilons[at] == value) return QKV_OK;
    if (p->n_epsilons == MOST_EPSILONS) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%s has more than %d values of \xce\xb5, too many to draw", p->info->path,
                        MOST_EPSILONS);
    }
    if (!QKV_PUSH(p->epsilons, p->epsilons_capacity, p->n_epsilons, value)) {
        return qkv_fail_memory(err);
    }
    memmove(p->epsilons + at + 1, p->epsilons + at, (p->n_epsilons - 1 - at) * sizeof *p->epsilons);
    p->epsilons[at] = value;
    return QKV_OK;
}

static int fail_epsilon(const qkv_plot *p, const char *what, qkv_error *err) {
    qkv_text choices = {0};
    for (size_t i = 0; i < p->n_epsilons; i++) add_number(&choices, p->epsilons[i]);
    return fail_choice(&choices, what, err);
}

/* Marks the sweep's ε that has this value. */
static int keep_epsilon(const qkv_plot *p, char *kept, double wanted, qkv_error *err) {
    int found = 0;
    if (isnan(wanted)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`epsilon` wants " QKV_NUMBER_LIST_WAYS ", not '%s'",
                        p->options.epsilon);
    }
    for (size_t i = 0; i < p->n_epsilons; i++) {
        if (same_number(p->epsilons[i], wanted)) kept[i] = 1, found = 1;
    }
    if (found) return QKV_OK;
    char what[96];
    qkv_format(what, sizeof what, "\xce\xb5 = %g is not in the sweep, which has", wanted);
    return fail_epsilon(p, what, err);
}

/* Leaves of the sweep's ε those that were named. */
static int keep_epsilons(qkv_plot *p, qkv_error *err) {
    char *list = NULL, *kept = qkv_calloc(p->n_epsilons, 1);
    int status =
        kept ? qkv_number_list_expand(&list, p->options.epsilon, err) : qkv_fail_memory(err);
    const char *at = list, *text;
    size_t length, n = 0;
    double wanted;
    while (status == QKV_OK && qkv_number_list_next(&at, &text, &length, &wanted))
        status = keep_epsilon(p, kept, wanted, err);
    for (size_t i = 0; status == QKV_OK && i < p->n_epsilons; i++) {
        if (kept[i]) p->epsilons[n++] = p->epsilons[i];
    }
    if (status == QKV_OK) p->n_epsilons = n;
    free(list);
    free(kept);
    return status;
}

static int choose_epsilons(qkv_plot *p, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < p->n_rows && status == QKV_OK; i++) {
        const qkv_sweep_row *row = &p->rows[i];
        if (!is_target(p, row) || row->op != p->op || isnan(row->epsilon)) continue;
        status = add_epsilon(p, row->epsilon, err);
    }
    if (status != QKV_OK) return status;
    if (p->n_epsilons == 0) {
        if (p->options.epsilon) {
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "`epsilon` is given, and the operation '%s' has none",
                            qkv_sweep_reader_op(p->file, (size_t)p->op));
        }
        return add_epsilon(p, (double)NAN, err);
    }
    return p->options.epsilon ? keep_epsilons(p, err) : QKV_OK;
}

/* ---- the kind ---- */

static int choose_kind(qkv_plot *p, qkv_error *err) {
    p->kind = p->options.kind;
    if (p->kind == QKV_PLOT_AUTO) p->kind = p->n_epsilons > 1 ? QKV_PLOT_LINES : QKV_PLOT_HEATMAP;
    p->by = p->options.by ? p->options.by : QKV_PLOT_BY_TARGET;
    if (p->kind != QKV_PLOT_LINES && p->n_epsilons > 1) {
        return fail_epsilon(p, "which \xce\xb5? Name one of these with `epsilon`", err);
    }
    if (p->kind == QKV_PLOT_LINES && isnan(p->epsilons[0])) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "lines go along \xce\xb5, and the operation '%s' has none; draw a "
                        "heatmap",
                        qkv_sweep_reader_op(p->file, (size_t)p->op));
    }
    if (p->kind == QKV_PLOT_LINES && p->options.axis != QKV_PLOT_SCALE_LINEAR &&
        (p->epsilons[0] < 0 || p->epsilons[p->n_epsilons - 1] == 0)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "\xce\xb5 = %g has no place on a log axis: leave it out with `epsilon`, "
                        "or use `axis` linear",
                        p->epsilons[0]);
    }
    if (p->kind == QKV_PLOT_LINES && p->by != QKV_PLOT_BY_TARGET && p->targets.n > 1) {
        qkv_text choices = {0};
        for (size_t i = 0; i < p->targets.n; i++) {
            add_choice(&choices, qkv_sweep_reader_target(p->file, (size_t)p->targets.at[i]));
        }
        return fail_choice(
            &choices, "lines by layer or head are of one target; name one of these with `target`",
            err);
    }
    return QKV_OK;
}

/* ---- layers and heads ---- */

/* A number, or from the end of the list -1, -2, ...; 0 when it is neither. */
static int parse_place(const char *text, size_t length, const plot_indices *list, int64_t *place) {
    if (!qkv_parse_int(text, length, place)) return 0;
    if (*place >= 0) return 1;
    if (*place < -(int64_t)list->n) return 0;
    *place = list->at[(int64_t)list->n + *place];
    return 1;
}

/* "3", "2-4", "-2--1"; 0 when it is none of these. */
static int parse_span(const char *text, size_t length, const plot_indices *list, int64_t *from,
                      int64_t *to) {
    const char *dash = length > 1 ? memchr(text + 1, '-', length - 1) : NULL;
    const size_t first = dash ? (size_t)(dash - text) : length;
    if (!parse_place(text, first, list, from)) return 0;
    *to = *from;
    return !dash || (parse_place(dash + 1, length - first - 1, list, to) && *to >= *from);
}

/* Adds those of `list` that lie between two numbers; there must be one. */
static int keep_span(plot_indices *kept, const plot_indices *list, int64_t from, int64_t to,
                     const char *option, qkv_error *err) {
    int found = 0, status = QKV_OK;
    for (size_t i = 0; i < list->n && status == QKV_OK; i++) {
        if (list->at[i] < from || list->at[i] > to) continue;
        status = insert(kept, list->at[i], err);
        found = 1;
    }
    if (found) return status;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "`%s`: the sweep has nothing from %lld to %lld, it has %d to %d", option,
                    (long long)from, (long long)to, (int)list->at[0], (int)list->at[list->n - 1]);
}

/* `wanted` is "*", or a list of spans; NULL: all. */
static int keep_indices(plot_indices *list, const char *wanted, const char *option,
                        qkv_error *err) {
    plot_indices kept = {0};
    int status = QKV_OK;
    if (!wanted || strcmp(wanted, "*") == 0) return QKV_OK;
    for (const char *at = wanted; at && status == QKV_OK;) {
        const size_t length = strcspn(at, ",");
        int64_t from, to;
        if (!parse_span(at, length, list, &from, &to)) {
            status = qkv_fail(err, QKV_ERR_ARGUMENT,
                              "`%s` wants a list such as 3, 0,2,5-7 or -1 (the last), not '%s'",
                              option, wanted);
        } else {
            status = keep_span(&kept, list, from, to, option, err);
        }
        at = at[length] ? at + length + 1 : NULL;
    }
    plot_indices *loser = status == QKV_OK ? list : &kept;
    free(loser->at);
    if (status == QKV_OK) *list = kept;
    return status;
}

static int choose_places(qkv_plot *p, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < p->n_rows && status == QKV_OK; i++) {
        const qkv_sweep_row *row = &p->rows[i];
        if (!is_target(p, row) || row->op != p->op) continue;
        status = insert(&p->layers, row->layer, err);
        if (status == QKV_OK) status = insert(&p->heads, row->head, err);
    }
    if (status == QKV_OK) status = keep_indices(&p->layers, p->options.layers, "layers", err);
    if (status == QKV_OK) status = keep_indices(&p->heads, p->options.heads, "heads", err);
    return status;
}

static int read_rows(qkv_plot *p, qkv_error *err) {
    qkv_sweep_rows *rows = NULL;
    int status = qkv_sweep_reader_rows(p->file, p->metric, &rows, err);
    const size_t n = qkv_sweep_rows_count(rows);
    if (status == QKV_OK && !(p->rows = qkv_calloc(n, sizeof *p->rows))) {
        status = qkv_fail_memory(err);
    }
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        p->rows[i].size = sizeof *p->rows;
        qkv_sweep_rows_get(rows, i, &p->rows[i]);
        p->n_rows = i + 1;
    }
    qkv_sweep_rows_free(rows);
    return status;
}

int qkv_plot_choose(qkv_plot *p, qkv_error *err) {
    int status = learn_metrics(p, err);
    if (status == QKV_OK) status = choose_metric(p, err);
    if (status == QKV_OK) status = choose_targets(p, err);
    if (status == QKV_OK) status = read_rows(p, err);
    if (status == QKV_OK) status = choose_op(p, err);
    if (status == QKV_OK) status = choose_epsilons(p, err);
    if (status == QKV_OK) status = choose_kind(p, err);
    return status == QKV_OK ? choose_places(p, err) : status;
}
