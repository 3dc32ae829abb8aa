#include "run/graph/product.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ggml-backend.h"
#include "kernel/product.h"
#include "run/graph/build.h"

/* Columns of an expert that are packed at a time, by each thread for itself: there are few. */
#define EXPERT_COLUMNS 64

/* NULL where memory has run out, which the graph remembers. */
static qkv_product_op *new_op(qkv_graph *g, qkv_product_op how) {
    qkv_product_op *op = qkv_calloc(1, sizeof *op);
    if (!op || !QKV_PUSH(g->products, g->products_capacity, g->n_products, op)) {
        free(op);
        op = NULL;
        g->out_of_memory = 1;
    } else {
        op->kind = how.kind;
        op->width = how.width;
        op->block = how.block;
        op->graph = how.graph;
        op->layer = how.layer;
        op->dots = how.dots;
        op->choice = how.choice;
    }
    return op;
}

struct ggml_tensor *qkv_product_node(qkv_graph *g, const int64_t ne[4], struct ggml_tensor **from,
                                     int n_from, ggml_custom_op_t run, qkv_product_op how) {
    qkv_product_op *op = new_op(g, how);
    struct ggml_tensor *node = ggml_custom_4d(g->ctx, GGML_TYPE_F32, ne[0], ne[1], ne[2], ne[3],
                                              from, n_from, run, GGML_N_TASKS_MAX, op);
    node->extra = op;
    return node;
}

struct ggml_tensor *qkv_product_inplace(qkv_graph *g, struct ggml_tensor *x, ggml_custom_op_t run,
                                        qkv_product_op how) {
    qkv_product_op *op = new_op(g, how);
    struct ggml_tensor *node = ggml_custom_inplace(g->ctx, x, NULL, 0, run, GGML_N_TASKS_MAX, op);
    node->extra = op;
    return node;
}

int64_t qkv_product_take(qkv_product_op *op) {
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
    for (int64_t first; (first = qkv_product_take(data) * each) < w.rows;) {
        const int64_t end = first + each < w.rows ? first + each : w.rows;
        qkv_product(&w, first, end, dst->src[1]->data, &out, scratch_at(dst->src[2], ith));
    }
}

static void run_dot_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_weights_view w = qkv_weights_matrix(dst->src[0], 0);
    const qkv_columns x = columns_of(dst->src[1]), out = columns_of(dst);
    const int64_t each = qkv_product_rows(w.rows, nth);
    for (int64_t first; (first = qkv_product_take(data) * each) < w.rows;) {
        const int64_t end = first + each < w.rows ? first + each : w.rows;
        qkv_dot_product(&w, first, end, &x, &out, scratch_at(dst->src[2], ith));
    }
}

/* One more token of a text: few columns, whatever the number of its variants. */
static int is_one_token(const qkv_graph *g) {
    return g->step && g->step->one_new;
}

struct ggml_tensor *qkv_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x) {
    const int dots = is_one_token(g);
    struct ggml_tensor *from[] = {w, dots ? x : packed(g, x), scratch_of(g)};
    const int64_t ne[] = {w->ne[1], x->ne[1], x->ne[2], x->ne[3]};
    return qkv_product_node(g, ne, from, 3, dots ? run_dot_product : run_product,
                            (qkv_product_op){.kind = QKV_PRODUCT_WEIGHT, .width = w->ne[0]});
}

/* ---- rows of a matrix ---- */

static qkv_columns columns_of_input(const struct ggml_tensor *x, int64_t i) {
    return (qkv_columns){.data = (float *)x->data + i * x->ne[0] * x->ne[1],
                         .stride = x->ne[0],
                         .repeat = 1,
                         .n = x->ne[1]};
}

static void run_pack_inputs(struct ggml_tensor *dst, int ith, int nth, void *unused) {
    (void)unused;
    const struct ggml_tensor *x = dst->src[0];
    const int64_t parts = qkv_packed_parts(x->ne[1]);
    for (int64_t i = ith; i < parts * x->ne[2]; i += nth) {
        const qkv_columns columns = columns_of_input(x, i / parts);
        qkv_pack((float *)dst->data + i / parts * dst->ne[0], &columns, x->ne[0], i % parts);
    }
}

