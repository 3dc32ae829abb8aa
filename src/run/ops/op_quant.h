/*
 * quant: values are rounded to 2^bits levels between the least and the largest of their group, as a
 * quantised cache of keys and values holds them.
 *
 *     quant:bits=B,axis=channel|token[,group=N,keep=R,per=text|query,prompt=P]
 *
 * axis=channel: a group is N tokens of one channel, counted from the first token on; a group that is not
 * full stays as it is. axis=token: a group is N channels of one token and head, in the order of captures.
 * The last R tokens of the text stay as they are.
 *
 * per=query, of k_rot and v: every query sees what a cache has quantised by then (KIVI). By channel, tokens
 * are quantised R at a time: query i sees the first i - i mod R of them so. By token, one at a time: the
 * first i - R. The first P queries, which process the prompt, see none so.
 */
#ifndef QKV_RUN_OP_QUANT_H
#define QKV_RUN_OP_QUANT_H

#include <stdint.h>

typedef enum qkv_quant_axis { QKV_QUANT_CHANNEL, QKV_QUANT_TOKEN } qkv_quant_axis;

typedef struct qkv_quant_rule {
    int64_t bits, axis, group, keep;
    int64_t per_query;
    int64_t prompt; /* of per=query; -1: the text's own prompt, if more follows it */
} qkv_quant_rule;

/* How many tokens the query sees quantised, of per=query. */
int64_t qkv_quant_seen(const qkv_quant_rule *rule, int64_t query);
#endif
