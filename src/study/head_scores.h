/*
 * A head's scores before the soft-cap, and which edits are factors of them. With both, maps can be
 * made at any factor without another run: weights = softmax(mask + cap(factor * score) + bias).
 *
 * A score is linear in q and in k, before RoPE and after it. So a factor of q or k in the head's own
 * layer is a factor of its scores.
 */
#ifndef QKV_STUDY_HEAD_SCORES_H
#define QKV_STUDY_HEAD_SCORES_H

#include "qkv/session.h"
#include <stddef.h>
#include <stdint.h>

/* ALiBi's slope of a head, of which the bias of a cell is slope * (key - query); 0: none, or no single head. */
double qkv_head_slope(const qkv_model *model, int32_t layer, int32_t head);

/* The unedited scores of a query head, scaled, not capped, not masked and without bias: `out` has room for n_tokens *
 * n_tokens, a row for each query. */
int qkv_head_scores(qkv_session *session, const int32_t *tokens, size_t n_tokens, int32_t layer,
                    int32_t head, float *out, qkv_error *err);

/* What an edit does to the map of a head. */
typedef enum qkv_score_role {
    QKV_SCORE_OTHER,   /* something that is not a factor */
    QKV_SCORE_NOTHING, /* nothing that the map shows */
    QKV_SCORE_VALUE,   /* a factor of the head's values: nothing that the map shows */
    QKV_SCORE_QUERY,   /* a factor of the scores of the queries it selects */
    QKV_SCORE_KEY      /* a factor of the scores of the keys it selects */
} qkv_score_role;

/* Of one edit of a plan, whose result says whether anything of it showed. QKV_SCORE_OTHER where there
 * is no such edit. */
qkv_score_role qkv_edit_score_role(const qkv_plan *plan, const qkv_result *result, size_t variant,
                                   size_t edit, int32_t layer, int32_t head);

#endif
