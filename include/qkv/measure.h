/*
 * Metrics of attention patterns, activations and outputs.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_plan *plan = NULL;
 *     qkv_measure *measure = NULL;
 *     qkv_table *table = NULL;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *         qkv_plan_add_variant(plan, "q@3.h1=scale:1e-3", NULL, &err) == QKV_OK &&
 *         qkv_measure_new(&measure, "sink,entropy,tv,output_kl", NULL, &err) == QKV_OK &&
 *         qkv_measure_run(measure, &table, session, plan, &err) == QKV_OK) {
 *         qkv_measurement m = QKV_MEASUREMENT_INIT;
 *         for (size_t i = 0; qkv_table_get(table, i, &m); i++) {
 *             printf("variant %zu, layer %d, head %d: %s = %g\n", m.variant, (int)m.layer,
 *                    (int)m.head, qkv_measure_text(measure, m.metric), m.value);
 *         }
 *     }
 *     qkv_table_free(table);
 *     qkv_measure_free(measure);
 *     qkv_plan_free(plan);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * A is one head's T x T matrix after the softmax, rows are queries. Metrics of patterns are summed
 * row by row while the pattern is computed: no map is kept. What a variant cannot
 * change is not computed again: it has the baseline's values there, and a change of exactly 0.
 *
 * NaN stands where a metric is undefined, and nowhere else; qkv_metric_info.undefined says when.
 * The formulas: docs/metrics.md, or `qkv metrics`. A measure belongs to one thread at a time. A
 * table is independent of its measure, session and plan.
 */
#ifndef QKV_MEASURE_H
#define QKV_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the list ---- */

/* What one value of a metric belongs to. */
typedef enum qkv_metric_scope {
    QKV_SCOPE_HEAD,    /* a head of a layer */
    QKV_SCOPE_LAYER,   /* a layer: head is -1 */
    QKV_SCOPE_VARIANT, /* a variant of a prompt: layer and head are -1 */
    QKV_SCOPE_SET      /* a variant over all prompts: from qkv_measure_finish */
} qkv_metric_scope;

/* Fields are only ever added at the end. */
typedef struct qkv_metric_info {
    const char *name;       /* "sink" */
    const char *formula;    /* in UTF-8, one paragraph */
    const char *range;      /* "0 to 1" */
    const char *needs;      /* "pattern", "pattern, baseline", "v, pattern", "logits", ... */
    const char *source;     /* where the definition comes from */
    const char *parameters; /* what may stand after a colon, e.g. "threshold = 0.3"; "" = none */
    const char *undefined;  /* when it is NaN; "" = never */
    qkv_metric_scope scope;
    int32_t compares;  /* 1: with the baseline; 0 for the baseline itself */
    const char *title; /* in words, for the axis of a chart: "weight on the first token" */
    const char *unit;  /* "nats", "tokens", "degrees", ...; "" = none */
} qkv_metric_info;

/* The metrics in their order; NULL past the end. */
QKV_API const qkv_metric_info *qkv_metric_get(size_t index);
/* NULL when there is none of that name. */
QKV_API const qkv_metric_info *qkv_metric_find(const char *name);
/* NULL past the end. */
QKV_API const char *qkv_metric_scope_name(qkv_metric_scope scope);

/* ---- measuring ---- */

typedef struct qkv_measure qkv_measure;
typedef struct qkv_table qkv_table;

/* Where patterns, activations and heads are looked at; NULL = everywhere. Written as in edits: "3",
 * "2-4", "0,2,5-7". Heads are query heads. */
typedef struct qkv_measure_options {
    size_t size;
    const char *layers;
    const char *heads;
} qkv_measure_options;

#define QKV_MEASURE_OPTIONS_INIT                                                                   \
    { .size = sizeof(qkv_measure_options) }

/* One value. */
typedef struct qkv_measurement {
    size_t size;
    size_t variant; /* number in the plan, 0 = baseline */
    int32_t layer;  /* -1: the metric has none */
    int32_t head;   /* query head; -1: the metric has none */
    size_t metric;  /* index into the measure's own metrics */
    double value;   /* NaN where undefined */
} qkv_measurement;

