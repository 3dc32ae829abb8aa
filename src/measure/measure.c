/* Measures: a set of metrics, the captures they need, and running a plan with them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/first_key.h"
#include "base/memory.h"
#include "base/sized.h"
#include "measure/metric_sums.h"
#include "run/plan/plan.h"
#include "run/run.h"

/* ---- the set ---- */

static int add_metric(qkv_measure *m, const char *text, size_t length, qkv_error *err) {
    qkv_chosen_metric metric;
    int status = qkv_metric_parse(&metric, text, length, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (strcmp(m->metrics[i].text, metric.text) != 0) continue;
        status = qkv_fail(err, QKV_ERR_SYNTAX, "metric '%s' is given twice", metric.text);
        free(metric.text);
        return status;
    }
    if (!QKV_PUSH(m->metrics, m->capacity, m->n_metrics, metric)) {
        free(metric.text);
        return qkv_fail_memory(err);
    }
    m->needs |= qkv_metric_needs(metric.id);
    m->reads_entropy |= qkv_metric_reads_entropy(metric.id);
    return QKV_OK;
}

/* Those that need no more than patterns and the baseline's, or all there are. */
static int add_many(qkv_measure *m, int all, qkv_error *err) {
    int status = QKV_OK;
    for (int id = 0; id < QKV_METRIC_COUNT && status == QKV_OK; id++) {
        unsigned needs = qkv_metric_needs((qkv_metric)id);
        if (!all && (needs & ~(unsigned)(NEED_ROWS | NEED_BASELINE))) continue;
        const char *name = qkv_metric_get((size_t)id)->name;
        status = add_metric(m, name, strlen(name), err);
    }
    return status;
}

static int add_list(qkv_measure *m, const char *list, qkv_error *err) {
    if (!list) return add_many(m, 0, err);
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        const int all = n == strlen("all") && memcmp(at, "all", n) == 0;
        int status = all ? add_many(m, 1, err) : add_metric(m, at, n, err);
        if (status != QKV_OK) return status;
        at += n;
        if (!*at) return QKV_OK;
    }
}

int qkv_measure_new(qkv_measure **out, const char *metrics, const qkv_measure_options *options,
                    qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    qkv_measure_options where = QKV_MEASURE_OPTIONS_INIT;
    int status = qkv_sized_read(&where, sizeof where, options, "qkv_measure_options", err);
    if (status != QKV_OK) return status;
    qkv_measure *m = qkv_calloc(1, sizeof *m);
    if (!m) return qkv_fail_memory(err);
    m->layers = qkv_strdup(where.layers ? where.layers : "*");
    m->heads = qkv_strdup(where.heads ? where.heads : "*");
    status = m->layers && m->heads ? add_list(m, metrics, err) : qkv_fail_memory(err);
    if (status != QKV_OK) {
        qkv_measure_free(m);
        return status;
    }
    *out = m;
    return QKV_OK;
}

void qkv_measure_free(qkv_measure *measure) {
    if (!measure) return;
    for (size_t i = 0; i < measure->n_metrics; i++) free(measure->metrics[i].text);
    free(measure->metrics);
    free(measure->layers);
    free(measure->heads);
    free(measure->hidden);
    free(measure);
}

const char *qkv_measure_text(const qkv_measure *measure, size_t metric) {
    return measure && metric < measure->n_metrics ? measure->metrics[metric].text : NULL;
}

const qkv_metric_info *qkv_measure_info(const qkv_measure *measure, size_t metric) {
    if (!measure || metric >= measure->n_metrics) return NULL;
    return qkv_metric_get((size_t)measure->metrics[metric].id);
}

/* ---- what has to be captured ---- */

static int capture(const qkv_measure *m, qkv_plan *plan, const char *site, int heads,
                   qkv_error *err) {
    size_t size = strlen(m->layers) + strlen(m->heads) + 32;
    char *what = malloc(size);
    if (!what) return qkv_fail_memory(err);
    snprintf(what, size, "%s@%s%s%s", site, m->layers, heads ? ".h" : "", heads ? m->heads : "");
    int status = strcmp(site, "pattern") == 0 ? qkv_plan_observe(plan, what, err)
                                              : qkv_plan_add_capture(plan, what, err);
    free(what);
    return status;
}