static void add_bias(const qkv_columns *out, const float *bias, int64_t first, int64_t end) {
    for (int64_t t = 0; t < out->n; t++) {
        float *column = qkv_column_at(out, t);
        for (int64_t r = first; r < end; r++) column[r] += bias[r];
    }
}

/* Sources: weights, inputs (packed, or as they are for dots), scratch memory, and the bias if any. */
static void run_rows_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    qkv_product_op *op = data;
    const struct ggml_tensor *x = dst->src[1], *bias = dst->src[3];
    const int64_t m = dst->ne[0], each = qkv_product_rows(m * dst->ne[2], nth);
    const int64_t parts = (m + each - 1) / each;
    for (int64_t i; (i = qkv_product_take(op)) < parts * dst->ne[2];) {
        const int64_t number = i / parts, first = i % parts * each;
        const int64_t input = op->choice.input[number], row = op->choice.first[number];
        const int64_t end = first + each < m ? first + each : m;
        const qkv_columns out = columns_of_input(dst, number);
        qkv_weights_view w = qkv_weights_matrix(dst->src[0], 0);
        w.data += (size_t)row * w.row_bytes;
        w.rows = m;
        if (op->dots) {
            const qkv_columns in = columns_of_input(x, input);
            qkv_dot_product(&w, first, end, &in, &out, scratch_at(dst->src[2], ith));
        } else {
            qkv_product(&w, first, end, (const float *)x->data + input * x->ne[0], &out,
                        scratch_at(dst->src[2], ith));
        }
        if (bias) add_bias(&out, (const float *)bias->data + row, first, end);
    }
}

struct ggml_tensor *qkv_rows_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                                    struct ggml_tensor *x, const qkv_row_choice *choice) {
    const int dots = is_one_token(g);
    const int64_t ne[] = {choice->rows, x->ne[1], choice->n, 1};
    if (!dots)
        x = ggml_custom_4d(g->ctx, GGML_TYPE_F32, qkv_packed_size(x->ne[0], x->ne[1]), x->ne[2], 1,
                           1, &x, 1, run_pack_inputs, GGML_N_TASKS_MAX, NULL);
    struct ggml_tensor *from[] = {w, x, scratch_of(g), bias};
    return qkv_product_node(
        g, ne, from, bias ? 4 : 3, run_rows_product,
        (qkv_product_op){
            .kind = QKV_PRODUCT_WEIGHT, .width = w->ne[0], .dots = dots, .choice = *choice});
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
static void run_expert(const struct ggml_tensor *dst, int dots, int64_t expert,
                       const int32_t *cells, int64_t n, int64_t first, int64_t end,
                       float *scratch) {
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
        if (dots) {
            qkv_dot_product(&w, first, end, &in, &out, scratch);
            continue;
        }
        for (int64_t part = 0; part < qkv_packed_parts(m); part++)
            qkv_pack(panels, &in, w.width, part);
        qkv_product(&w, first, end, panels, &out, scratch);
    }
}

static void run_expert_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    qkv_product_op *op = data;
    const struct ggml_tensor *w = dst->src[0];
    const int32_t *begin = dst->src[2]->data, *cells = begin + w->ne[2] + 1;
    const int64_t each = qkv_product_rows(w->ne[1] * w->ne[2], nth);
    const int64_t parts = (w->ne[1] + each - 1) / each;
    for (int64_t i; (i = qkv_product_take(op)) < parts * w->ne[2];) {
        const int64_t expert = i / parts, first = i % parts * each;
        const int64_t end = first + each < w->ne[1] ? first + each : w->ne[1];
        const int32_t *of = cells + begin[expert], n = begin[expert + 1] - begin[expert];
        run_expert(dst, op->dots, expert, of, n, first, end, scratch_at(dst->src[3], ith));
    }
}

struct ggml_tensor *qkv_expert_matmul(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *x,
                                      struct ggml_tensor *chosen, struct ggml_tensor *list) {
    struct ggml_tensor *from[] = {w, x, list, scratch_of(g)};
    const int64_t ne[] = {w->ne[1], chosen->ne[0], chosen->ne[1], 1};
    return qkv_product_node(
        g, ne, from, 4, run_expert_product,
        (qkv_product_op){.kind = QKV_PRODUCT_WEIGHT, .width = w->ne[0], .dots = is_one_token(g)});
}