#define QKV_MEASUREMENT_INIT                                                                       \
    { .size = sizeof(qkv_measurement) }

/* `metrics` is a list of names, each with its parameters after a colon when they are not the
 * default ones: "sink,sink:4,sink_rate:0.5,massive:50/500". NULL: the default set, which is
 * every metric that needs nothing but patterns and the baseline's; "all": every one there is,
 * also as a part of a list: "all,sink:4". options may be NULL. */
QKV_API int qkv_measure_new(qkv_measure **out, const char *metrics,
                            const qkv_measure_options *options, qkv_error *err);
QKV_API void qkv_measure_free(qkv_measure *measure);

/* Its metrics, as they were given and what they are; NULL past the end. */
QKV_API const char *qkv_measure_text(const qkv_measure *measure, size_t metric);
QKV_API const qkv_metric_info *qkv_measure_info(const qkv_measure *measure, size_t metric);

/* Runs the plan and measures the baseline and every variant. Adds to the plan's captures what the
 * metrics need, so a plan is measured once; give one without captures of its own, unless all metrics
 * need nothing but patterns: then qkv_table_result holds what was captured. Rows are ordered by
 * variant, layer, head and metric. An out-of-range layer or head is an error. */
QKV_API int qkv_measure_run(qkv_measure *measure, qkv_table **out, qkv_session *session,
                            qkv_plan *plan, qkv_error *err);

/* The metrics over all plans measured since the last call (of scope SET): every plan must have had
 * the same number of variants. The table is empty when there are no such metrics. */
QKV_API int qkv_measure_finish(qkv_measure *measure, qkv_table **out, qkv_error *err);

QKV_API size_t qkv_table_size(const qkv_table *table);
/* Fills *row and returns 1, or returns 0 past the end. */
QKV_API int qkv_table_get(const qkv_table *table, size_t index, qkv_measurement *row);
/* What the run took; zero for a table of qkv_measure_finish. Returns 1, or 0 without a table. */
QKV_API int qkv_table_stats(const qkv_table *table, qkv_run_stats *stats);
/* The edits of the variants, how many values they changed: a result without captured tensors, but
 * for those of the plan's own (see qkv_measure_run). Belongs to the table. NULL for a table of qkv_measure_finish. */
QKV_API const qkv_result *qkv_table_result(const qkv_table *table);
QKV_API void qkv_table_free(qkv_table *table);

/* ---- one matrix ---- */

/* A whole map and what is known about it. */
typedef struct qkv_pattern {
    size_t size;
    const float *weights;  /* T x T, row-major */
    const float *baseline; /* the map to compare with; NULL: itself */
    const int32_t *tokens; /* T; NULL: metrics of repeated tokens are NaN */
    int64_t n_tokens;      /* T */
    int64_t window;        /* as qkv_layer_info has it; 0 = all */
    int32_t bidirectional; /* 1: a query sees later keys too */
} qkv_pattern;

#define QKV_PATTERN_INIT                                                                           \
    { .size = sizeof(qkv_pattern) }

/* The measure's metrics of scope HEAD that need nothing but the pattern, the same formulas as
 * above: values[i] belongs to qkv_measure_text(measure, i) and is NaN for all other metrics. */
QKV_API int qkv_measure_pattern(const qkv_measure *measure, const qkv_pattern *pattern,
                                double *values, qkv_error *err);

/* Sink (alpha_k): mean over queries i >= k of A[i][k]; 0 where there is no such key. */
QKV_API double qkv_measure_sink(const float *pattern, int64_t n_tokens, int64_t key);

/* First-column mass: mean over queries i >= 1 of A[i][0]; 1 for a single token. */
QKV_API double qkv_measure_first_column(const float *pattern, int64_t n_tokens);

#ifdef __cplusplus
}
#endif

#endif
