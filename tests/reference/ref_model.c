/* See ref_model.h. */
#include "reference/ref_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "gguf.h"
#include "reference/ref_other.h"

typedef struct source_file {
    struct gguf_context *gguf;
    struct ggml_context *tensors;
    char family[32];
    ref_model *model;
    int il; /* the layer being read */
} source_file;

static void give_up(const char *what, const char *name) {
    fprintf(stderr, "reference: %s: %s\n", name, what);
    abort();
}

static float *new_array(ref_model *m, size_t n) {
    float *array = calloc(n, sizeof *array);
    if (!array || m->n_memory == sizeof m->memory / sizeof *m->memory)
        give_up("too much for the reference", "model");
    m->memory[m->n_memory++] = array;
    return array;
}

/* ---- keys ---- */

static int64_t find_key(const source_file *f, const char *rest) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", f->family, rest);
    return gguf_find_key(f->gguf, name);
}

/* Of numbers for each layer, where those that lack a block have 0. */
static int largest(const source_file *f, int64_t id) {
    const int32_t *numbers = gguf_get_arr_data(f->gguf, id);
    int most = 0;
    for (size_t i = 0; i < gguf_get_arr_n(f->gguf, id); i++)
        if (numbers[i] > most) most = numbers[i];
    return most;
}

static int key_int(const source_file *f, const char *rest, int fallback) {
    const int64_t id = find_key(f, rest);
    if (id < 0) return fallback;
    return gguf_get_kv_type(f->gguf, id) == GGUF_TYPE_ARRAY ? largest(f, id)
                                                            : (int)gguf_get_val_u32(f->gguf, id);
}

/* Of a layer: an element of an array, or the one number for all. */
static int key_of_layer(const source_file *f, const char *rest, int fallback) {
    const int64_t id = find_key(f, rest);
    if (id < 0) return fallback;
    if (gguf_get_kv_type(f->gguf, id) != GGUF_TYPE_ARRAY) return (int)gguf_get_val_u32(f->gguf, id);
    const enum gguf_type type = gguf_get_arr_type(f->gguf, id);
    const void *data = gguf_get_arr_data(f->gguf, id);
    return type == GGUF_TYPE_BOOL ? ((const int8_t *)data)[f->il] : ((const int32_t *)data)[f->il];
}

static double key_double(const source_file *f, const char *rest, double fallback) {
    const int64_t id = find_key(f, rest);
    return id < 0 ? fallback : (double)gguf_get_val_f32(f->gguf, id);
}

static int key_flag(const source_file *f, const char *rest, int fallback) {
    const int64_t id = find_key(f, rest);
    return id < 0 ? fallback : gguf_get_val_bool(f->gguf, id);
}

/* ---- tensors ---- */

/* NULL when the file has no such tensor. */
static float *load(source_file *f, const char *name, size_t expected) {
    const struct ggml_tensor *t = ggml_get_tensor(f->tensors, name);
    if (!t) return NULL;
    const size_t n = (size_t)ggml_nelements(t);
    if (n != expected) give_up("unexpected size", name);
    float *array = new_array(f->model, n);
    if (t->type == GGML_TYPE_F32)
        memcpy(array, t->data, n * sizeof *array);
    else
        ggml_get_type_traits(t->type)->to_float(t->data, array, (int64_t)n);
    return array;
}

static float *load_in_layer(source_file *f, const char *name, const char *suffix, size_t expected) {
    char full[96];
    snprintf(full, sizeof full, "blk.%d.%s.%s", f->il, name, suffix);
    return load(f, full, expected);
}

static ref_linear load_linear(source_file *f, const char *name, int n, int rows, int cols) {
    const size_t outputs = (size_t)n * (size_t)rows;
    return (ref_linear){load_in_layer(f, name, "weight", outputs * (size_t)cols),
                        load_in_layer(f, name, "bias", outputs)};
}

static ref_linear need_linear(source_file *f, const char *name, int n, int rows, int cols) {
    const ref_linear l = load_linear(f, name, n, rows, cols);
    if (!l.w) give_up("missing", name);
    return l;
}

