/*
 * What must come out of the two published figures, each as a number that is held against a stated
 * tolerance. A statement that the figure has no panels for is left out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "study/report.h"

/* Tolerances: rounding of weights in single precision, and of an almost vanished score. */
#define ROUNDING 1e-5
#define EXACTLY_UNIFORM 1e-6
#define NEARLY_UNIFORM 1e-2
#define VANISHED 1e-9 /* eps up to here leaves nothing of the scores */
#define SMALL 1e-3    /* eps up to here leaves almost nothing */

enum { QUERY, KEY, VALUE };

static int add_fact(report *r, const char *name, int verdict, double number, char *text,
                    qkv_error *err) {
    const report_fact fact = {.name = name, .text = text, .number = number, .verdict = verdict};
    if (text && QKV_PUSH(r->facts, r->capacity, r->n_facts, fact)) return QKV_OK;
    free(text);
    return qkv_fail_memory(err);
}

static const report_panel *panel_at(const report *r, size_t i) {
    return &r->panels[i];
}

static int is_part(const report_panel *panel, int part) {
    return panel->cell->change != FIGURE_OWN && panel->cell->edits[0] && panel->cell->part == part;
}

static int is_query_or_key(const report_panel *panel) {
    return is_part(panel, QUERY) || is_part(panel, KEY);
}

static int is_scaled(const report_panel *panel, double from, double to) {
    const double size = fabs(panel->cell->eps);
    return panel->cell->change == FIGURE_SCALED && panel->cell->edits[0] && size > from &&
           size <= to;
}

/* What a model's learned sink leaves to the keys of a row; 1 where there is none. */
static double share_of_keys(const report *r, const float *row, size_t n) {
    double sum = 0;
    if (!r->fig->has_sink) return 1;
    for (size_t j = 0; j < n; j++) sum += (double)row[j];
    return sum;
}

static const char *sink_note(const report *r) {
    return r->fig->has_sink ? ", of what the learned sink leaves" : "";
}

/* ---- saturation ---- */

/* Largest |A[i][j] - 1/n| over the n keys that a query sees. */
static double from_uniform(const report *r, const report_panel *panel) {
    const size_t n = r->fig->prompts.items[panel->cell->prompt].n_tokens;
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        const report_keys seen = qkv_report_visible(r, panel, i);
        const float *row = panel->cell->pattern + i * n;
        const double share = share_of_keys(r, row, n);
        for (size_t j = 0; j < n; j++) {
            const int sees = j >= seen.first && j < seen.end;
            const double u = sees ? 1 / (double)(seen.end - seen.first) : 0;
            largest = fmax(largest, fabs((double)row[j] / share - u));
        }
    }
    return largest;
}

static int judge_uniform(report *r, const char *name, double from, double to, double tolerance,
                         qkv_error *err) {
    double largest = 0;
    int n = 0;
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = panel_at(r, i);
        if (!is_query_or_key(panel) || !is_scaled(panel, from, to)) continue;
        largest = fmax(largest, from_uniform(r, panel));
        n++;
    }
    if (n == 0) return QKV_OK;
    return add_fact(r, name, largest <= tolerance, largest,
                    qkv_figure_printf("largest distance of a weight from 1/n, n the keys that its "
                                      "query sees%s, in %d Query and Key panels: %.3g (at most %g)",
                                      sink_note(r), n, largest, tolerance),
                    err);
}

/* The two panels of a part with the smallest factors; 0 when there are not two. */
static int two_smallest(const report *r, int part, size_t found[2]) {
    int n = 0;
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = panel_at(r, i);
        if (!is_part(panel, part) || panel->cell->change != FIGURE_SCALED) continue;
        const double eps = fabs(panel->cell->eps);
        if (n == 0 || eps < fabs(r->panels[found[0]].cell->eps)) {
            found[1] = found[0];
            found[0] = i;
        } else if (n == 1 || eps < fabs(r->panels[found[1]].cell->eps)) {
            found[1] = i;
        }
        n++;
    }
    return n > 1;
}

