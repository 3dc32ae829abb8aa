#include "run/site.h"
#include "run/run.h"

#include <string.h>

/* ---- the table ---- */

enum {
    HAS_LAYER = 1 << 0,
    LAYER_INPUT = 1 << 1, /* all of the layer reads it */
    HEAD_INPUT = 1 << 2,  /* heads read copies of the layer's input */
    ROTARY = 1 << 3,      /* channels are in the order that RoPE wants them in */
    CACHED = 1 << 4,      /* a cache of keys and values holds it */
    MASKED = 1 << 5,      /* the mask hides cells of it afterwards */
    WEIGHTS = 1 << 6,     /* weights of attention: 0 where the mask hides a cell */
    IN_MLP = 1 << 7,
    OF_VALUES = 1 << 8 /* channels are those of values */
};

/* What depends on a site inside its own layer, the site itself included. */
#define BIT(id) (1u << QKV_SITE_##id)
#define AFTER_MLP_OUT (BIT(MLP_OUT) | BIT(RESID_POST))
#define AFTER_ATTN_OUT (BIT(ATTN_OUT) | BIT(MLP_ACT) | AFTER_MLP_OUT)
#define AFTER_Z (BIT(Z) | AFTER_ATTN_OUT)
#define AFTER_SCORES (BIT(SCORES) | BIT(PATTERN) | AFTER_Z)
#define AFTER_Q (BIT(Q) | BIT(Q_ROT) | AFTER_SCORES)
#define AFTER_K (BIT(K) | BIT(K_ROT) | AFTER_SCORES)
#define AFTER_V (BIT(V) | AFTER_Z)
#define AFTER_INPUT                                                                                \
    (BIT(RESID_PRE) | BIT(Q_IN) | BIT(K_IN) | BIT(V_IN) | AFTER_Q | AFTER_K | AFTER_V)

/* X(enumerator, axes, flags, what it reaches in its layer) */
#define COLUMN_LIST(X)                                                                             \
    X(RESID_PRE, FLAT, HAS_LAYER | LAYER_INPUT, AFTER_INPUT)                                       \
    X(Q, QUERY, HAS_LAYER | ROTARY, AFTER_Q)                                                       \
    X(K, KEYVALUE, HAS_LAYER | ROTARY, AFTER_K)                                                    \
    X(V, KEYVALUE, HAS_LAYER | CACHED | OF_VALUES, AFTER_V)                                        \
    X(Q_ROT, QUERY, HAS_LAYER | ROTARY, BIT(Q_ROT) | AFTER_SCORES)                                 \
    X(K_ROT, KEYVALUE, HAS_LAYER | ROTARY | CACHED, BIT(K_ROT) | AFTER_SCORES)                     \
    X(SCORES, MAP, HAS_LAYER | MASKED, AFTER_SCORES)                                               \
    X(PATTERN, MAP, HAS_LAYER | WEIGHTS, BIT(PATTERN) | AFTER_Z)                                   \
    X(Z, QUERY, HAS_LAYER | OF_VALUES, AFTER_Z)                                                    \
    X(ATTN_OUT, FLAT, HAS_LAYER, AFTER_ATTN_OUT)                                                   \
    X(MLP_OUT, FLAT, HAS_LAYER | IN_MLP, AFTER_MLP_OUT)                                            \
    X(RESID_POST, FLAT, HAS_LAYER, BIT(RESID_POST))                                                \
    X(LOGITS, VOCAB, 0, BIT(LOGITS))                                                               \
    X(FINAL_NORM, FLAT, 0, BIT(FINAL_NORM) | BIT(LOGITS))                                          \
    X(MLP_ACT, NEURON, HAS_LAYER | IN_MLP, BIT(MLP_ACT) | AFTER_MLP_OUT)                           \
    X(Q_IN, QUERY, HAS_LAYER | HEAD_INPUT, BIT(Q_IN) | AFTER_Q)                                    \
    X(K_IN, KEYVALUE, HAS_LAYER | HEAD_INPUT, BIT(K_IN) | AFTER_K)                                 \
    X(V_IN, KEYVALUE, HAS_LAYER | HEAD_INPUT, BIT(V_IN) | AFTER_V)

#define COLUMN_ENTRY(id, axes, flags, reaches) [QKV_SITE_##id] = {QKV_AXES_##axes, flags, reaches},
#define COLUMN_NUMBER(id, axes, flags, reaches) COLUMN_##id,
enum { COLUMN_LIST(COLUMN_NUMBER) COLUMN_COUNT };
static const struct {
    qkv_site_axes axes;
    unsigned flags, reaches;
} columns[QKV_SITE_COUNT] = {COLUMN_LIST(COLUMN_ENTRY)};
_Static_assert((int)COLUMN_COUNT == (int)QKV_SITE_COUNT, "every site has its line");

#define SITE_ENTRY(id, name, shape, what) {name, shape, what},
static const struct {
    const char *name, *shape, *what;
} sites[QKV_SITE_COUNT] = {QKV_SITE_LIST(SITE_ENTRY)};

