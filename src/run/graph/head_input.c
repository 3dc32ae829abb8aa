#include "run/graph/head_input.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/graph/build.h"

/* ---- who reads a copy ---- */

/* One variant at one site of one layer. */
typedef struct place {
    const qkv_variant *variant;
    qkv_site site;
    int32_t layer;
    int32_t group; /* consecutive heads that are one key/value head */
} place;

static int applies(const place *at, const qkv_edit *edit) {
    return edit->where.site == at->site && qkv_selector_has_layer(&edit->where, at->layer);
}

static int selects(const place *at, const qkv_edit *edit, int32_t h) {
    const qkv_selector *where = &edit->where;
    return !where->heads || where->heads[where->letter == 'g' ? h / at->group : h];
}

static int reads_copy(const place *at, int32_t h) {
    for (size_t i = 0; i < at->variant->n_edits; i++) {
        const qkv_edit *edit = &at->variant->edits[i];
        if (applies(at, edit) && selects(at, edit, h)) return 1;
    }
    return 0;
}

static int read_alike(const place *at, int32_t a, int32_t b) {
    for (size_t i = 0; i < at->variant->n_edits; i++) {
        const qkv_edit *edit = &at->variant->edits[i];
        if (!applies(at, edit)) continue;
        const int in_a = selects(at, edit, a);
        if (in_a != selects(at, edit, b) || (in_a && (edit->flags & QKV_EDIT_BY_HEAD))) return 0;
    }
    return 1;
}

/* The first head that reads the same copy. */
static int32_t first_alike(const place *at, int32_t h) {
    int32_t first = 0;
    while (first < h && !read_alike(at, first, h)) first++;
    return first;
}

static int splits_group(const qkv_hparams *hp, const place *at) {
    for (size_t i = 0; i < at->variant->n_edits; i++) {
        const qkv_edit *edit = &at->variant->edits[i];
        if (applies(at, edit) && qkv_selector_splits(&edit->where, hp, at->layer)) return 1;
    }
    return 0;
}

/* Heads that the copies are counted among. */
static int32_t counted_heads(const qkv_hparams *hp, qkv_site site, int32_t il, int is_split) {
    return is_split ? hp->layers[il].n_head : qkv_site_n_heads(site, hp, il);
}

static int32_t group_of(const qkv_hparams *hp, qkv_site site, int32_t il, int32_t n_heads) {
    const int32_t groups = hp->layers[il].n_kv_head; /* 0: a layer without attention */
    return qkv_site_get_axes(site) == QKV_AXES_QUERY || !groups ? 1 : n_heads / groups;
}

static int64_t count_copies(const qkv_hparams *hp, const qkv_variant *variant, int32_t il) {
    int64_t n = 0;
    for (int site = 0; site < QKV_SITE_COUNT; site++) {
        if (!qkv_site_is_input((qkv_site)site)) continue;
        place at = {variant, (qkv_site)site, il, 1};
        const int32_t heads = counted_heads(hp, at.site, il, splits_group(hp, &at));
        at.group = group_of(hp, at.site, il, heads);
        for (int32_t h = 0; h < heads; h++) n += reads_copy(&at, h) && first_alike(&at, h) == h;
    }
    return n;
}

int qkv_variant_edits_inputs(const qkv_variant *variant) {
    for (size_t i = 0; i < variant->n_edits; i++) {
        if (qkv_site_is_input(variant->edits[i].where.site)) return 1;
    }
    return 0;
}

int64_t qkv_plan_most_copies(const qkv_plan *plan) {
    const qkv_hparams *hp = &plan->model->hp;
    int64_t most = 0;
    for (size_t v = 0; v < plan->n_variants; v++) {
        if (!qkv_variant_edits_inputs(&plan->variants[v])) continue;
        for (int32_t il = 0; il < hp->n_layer; il++) {
            const int64_t n = count_copies(hp, &plan->variants[v], il);
            if (n > most) most = n;
        }
    }
    return most;
}

/* ---- lists ---- */

/* Rows of a weight that one head is made by. */
static int64_t rows_of_head(const qkv_hparams *hp, qkv_site site, int32_t il) {
    return qkv_site_width(qkv_site_projection(site).makes, hp, il, 0);
}

/* Rows of a fused weight are those of q, of k and of v: as the sites are listed. */
static int64_t first_row(const qkv_graph *g, qkv_site site, int32_t il, int32_t head) {
    const qkv_hparams *hp = &g->model->hp;
    int64_t before = 0;
    for (int s = 0; LAYER(g, il, QKV) && s < (int)site; s++) {
        if (qkv_site_is_input((qkv_site)s))
            before += qkv_site_n_heads((qkv_site)s, hp, il) * rows_of_head(hp, (qkv_site)s, il);
    }
    const int64_t each = hp->has_gate && site == QKV_SITE_Q_IN ? 2 : 1; /* q and its gate */
    return before + each * head * rows_of_head(hp, site, il);
}

