/*
 * What a recipe says about the numbers that were drawn: enough to see whether they came out again,
 * and, where they did not, by how much. A file cannot hold them all: it has a fingerprint of each
 * panel, extremes, and some of the values as they are.
 */
#ifndef QKV_STUDY_PANEL_SUMMARY_H
#define QKV_STUDY_PANEL_SUMMARY_H

#include <stddef.h>

#include "base/fail.h"
#include "base/fingerprint.h"

enum { PANEL_SAMPLE = 16 };

typedef struct panel_summary {
    size_t n_rows, n_cols;
    char digest[QKV_FINGERPRINT_SIZE]; /* of the shape and the bytes of the values */
    double least, most;
    double norm; /* root of the sum of squares */
    size_t n_sample;
    float sample[PANEL_SAMPLE];
} panel_summary;

/* How many values of each panel are kept. */
size_t qkv_panel_sample_size(size_t n_panels);
/* Which one value number k of n is: half of them in the first column, where sinks are; the others
 * where a causal pattern has values. */
size_t qkv_panel_sample_place(size_t n_rows, size_t n_cols, size_t k, size_t n);

int qkv_panel_summarize(panel_summary *to, const float *values, size_t n_rows, size_t n_cols,
                        size_t n_sample, qkv_error *err);

#endif
