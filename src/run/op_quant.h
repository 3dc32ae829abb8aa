/*
 * quant: values are rounded to 2^bits levels between the least and the largest of their group, as a
 * quantised cache of keys and values holds them.
 *
 *     quant:bits=B,axis=channel|token[,group=N,keep=R]
 *
 * axis=channel: a group is N tokens of one channel, counted from the first token on; a group that is not
 * full stays as it is. axis=token: a group is N channels of one token and head, in the order of captures.
 * The last R tokens of the text stay as they are.
 */
#ifndef QKV_RUN_OP_QUANT_H
#define QKV_RUN_OP_QUANT_H

#include <stdint.h>

#include "base/fail.h"

struct qkv_edit;
struct qkv_plan;
struct qkv_variant;
struct qkv_view;

typedef enum qkv_quant_axis { QKV_QUANT_CHANNEL, QKV_QUANT_TOKEN } qkv_quant_axis;

typedef struct qkv_quant_rule {
    int64_t bits, axis, group, keep;
} qkv_quant_rule;

/* Reads what stands behind `quant:`. */
int qkv_quant_parse(struct qkv_edit *edit, const char *text, qkv_error *err);
/* Fails where a site has no such groups. */
int qkv_quant_check(const struct qkv_plan *plan, const struct qkv_variant *variant, qkv_error *err);

/* Is a token's result independent of all tokens behind it? */
int qkv_quant_is_by_token(const qkv_quant_rule *rule);

/* Rows [first, end) of one head of a view; `scratch` has room for 2 × width. Returns how many elements
 * got another value. */
uint64_t qkv_quant_head(const struct qkv_edit *edit, const struct qkv_view *view, int32_t head,
                        int64_t first, int64_t end, float *scratch);

#endif