/* Sites that are captured at the measured layers. */
static const struct {
    unsigned needs;
    const char *site;
    int heads; /* the measured ones; otherwise all */
} captures[] = {
    {NEED_ROWS | NEED_COLUMNS | NEED_MAP, "pattern", 1},
    {NEED_V, "v", 1},
    {NEED_Q, "q", 1},
    {NEED_K, "k", 1},
    {NEED_Q_ROT, "q_rot", 1},
    {NEED_K_ROT, "k_rot", 1},
    {NEED_Z, "z", 0},
    {NEED_RESID, "resid_post", 0},
};

/* One position will do, unless a metric wants another than the last. */
static int wants_all_logits(const qkv_measure *m) {
    for (size_t i = 0; i < m->n_metrics; i++) {
        const qkv_chosen_metric *metric = &m->metrics[i];
        const unsigned needs = qkv_metric_needs(metric->id);
        const int has_position = (needs & NEED_LOGITS) && metric->id != QKV_METRIC_SHIPS;
        if ((needs & NEED_ALL_LOGITS) || (has_position && metric->parameters[0] != -1)) return 1;
    }
    return 0;
}

/* Only a model without logits refuses them; then the message is about the metric that asked. */
static int capture_logits(const qkv_measure *m, qkv_plan *plan, qkv_error *err) {
    int status = qkv_plan_add_capture(plan, wants_all_logits(m) ? "logits" : "logits[-1]", err);
    for (size_t i = 0; status == QKV_ERR_PLAN && i < m->n_metrics; i++) {
        if (qkv_metric_needs(m->metrics[i].id) & (NEED_LOGITS | NEED_ALL_LOGITS))
            return qkv_fail(err, status,
                            "metric '%s' needs logits, which this model has not; name the metrics "
                            "that are wanted",
                            m->metrics[i].text);
    }
    return status;
}

int qkv_measure_add_captures(const qkv_measure *m, qkv_plan *plan, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < sizeof captures / sizeof *captures && status == QKV_OK; i++) {
        if (m->needs & captures[i].needs)
            status = capture(m, plan, captures[i].site, captures[i].heads, err);
    }
    if (status == QKV_OK && (m->needs & (NEED_LOGITS | NEED_ALL_LOGITS)))
        status = capture_logits(m, plan, err);
    if (status == QKV_OK && (m->needs & NEED_LAST))
        status = qkv_plan_add_capture(plan, "final_norm[-1]", err);
    return status;
}

/* ---- running ---- */

static int compares_rows(const qkv_measure *m) {
    for (size_t i = 0; i < m->n_metrics; i++) {
        unsigned needs = qkv_metric_needs(m->metrics[i].id);
        if ((needs & NEED_ROWS) && (needs & NEED_BASELINE)) return 1;
    }
    return 0;
}

/* Metrics of rows alone look at no tensor, so the plan may have captures of its own. */
static int needs_tensors(const qkv_measure *m) {
    return (m->needs & ~(unsigned)(NEED_ROWS | NEED_COLUMNS | NEED_MAP | NEED_BASELINE)) != 0;
}

int qkv_measure_run(qkv_measure *measure, qkv_table **out, qkv_session *session, qkv_plan *plan,
                    qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, measure);
    QKV_NEED(err, session);
    QKV_NEED(err, plan);
    const qkv_model *model = qkv_session_model(session);
    if (plan->model != model)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the plan was made for another model than the session's");
    const qkv_model_info *info = qkv_model_get_info(model);
    qkv_metric_sums totals = {.measure = measure};
    qkv_observer observer = {.size = sizeof observer,
                             .user = &totals,
                             .rows = qkv_metric_sums_rows,
                             .tensor = needs_tensors(measure) ? qkv_metric_sums_tensor : NULL,
                             .compare = compares_rows(measure)};
    qkv_result *result = NULL;
    int status = qkv_metric_sums_prepare(&totals, plan, model, err);
    if (status == QKV_OK) status = qkv_measure_add_captures(measure, plan, err);
    if (status == QKV_OK) status = qkv_session_observe(session, &result, plan, &observer, err);
    if (status == QKV_OK && totals.failure.status != QKV_OK)
        status = qkv_fail(err, totals.failure.status, "%s", totals.failure.message);
    if (status == QKV_OK) {
        qkv_metric_sums_finish(&totals);
        if (measure->needs & NEED_LAST)
            status = qkv_subspace_add(measure, &totals, (size_t)info->n_embd, err);
    }
    if (status == QKV_OK) status = qkv_table_of_sums(out, &totals, &result, err);
    qkv_result_free(result);
    qkv_metric_sums_release(&totals);
    return status;
}

