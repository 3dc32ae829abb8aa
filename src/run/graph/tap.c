/*
 * The seam between the forward pass and everything that reads or changes it.
 *
 * An edited tensor is produced by one custom operation of ggml that copies its input and applies
 * all the edits of all the variants in the batch to the copy: exact, in F32, on the CPU whatever
 * backend the rest of the graph runs on, and it counts what it changes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/graph/graph.h"
#include "run/graph/head_input.h"
#include "run/graph/reduce.h"
#include "run/ops/edit_apply.h"
#include "run/run.h"

/* One block of a map that is read: for a reduction, or for the observer. */
typedef struct map_reader {
    qkv_graph *graph;
    const qkv_accumulator *to; /* of a reduction */
    qkv_part part;
    int32_t layer;
} map_reader;

/* Edits of a tensor are applied by one operation, unless some are by query (op_quant.h): then by two. */
typedef enum which_edits { ALL_EDITS, OTHER_EDITS, BY_QUERY_EDITS } which_edits;

struct qkv_tap_op {
    map_reader reduce; /* of a reduction or an observation, which use nothing else */
    qkv_graph *graph;
    int64_t n_batch;
    int calls_custom; /* some edit is a function of the caller's: one thread does all */
    which_edits which;
    qkv_view view;  /* of one variant; src and dst are filled in when it runs */
    float *scratch; /* n_threads × 2 width, for means over tokens and ranges of groups */
    qkv_check *check;
    const qkv_head_copies *copies; /* of what single heads read */
};

int qkv_graph_keeps(const qkv_graph *g, qkv_site site, int32_t il) {
    return g->keep[(size_t)il * QKV_SITE_COUNT + (size_t)site] & QKV_KEEP_WHOLE;
}

/* NULL where the edit takes nothing from elsewhere. */
static const float *find_patch(const qkv_graph *g, const qkv_edit *edit, qkv_site site,
                               int32_t layer) {
    const size_t n_places = (size_t)(g->model->hp.n_layer + 1) * QKV_SITE_COUNT;
    const size_t place = (size_t)layer * QKV_SITE_COUNT + (size_t)qkv_site_unedited(site);
    if (edit->flags & QKV_EDIT_TAKES_PROMPT)
        return g->patches->tensors[edit->source * n_places + place];
    if (edit->flags & QKV_EDIT_TAKES_UNEDITED) return g->patches->frozen[place];
    if (!(edit->flags & QKV_EDIT_TAKES_SET)) return NULL;
    return g->patches->means[qkv_edit_mean_kind(edit) * n_places + place];
}

static void free_tensors(float **tensors, size_t n) {
    for (size_t i = 0; tensors && i < n; i++) free(tensors[i]);
    free((void *)tensors);
}

void qkv_patches_release(qkv_patches *patches) {
    free_tensors(patches->tensors, patches->n_tensors);
    free_tensors(patches->frozen, patches->n_frozen);
    free_tensors(patches->means, patches->n_means);
    *patches = (qkv_patches){0};
}

static int applies(const qkv_edit *edit, qkv_site site, int32_t il) {
    return edit->where.site == site && qkv_selector_has_layer(&edit->where, il);
}

/* Does any variant edit this site, and does any split a group there? */
static int find_edits(const qkv_graph *g, qkv_site site, int32_t il, int *splits) {
    int found = 0;
    *splits = 0;
    for (int64_t b = 0; b < g->n_batch; b++) {
        const qkv_variant *variant = g->members[b].variant;
        for (size_t i = 0; i < variant->n_edits; i++) {
            if (!applies(&variant->edits[i], site, il)) continue;
            found = 1;
            if (qkv_selector_splits(&variant->edits[i].where, &g->model->hp, il)) *splits = 1;
        }
    }
    return found;
}

/* Does an edit of the member that acts here have the flag? */
static int has_flag(const qkv_member *member, unsigned flag, qkv_site site, int32_t il) {
    for (size_t i = 0; i < member->variant->n_edits; i++) {
        const qkv_edit *edit = &member->variant->edits[i];
        if ((edit->flags & flag) && applies(edit, site, il)) return 1;
    }
    return 0;
}

static int any_has_flag(const qkv_graph *g, unsigned flag, qkv_site site, int32_t il) {
    for (int64_t b = 0; b < g->n_batch; b++) {
        if (has_flag(&g->members[b], flag, site, il)) return 1;
    }
    return 0;
}

static int is_of(which_edits which, const qkv_edit *edit) {
    return which == ALL_EDITS || (which == BY_QUERY_EDITS) == !!(edit->flags & QKV_EDIT_BY_QUERY);
}