static ref_norm load_norm(source_file *f, const char *name, int n) {
    return (ref_norm){load_in_layer(f, name, "weight", (size_t)n),
                      load_in_layer(f, name, "bias", (size_t)n)};
}

static ref_norm ones(source_file *f, int n) {
    const ref_norm norm = {new_array(f->model, (size_t)n), NULL};
    for (int i = 0; i < n; i++) norm.weight[i] = 1;
    return norm;
}

static ref_norm bare_norm(source_file *f) {
    return ones(f, f->model->D);
}

static ref_norm need_norm(source_file *f, const char *name) {
    if (f->model->bare_norms) return bare_norm(f);
    const ref_norm norm = load_norm(f, name, f->model->D);
    if (!norm.weight) give_up("missing", name);
    return norm;
}

static ref_norm load_end_norm(source_file *f, const char *name) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return (ref_norm){load(f, weight, (size_t)f->model->D), load(f, bias, (size_t)f->model->D)};
}

/* ---- attention ---- */

/* Rows of q and k of the llama family lie in GGUF as pairs (2i, 2i+1) that turn together. Here
 * they are put back into the order of the published models: (i, i + d/2). */
static void unpair(const ref_model *m, float *rows, int n_head, int cols) {
    if (!rows) return;
    const size_t width = (size_t)cols;
    float *copy = malloc((size_t)m->d * width * sizeof *copy);
    if (!copy) give_up("out of memory", "model");
    for (int h = 0; h < n_head; h++) {
        float *head = rows + (size_t)h * (size_t)m->d * width;
        memcpy(copy, head, (size_t)m->d * width * sizeof *copy);
        for (int i = 0; i < m->d; i++) {
            const int from = i < m->d / 2 ? 2 * i : 2 * (i - m->d / 2) + 1;
            memcpy(head + (size_t)i * width, copy + (size_t)from * width, width * sizeof *copy);
        }
    }
    free(copy);
}

/* Rows [first, first + n) of a matrix with `cols` columns, and of its bias. */
static ref_linear rows_of(ref_linear whole, int first, int cols) {
    return (ref_linear){whole.w + (size_t)first * (size_t)cols, whole.b ? whole.b + first : NULL};
}

/* One matrix for all three: first every q, then every k, then every v. */
static int load_fused_heads(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    const int wide = m->H * m->d, narrow = m->G * m->d;
    const ref_linear all = load_linear(f, "attn_qkv", 1, wide + 2 * narrow, m->D);
    if (!all.w) return 0;
    l->q = rows_of(all, 0, m->D);
    l->k = rows_of(all, wide, m->D);
    l->v = rows_of(all, wide + narrow, m->D);
    return 1;
}

/* Of a matrix with q and a gate for each head: every other block of d rows. */
static ref_linear every_other(source_file *f, ref_linear both, int second) {
    const ref_model *m = f->model;
    const size_t block = (size_t)m->d * (size_t)m->D;
    ref_linear l = {new_array(f->model, (size_t)m->H * block), NULL};
    for (int h = 0; h < m->H; h++)
        memcpy(l.w + (size_t)h * block, both.w + (size_t)(2 * h + second) * block,
               block * sizeof *l.w);
    return l;
}

static void load_gated_heads(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    const ref_linear both = need_linear(f, "attn_q", 1, 2 * m->H * m->d, m->D);
    l->q = every_other(f, both, 0);
    l->q_gate = every_other(f, both, 1);
    l->k = need_linear(f, "attn_k", 1, m->G * m->d, m->D);
    l->v = need_linear(f, "attn_v", 1, m->G * m->d, m->D);
}

static void load_heads(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    if (m->family->gated_heads) {
        load_gated_heads(f, l);
        return;
    }
    l->q = need_linear(f, "attn_q", 1, m->H * m->d, m->D);
    if (l->kv_layer != f->il) return;
    l->k = need_linear(f, "attn_k", 1, m->G * m->d, m->D);
    l->v = load_linear(f, "attn_v", 1, m->G * m->d, m->D);
    if (!l->v.w && m->family->bare_values) l->v = l->k; /* values are made as keys are */
    if (!l->v.w) give_up("missing", "attn_v");
    if (m->family->pairs != REF_REORDERED) return;
    unpair(m, l->q.w, m->H, m->D);
    unpair(m, l->k.w, m->G, m->D);
    unpair(m, l->q.b, m->H, 1);
    unpair(m, l->k.b, m->G, 1);
}

