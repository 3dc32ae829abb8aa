/*
 * A metric of a measure: which one, with which parameters; and what computes those of patterns.
 *
 * A metric of patterns is one function that adds a row to a few sums, and one that turns the sums
 * into the value. Sums are doubles: a mean over thousands of float weights keeps its last digits.
 */
#ifndef QKV_MEASURE_METRIC_H
#define QKV_MEASURE_METRIC_H

#include "base/fail.h"
#include "measure/metric_list.h"
#include "qkv/measure.h"

enum { QKV_METRIC_SUMS = 2, QKV_METRIC_PARAMETERS = 2 };

/* Longest prompt of metrics that need a whole map: its singular values take seconds. */
#define QKV_LARGEST_MAP 1024

/* Values of the parameter "space" of subspace_angle. */
enum { QKV_SPACE_PROMPT, QKV_SPACE_FEATURE };

typedef struct qkv_chosen_metric {
    qkv_metric id;
    char *text; /* as it was given */
    double parameters[QKV_METRIC_PARAMETERS];
} qkv_chosen_metric;

/* NEED_* of a metric. */
unsigned qkv_metric_needs(qkv_metric id);
/* Reads "name", "name:1", "name:1/2" or "name:second=2"; the text is copied. */
int qkv_metric_parse(qkv_chosen_metric *out, const char *text, size_t length, qkv_error *err);

/* One row of a pattern. */
typedef struct qkv_row {
    int64_t query, n_tokens;
    int64_t n_keys;           /* of `weights` and `baseline`; beyond them all is 0 */
    int64_t first, end;       /* the keys that the query may see */
    const float *weights;     /* [n_keys] */
    const float *baseline;    /* likewise; NULL where nothing compares */
    const int32_t *tokens;    /* [n_tokens]; NULL: unknown */
    const double *parameters; /* of the metric */
    double entropy;           /* of the weights; filled in by qkv_row_entropy */
} qkv_row;

double qkv_row_entropy(const qkv_row *row);
/* Is it one that reads row->entropy? */
int qkv_metric_reads_entropy(qkv_metric id);

/* Metrics of patterns (NEED_ROWS): adds a row, and gives the value once all rows were added. */
void qkv_metric_add_row(qkv_metric id, const qkv_row *row, double sums[QKV_METRIC_SUMS]);
double qkv_metric_value(const qkv_chosen_metric *metric, const double sums[QKV_METRIC_SUMS]);

/* row_distance.c: of rows with their baseline's, and of rows with the uniform one. */
void qkv_row_tv(const qkv_row *row, double *sums);
void qkv_row_js(const qkv_row *row, double *sums);
void qkv_row_kl(const qkv_row *row, double *sums);
void qkv_row_max_change(const qkv_row *row, double *sums);
void qkv_row_uniformity(const qkv_row *row, double *sums);

/* whole_map.c: of a map, T x T. */
double qkv_map_symmetry(const float *map, int64_t n_tokens);
int qkv_map_effective_rank(double *value, const float *map, int64_t n_tokens, qkv_error *err);

/* The title of a metric as qkv_measure_new takes it, with its parameters and unit: "mean weight on
 * one key, key = 4", "entropy of attention (nats)". A name that is unknown stays as it is. Freed with
 * qkv_bytes_free. */
int qkv_metric_title(const char *metric, char **title, qkv_error *err);

#endif