/* From `plain`, which has the layout of what is written, or from the unedited tensor. */
static void copy_rows(const qkv_view *view, const float *plain, int64_t first, int64_t end) {
    for (int32_t h = 0; h < view->n_heads; h++) {
        for (int64_t t = first; t < end; t++) {
            const float *row = plain ? plain + h * view->head_stride + t * view->row_stride
                                     : view->src + h * view->src_head_stride + t * view->row_stride;
            memcpy(view->dst + h * view->head_stride + t * view->row_stride, row,
                   (size_t)view->width * sizeof(float));
        }
    }
}

/* The first failure is kept; after it no function is called. */
static void run_custom(const qkv_tap_op *op, const qkv_edit *edit, const qkv_view *view,
                       _Atomic uint64_t *changed) {
    uint64_t n = 0;
    if (op->graph->custom_error.status != QKV_OK) return;
    if (qkv_custom_apply(edit, view, &n, &op->graph->custom_error) == QKV_OK)
        atomic_fetch_add(changed, n);
}

/* Rows that depend on earlier ones: a thread gets whole heads, with what they remember. A mean over
 * heads looks at all of them. */
static qkv_view heads_of_thread(const qkv_tap_op *op, int64_t b, const qkv_view *view, int ith,
                                int nth) {
    const qkv_graph *g = op->graph;
    qkv_view part = *view;
    if (has_flag(&g->members[b], QKV_EDIT_ALL_HEADS, view->site, view->layer)) {
        if (ith) part.n_heads = 0;
        nth = 1;
        ith = 0;
    }
    const int32_t first = view->n_heads * ith / nth, end = view->n_heads * (ith + 1) / nth;
    if (part.n_heads) part.n_heads = end - first;
    part.first_head += first;
    part.src += first * view->src_head_stride;
    part.dst += first * view->head_stride;
    if (part.moved) part.moved += first * view->head_stride;
    part.keep = g->step ? &g->step->caches[view->layer * g->n_members + b]->keep : &g->keeps[b];
    return part;
}

/* `plain` is what edits by query leave as it is, where they are applied by themselves. */
static void run_member(const qkv_tap_op *op, int64_t b, const qkv_view *view, const float *plain,
                       int ith, int nth) {
    const qkv_member *member = &op->graph->members[b];
    int64_t first = 0, end = view->n_rows;
    qkv_view heads;
    if (has_flag(member, QKV_EDIT_IN_ORDER, view->site, view->layer)) {
        heads = heads_of_thread(op, b, view, ith, nth);
        view = &heads;
    } else {
        first = view->n_rows * ith / nth;
        end = view->n_rows * (ith + 1) / nth;
    }
    copy_rows(view, plain, first, end);
    for (size_t i = 0; i < member->variant->n_edits; i++) {
        const qkv_edit *edit = &member->variant->edits[i];
        if (!applies(edit, view->site, view->layer) || !is_of(op->which, edit)) continue;
        if (edit->flags & QKV_EDIT_CALLS) {
            run_custom(op, edit, view, &member->changed[i]);
            continue;
        }
        const float *patch = find_patch(op->graph, edit, view->site, view->layer);
        float *scratch = op->scratch ? op->scratch + (int64_t)ith * 2 * view->width : NULL;
        int64_t overflow = -1;
        atomic_fetch_add(&member->changed[i],
                         qkv_edit_apply(edit, view, first, end, patch, scratch, &overflow));
        if (overflow >= 0)
            qkv_check_note(op->check, b * op->check->n_rows + op->view.first_row + overflow);
    }
}

/* Tokens of a step count from its position on, and keys from the first one that its cache has. */
static void place_in_text(const qkv_graph *g, qkv_view *view) {
    const qkv_step *step = g->step;
    view->first_row += step->position;
    if (qkv_site_get_axes(view->site) != QKV_AXES_MAP) return;
    view->first_col = step->caches[view->layer * g->n_members]->first;
    view->n_cols = step->position + g->n_tokens - view->first_col;
    view->patch_width = step->n_prompt;
}

/* `second`: of scores, those of queries as they stand in a small cache; of edits by query, the tensor without
 * them; may be NULL. */
