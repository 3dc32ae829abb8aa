#include "run/product.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ggml-backend.h"
#include "kernel/product.h"
#include "run/build.h"

/* Threads take parts of a product in turn: on a busy machine one may get much more done than
 * another. */
struct qkv_product_op {
    atomic_llong next;
};

/* Columns of an expert that are packed at a time, by each thread for itself: there are few. */
#define EXPERT_COLUMNS 64

static qkv_product_op *new_op(qkv_graph *g) {
    qkv_product_op *op = qkv_calloc(1, sizeof *op);
    if (op && QKV_PUSH(g->products, g->products_capacity, g->n_products, op)) return op;
    free(op);
    g->out_of_memory = 1;
    return NULL;
}

static int64_t take(qkv_product_op *op) {
    return atomic_fetch_add_explicit(&op->next, 1, memory_order_relaxed);
}

/* What every thread of a product works with, one after the other; common to all products. */
static struct ggml_tensor *scratch_of(qkv_graph *g) {
    const qkv_hparams *hp = &g->model->hp;
    int64_t each = (int64_t)qkv_product_scratch();
    if (hp->n_expert) {
        int64_t width = hp->n_embd > hp->n_ff_expert ? hp->n_embd : hp->n_ff_expert;
        each += qkv_packed_size(width, EXPERT_COLUMNS);
    }
    if (!g->in_scratch) g->in_scratch = qkv_input(g, GGML_TYPE_F32, each, g->n_threads, 1);
    return g->in_scratch;
}

static float *scratch_at(const struct ggml_tensor *scratch, int ith) {
    return (float *)scratch->data + (int64_t)ith * scratch->ne[0];
}

static qkv_columns columns_of(const struct ggml_tensor *x) {
    return (qkv_columns){
        .data = x->data, .stride = x->ne[0], .repeat = 1, .n = ggml_nelements(x) / x->ne[0]};
}

/* ---- one matrix ---- */

static void run_pack(struct ggml_tensor *dst, int ith, int nth, void *unused) {
    (void)unused;
    const struct ggml_tensor *x = dst->src[0];
    const qkv_columns columns = columns_of(x);
    for (int64_t part = ith; part < qkv_packed_parts(columns.n); part += nth)
        qkv_pack(dst->data, &columns, x->ne[0], part);
}

/* Products that follow each other often have the same input: q, k and v; gate and up. */
static struct ggml_tensor *packed(qkv_graph *g, struct ggml_tensor *x) {
    if (g->packed_from == x) return g->packed;
    g->packed_from = x;
    g->packed = ggml_custom_4d(g->ctx, GGML_TYPE_F32,
                               qkv_packed_size(x->ne[0], ggml_nelements(x) / x->ne[0]), 1, 1, 1, &x,
                               1, run_pack, GGML_N_TASKS_MAX, NULL);
    return g->packed;
}

static void run_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_weights_view w = qkv_weights_matrix(dst->src[0], 0);
    const qkv_columns out = columns_of(dst);
    const int64_t each = qkv_product_rows(w.rows, nth);
    for (int64_t first; (first = take(data) * each) < w.rows;) {
        const int64_t end = first + each < w.rows ? first + each : w.rows;
        qkv_product(&w, first, end, dst->src[1]->data, &out, scratch_at(dst->src[2], ith));
    }
}

struct ggml_tensor *qkv_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x) {
    struct ggml_tensor *from[] = {w, packed(g, x), scratch_of(g)};
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, w->ne[1], x->ne[1], x->ne[2], x->ne[3], from, 3,
                          run_product, GGML_N_TASKS_MAX, new_op(g));
}

/* ---- experts ---- */

/* The list: where the part of each expert begins, E + 1 numbers; then the parts, numbers of cells
 * in [k, tokens]. */
