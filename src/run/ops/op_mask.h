/*
 * mask: scores become -inf before the softmax, so that the weights of what is left are made to sum
 * to 1 by the softmax itself.
 *
 *     mask                        all selected cells
 *     mask:sink=S,recent=R        the selected cells but the first S keys and the R most recent ones,
 *                                 the query's own included
 *     mask:sink=S,recent=R,positions=cache
 *                                 the same, and positions are counted within what is left: a query after
 *                                 S + R tokens turns by RoPE as if it were token S + R - 1, so that it is
 *                                 never further away from a sink (StreamingLLM)
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

/* What a mask leaves; 0: nothing of that kind. */
typedef struct qkv_mask_rule {
    int64_t sink, recent, band;
    int64_t in_cache; /* positions are those within what is left */
} qkv_mask_rule;

/* How far ahead in the text of its position the query stands; 0: where the two are the same. Its score of
 * a key that the rule leaves as a sink is that of the position. */
int64_t qkv_mask_ahead(const qkv_mask_rule *rule, int64_t query);

#endif