static void run_tap_with(struct ggml_tensor *dst, const struct ggml_tensor *src,
                         const struct ggml_tensor *second, int ith, int nth, void *data) {
    const qkv_tap_op *op = data;
    if (op->calls_custom) {
        if (ith) return;
        nth = 1;
    }
    for (int64_t b = 0; b < op->n_batch; b++) {
        qkv_view view = op->view;
        if (op->graph->step) place_in_text(op->graph, &view);
        view.first_row += op->graph->n_before;
        const int64_t at = b * qkv_view_size(&view);
        const float *other = second ? (const float *)second->data + at : NULL;
        view.src = (const float *)src->data + at;
        view.dst = (float *)dst->data + at;
        const int by_query = op->which == BY_QUERY_EDITS;
        if (!by_query) view.moved = other;
        run_member(op, b, &view, by_query ? other : NULL, ith, nth);
    }
}

static void run_tap(struct ggml_tensor *dst, const struct ggml_tensor *src, int ith, int nth,
                    void *data) {
    run_tap_with(dst, src, NULL, ith, nth, data);
}

struct ggml_tensor *qkv_split_groups(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    const int64_t d = x->ne[0], G = x->ne[1], H = g->model->hp.layers[il].n_head;
    const int64_t tokens = g->n_tokens * g->n_batch;
    x = ggml_reshape_4d(g->ctx, x, d, 1, G, tokens);
    x = ggml_repeat_4d(g->ctx, x, d, H / G, G, tokens);
    return ggml_reshape_4d(g->ctx, x, d, H, g->n_tokens, g->n_batch);
}

int32_t qkv_kept_heads(qkv_site site, const struct ggml_tensor *x) {
    switch (qkv_site_get_axes(site)) {
    case QKV_AXES_QUERY:
    case QKV_AXES_KEYVALUE:
        return (int32_t)x->ne[1];
    case QKV_AXES_MAP:
        return (int32_t)x->ne[2];
    default:
        return 0;
    }
}

/* NULL where memory has run out, which the graph remembers. */
static qkv_tap_op *new_op(qkv_graph *g) {
    qkv_tap_op *op = qkv_calloc(1, sizeof *op);
    if (op && QKV_PUSH(g->taps, g->taps_capacity, g->n_taps, op)) return op;
    free(op);
    g->out_of_memory = 1;
    return NULL;
}

/* What applying edits at the view's site takes. */
static void prepare_edits(qkv_graph *g, qkv_tap_op *op) {
    op->graph = g;
    op->n_batch = g->n_batch;
    op->calls_custom = any_has_flag(g, QKV_EDIT_CALLS, op->view.site, op->view.layer);
    op->view.failed = &g->ran_short;
    op->scratch = qkv_calloc((size_t)g->n_threads * 2 * (size_t)op->view.width, sizeof(float));
    op->check = qkv_check_new(g, qkv_site_name(op->view.site), op->view.layer);
    if (!op->scratch || !op->check)
        g->out_of_memory = 1;
    else
        op->check->is_edit = 1;
}

static struct ggml_tensor *append_edits(qkv_graph *g, qkv_site site, int32_t il,
                                        struct ggml_tensor *x, struct ggml_tensor *second,
                                        which_edits which, qkv_part part) {
    qkv_tap_op *op = new_op(g);
    if (!op) return x;
    qkv_site_axes axes = qkv_site_get_axes(site);
    int64_t rows = axes == QKV_AXES_MAP ? x->ne[1] : g->n_tokens;
    int64_t keys = axes == QKV_AXES_MAP ? x->ne[0] : g->n_tokens;
    if (!qkv_site_has_layer(site) && g->step) { /* of the last tokens */
        rows = x->ne[1];
        part.first_row = g->n_tokens - rows;
    }
    op->which = which;
    op->view = qkv_view_of(site, il, g->model, qkv_kept_heads(site, x), rows, keys);
    op->view.first_head = part.first_head;
    op->view.first_row = part.first_row;
    prepare_edits(g, op);
    x = ggml_cont(g->ctx, x);
    if (second) return ggml_map_custom2(g->ctx, x, second, run_tap_with, GGML_N_TASKS_MAX, op);
    return ggml_map_custom1(g->ctx, x, run_tap, GGML_N_TASKS_MAX, op);
}

/* The heads of a member that read copies lie one after the other, and have one source. */
static void run_tap_copies(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_tap_op *op = data;
    const qkv_head_copies *copies = op->copies;
    const int64_t size = dst->ne[0] * dst->ne[1];
    if (op->calls_custom) {
        if (ith) return;
        nth = 1;
    }
    for (int64_t i = 0, end; i < copies->n; i = end) {
        const int32_t b = copies->members[i];
        for (end = i; end < copies->n && copies->members[end] == b;) end++;
        qkv_view view = op->view;
        if (op->graph->step) place_in_text(op->graph, &view);
        view.first_row += op->graph->n_before;
        view.src = (const float *)dst->src[0]->data + b * size;
        view.dst = (float *)dst->data + i * size;
        view.heads = copies->heads + i;
        view.alike = copies->alike + i;
        view.n_heads = (int32_t)(end - i);
        run_member(op, b, &view, NULL, ith, nth);
    }
}