static int allocate_lists(qkv_head_copies *c, size_t most) {
    c->members = qkv_calloc(most, sizeof *c->members);
    c->heads = qkv_calloc(most, sizeof *c->heads);
    c->alike = qkv_calloc(most, sizeof *c->alike);
    c->reader_members = qkv_calloc(most, sizeof *c->reader_members);
    c->reader_heads = qkv_calloc(most, sizeof *c->reader_heads);
    c->reader_copies = qkv_calloc(most, sizeof *c->reader_copies);
    c->reader_rows = qkv_calloc(most, sizeof *c->reader_rows);
    return c->members && c->heads && c->alike && c->reader_members && c->reader_heads &&
           c->reader_copies && c->reader_rows;
}

void qkv_head_copies_free(qkv_head_copies *copies) {
    if (!copies) return;
    free(copies->members);
    free(copies->heads);
    free(copies->alike);
    free(copies->reader_members);
    free(copies->reader_heads);
    free(copies->reader_copies);
    free(copies->reader_rows);
    free(copies);
}

/* The copy that a head of the last member so far reads; a new one if need be. */
static int64_t copy_for(const place *at, qkv_head_copies *c, int32_t member, int32_t h) {
    const int32_t first = first_alike(at, h);
    for (int64_t i = c->n - 1; i >= 0 && c->members[i] == member; i--) {
        if (c->heads[i] == first) return i;
    }
    c->members[c->n] = member;
    c->heads[c->n] = h;
    return c->n++;
}

static void list_member(const qkv_graph *g, qkv_head_copies *c, int32_t member) {
    const place at = {g->members[member].variant, c->site, c->layer, c->group};
    for (int32_t h = 0; h < c->n_heads; h++) {
        if (!reads_copy(&at, h)) continue;
        const int64_t copy = copy_for(&at, c, member, h), reader = c->n_readers++;
        c->alike[copy].heads++;
        c->alike[copy].groups += h % c->group == 0;
        c->reader_members[reader] = member;
        c->reader_heads[reader] = h;
        c->reader_copies[reader] = (int32_t)copy;
        c->reader_rows[reader] = first_row(g, c->site, c->layer, h / c->group);
    }
}

/* NULL where no member needs one, or memory has run out, which the graph remembers. */
static qkv_head_copies *find_copies(qkv_graph *g, qkv_site site, int32_t il) {
    const qkv_hparams *hp = &g->model->hp;
    int is_split = 0;
    if (!qkv_graph_edits(g, site, il)) return NULL;
    for (int64_t b = 0; b < g->n_batch; b++)
        is_split |= splits_group(hp, &(place){g->members[b].variant, site, il, 1});
    qkv_head_copies *c = qkv_calloc(1, sizeof *c);
    if (!c || !QKV_PUSH(g->copies, g->copies_capacity, g->n_copies, c)) {
        free(c);
        g->out_of_memory = 1;
        return NULL;
    }
    c->site = site;
    c->layer = il;
    c->n_heads = counted_heads(hp, site, il, is_split);
    c->group = group_of(hp, site, il, c->n_heads);
    if (!allocate_lists(c, (size_t)(g->n_batch * c->n_heads))) {
        g->out_of_memory = 1;
        return NULL;
    }
    for (int64_t b = 0; b < g->n_batch; b++) list_member(g, c, (int32_t)b);
    return c;
}

int64_t qkv_graph_n_copies(const qkv_graph *g) {
    int64_t n = 0;
    for (size_t i = 0; i < g->n_copies; i++) n += g->copies[i]->n;
    return n;
}

const float *qkv_head_copy(const qkv_head_copies *copies, int64_t member, int32_t head) {
    for (int64_t i = 0; i < copies->n_readers; i++) {
        const struct ggml_tensor *x = copies->edited;
        if (copies->reader_members[i] == member && copies->reader_heads[i] == head)
            return (const float *)x->data + copies->reader_copies[i] * x->ne[0] * x->ne[1];
    }
    return NULL;
}

/* ---- what heads make of them ---- */

/* The weights of each reader's norm: [d, 1, n_readers] of [d, heads]. */
static void run_norm_weights(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_head_copies *c = data;
    const struct ggml_tensor *w = dst->src[0];
    for (int64_t i = ith; i < c->n_readers; i += nth)
        memcpy((float *)dst->data + i * dst->ne[0],
               (const char *)w->data + (size_t)(c->reader_heads[i] / c->group) * w->nb[1],
               (size_t)dst->ne[0] * sizeof(float));
}

static struct ggml_tensor *norm_weights(qkv_graph *g, qkv_head_copies *copies,
                                        struct ggml_tensor *w) {
    if (!w || w->ne[1] == 1) return w;
    struct ggml_tensor *own = ggml_custom_4d(g->ctx, GGML_TYPE_F32, w->ne[0], 1, copies->n_readers,
                                             1, &w, 1, run_norm_weights, GGML_N_TASKS_MAX, copies);
    ggml_set_name(own, w->name);
    return own;
}