static void load_attention(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    const int shared = m->family->head_norm == REF_SHARED_WEIGHTS;
    if (!load_fused_heads(f, l)) load_heads(f, l);
    l->q_norm = load_norm(f, "attn_q_norm", shared ? m->d : m->H * m->d);
    l->k_norm = load_norm(f, "attn_k_norm", shared ? m->d : m->G * m->d);
    l->sinks = load_in_layer(f, "attn_sinks", "weight", (size_t)m->H);
    l->o = need_linear(f, "attn_output", 1, m->D, m->H * m->d);
}

/* ---- mixers ---- */

static float *load_bare(source_file *f, const char *name, size_t expected) {
    char full[96];
    snprintf(full, sizeof full, "blk.%d.%s", f->il, name);
    return load(f, full, expected);
}

static void load_delta_net(source_file *f, ref_mixer *x) {
    const ref_model *m = f->model;
    const int channels = m->inner + 2 * m->groups * m->state, heads = m->state_heads;
    x->in = need_linear(f, "attn_qkv", 1, channels, m->D);
    x->gate = need_linear(f, "attn_gate", 1, m->inner, m->D);
    x->alpha = load_linear(f, "ssm_alpha", 1, heads, m->D);
    x->beta = load_linear(f, "ssm_beta", 1, heads, m->D);
    x->both = load_linear(f, "ssm_ba", 1, 2 * heads, m->D);
    x->conv = load_in_layer(f, "ssm_conv1d", "weight", (size_t)(channels * m->taps));
    x->decay = load_bare(f, "ssm_a", (size_t)heads);
    x->step_bias = load_in_layer(f, "ssm_dt", "bias", (size_t)heads);
    x->norm = load_in_layer(f, "ssm_norm", "weight", (size_t)(m->inner / heads));
    x->out = need_linear(f, "ssm_out", 1, m->D, m->inner);
}

static void load_short_conv(source_file *f, ref_mixer *x) {
    const ref_model *m = f->model;
    x->in = need_linear(f, "shortconv.in_proj", 1, 3 * m->D, m->D);
    x->conv = load_in_layer(f, "shortconv.conv", "weight", (size_t)(m->D * m->taps));
    x->out = need_linear(f, "shortconv.out_proj", 1, m->D, m->D);
}

static void load_mixer(source_file *f, ref_layer *l) {
    f->model->family->mixer == REF_SHORT_CONV ? load_short_conv(f, &l->mixer)
                                              : load_delta_net(f, &l->mixer);
}

/* ---- the block ---- */

/* Side by side the blocks may share a norm. Where attention has a second one (falcon), that is
 * its own, and the first is the feed-forward's. */
static void load_norms_before(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    const ref_norm none = {NULL, NULL}, second = load_norm(f, "attn_norm_2", m->D);
    const ref_norm first = m->family->bare_start && f->il == 0 ? none : need_norm(f, "attn_norm");
    l->attn_before = second.weight ? second : first;
    l->ffn_before = load_norm(f, m->family->ffn_before ? m->family->ffn_before : "ffn_norm", m->D);
    if (m->bare_norms) l->ffn_before = bare_norm(f);
    if (!l->ffn_before.weight && m->parallel) l->ffn_before = first;
    if (!l->ffn_before.weight) give_up("missing", "ffn_norm");
}

static void load_norms(source_file *f, ref_layer *l) {
    const ref_norm_place place = f->model->family->place;
    if (place == REF_BEFORE || place == REF_BEFORE_AND_AFTER) load_norms_before(f, l);
    if (place == REF_AFTER || place == REF_BEFORE_AND_AFTER) {
        l->attn_after = need_norm(f, "post_attention_norm");
        l->ffn_after = need_norm(f, "post_ffw_norm");
    }
    if (place == REF_ON_SUM) {
        l->attn_sum = need_norm(f, "attn_output_norm");
        l->ffn_sum = need_norm(f, "layer_output_norm");
    }
}