struct ggml_tensor *qkv_tap_copies(qkv_graph *g, const qkv_head_copies *copies,
                                   struct ggml_tensor *x) {
    const int64_t D = x->ne[0], T = x->ne[1];
    qkv_tap_op *op = new_op(g);
    if (op) {
        op->copies = copies;
        op->view = qkv_view_of(copies->site, copies->layer, g->model, copies->n_heads, T, T);
        op->view.row_stride = D;
        op->view.head_stride = T * D;
        op->view.src_head_stride = 0;
        prepare_edits(g, op);
    }
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, D, T, copies->n, 1, &x, 1, run_tap_copies,
                          GGML_N_TASKS_MAX, op);
}

void qkv_graph_keep(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x) {
    qkv_kept kept = {.site = site, .layer = il, .tensor = x};
    if (!QKV_PUSH(g->kept, g->kept_capacity, g->n_kept, kept)) g->out_of_memory = 1;
    /* The allocator reuses the memory of what is not an output, and of a view's source regardless
     * of the view. */
    ggml_set_output(x);
    for (struct ggml_tensor *base = x->view_src; base; base = base->view_src) ggml_set_output(base);
    ggml_build_forward_expand(g->cgraph, x);
}

/* Heads are dealt out to the threads, so that each sum has one owner and one order. */
static void run_reduction(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const map_reader *op = data;
    const struct ggml_tensor *map = dst->src[1]; // [keys, rows, heads, B]
    int64_t T = op->graph->n_tokens, H = op->graph->model->hp.layers[op->layer].n_head,
            heads = map->ne[2];
    int64_t size = qkv_reduction_size(op->to->kind, op->to->side, T);
    for (int64_t i = ith; i < heads * map->ne[3]; i += nth) {
        int64_t b = i / heads, h = i % heads;
        const float *rows = (const float *)map->data + i * map->ne[0] * map->ne[1];
        double *out = op->to->data + (b * H + op->part.first_head + h) * size;
        qkv_reduce_rows(op->to->kind, op->to->side, T, rows, op->part.first_row, map->ne[1],
                        map->ne[0], out);
    }
}

/* Shows rows to the observer; heads are dealt out like those of a reduction. */
static void run_watch(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const map_reader *op = data;
    qkv_graph *g = op->graph;
    const struct ggml_tensor *map = dst->src[1]; // [keys, rows, heads, B]
    int64_t heads = map->ne[2], size = map->ne[0] * map->ne[1];
    const float *all = map->data;
    for (int64_t i = ith; i < heads * (int64_t)g->watch.n_variants; i += nth) {
        int64_t member = i / heads, h = i % heads;
        qkv_rows rows = {.size = sizeof rows,
                         .layer = op->layer,
                         .head = (int32_t)(op->part.first_head + h),
                         .first_row = op->part.first_row,
                         .n_rows = map->ne[1],
                         .n_keys = map->ne[0],
                         .data = all + i * size};
        if (map->ne[3] > (int64_t)g->watch.n_variants) /* the last member is the baseline */
            rows.baseline = all + ((map->ne[3] - 1) * heads + h) * size;
        qkv_watch_show(&g->watch, (size_t)member, op->layer == g->from, rows);
    }
}

/* One more operation that reads a map, evaluated for its side effect. All of them stand for the same
 * tensor of one element: a result of its own would never be freed, and lie between the blocks. */
static void append_reader(qkv_graph *g, struct ggml_tensor *map, ggml_custom_op_t run,
                          map_reader what) {
    qkv_tap_op *op = new_op(g);
    if (!op) return;
    op->reduce = what;
    if (!g->in_nothing) {
        g->in_nothing = ggml_new_tensor_1d(g->ctx, GGML_TYPE_F32, 1);
        ggml_set_input(g->in_nothing);
    }
    ggml_build_forward_expand(g->cgraph, ggml_custom_inplace(g->ctx, g->in_nothing, &map, 1, run,
                                                             GGML_N_TASKS_MAX, &op->reduce));
}