int qkv_measure_finish(qkv_measure *measure, qkv_table **out, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, measure);
    int status = qkv_table_new(out, err);
    size_t n = measure->n_hidden ? measure->n_variants : 0;
    for (size_t v = 0; v < n && status == QKV_OK; v++) {
        for (size_t i = 0; i < measure->n_metrics && status == QKV_OK; i++) {
            if (measure->metrics[i].id != QKV_METRIC_SUBSPACE_ANGLE) continue;
            qkv_measurement row = {
                .size = sizeof row, .variant = v, .layer = -1, .head = -1, .metric = i};
            status = qkv_subspace_measure(measure, v, &measure->metrics[i], &row.value, err);
            if (status == QKV_OK) status = qkv_table_add(*out, &row, err);
        }
    }
    free(measure->hidden);
    measure->hidden = NULL;
    measure->n_hidden = 0;
    if (status == QKV_OK) return QKV_OK;
    qkv_table_free(*out);
    *out = NULL;
    return status;
}

/* ---- one matrix ---- */

static void add_pattern_row(const qkv_measure *m, const qkv_pattern *p, int64_t i, double *sums) {
    int64_t T = p->n_tokens;
    const float *base = p->baseline ? p->baseline : p->weights;
    qkv_row row = {.query = i,
                   .n_tokens = T,
                   .n_keys = T,
                   .first = qkv_first_key(p->window, i),
                   .end = p->bidirectional ? T : i + 1,
                   .weights = p->weights + i * T,
                   .baseline = base + i * T,
                   .tokens = p->tokens};
    if (p->bidirectional && p->window > 0) row.end = i + p->window < T ? i + p->window : T;
    if (m->reads_entropy) row.entropy = qkv_row_entropy(&row);
    for (size_t k = 0; k < m->n_metrics; k++) {
        row.parameters = m->metrics[k].parameters;
        qkv_metric_add_row(m->metrics[k].id, &row, sums + k * QKV_METRIC_SUMS);
    }
}

int qkv_measure_pattern(const qkv_measure *measure, const qkv_pattern *given, double *values,
                        qkv_error *err) {
    qkv_pattern own = QKV_PATTERN_INIT;
    const qkv_pattern *const pattern = &own;
    QKV_NEED(err, measure);
    QKV_NEED(err, values);
    if (!given) return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: no pattern was given", __func__);
    const int read = qkv_sized_read(&own, sizeof own, given, "qkv_pattern", err);
    if (read != QKV_OK) return read;
    if (pattern->window < 0 && pattern->bidirectional)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the pattern is of chunks (a negative window) and bidirectional");
    if (pattern->n_tokens < 1 || !pattern->weights)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the pattern is empty");
    double *sums = qkv_calloc(measure->n_metrics * QKV_METRIC_SUMS, sizeof *sums);
    int status = sums ? QKV_OK : qkv_fail_memory(err);
    for (int64_t i = 0; status == QKV_OK && i < pattern->n_tokens; i++)
        add_pattern_row(measure, pattern, i, sums);
    for (size_t k = 0; status == QKV_OK && k < measure->n_metrics; k++) {
        const qkv_chosen_metric *metric = &measure->metrics[k];
        values[k] = NAN;
        if (metric->id == QKV_METRIC_SYMMETRY)
            values[k] = qkv_map_symmetry(pattern->weights, pattern->n_tokens);
        else if (metric->id == QKV_METRIC_EFFECTIVE_RANK)
            status = qkv_map_effective_rank(&values[k], pattern->weights, pattern->n_tokens, err);
        else if (qkv_measure_info(measure, k)->scope == QKV_SCOPE_HEAD &&
                 (qkv_metric_needs(metric->id) & NEED_ROWS))
            values[k] = qkv_metric_value(metric, sums + k * QKV_METRIC_SUMS);
    }
    free(sums);
    return status;
}
