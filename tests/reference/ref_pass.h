/*
 * What the parts of the scalar forward pass share: the pass itself, taps where edits happen and
 * values are kept, and the two operations that everything is made of.
 */
#ifndef QKV_TESTS_REF_PASS_H
#define QKV_TESTS_REF_PASS_H

#include "reference/ref_forward.h"

typedef struct ref_pass {
    const ref_model *m;
    ref_run *run;
    const ref_run *source;
    const ref_run *frozen; /* the unedited run of the same prompt */
    const ref_edit *edits;
    size_t n_edits;
    int T;
    const double *moved; /* scores of queries as they stand in a small cache, of the layer */
    double *own;         /* [T][n_layer][p]: the embeddings that layers have of their own */
} ref_pass;

/* Zeroes; freed with free. */
double *ref_new_doubles(size_t n);

/* Data of a site as heads x rows x columns. */
ref_view ref_view_of(const ref_model *m, qkv_site site, int T, double *data);

/* Keys begin <= j < end that query i may see. Edits leave the scores of the others alone. */
ref_range ref_visible(const ref_pass *p, int layer, int i);

/* keep and quant: what becomes of all rows and columns of head h of x. */
void ref_compress(const ref_pass *p, const ref_edit *edit, int layer, const ref_view *x, int h,
                  double *out);

/* Applies the edits of a site to its data, and keeps what results. */
void ref_tap(const ref_pass *p, qkv_site site, int layer, double *data);
/* The same where a site is held per group ([T][G][d]) and seen per query head ([T][H][d]). */
void ref_tap_shared(const ref_pass *p, qkv_site site, int layer, double *held, double *seen);

/* y [T][rows] = x [T][cols] times w transposed, plus bias */
void ref_apply_linear(double *y, const double *x, ref_linear l, int T, int rows, int cols);
/* Each of n rows of `width` by itself; y may be x. Without a weight y is x. Row r has the weights
 * from (r % n_weights) * width on. */
void ref_apply_norm(const ref_model *m, double *y, const double *x, ref_norm norm, int n, int width,
                    int n_weights);

/* Soft-capped; cap 0: as it is. */
double ref_capped(double x, double cap);

/* What a block gives, both [T][D]: attention from the layer's input, the other from its normalised one. */
void ref_attention(const ref_pass *p, int layer, double *out, const double *x);
void ref_feed_forward(const ref_pass *p, int layer, double *out, const double *x);
double ref_activated(ref_activation kind, double x);

#endif
