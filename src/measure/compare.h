/*
 * Two models of one architecture on the same tokens: which heads, layers and outputs differ, and by
 * how much. For a model and its quantised copy, or a base model and what was trained from it.
 *
 * Every token of every prompt weighs the same: means are over all rows, positions and tokens that were
 * added. Of patterns, a bounded number of rows of the first model is kept at a time and the second
 * model's are compared with them as they come. So memory depends neither on the number of prompts nor,
 * beyond one layer's states, on their length: what does not fit takes more passes. The numbers are the
 * same whatever the memory.
 *
 * A comparison keeps both models alive and belongs to one thread at a time.
 */
#ifndef QKV_MEASURE_COMPARE_H
#define QKV_MEASURE_COMPARE_H

#include "measure/metric.h"
#include "qkv/session.h"
#include "run/run.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qkv_compare qkv_compare;

typedef struct qkv_compare_options {
    size_t size;
    /* The distance of patterns: "tv", "js", "kl" or "max_change", as the metrics of these names
     * (qkv/measure.h) with the first model as the baseline; NULL: tv. */
    const char *distance;
    const char *edits; /* of the second model, as of qkv_plan_add_variant; NULL: none */
    /* Bytes for what is kept of the first model at a time; 0: as many as its session may use. */
    size_t memory;
} qkv_compare_options;

#define QKV_COMPARE_OPTIONS_INIT                                                                   \
    { .size = sizeof(qkv_compare_options) }

/* Models can be compared when architecture, layers, heads, widths and vocabulary are the same; the
 * error names the first that is not. options may be NULL. */
int qkv_compare_new(qkv_compare **out, const qkv_model *first, const qkv_model *second,
                    const qkv_compare_options *options, qkv_error *err);
void qkv_compare_free(qkv_compare *compare);

/* What the outputs of both models have in common. NaN where there is nothing to say: an encoder has no
 * logits, a prompt of one token no loss. */
typedef struct qkv_compared {
    size_t size;
    uint64_t n_prompts, n_tokens;
    double kl;                  /* mean over positions of KL(first || second), nats */
    double kl_last;             /* the same at the last token of each prompt */
    double flips;               /* share of positions whose most likely next token is another */
    double loss[2];             /* -ln p of the prompts' tokens, mean, nats: first and second */
    uint64_t n_passes;          /* pairs of passes that it took */
    uint64_t changed, selected; /* values that the edits wrote otherwise, of how many */
} qkv_compared;

#define QKV_COMPARED_INIT                                                                          \
    { .size = sizeof(qkv_compared) }

/* Runs one prompt through both models and adds it to the sums; *of_prompt (may be NULL) receives what
 * came of this one. The sessions are those of the two models, in their order; one model may be both,
 * and so may one session. A failure leaves the sums as they were. */
int qkv_compare_add(qkv_compare *compare, qkv_session *first, qkv_session *second,
                    const int32_t *tokens, size_t n_tokens, qkv_compared *of_prompt,
                    qkv_error *err);

/* Over all prompts so far. Returns 1, or 0 without a comparison. */
int qkv_compare_get(const qkv_compare *compare, qkv_compared *out);
/* The distance of a head's patterns; NaN where there is no such head, or nothing was added. */
double qkv_compare_head(const qkv_compare *compare, int32_t layer, int32_t head);
/* The lowest and the highest that it is for a single prompt. Returns 1, or 0 where there is no such head,
 * or nothing was added. Both may be NULL. */
int qkv_compare_head_range(const qkv_compare *compare, int32_t layer, int32_t head, double *lowest,
                           double *highest);
/* The residual streams after a layer (resid_post): the mean over tokens of the angle between both
 * models' vectors in degrees, and of |second - first| / |first|. Tokens with a vector of zeros are left
 * out; NaN where none is left. Returns 1, or 0 where the models have fewer layers. Both may be NULL. */
int qkv_compare_layer(const qkv_compare *compare, int32_t layer, double *angle, double *error);
/* The mean of KL(first || second) at a position over the prompts that have it, and how many these are.
 * Returns 0 past the end. Both may be NULL. */
int qkv_compare_position(const qkv_compare *compare, size_t position, double *kl,
                         uint64_t *n_prompts);

/* A position where the models expect different tokens. */
typedef struct qkv_compare_flip {
    size_t size;
    uint64_t prompt; /* in the order of qkv_compare_add, from 0 on */
    int64_t position;
    int32_t tokens[2];       /* the most likely next one: of the first, of the second */
    double probabilities[2]; /* of these, each in its own model */
    double kl;
} qkv_compare_flip;

#define QKV_COMPARE_FLIP_INIT                                                                      \
    { .size = sizeof(qkv_compare_flip) }

/* Those with the largest KL, the largest first; as many as 32. Returns 0 past the end. */
int qkv_compare_get_flip(const qkv_compare *compare, size_t index, qkv_compare_flip *flip);

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
