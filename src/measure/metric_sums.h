/*
 * What is known while a plan is measured: sums of the rows that have come by, and the values
 * computed so far.
 *
 * A value has a slot (variant, layer, head), layer-wide and variant-wide ones included. A slot
 * that nothing arrived for is the baseline's.
 */
#ifndef QKV_MEASURE_METRIC_SUMS_H
#define QKV_MEASURE_METRIC_SUMS_H

#include <pthread.h>

#include "base/logits.h"
#include "measure/metric.h"
#include "run/run.h"

struct qkv_measure {
    qkv_chosen_metric *metrics;
    size_t n_metrics, capacity;
    unsigned needs; /* of all of them */
    int reads_entropy;
    char *layers, *heads; /* as given, "*" for all */
    /* Last hidden states of the plans measured: n_hidden × n_variants × width. */
    float *hidden;
    size_t n_hidden, n_variants, width;
};

/* The rows of one head of one variant. Nothing is allocated until one arrives. */
typedef struct qkv_head_sums {
    double *sums;    /* n_metrics × QKV_METRIC_SUMS */
    double *columns; /* T: sums over the queries from 1 on */
    float *map;      /* T × T, while a metric needs all of it and rows are missing */
    int64_t n_rows;
} qkv_head_sums;

typedef struct qkv_metric_sums {
    qkv_measure *measure;
    const qkv_model *model;
    const int32_t *tokens;
    int64_t n_tokens;
    size_t n_variants;
    uint8_t *layer_set, *head_set; /* what is measured: n_layer and H bytes */
    int32_t *layer_at, *head_at;   /* index of a layer or head among the measured ones, or -1 */
    int32_t n_layers, n_heads;     /* measured */
    int32_t all_layers, all_heads;
    unsigned needs_map;   /* metrics that need whole maps here: bit 0 symmetry, bit 1 rank */
    qkv_head_sums *heads; /* n_variants × n_layers × n_heads */
    double **norms[2]; /* ‖v‖ and ‖v W_O‖: n_variants × n_layers, of n_heads × T; may be NULL */
    double **gram;       /* n_layers; of the output projections */
    const float *logits; /* the baseline's */
    int64_t n_logit_rows;
    qkv_log_sum *logit_sums; /* of the baseline's rows: log Σ exp */
    float *hidden;           /* n_variants × D */
    uint8_t *has_hidden;
    double *values; /* n_slots × n_metrics */
    uint8_t *known;
    size_t n_slots;
    pthread_mutex_t lock; /* of `failure` */
    qkv_error failure;    /* of a row that could not be taken in */
} qkv_metric_sums;

/* measure.c: what the metrics need, into the plan. */
int qkv_measure_add_captures(const qkv_measure *m, qkv_plan *plan, qkv_error *err);

enum { QKV_MAP_SYMMETRY = 1, QKV_MAP_RANK = 2 };

/* The slot of a measured layer and head; -1 for layer-wide, -1 and -1 for variant-wide values. */
size_t qkv_sum_slot(const qkv_metric_sums *totals, size_t variant, int32_t layer, int32_t head);
void qkv_metric_sums_set(qkv_metric_sums *totals, size_t slot, size_t metric, double value);

/* metric_sums.c: a plan's layers and heads, and memory for it. Release also after a failure. */
int qkv_metric_sums_prepare(qkv_metric_sums *totals, const qkv_plan *plan, const qkv_model *model,
                            qkv_error *err);
void qkv_metric_sums_release(qkv_metric_sums *totals);
qkv_head_sums *qkv_metric_sums_head(const qkv_metric_sums *totals, size_t variant,
                                    int32_t layer_index, int32_t head_index);
/* Takes in rows; `user` is the totals. */
void qkv_metric_sums_rows(void *user, const qkv_rows *rows);
/* Turns sums into values, and gives slots that nothing arrived for the baseline's. */
void qkv_metric_sums_finish(qkv_metric_sums *totals);

/* tensor_metrics.c: takes in a captured tensor; `user` is the totals. */
int qkv_metric_sums_tensor(void *user, size_t variant, qkv_site site, int32_t layer,
                           const qkv_tensor *tensor, qkv_error *err);
/* The value-weighted metrics of a head, once columns and values are there. */
void qkv_metric_sums_weigh(qkv_metric_sums *totals, size_t variant, int32_t layer_index,
                           int32_t head_index);

/* logit_metrics.c */
int qkv_metric_sums_logits(qkv_metric_sums *totals, size_t variant, const qkv_tensor *tensor,
                           qkv_error *err);

/* subspace.c: remembers the last hidden states of a measured plan. */
int qkv_subspace_add(qkv_measure *measure, const qkv_metric_sums *totals, size_t width,
                     qkv_error *err);
/* The angle of a variant over all plans, with the metric's rank and space. */
int qkv_subspace_measure(const qkv_measure *measure, size_t variant,
                         const qkv_chosen_metric *metric, double *degrees, qkv_error *err);

/* Tables of measured values. */

int qkv_table_new(qkv_table **out, qkv_error *err);
int qkv_table_add(qkv_table *table, const qkv_measurement *row, qkv_error *err);

/* All values of a finished totals. Takes the result over, and leaves NULL. */
int qkv_table_of_sums(qkv_table **out, const qkv_metric_sums *totals, qkv_result **result,
                      qkv_error *err);

#endif