static void load_feed_forward(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    if (m->family->fused_gate) {
        l->gate = need_linear(f, "ffn_up", 1, 2 * m->F, m->D);
        l->up = rows_of(l->gate, m->F, m->D);
    } else {
        l->gate = load_linear(f, "ffn_gate", 1, m->F, m->D);
        l->up = need_linear(f, "ffn_up", 1, m->F, m->D);
    }
    l->down = need_linear(f, "ffn_down", 1, m->D, m->F);
}

static void load_experts(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    l->router = need_linear(f, "ffn_gate_inp", 1, m->n_expert, m->D);
    l->choice_bias = load_in_layer(f, "exp_probs_b", "bias", (size_t)m->n_expert);
    l->gate = need_linear(f, "ffn_gate_exps", m->n_expert, m->f, m->D);
    l->up = need_linear(f, "ffn_up_exps", m->n_expert, m->f, m->D);
    l->down = need_linear(f, "ffn_down_exps", m->n_expert, m->D, m->f);
    l->shared_router = load_linear(f, "ffn_gate_inp_shexp", 1, 1, m->D);
    l->shared_gate = load_linear(f, "ffn_gate_shexp", 1, m->n_shared, m->D);
    l->shared_up = load_linear(f, "ffn_up_shexp", 1, m->n_shared, m->D);
    l->shared_down = load_linear(f, "ffn_down_shexp", 1, m->D, m->n_shared);
}

static double softplus(double x) {
    return log1p(exp(x));
}

/* Number il of a list of floats; its name has no family before it. */
static double listed(const source_file *f, const char *name) {
    const int64_t id = gguf_find_key(f->gguf, name);
    if (id < 0) give_up("missing", name);
    return (double)((const float *)gguf_get_arr_data(f->gguf, id))[f->il];
}

static void read_xielu(const source_file *f, ref_layer *l) {
    l->xielu[2] = listed(f, "xielu.beta");
    l->xielu[0] = softplus(listed(f, "xielu.alpha_p"));
    l->xielu[1] = l->xielu[2] + softplus(listed(f, "xielu.alpha_n"));
    l->xielu[3] = listed(f, "xielu.eps");
}

/* Layers with a window may be listed. */
static int has_window(const source_file *f) {
    const int every = f->model->family->full_every;
    const int64_t id = find_key(f, "attention.sliding_window_pattern");
    if (id >= 0 && gguf_get_kv_type(f->gguf, id) == GGUF_TYPE_ARRAY)
        return ((const int8_t *)gguf_get_arr_data(f->gguf, id))[f->il];
    if (f->model->family->full_from && f->il % f->model->family->full_from == 0) return 0;
    return !every || (f->il + 1) % every != 0;
}

/* The first layers may have none, and of the others every n-th. */
static int has_experts(const source_file *f) {
    const int first = key_int(f, "leading_dense_block_count", 0);
    const int every = key_int(f, "interleave_moe_layer_step", 0);
    return f->model->n_expert && f->il >= first && (every == 0 || (f->il + 1) % every == 0);
}

static int has_block(const source_file *f, const char *name) {
    char full[96];
    snprintf(full, sizeof full, "blk.%d.%s.weight", f->il, name);
    return ggml_get_tensor(f->tensors, full) != NULL;
}

/* Which blocks there are, by their output matrices. */
static void find_blocks(source_file *f, ref_layer *l) {
    l->has_attention = has_block(f, "attn_output");
    l->has_mixer = has_block(f, "ssm_out") || has_block(f, "shortconv.out_proj");
    l->has_feed_forward = has_block(f, "ffn_down") || has_block(f, "ffn_down_exps");
}

/* How many keys layers with a window see; 0: none has one. */
static int window_width(const source_file *f) {
    const ref_family *family = f->model->family;
    if (family->chunked) return key_int(f, "attention.chunk_size", 8192);
    if (family->windows_in_layers && !key_flag(f, "attention.sliding_window_used",
                                               f->model->n_layer == family->windows_in_layers))
        return 0;
    return key_int(f, "attention.sliding_window", 0);
}

/* As the file says of each layer, or as the family has it. */
static int window_of(const source_file *f, int window) {
    if (!has_window(f)) return 0;
    return f->model->family->half_windows ? window / 2 + 1 : window;
}