/* The weights that make q, k or v of what heads read. */
static const qkv_projection projections[QKV_SITE_COUNT] = {
    [QKV_SITE_Q_IN] = {QKV_SITE_Q, QKV_LAYER_Q, QKV_LAYER_Q_BIAS, QKV_LAYER_Q_NORM},
    [QKV_SITE_K_IN] = {QKV_SITE_K, QKV_LAYER_K, QKV_LAYER_K_BIAS, QKV_LAYER_K_NORM},
    [QKV_SITE_V_IN] = {QKV_SITE_V, QKV_LAYER_V, QKV_LAYER_V_BIAS, QKV_LAYER_V_NORM}};

/* ---- questions ---- */

const char *qkv_site_name(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT ? sites[site].name : NULL;
}

const char *qkv_site_shape(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT ? sites[site].shape : NULL;
}

const char *qkv_site_description(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT ? sites[site].what : NULL;
}

qkv_site qkv_site_by_name(const char *name) {
    for (int i = 0; name && i < QKV_SITE_COUNT; i++) {
        if (strcmp(sites[i].name, name) == 0) return (qkv_site)i;
    }
    return QKV_SITE_COUNT;
}

static int has(qkv_site site, unsigned flag) {
    return (columns[site].flags & flag) != 0;
}

int qkv_site_has_layer(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT && has(site, HAS_LAYER);
}

int qkv_site_is_layer_input(qkv_site site) {
    return has(site, LAYER_INPUT);
}

int qkv_site_is_input(qkv_site site) {
    return has(site, HEAD_INPUT);
}

int qkv_site_is_rotary(qkv_site site) {
    return has(site, ROTARY);
}

int qkv_site_is_cached(qkv_site site) {
    return has(site, CACHED);
}

int qkv_site_is_masked(qkv_site site) {
    return has(site, MASKED);
}

int qkv_site_is_weights(qkv_site site) {
    return has(site, WEIGHTS);
}

qkv_site_axes qkv_site_get_axes(qkv_site site) {
    return columns[site].axes;
}

qkv_site qkv_site_unedited(qkv_site site) {
    return qkv_site_is_input(site) ? QKV_SITE_RESID_PRE : site;
}

qkv_projection qkv_site_projection(qkv_site site) {
    return projections[site];
}

int qkv_site_has_heads(qkv_site site) {
    const qkv_site_axes axes = columns[site].axes;
    return axes == QKV_AXES_QUERY || axes == QKV_AXES_MAP || axes == QKV_AXES_KEYVALUE;
}

int qkv_site_is_in_layer(qkv_site site, const qkv_hparams *hp, int32_t il) {
    if (columns[site].axes != QKV_AXES_KEYVALUE) return 1;
    return qkv_layer_shape_of(hp, il)->kv_layer == il;
}

int32_t qkv_site_n_heads(qkv_site site, const qkv_hparams *hp, int32_t il) {
    const qkv_layer_shape *shape = qkv_layer_shape_of(hp, il);
    switch (columns[site].axes) {
    case QKV_AXES_QUERY:
    case QKV_AXES_MAP:
        return shape->n_head;
    case QKV_AXES_KEYVALUE:
        return shape->n_kv_head;
    default:
        return 0;
    }
}

int64_t qkv_site_width(qkv_site site, const qkv_hparams *hp, int32_t il, int64_t n_tokens) {
    const qkv_layer_shape *shape = qkv_layer_shape_of(hp, il);
    if (qkv_site_is_input(site)) return hp->n_embd;
    switch (columns[site].axes) {
    case QKV_AXES_FLAT:
        return hp->n_embd;
    case QKV_AXES_MAP:
        return n_tokens;
    case QKV_AXES_VOCAB:
        return hp->n_vocab;
    case QKV_AXES_NEURON:
        return shape->n_ff;
    default:
        return has(site, OF_VALUES) ? shape->value_dim : shape->head_dim;
    }
}

/* ---- what a change reaches ---- */

int qkv_site_reaches(const qkv_hparams *hp, qkv_site site, int32_t layer, qkv_site seen,
                     int32_t seen_layer) {
    if (seen_layer != layer) return seen_layer > layer;
    /* Side by side with attention, the feed-forward depends on the layer's input alone. */
    if (hp->parallel && has(seen, IN_MLP) && !has(site, IN_MLP)) return has(site, LAYER_INPUT);
    return (columns[site].reaches >> seen & 1) != 0;
}

int qkv_site_follows_attention(qkv_site site) {
    return (AFTER_ATTN_OUT >> site & 1) != 0;
}

int qkv_site_feeds_keys(qkv_site site) {
    return (columns[site].reaches & (BIT(K_ROT) | BIT(V))) != 0;
}

int qkv_site_keeps_channels(qkv_site site, qkv_site seen) {
    return site == seen || (BIT(V) >> site & BIT(Z) >> seen & 1) != 0;
}

int qkv_heads_are_normed_together(const qkv_model *model, qkv_site site, int32_t il) {
    const int32_t slot = qkv_site_is_input(site) ? projections[site].norm : QKV_NO_NORM;
    const struct ggml_tensor *norm = slot == QKV_NO_NORM ? NULL : model->layers[il].w[slot];
    return norm && norm->ne[0] != qkv_site_width(projections[site].makes, &model->hp, il, 0);
}