/* ---- attention ---- */

float *qkv_head_at(const struct ggml_tensor *x, int64_t head, int64_t token, int64_t b) {
    char *at = x->data;
    at += (size_t)head * x->nb[1] + (size_t)token * x->nb[2] + (size_t)b * x->nb[3];
    return (float *)(void *)at;
}

static int64_t token_stride(const struct ggml_tensor *x) {
    return (int64_t)(x->nb[2] / sizeof(float));
}

/* Packed heads are [floats, heads, B]; the width of what is in them is known to who uses them. */
static struct ggml_tensor *pack_heads(qkv_graph *g, struct ggml_tensor *x, int64_t first, int64_t n,
                                      int64_t size, ggml_custom_op_t run) {
    struct ggml_tensor *chosen = x;
    if (n < x->ne[1])
        chosen = ggml_view_4d(g->ctx, x, x->ne[0], n, x->ne[2], x->ne[3], x->nb[1], x->nb[2],
                              x->nb[3], (size_t)first * x->nb[1]);
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, size, n, x->ne[3], 1, &chosen, 1, run,
                          GGML_N_TASKS_MAX, NULL);
}

static void run_pack_keys(struct ggml_tensor *dst, int ith, int nth, void *unused) {
    (void)unused;
    const struct ggml_tensor *k = dst->src[0];
    const int64_t parts = qkv_packed_parts(k->ne[2]), heads = k->ne[1] * k->ne[3];
    for (int64_t i = ith; i < parts * heads; i += nth) {
        const int64_t head = i / parts;
        const qkv_columns tokens = {.data = qkv_head_at(k, head % k->ne[1], 0, head / k->ne[1]),
                                    .stride = token_stride(k),
                                    .repeat = 1,
                                    .n = k->ne[2]};
        qkv_pack((float *)dst->data + head * dst->ne[0], &tokens, k->ne[0], i % parts);
    }
}

struct ggml_tensor *qkv_packed_keys(qkv_graph *g, struct ggml_tensor *k, int64_t first, int64_t n) {
    return pack_heads(g, k, first, n, qkv_packed_size(k->ne[0], k->ne[2]), run_pack_keys);
}

static void run_pack_values(struct ggml_tensor *dst, int ith, int nth, void *unused) {
    (void)unused;
    const struct ggml_tensor *v = dst->src[0];
    const int64_t parts = qkv_packed_parts(v->ne[0]), heads = v->ne[1] * v->ne[3];
    for (int64_t i = ith; i < parts * heads; i += nth) {
        const int64_t head = i / parts;
        qkv_pack_rows((float *)dst->data + head * dst->ne[0],
                      qkv_head_at(v, head % v->ne[1], 0, head / v->ne[1]), token_stride(v),
                      v->ne[2], v->ne[0], i % parts);
    }
}

struct ggml_tensor *qkv_packed_values(qkv_graph *g, struct ggml_tensor *v) {
    return pack_heads(g, v, 0, v->ne[1], qkv_packed_size(v->ne[2], v->ne[0]), run_pack_values);
}

/* Rows that a thread takes at a time; a multiple of what a kernel does at once. */
#define ROWS_AT_A_TIME 48

/* The packed head that a query head looks at. */
static const float *packed_head(const struct ggml_tensor *packed, int64_t head, int64_t heads,
                                int64_t b) {
    const int64_t shared_by = heads / packed->ne[1];
    return (const float *)packed->data + (head / shared_by + b * packed->ne[1]) * packed->ne[0];
}