/* The last layers may use the keys and values of the last one before them with a window, or without. */
static int kv_layer_of(source_file *f, int window) {
    const int own = f->il, n = f->model->n_layer - key_int(f, "attention.shared_kv_layers", 0);
    const int slides = window_of(f, window) > 0;
    if (own < n) return own;
    int from = own;
    for (f->il = 0; f->il < n; f->il++)
        if ((window_of(f, window) > 0) == slides) from = f->il;
    f->il = own;
    return from;
}

static void read_layer_shape(source_file *f, ref_layer *l, int window) {
    ref_model *m = f->model;
    ref_shape_of_layer *s = &l->shape;
    s->H = key_of_layer(f, "attention.head_count", 1);
    s->G = key_of_layer(f, "attention.head_count_kv", s->H);
    s->d = key_of_layer(f, "attention.key_length", m->D / s->H);
    s->turned = key_of_layer(f, "rope.dimension_count", s->d);
    if (window_of(f, window)) {
        s->d = key_of_layer(f, "attention.key_length_swa", s->d);
        s->turned = key_of_layer(f, "rope.dimension_count_swa", s->turned);
    }
    s->F = key_of_layer(f, "feed_forward_length", 0);
    l->kv_layer = kv_layer_of(f, window);
}

static void load_own(source_file *f, ref_layer *l) {
    const ref_model *m = f->model;
    l->scale = load_in_layer(f, "layer_output_scale", "weight", 1);
    if (!m->n_own) return;
    l->own_gate = need_linear(f, "inp_gate", 1, m->n_own, m->D);
    l->own_proj = need_linear(f, "proj", 1, m->D, m->n_own);
    l->own_norm = load_norm(f, "post_norm", m->D);
}

static void load_layer(source_file *f, int window) {
    ref_model *whole = f->model, own = ref_in_layer(whole, f->il), *m = &own;
    const ref_family *family = m->family;
    ref_layer *l = &m->layers[f->il];
    f->model = m;
    const int nth = f->il + 1;
    find_blocks(f, l);
    load_norms(f, l);
    if (l->has_attention) load_attention(f, l);
    if (l->has_mixer) load_mixer(f, l);
    has_experts(f) ? load_experts(f, l) : load_feed_forward(f, l);
    l->window = window_of(f, window);
    load_own(f, l);
    const int own_rope = family->local_base || family->unscaled_windows;
    l->rope = own_rope && l->window ? &whole->local_rope : &whole->rope;
    if (family->pairs == REF_NO_TURNING) l->rope = NULL;
    if (family->turned_in_windows && window && !l->window) l->rope = NULL;
    if (family->activation == REF_XIELU) read_xielu(f, l);
    if (family->unturned_every && nth % family->unturned_every == 0) l->rope = NULL;
    if (family->bare_head_norms && l->rope &&
        key_flag(f, "attention.head_norms", m->n_expert != 128))
        l->q_norm = l->k_norm = ones(f, m->d);
    whole->n_memory = m->n_memory;
    memcpy((void *)whole->memory, (void *)m->memory, sizeof m->memory);
    f->model = whole;
}

/* ---- the whole ---- */

/* The family's, unless the file names another. */
static ref_activation read_activation(const source_file *f, ref_activation usual) {
    const int64_t id = find_key(f, "hidden_activation");
    const char *name = id < 0 ? "" : gguf_get_val_str(f->gguf, id);
    if (strcmp(name, "silu") == 0) return REF_SILU;
    if (strcmp(name, "gelu") == 0) return REF_GELU_ERF;
    if (strcmp(name, "gelu_pytorch_tanh") == 0) return REF_GELU_TANH;
    if (strcmp(name, "relu") == 0) return REF_RELU;
    if (strcmp(name, "relu2") == 0) return REF_RELU_SQUARED;
    if (*name) give_up("unknown activation", name);
    return usual;
}

static int least(int a, int b) {
    if (!a || !b) return a ? a : b; /* 0 at first, and of layers that lack the block */
    return a < b ? a : b;
}

