/* What qkv_next holds, for the files that make it and tell about it. */
#ifndef QKV_STUDY_NEXT_H
#define QKV_STUDY_NEXT_H

#include "base/fail.h"
#include "qkv/next.h"

typedef struct next_difference {
    double value, change;
} next_difference;

typedef struct next_edit {
    char *text;
    int ran;
    uint64_t changed;
} next_edit;

typedef struct next_variant {
    double kl;
    qkv_next_token *top, *of;
    next_difference *diffs;
    qkv_next_loss *losses;
    qkv_next_answer *answers;
    next_edit *edits;
    size_t n_edits;
} next_variant;

struct qkv_next {
    next_variant *variants;
    size_t n_variants;
    int64_t position;
    size_t n_top, n_of, n_diffs, n_losses, n_answers; /* of every variant */
};

typedef struct next_candidate {
    float logit;
    int32_t token;
} next_candidate;

/* All tokens of a row of logits, the most likely first, and the rank of each of them, from 0 on. */
typedef struct next_order {
    next_candidate *sorted;
    int32_t *ranks;
} next_order;

int qkv_next_order_new(next_order *order, size_t n_vocab, qkv_error *err);
void qkv_next_order_fill(next_order *order, const float *logits, size_t n_vocab);
void qkv_next_order_release(next_order *order);

#endif