static void run_key_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    (void)ith, (void)nth;
    qkv_product_op *op = data;
    const struct ggml_tensor *q = dst->src[0];
    const int64_t rows = dst->ne[1], heads = dst->ne[2];
    const int64_t parts = (rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME;
    for (int64_t i; (i = qkv_product_take(op)) < parts * heads * dst->ne[3];) {
        const int64_t row = i % parts * ROWS_AT_A_TIME, head = i / parts % heads;
        const int64_t b = i / parts / heads;
        qkv_multiply_rows(&(qkv_row_product){
            .a = qkv_head_at(q, op->block.first_head + head, op->block.first_row + row, b),
            .a_stride = token_stride(q),
            .packed = packed_head(dst->src[1], head, heads, b),
            .packed_width = q->ne[0],
            .packed_columns = dst->src[1]->ne[0] / q->ne[0],
            .out = (float *)dst->data + ((b * heads + head) * rows + row) * dst->ne[0],
            .out_stride = dst->ne[0],
            .rows = rows - row < ROWS_AT_A_TIME ? rows - row : ROWS_AT_A_TIME,
            .columns = dst->ne[0],
            .width = q->ne[0]});
    }
}

struct ggml_tensor *qkv_key_product(qkv_graph *g, struct ggml_tensor *q, struct ggml_tensor *keys,
                                    const qkv_query_block *block) {
    struct ggml_tensor *from[] = {q, keys};
    const int64_t ne[] = {block->keys, block->rows, block->n_heads, q->ne[3]};
    return qkv_product_node(
        g, ne, from, 2, run_key_product,
        (qkv_product_op){.kind = QKV_PRODUCT_ATTENTION, .width = q->ne[0], .block = *block});
}

static void run_value_product(struct ggml_tensor *dst, int ith, int nth, void *data) {
    (void)ith, (void)nth;
    const struct ggml_tensor *pattern = dst->src[0];
    const int64_t d = dst->ne[0], heads = dst->ne[1], rows = dst->ne[2];
    const int64_t parts = (rows + ROWS_AT_A_TIME - 1) / ROWS_AT_A_TIME;
    for (int64_t i; (i = qkv_product_take(data)) < parts * heads * dst->ne[3];) {
        const int64_t row = i % parts * ROWS_AT_A_TIME, head = i / parts % heads;
        const int64_t b = i / parts / heads, keys = pattern->ne[0];
        qkv_multiply_rows(&(qkv_row_product){
            .a = (const float *)pattern->data + ((b * heads + head) * rows + row) * keys,
            .a_stride = keys,
            .packed = packed_head(dst->src[1], head, heads, b),
            .packed_width = dst->src[1]->ne[0] / qkv_packed_size(1, d),
            .packed_columns = d,
            .out = (float *)dst->data + ((b * rows + row) * heads + head) * d,
            .out_stride = heads * d,
            .rows = rows - row < ROWS_AT_A_TIME ? rows - row : ROWS_AT_A_TIME,
            .columns = d,
            .width = keys});
    }
}

struct ggml_tensor *qkv_value_product(qkv_graph *g, struct ggml_tensor *pattern,
                                      struct ggml_tensor *values, int64_t d) {
    struct ggml_tensor *from[] = {pattern, values};
    const int64_t ne[] = {d, pattern->ne[2], pattern->ne[1], pattern->ne[3]};
    return qkv_product_node(
        g, ne, from, 2, run_value_product,
        (qkv_product_op){.kind = QKV_PRODUCT_ATTENTION, .width = pattern->ne[0]});
}

/* ---- reading graphs ---- */

/* Rows that are multiplied with several inputs count once. */
static double bytes_of_rows(const struct ggml_tensor *node, const qkv_row_choice *choice) {
    int64_t rows = 0;
    for (int64_t i = 0; i < choice->n; i++) {
        int64_t j = 0;
        while (j < i && choice->first[j] != choice->first[i]) j++;
        if (j == i) rows += choice->rows;
    }
    return (double)rows * (double)node->src[0]->nb[1];
}

qkv_product_kind qkv_product_of(const struct ggml_tensor *node, double *flop, double *bytes) {
    const qkv_product_op *op = node->op == GGML_OP_CUSTOM ? node->extra : NULL;
    *flop = op ? 2.0 * (double)ggml_nelements(node) * (double)op->width : 0;
    *bytes = 0;
    if (op && op->kind == QKV_PRODUCT_WEIGHT)
        *bytes =
            op->choice.n ? bytes_of_rows(node, &op->choice) : (double)ggml_nbytes(node->src[0]);
    return op ? op->kind : QKV_PRODUCT_NONE;
}