static void read_layer_shapes(source_file *f) {
    ref_model *m = f->model;
    m->layers = calloc((size_t)m->n_layer, sizeof *m->layers);
    if (!m->layers) give_up("out of memory", "model");
    for (f->il = 0; f->il < m->n_layer; f->il++) {
        ref_layer *l = &m->layers[f->il];
        read_layer_shape(f, l, window_width(f));
        m->H = least(m->H, l->shape.H);
        m->G = least(m->G, l->shape.G);
        m->d = least(m->d, l->shape.d);
        m->F = least(m->F, l->shape.F);
    }
    m->turned = key_int(f, "rope.dimension_count", m->layers[0].shape.turned);
    f->il = 0;
}

static void read_shape(source_file *f) {
    ref_model *m = f->model;
    m->n_layer = key_int(f, "block_count", 0);
    m->D = key_int(f, "embedding_length", 0);
    m->n_expert = key_int(f, "expert_count", 0);
    m->n_expert_used = key_int(f, "expert_used_count", 0);
    m->n_own = key_int(f, "embedding_length_per_layer_input", 0);
    read_layer_shapes(f);
    m->f = key_int(f, "expert_feed_forward_length", m->F);
    m->n_shared = key_int(f, "expert_shared_count", m->family->shares_input) * m->f;
    m->n_shared = key_int(f, "expert_shared_feed_forward_length", m->n_shared ? m->n_shared : m->F);
    m->n_group = key_int(f, "expert_group_count", 0);
    m->n_group_used = key_int(f, "expert_group_used_count", 0);
    m->jitter = key_double(f, "expert_jitter", 0.01);
    m->share_factor = key_double(f, "expert_weights_scale", 1);
    m->keeps_shares = !key_flag(f, "expert_weights_norm", !m->family->keeps_shares);
    m->taps = key_int(f, "ssm.conv_kernel", key_int(f, "shortconv.l_cache", 0));
    m->state = key_int(f, "ssm.state_size", 0);
    m->groups = key_int(f, "ssm.group_count", 0);
    m->state_heads = key_int(f, "ssm.time_step_rank", 0);
    m->inner = key_int(f, "ssm.inner_size", 0);
    m->bare_norms = !key_flag(f, "norm_weights", !m->family->bare_norms);
    m->activation = read_activation(f, m->family->activation);
    m->parallel = key_flag(f, "use_parallel_residual", m->family->parallel);
}

static void read_factors(source_file *f) {
    ref_model *m = f->model;
    const ref_family *family = m->family;
    m->norm_epsilon = key_double(f,
                                 family->norm == REF_LAYER ? "attention.layer_norm_epsilon"
                                                           : "attention.layer_norm_rms_epsilon",
                                 0);
    m->score_scale = key_double(f, "attention.scale", family->unscaled ? 1 : 1 / sqrt(m->d));
    m->score_cap = key_double(f, "attn_logit_softcapping", 0);
    m->last_slope = key_double(f, "attention.max_alibi_bias", family->last_slope);
    m->head_limit = key_double(f, "attention.clamp_kqv", 0);
    m->embedding_scale = key_double(f, "embedding_scale", family->sqrt_embedding ? sqrt(m->D) : 1);
    m->residual_scale = key_double(f, "residual_scale", 1);
    m->logit_scale = key_double(f, "logit_scale", 1);
    if (family->divides_logits) m->logit_scale = 1 / m->logit_scale;
    m->logit_cap = key_double(f, "final_logit_softcapping", 0);
}

