/*
 * Two models on the same tokens: what is summed up, and how the work on a prompt is cut into pairs of
 * passes of bounded memory. include/qkv/compare.h says what the numbers mean.
 */
#ifndef QKV_MEASURE_COMPARE_H
#define QKV_MEASURE_COMPARE_H

#include "measure/metric.h"
#include "qkv/compare.h"
#include "qkv/observe.h"

enum { COMPARE_FLIPS = 32 };

/* Of the residual stream after a layer. */
typedef struct compare_states {
    double angle, error;
    uint64_t n; /* tokens */
} compare_states;

/* Of the logits at one position; token < 0: not computed. */
typedef struct compare_position {
    double kl, loss[2];      /* losses: of the token that follows */
    double probabilities[2]; /* of the most likely ones */
    int32_t tokens[2];       /* the most likely ones */
} compare_position;

/* Sums over a prompt, or over all of them. */
typedef struct compare_sums {
    double (*heads)[QKV_METRIC_SUMS]; /* layers x heads */
    compare_states *layers;
    double kl, kl_last, loss[2];
    uint64_t flips, n_positions, n_losses, n_prompts, n_tokens, n_passes, changed, selected;
} compare_sums;

struct qkv_compare {
    qkv_model *models[2];
    qkv_chosen_metric distance;
    char *edits;   /* NULL: none */
    size_t memory; /* 0: as much as the first session may use */
    int32_t n_layer, n_head;
    compare_sums sums;
    double *lowest, *highest; /* layers x heads: distances of a single prompt; NaN at first */
    /* By position, over prompts. */
    double *kl_at;
    uint64_t *n_at;
    size_t n_positions;
    qkv_compare_flip flips[COMPARE_FLIPS]; /* the largest KL first */
    size_t n_flips;
};

int qkv_compare_sums_new(compare_sums *sums, int32_t n_layer, int32_t n_head, qkv_error *err);
void qkv_compare_sums_release(compare_sums *sums);
/* Adds one distance's sums to another's. */
void qkv_compare_add_distance(qkv_metric id, double *to, const double *from);

/* compare_models.c */
int qkv_compare_models(const qkv_model *first, const qkv_model *second, qkv_error *err);

/* ---- compare_pass.c: which part of the work a pair of passes does ---- */

/* Rows [first, end) of a head; `at` is where the first one is kept, in floats. */
typedef struct compare_rows {
    int64_t first, end;
    size_t at;
} compare_rows;

/* How far the work on a prompt has come: layers first, logits last. */
typedef struct compare_cursor {
    int32_t layer, head;
    int has_states; /* the layer's residual stream is done */
    int64_t row;    /* of the head; after the last layer: of the logits */
} compare_cursor;

typedef struct compare_pass {
    int32_t n_layer, n_head;
    int64_t n_tokens, n_embd, n_vocab; /* n_vocab: 0 without logits */
    size_t memory, copies;             /* copies: how often a captured tensor is held */
    uint8_t *states;                   /* per layer */
    compare_rows *rows;                /* layers x heads */
    int64_t first_logit, end_logit;
    size_t n_kept; /* floats that the rows take */
} compare_pass;

int qkv_compare_pass_new(compare_pass *pass, const qkv_compare *compare, int64_t n_tokens,
                         size_t memory, qkv_error *err);
void qkv_compare_pass_release(compare_pass *pass);
/* Fills the pass with as much as fits, and at least a part; 0 when nothing is left to do. */
int qkv_compare_pass_next(compare_pass *pass, compare_cursor *cursor);
/* Names in a plan what the pass looks at. */
int qkv_compare_pass_plan(const compare_pass *pass, qkv_plan *plan, qkv_error *err);

/* ---- compare_run.c ---- */

/* One prompt; positions has room for all of its tokens. */
int qkv_compare_run(const qkv_compare *compare, qkv_session *const sessions[2],
                    const int32_t *tokens, size_t n_tokens, compare_sums *sums,
                    compare_position *positions, qkv_error *err);

#endif
