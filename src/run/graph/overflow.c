#include "run/graph/overflow.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "run/graph/graph.h"

qkv_check *qkv_check_new(qkv_graph *g, const char *what, int32_t layer) {
    qkv_check *check = qkv_calloc(1, sizeof *check);
    if (!check || !QKV_PUSH(g->checks, g->checks_capacity, g->n_checks, check)) {
        free(check);
        g->out_of_memory = 1;
        return NULL;
    }
    check->graph = g;
    check->what = what;
    check->layer = layer;
    check->n_rows = g->n_tokens;
    check->first = INT64_MAX;
    return check;
}

/* The least row is kept, so that it does not matter which thread comes first. */
void qkv_check_note(qkv_check *check, int64_t row) {
    int64_t known = atomic_load(&check->first);
    while (row < known && !atomic_compare_exchange_weak(&check->first, &known, row)) {}
}

/* A norm over heads has several rows per token; after the last attention there may be rows of the
 * wanted tokens only. */
static int64_t token_of(const qkv_check *check, int64_t row) {
    const qkv_graph *g = check->graph;
    if (check->n_rows % g->n_tokens == 0) return row / (check->n_rows / g->n_tokens);
    int64_t token = 0;
    for (;; token++) {
        if (g->logit_rows[token] && row-- == 0) return token;
    }
}

/* Nothing that a variant shows depends on some tokens after the last attention. They are computed
 * where another variant of the batch needs them, and must not make this one fail. */
static int matters(const qkv_check *check, int64_t row) {
    const qkv_graph *g = check->graph;
    if (!check->is_last || !g->seen_rows) return 1;
    return g->members[row / check->n_rows].needs_all_tokens ||
           g->seen_rows[token_of(check, row % check->n_rows)];
}

/* NaN is left to those who look for it. */
static int exceeds(const float *x, int64_t n, float limit) {
    int found = 0;
    for (int64_t i = 0; i < n; i++) found |= fabsf(x[i]) >= limit;
    return found;
}

static void run_check(struct ggml_tensor *dst, const struct ggml_tensor *x, int ith, int nth,
                      void *data) {
    (void)dst; /* x itself */
    /* The sum of n squares, also of differences from a mean, stays below FLT_MAX. */
    float limit = sqrtf(FLT_MAX / (float)x->ne[0]) / 2;
    int64_t rows = ggml_nrows(x);
    for (int64_t r = rows * ith / nth; r < rows * (ith + 1) / nth; r++) {
        int64_t i1 = r % x->ne[1], i2 = r / x->ne[1] % x->ne[2], i3 = r / x->ne[1] / x->ne[2];
        const char *row = (const char *)x->data + (size_t)i1 * x->nb[1] + (size_t)i2 * x->nb[2] +
                          (size_t)i3 * x->nb[3];
        if (exceeds((const float *)(const void *)row, x->ne[0], limit) && matters(data, r)) {
            qkv_check_note(data, r);
            return;
        }
    }
}

struct ggml_tensor *qkv_check_norm(qkv_graph *g, const struct ggml_tensor *weight,
                                   struct ggml_tensor *x) {
    qkv_check *check = qkv_check_new(g, weight->name, g->at_layer);
    if (!check) return x;
    check->owners = g->row_owners;
    check->n_rows = ggml_nrows(x) / (g->row_owners ? g->n_row_owners : g->n_batch);
    check->is_last = g->behind_attention;
    return ggml_map_custom1_inplace(g->ctx, x, run_check, GGML_N_TASKS_MAX, check);
}

const qkv_check *qkv_check_find(const qkv_graph *g, int64_t *member, int64_t *token) {
    for (size_t i = 0; i < g->n_checks; i++) {
        const qkv_check *check = g->checks[i];
        int64_t first = check->first;
        if (first == INT64_MAX) continue;
        *member = first / check->n_rows;
        if (check->owners) *member = check->owners[*member];
        *token = token_of(check, first % check->n_rows);
        return check;
    }
    return NULL;
}

int qkv_check_fail(const qkv_check *check, const char *who, int64_t token, qkv_error *err) {
    char layer[32] = "";
    if (check->layer >= 0 && check->layer < check->graph->model->hp.n_layer)
        snprintf(layer, sizeof layer, " in layer %d", check->layer);
    return qkv_fail(err, QKV_ERR_NUMERIC, "%s: %s %s%s %s, first at token %lld", who,
                    check->is_edit ? "the edit of" : "the input of the norm", check->what, layer,
                    check->is_edit ? "gives values that single precision cannot hold"
                                   : "is too large to be squared in single precision",
                    (long long)token);
}