static void append_readers(qkv_graph *g, int32_t il, struct ggml_tensor *map, qkv_part part) {
    map_reader what = {.graph = g, .part = part, .layer = il};
    for (size_t i = 0; i < g->n_accumulators; i++) {
        what.to = &g->accumulators[i];
        if (what.to->layer == il) append_reader(g, map, run_reduction, what);
    }
    if (g->keep[(size_t)il * QKV_SITE_COUNT + QKV_SITE_PATTERN] & QKV_KEEP_OBSERVED)
        append_reader(g, map, run_watch, what);
}

/* Keeps what has become of a tensor, if the pass wants it. */
static struct ggml_tensor *kept_if_wanted(qkv_graph *g, qkv_site site, int32_t il,
                                          struct ggml_tensor *x) {
    if (!qkv_graph_keeps(g, site, il)) return x;
    if (!ggml_is_contiguous(x)) x = ggml_cont(g->ctx, x);
    qkv_graph_keep(g, site, il, x);
    return x;
}

static struct ggml_tensor *tap(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                               struct ggml_tensor *second, qkv_part part) {
    int splits;
    if (find_edits(g, site, il, &splits)) {
        if (splits && x->ne[1] == g->model->hp.layers[il].n_kv_head) x = qkv_split_groups(g, il, x);
        x = append_edits(g, site, il, x, second, ALL_EDITS, part);
    }
    x = kept_if_wanted(g, site, il, x);
    if (qkv_site_is_weights(site)) append_readers(g, il, x, part);
    return x;
}

struct ggml_tensor *qkv_tap_part(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                                 qkv_part part) {
    return tap(g, site, il, x, NULL, part);
}

/* A step that keeps no logits needs nothing else of its last attention, unless an edit remembers rows for
 * later steps. */
struct ggml_tensor *qkv_tap_scores(qkv_graph *g, int32_t il, struct ggml_tensor *x,
                                   struct ggml_tensor *moved, qkv_part part) {
    x = tap(g, QKV_SITE_SCORES, il, x, moved, part);
    if (g->step && any_has_flag(g, QKV_EDIT_IN_ORDER, QKV_SITE_SCORES, il))
        ggml_build_forward_expand(g->cgraph, x);
    return x;
}

struct ggml_tensor *qkv_tap(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x) {
    return tap(g, site, il, x, NULL, (qkv_part){0});
}

struct ggml_tensor *qkv_tap_shared(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                                   struct ggml_tensor **plain) {
    int splits;
    *plain = NULL;
    if (!find_edits(g, site, il, &splits) || !qkv_graph_has_by_query(g, site, il))
        return qkv_tap(g, site, il, x);
    const qkv_part all = {0};
    if (splits && x->ne[1] == g->model->hp.layers[il].n_kv_head) x = qkv_split_groups(g, il, x);
    *plain = append_edits(g, site, il, x, NULL, OTHER_EDITS, all);
    return kept_if_wanted(g, site, il, append_edits(g, site, il, x, *plain, BY_QUERY_EDITS, all));
}

int qkv_graph_has_by_query(const qkv_graph *g, qkv_site site, int32_t il) {
    return any_has_flag(g, QKV_EDIT_BY_QUERY, site, il);
}

int qkv_graph_edits(const qkv_graph *g, qkv_site site, int32_t il) {
    int splits;
    return find_edits(g, site, il, &splits);
}

void qkv_graph_release(qkv_graph *g) {
    for (size_t i = 0; i < g->n_taps; i++) {
        free(g->taps[i]->scratch);
        free(g->taps[i]);
    }
    for (size_t i = 0; i < g->n_products; i++) free(g->products[i]);
    for (size_t i = 0; i < g->n_checks; i++) free(g->checks[i]);
    for (size_t i = 0; i < g->n_copies; i++) qkv_head_copies_free(g->copies[i]);
    for (size_t i = 0; i < g->n_accumulators; i++) free(g->accumulators[i].data);
    for (int64_t b = 0; g->keeps && b < g->n_members; b++) qkv_keep_state_release(&g->keeps[b]);
    free(g->keeps);
    g->keeps = NULL;
    free(g->accumulators);
    free((void *)g->in_before);
    free(g->seen);
    g->seen = NULL;
    g->in_before = NULL;
    qkv_watch_release(&g->watch);
    free(g->taps);
    free(g->kept);
    free(g->checks);
    free((void *)g->copies);
    free(g->products);
    if (g->ctx) ggml_free(g->ctx);
    g->accumulators = NULL;
    g->taps = NULL;
    g->kept = NULL;
    g->checks = NULL;
    g->copies = NULL;
    g->products = NULL;
    g->ctx = NULL;
}