static void run_expert_list(struct ggml_tensor *dst, int ith, int nth, void *unused) {
    (void)unused, (void)nth;
    if (ith > 0) return;
    const struct ggml_tensor *chosen = dst->src[0];
    const int64_t cells = ggml_nelements(chosen), experts = dst->ne[0] - cells - 1;
    int32_t *begin = dst->data, *cell = begin + experts + 1;
    const int64_t k = chosen->ne[0];
    memset(begin, 0, (size_t)(experts + 1) * sizeof *begin);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < cells; i++) {
            const char *row = (const char *)chosen->data + (size_t)(i / k) * chosen->nb[1];
            const int32_t expert = ((const int32_t *)(const void *)row)[i % k];
            if (pass == 0)
                begin[expert + 1]++;
            else
                cell[begin[expert]++] = (int32_t)i;
        }
        for (int64_t e = 0; pass == 0 && e < experts; e++) begin[e + 1] += begin[e];
    }
    /* The second pass has moved every beginning to its end. */
    memmove(begin + 1, begin, (size_t)experts * sizeof *begin);
    begin[0] = 0;
}

struct ggml_tensor *qkv_expert_list(qkv_graph *g, struct ggml_tensor *chosen, int64_t n_experts) {
    return ggml_custom_4d(g->ctx, GGML_TYPE_I32, n_experts + 1 + ggml_nelements(chosen), 1, 1, 1,
                          &chosen, 1, run_expert_list, 1, NULL);
}

/* Rows [first, end) for all cells that have chosen an expert. */
static void run_expert(const struct ggml_tensor *dst, int64_t expert, const int32_t *cells,
                       int64_t n, int64_t first, int64_t end, float *scratch) {
    const struct ggml_tensor *x = dst->src[1];
    const qkv_weights_view w = qkv_weights_matrix(dst->src[0], expert);
    float *panels = scratch + qkv_product_scratch();
    for (int64_t from = 0; from < n; from += EXPERT_COLUMNS) {
        const int64_t m = n - from < EXPERT_COLUMNS ? n - from : EXPERT_COLUMNS;
        const qkv_columns in = {.data = x->data,
                                .stride = x->ne[0],
                                .index = cells + from,
                                .repeat = (int32_t)(dst->ne[1] / x->ne[1]),
                                .n = m};
        const qkv_columns out = {
            .data = dst->data, .stride = dst->ne[0], .index = cells + from, .repeat = 1, .n = m};
        for (int64_t part = 0; part < qkv_packed_parts(m); part++)
            qkv_pack(panels, &in, w.width, part);
        qkv_product(&w, first, end, panels, &out, scratch);
    }
}

static void run_expert_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const struct ggml_tensor *w = dst->src[0];
    const int32_t *begin = dst->src[2]->data, *cells = begin + w->ne[2] + 1;
    const int64_t each = qkv_product_rows(w->ne[1] * w->ne[2], nth);
    const int64_t parts = (w->ne[1] + each - 1) / each;
    for (int64_t i; (i = take(data)) < parts * w->ne[2];) {
        const int64_t expert = i / parts, first = i % parts * each;
        const int64_t end = first + each < w->ne[1] ? first + each : w->ne[1];
        const int32_t *of = cells + begin[expert], n = begin[expert + 1] - begin[expert];
        run_expert(dst, expert, of, n, first, end, scratch_at(dst->src[3], ith));
    }
}

struct ggml_tensor *qkv_expert_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x,
                                      struct ggml_tensor *chosen, struct ggml_tensor *list) {
    struct ggml_tensor *from[] = {w, x, list, scratch_of(g)};
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, w->ne[1], chosen->ne[0], chosen->ne[1], 1, from, 4,
                          run_expert_product, GGML_N_TASKS_MAX, new_op(g));
}

/* ---- reading graphs ---- */

/* No other operation of ours reads a weight first. */
const struct ggml_tensor *qkv_product_weight(const struct ggml_tensor *node) {
    const struct ggml_tensor *w = node->op == GGML_OP_CUSTOM ? node->src[0] : NULL;
    if (!w || !w->buffer) return NULL;
    const int is_weight =
        ggml_backend_buffer_get_usage(w->buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    return is_weight ? w : NULL;
}