/* RoPE where it comes before the norm: x [d, T, n_readers]. */
static struct ggml_tensor *turned_copies(qkv_graph *g, const qkv_head_copies *c,
                                         struct ggml_tensor *x) {
    struct ggml_tensor *heads = ggml_reshape_4d(g->ctx, x, x->ne[0], 1, x->ne[1], x->ne[2]);
    struct ggml_tensor *turned = qkv_rotate_before_norm(g, c->site, c->layer, heads);
    return turned == heads ? x : ggml_reshape_3d(g->ctx, turned, x->ne[0], x->ne[1], x->ne[2]);
}

/* What their readers make of the copies: [d, T, n_readers]. */
static struct ggml_tensor *project_copies(qkv_graph *g, qkv_head_copies *c, qkv_head_norm norm) {
    const int32_t il = c->layer;
    struct ggml_tensor *w = LAYER(g, il, QKV), *bias = LAYER(g, il, QKV_BIAS);
    if (!w) {
        const qkv_projection own = qkv_site_projection(c->site);
        w = g->model->layers[il].w[own.weight];
        bias = g->model->layers[il].w[own.bias];
        if (!w) w = LAYER(g, il, K); /* values are made as keys are */
    }
    const qkv_row_choice choice = {c->reader_copies, c->reader_rows, c->n_readers,
                                   rows_of_head(&g->model->hp, c->site, il)};
    g->row_owners = c->members;
    g->n_row_owners = c->n;
    struct ggml_tensor *x = qkv_attention_input(g, il, c->edited);
    x = qkv_rows_matmul(g, w, bias, x, &choice);
    g->row_owners = c->reader_members;
    g->n_row_owners = c->n_readers;
    x = qkv_norm(g, norm_weights(g, c, norm.weight), norm_weights(g, c, norm.bias),
                 turned_copies(g, c, x));
    if (!qkv_heads_are_normed_together(g->model, c->site, il)) x = qkv_clamped(g, x);
    g->row_owners = NULL;
    return x;
}

/* ---- where that goes ---- */

/* Heads [d, heads, T, B], and [d, T, n_readers] in the places of the readers. */
static void run_replace(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_head_copies *c = data;
    const struct ggml_tensor *heads = dst->src[0], *own = dst->src[1];
    const int64_t T = dst->ne[2], first = T * ith / nth, end = T * (ith + 1) / nth;
    const size_t row = (size_t)dst->ne[0] * sizeof(float);
    for (int64_t b = 0; b < dst->ne[3]; b++) {
        for (int64_t t = first; t < end; t++)
            memcpy(qkv_head_at(dst, 0, t, b), qkv_head_at(heads, 0, t, b),
                   (size_t)dst->ne[1] * row);
    }
    for (int64_t i = 0; i < c->n_readers; i++) {
        for (int64_t t = first; t < end; t++)
            memcpy(qkv_head_at(dst, c->reader_heads[i], t, c->reader_members[i]),
                   (const float *)own->data + (i * T + t) * dst->ne[0], row);
    }
}

static struct ggml_tensor *replace_heads(qkv_graph *g, qkv_head_copies *copies,
                                         struct ggml_tensor *heads, struct ggml_tensor *own) {
    if (heads->ne[1] != copies->n_heads) heads = qkv_split_groups(g, copies->layer, heads);
    if (!ggml_is_contiguous(heads)) heads = ggml_cont(g->ctx, heads);
    struct ggml_tensor *from[] = {heads, own};
    return ggml_custom_4d(g->ctx, GGML_TYPE_F32, heads->ne[0], heads->ne[1], heads->ne[2],
                          heads->ne[3], from, 2, run_replace, GGML_N_TASKS_MAX, copies);
}

/* The layer's input, and beside it the copies that some heads read instead. */
static void keep_input(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                       const qkv_head_copies *copies) {
    if (!qkv_graph_keeps(g, site, il)) return;
    qkv_graph_keep(g, site, il, x);
    if (!copies || g->out_of_memory) return;
    g->kept[g->n_kept - 1].copies = copies;
    ggml_set_output(copies->edited);
    ggml_build_forward_expand(g->cgraph, copies->edited);
}

struct ggml_tensor *qkv_head_inputs(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                                    struct ggml_tensor *heads, qkv_head_norm norm) {
    qkv_head_copies *copies = find_copies(g, site, il);
    if ((copies || qkv_graph_keeps(g, site, il)) && !ggml_is_contiguous(x))
        x = ggml_cont(g->ctx, x);
    if (copies) copies->edited = qkv_tap_copies(g, copies, x); // [D, T, n]
    keep_input(g, site, il, x, copies);
    return copies ? replace_heads(g, copies, heads, project_copies(g, copies, norm)) : heads;
}
