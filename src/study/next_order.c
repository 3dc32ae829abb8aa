/* Tokens by how likely they are; equally likely ones by their ids, so that every order is one. */
#include <stdlib.h>

#include "base/memory.h"
#include "study/next.h"

static int by_logit(const void *a, const void *b) {
    const next_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

int qkv_next_order_new(next_order *order, size_t n_vocab, qkv_error *err) {
    *order = (next_order){0};
    order->sorted = qkv_calloc(n_vocab, sizeof *order->sorted);
    order->ranks = qkv_calloc(n_vocab, sizeof *order->ranks);
    return order->sorted && order->ranks ? QKV_OK : qkv_fail_memory(err);
}

void qkv_next_order_fill(next_order *order, const float *logits, size_t n_vocab) {
    for (size_t i = 0; i < n_vocab; i++) order->sorted[i] = (next_candidate){logits[i], (int32_t)i};
    qsort(order->sorted, n_vocab, sizeof *order->sorted, by_logit);
    for (size_t i = 0; i < n_vocab; i++) order->ranks[order->sorted[i].token] = (int32_t)i;
}

void qkv_next_order_release(next_order *order) {
    free(order->sorted);
    free(order->ranks);
    *order = (next_order){0};
}

/* A heap would be faster for many; tables show ten. */
size_t qkv_most_likely_tokens(const float *logits, size_t n_vocab, int32_t *tokens, size_t n) {
    size_t found = 0;
    if (!logits || !tokens) return 0;
    for (size_t i = 0; i < n_vocab; i++) {
        size_t at = found < n ? found : n;
        while (at > 0 && logits[tokens[at - 1]] < logits[i]) at--;
        if (at == n) continue;
        if (found < n) found++;
        for (size_t k = found - 1; k > at; k--) tokens[k] = tokens[k - 1];
        tokens[at] = (int32_t)i;
    }
    return found;
}