static void read_rope(source_file *f) {
    ref_model *m = f->model;
    ref_rope *r = &m->rope;
    const size_t pairs = (size_t)m->turned / 2;
    const int64_t type = find_key(f, "rope.scaling.type");
    *r = (ref_rope){key_double(f, "rope.freq_base", 10000), .factor = 1, .size = 1};
    m->local_rope = *r;
    m->local_rope.base =
        key_double(f, "rope.freq_base_swa", m->family->unscaled_windows ? r->base : 10000);
    r->factor = key_double(f, "rope.scaling.factor", 1);
    r->context = key_int(f, "rope.scaling.original_context_length", 0);
    r->fast = key_double(f, "rope.scaling.yarn_beta_fast", 32);
    r->slow = key_double(f, "rope.scaling.yarn_beta_slow", 1);
    r->whole_pairs = key_flag(f, "rope.scaling.yarn_truncate", 1);
    r->yarn = type >= 0 && strcmp(gguf_get_val_str(f->gguf, type), "yarn") == 0;
    r->size = r->yarn ? 1 + 0.1 * log(r->factor) : key_double(f, "rope.scaling.attn_factor", 1);
    if (m->family->yarn_log)
        r->size /= 1 + 0.1 * key_double(f, "rope.scaling.yarn_log_multiplier", 0) * log(r->factor);
    const int always = m->family->tempers_unturned;
    m->temperature = key_double(f, "attention.temperature_scale", always ? 0.1 : 0);
    m->temperature_step = key_int(f, "attention.temperature_length", always ? 8192 : r->context);
    r->divisor = load(f, "rope_freqs.weight", pairs);
    if (!r->divisor) r->divisor = load(f, "rope_factors_short.weight", pairs);
    r->long_divisor = load(f, "rope_factors_long.weight", pairs);
}

static void read_ends(source_file *f) {
    ref_model *m = f->model;
    const struct ggml_tensor *embd = ggml_get_tensor(f->tensors, "token_embd.weight");
    const struct ggml_tensor *types = ggml_get_tensor(f->tensors, "token_types.weight");
    const size_t context = (size_t)key_int(f, "context_length", 0);
    if (!embd) give_up("missing", "token_embd.weight");
    m->V = (int)embd->ne[1];
    const size_t table = (size_t)m->V * (size_t)m->D;
    m->token_embd = load(f, "token_embd.weight", table);
    m->position_embd = load(f, "position_embd.weight", context * (size_t)m->D);
    if (types) m->token_type = load(f, "token_types.weight", (size_t)ggml_nelements(types));
    const int own = m->n_own * m->n_layer;
    m->own_embd = load(f, "per_layer_token_embd.weight", (size_t)m->V * (size_t)own);
    m->own_model_proj.w = load(f, "per_layer_model_proj.weight", (size_t)own * (size_t)m->D);
    m->own_model_norm.weight = load(f, "per_layer_proj_norm.weight", (size_t)m->n_own);
    const char *last = m->family->output_norm;
    if (!last) m->embd_norm = load_end_norm(f, "token_embd_norm");
    m->output_norm = m->bare_norms ? bare_norm(f) : load_end_norm(f, last ? last : "output_norm");
    if (m->family->encoder) return;
    if (!m->output_norm.weight) give_up("missing", "output_norm");
    m->output = (ref_linear){load(f, "output.weight", table), load(f, "output.bias", (size_t)m->V)};
    if (!m->output.w) m->output.w = m->token_embd;
}

static void read_model(source_file *f) {
    ref_model *m = f->model;
    m->family = ref_family_find(f->family);
    if (!m->family) give_up("unknown family", f->family);
    read_shape(f);
    read_factors(f);
    read_rope(f);
    read_ends(f);
    for (f->il = 0; f->il < m->n_layer; f->il++) load_layer(f, window_width(f));
}

ref_model ref_in_layer(const ref_model *m, int layer) {
    ref_model own = *m;
    const ref_shape_of_layer *s = &m->layers[layer].shape;
    own.H = s->H;
    own.G = s->G;
    own.d = s->d;
    own.turned = s->turned;
    own.F = s->F;
    return own;
}

ref_model *ref_model_load(const char *path) {
    source_file f = {.model = calloc(1, sizeof(ref_model))};
    const struct gguf_init_params params = {.no_alloc = false, .ctx = &f.tensors};
    f.gguf = gguf_init_from_file(path, params);
    if (!f.model || !f.gguf) give_up("cannot be read", path);
    const int64_t family = gguf_find_key(f.gguf, "general.architecture");
    if (family < 0) give_up("no architecture", path);
    snprintf(f.family, sizeof f.family, "%s", gguf_get_val_str(f.gguf, family));
    f.model->others = ref_others_new();
    read_model(&f);
    gguf_free(f.gguf);
    ggml_free(f.tensors);
    return f.model;
}

void ref_model_free(ref_model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->n_memory; i++) free(model->memory[i]);
    ref_others_free(model->others);
    free(model->layers);
    free(model);
}