static int judge_saturation(report *r, qkv_error *err) {
    static const char *const names[] = {"Query saturates", "Key saturates", "Value saturates"};
    int status = QKV_OK;
    for (int part = 0; part < FIGURE_PARTS && status == QKV_OK; part++) {
        size_t two[2] = {0, 0};
        if (!two_smallest(r, part, two)) continue;
        const double d = qkv_report_difference(r, two[0], two[1]);
        status =
            add_fact(r, names[part], d <= REPORT_SATURATED, d,
                     qkv_figure_printf("largest difference between the panels of \xce\xb5 = %g "
                                       "and %g: %.3g (at most %g)",
                                       r->panels[two[1]].cell->eps, r->panels[two[0]].cell->eps, d,
                                       REPORT_SATURATED),
                     err);
    }
    return status;
}

/* ---- query and key ---- */

static int judge_exchange(report *r, qkv_error *err) {
    double largest = 0;
    int n = 0;
    for (size_t i = 0; i < r->n_panels; i++) {
        for (size_t k = 0; k < r->n_panels; k++) {
            const report_panel *q = panel_at(r, i), *key = panel_at(r, k);
            if (!is_part(q, QUERY) || !is_part(key, KEY) || !is_scaled(q, 0, INFINITY) ||
                key->cell->change != FIGURE_SCALED || q->cell->eps != key->cell->eps)
                continue;
            largest = fmax(largest, qkv_report_difference(r, i, k));
            n++;
        }
    }
    if (n == 0) return QKV_OK;
    return add_fact(
        r, "Query and Key are exchangeable", largest <= ROUNDING, largest,
        qkv_figure_printf("largest difference between the Query and the Key panel of the "
                          "same \xce\xb5: %.3g (at most %g, which is rounding)",
                          largest, ROUNDING),
        err);
}

/* ---- value ---- */

static int judge_value(report *r, qkv_error *err) {
    double largest = 0, least_kl = INFINITY;
    int n = 0;
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = panel_at(r, i);
        if (!is_part(panel, VALUE)) continue;
        const size_t n_tokens = r->fig->prompts.items[panel->cell->prompt].n_tokens;
        const float *plain = r->fig->plain[panel->cell->prompt];
        if (memcmp(plain, panel->cell->pattern, n_tokens * n_tokens * sizeof *plain) != 0) {
            largest = fmax(largest, fmax(panel->values[REPORT_max_change], 1e-45));
        }
        least_kl = fmin(least_kl, panel->output_kl);
        n++;
    }
    if (n == 0) return QKV_OK;
    int status =
        add_fact(r, "Value does not move the weights of its own layer", largest == 0, largest,
                 qkv_figure_printf("largest difference of %d Value panels from the unmodified "
                                   "pattern: %.3g (exactly 0, bit for bit)",
                                   n, largest),
                 err);
    if (status != QKV_OK || !isfinite(least_kl)) return status;
    return add_fact(
        r, "Value moves the output", least_kl > 0, least_kl,
        qkv_figure_printf("smallest KL divergence of the next-token distribution over the "
                          "Value panels: %.3g (above 0)",
                          least_kl),
        err);
}

/* ---- sink ---- */

/* Whether the head has a sink at all decides whether the statement applies. */
static int judge_sink(report *r, qkv_error *err) {
    double plain = 1, value = 1, moved = 0;
    int n_value = 0, n_moved = 0;
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = panel_at(r, i);
        const double first = panel->values[REPORT_first_column];
        if (isnan(first)) continue; /* one token */
        if (is_part(panel, VALUE)) {
            value = fmin(value, first);
            n_value++;
        } else if (is_query_or_key(panel) &&
                   (panel->cell->change == FIGURE_MEANED || is_scaled(panel, -1, SMALL))) {
            moved = fmax(moved, first);
            n_moved++;
        }
        plain = fmin(plain, r->plain[panel->cell->prompt].values[REPORT_first_column]);
    }
    if (n_value == 0 || n_moved == 0) return QKV_OK;
    const char *name = "Value keeps the sink, Query and Key lose it";
    if (!(plain >= REPORT_SINK)) {
        return add_fact(r, name, REPORT_NOT_APPLICABLE, plain,
                        qkv_figure_printf("first column of the unmodified pattern: %.3f, not a "
                                          "sink (at least %g)",
                                          plain, REPORT_SINK),
                        err);
    }
    return add_fact(
        r, name, value >= REPORT_SINK && moved < REPORT_SINK, moved,
        qkv_figure_printf("first column: unmodified at least %.3f, Value at least %.3f, "
                          "Query and Key%s at most %.3f (a sink has at least %g)",
                          plain, value,
                          r->panels[r->n_panels - 1].cell->change == FIGURE_SCALED
                              ? " with \xce\xb5 up to 1e-3"
                              : "",
                          moved, REPORT_SINK),
        err);
}

