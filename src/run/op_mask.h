/*
 * mask: scores become -inf before the softmax, so that the weights of what is left are made to sum
 * to 1 by the softmax itself.
 *
 *     mask                        all selected cells
 *     mask:sink=S,recent=R        the selected cells but the first S keys and the R most recent ones,
 *                                 the query's own included
 *     mask:band=K                 the selected cells but those less than K away from their query, to
 *                                 both sides where the model is an encoder
 *
 * A rule goes by the numbers of tokens in the text and needs no memory. A query that would see no key
 * at all is refused when the variant is added, unless the model has learned sinks: they take all of
 * it.
 */
#ifndef QKV_RUN_OP_MASK_H
#define QKV_RUN_OP_MASK_H

#include <stdint.h>

#include "base/fail.h"

struct qkv_edit;
struct qkv_plan;
struct qkv_variant;

/* What a mask leaves; 0: nothing of that kind. */
typedef struct qkv_mask_rule {
    int64_t sink, recent, band;
} qkv_mask_rule;

/* Reads what stands behind `mask:`. */
int qkv_mask_parse(struct qkv_edit *edit, const char *text, qkv_error *err);

/* Does the rule take this key away from this query? */
int qkv_mask_hides(const qkv_mask_rule *rule, int64_t query, int64_t key);

/* Fails where the masks of a variant leave some query without a key. */
int qkv_mask_check(const struct qkv_plan *plan, const struct qkv_variant *variant, qkv_error *err);

/* Does the edit give scores of -inf? */
int qkv_edit_masks(const struct qkv_edit *edit);

#endif