/* ---- temperature ---- */

/* Largest difference from the row of the unmodified pattern to the power eps, normalised: scores
 * times eps are a temperature of 1/eps. */
static double from_temperature(const report *r, const report_panel *panel) {
    const size_t n = r->fig->prompts.items[panel->cell->prompt].n_tokens;
    const float *plain = r->fig->plain[panel->cell->prompt];
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++) {
            if (plain[i * n + j] > 0) sum += pow((double)plain[i * n + j], panel->cell->eps);
        }
        const float *row = panel->cell->pattern + i * n;
        const double share = share_of_keys(r, row, n);
        for (size_t j = 0; j < n; j++) {
            const double a = (double)plain[i * n + j];
            const double expected = a > 0 ? pow(a, panel->cell->eps) / sum : 0;
            largest = fmax(largest, fabs((double)row[j] / share - expected));
        }
    }
    return largest;
}

/* Mean entropy of uniform rows, as the metric takes it. */
static double largest_entropy(const report *r, const report_panel *panel) {
    const size_t n = r->fig->prompts.items[panel->cell->prompt].n_tokens;
    double sum = 0;
    for (size_t i = 1; i < n; i++) {
        const report_keys seen = qkv_report_visible(r, panel, i);
        sum += log((double)(seen.end - seen.first));
    }
    return sum / (double)(n - 1);
}

static int judge_temperature(report *r, qkv_error *err) {
    double largest = 0, least = INFINITY, most = 0, plain = 0, end = 0;
    int n = 0;
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = panel_at(r, i);
        if (!is_query_or_key(panel) || panel->cell->change != FIGURE_SCALED ||
            panel->cell->eps != 0.5)
            continue;
        largest = fmax(largest, from_temperature(r, panel));
        least = fmin(least, panel->values[REPORT_entropy]);
        most = fmax(most, panel->values[REPORT_entropy]);
        plain = r->plain[panel->cell->prompt].values[REPORT_entropy];
        end = largest_entropy(r, panel);
        n++;
    }
    if (n == 0 || isnan(plain)) return QKV_OK;
    return add_fact(
        r, "\xce\xb5 = 0.5 is a temperature of 2",
        largest <= 10 * ROUNDING && least >= plain && most <= end, largest,
        qkv_figure_printf("largest difference from the unmodified weights to the power "
                          "0.5, normalised%s: %.3g (at most %g); entropy %.3f, between %.3f "
                          "unmodified and %.3f uniform",
                          sink_note(r), largest, 10 * ROUNDING, least, plain, end),
        err);
}

/* ---- the triangle ---- */

/* Of a causal model; an edit of the pattern itself may put weight anywhere. */
static int judge_triangle(report *r, qkv_error *err) {
    double largest = 0;
    for (size_t i = 0; i < r->n_panels; i++) {
        if (qkv_report_visible(r, panel_at(r, i), 0).end > 1 ||
            strstr(panel_at(r, i)->cell->edits, "pattern"))
            return QKV_OK;
        largest = fmax(largest, panel_at(r, i)->values[REPORT_upper]);
    }
    return add_fact(
        r, "Nothing above the diagonal", largest == 0, largest,
        qkv_figure_printf("largest mass above the diagonal of %zu panels: %.3g (exactly 0)",
                          r->n_panels, largest),
        err);
}

int qkv_report_judge(report *r, qkv_error *err) {
    int status = judge_uniform(r, "\xce\xb5 \xe2\x86\x92 0 makes rows uniform", -1, VANISHED,
                               EXACTLY_UNIFORM, err);
    if (status == QKV_OK) {
        status = judge_uniform(r, "\xce\xb5 = 1e-3 nearly makes rows uniform", VANISHED, SMALL,
                               NEARLY_UNIFORM, err);
    }
    if (status == QKV_OK) status = judge_saturation(r, err);
    if (status == QKV_OK) status = judge_exchange(r, err);
    if (status == QKV_OK) status = judge_value(r, err);
    if (status == QKV_OK) status = judge_sink(r, err);
    if (status == QKV_OK) status = judge_temperature(r, err);
    if (status == QKV_OK) status = judge_triangle(r, err);
    return status;
}
