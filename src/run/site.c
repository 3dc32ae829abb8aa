#include "run/site.h"

#include <string.h>

#define SITE_ENTRY(id, name, shape, what) {name, shape, what},
static const struct {
    const char *name, *shape, *what;
} sites[QKV_SITE_COUNT] = {QKV_SITE_LIST(SITE_ENTRY)};
#undef SITE_ENTRY

const char *qkv_site_name(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT ? sites[site].name : NULL;
}

const char *qkv_site_shape(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT ? sites[site].shape : NULL;
}

const char *qkv_site_description(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT ? sites[site].what : NULL;
}

int qkv_site_has_layer(qkv_site site) {
    return (unsigned)site < QKV_SITE_COUNT && site != QKV_SITE_LOGITS &&
           site != QKV_SITE_FINAL_NORM;
}

qkv_site qkv_site_by_name(const char *name) {
    for (int i = 0; name && i < QKV_SITE_COUNT; i++) {
        if (strcmp(sites[i].name, name) == 0) return (qkv_site)i;
    }
    return QKV_SITE_COUNT;
}

static const qkv_site_axes axes[QKV_SITE_COUNT] = {
    [QKV_SITE_RESID_PRE] = QKV_AXES_FLAT, [QKV_SITE_Q] = QKV_AXES_QUERY,
    [QKV_SITE_K] = QKV_AXES_KEYVALUE,     [QKV_SITE_V] = QKV_AXES_KEYVALUE,
    [QKV_SITE_Q_ROT] = QKV_AXES_QUERY,    [QKV_SITE_K_ROT] = QKV_AXES_KEYVALUE,
    [QKV_SITE_SCORES] = QKV_AXES_MAP,     [QKV_SITE_PATTERN] = QKV_AXES_MAP,
    [QKV_SITE_Z] = QKV_AXES_QUERY,        [QKV_SITE_ATTN_OUT] = QKV_AXES_FLAT,
    [QKV_SITE_MLP_OUT] = QKV_AXES_FLAT,   [QKV_SITE_RESID_POST] = QKV_AXES_FLAT,
    [QKV_SITE_LOGITS] = QKV_AXES_VOCAB,   [QKV_SITE_FINAL_NORM] = QKV_AXES_FLAT,
    [QKV_SITE_MLP_ACT] = QKV_AXES_NEURON, [QKV_SITE_Q_IN] = QKV_AXES_QUERY,
    [QKV_SITE_K_IN] = QKV_AXES_KEYVALUE,  [QKV_SITE_V_IN] = QKV_AXES_KEYVALUE,
};

qkv_site_axes qkv_site_get_axes(qkv_site site) {
    return axes[site];
}

int qkv_site_is_input(qkv_site site) {
    return site == QKV_SITE_Q_IN || site == QKV_SITE_K_IN || site == QKV_SITE_V_IN;
}

qkv_site qkv_site_unedited(qkv_site site) {
    return qkv_site_is_input(site) ? QKV_SITE_RESID_PRE : site;
}

int32_t qkv_site_n_heads(qkv_site site, const qkv_hparams *hp) {
    switch (axes[site]) {
    case QKV_AXES_QUERY:
    case QKV_AXES_MAP:
        return hp->n_head;
    case QKV_AXES_KEYVALUE:
        return hp->n_kv_head;
    default:
        return 0;
    }
}

int64_t qkv_site_width(qkv_site site, const qkv_hparams *hp, int64_t n_tokens) {
    if (qkv_site_is_input(site)) return hp->n_embd;
    switch (axes[site]) {
    case QKV_AXES_FLAT:
        return hp->n_embd;
    case QKV_AXES_MAP:
        return n_tokens;
    case QKV_AXES_VOCAB:
        return hp->n_vocab;
    case QKV_AXES_NEURON:
        return hp->n_ff;
    default:
        return hp->head_dim;
    }
}

/* What depends on a site inside its own layer, the site itself included. */
#define BIT(id) (1u << QKV_SITE_##id)
#define AFTER_ATTN_OUT (BIT(ATTN_OUT) | BIT(MLP_ACT) | BIT(MLP_OUT) | BIT(RESID_POST))
#define AFTER_Z (BIT(Z) | AFTER_ATTN_OUT)
#define AFTER_SCORES (BIT(SCORES) | BIT(PATTERN) | AFTER_Z)

#define AFTER_Q (BIT(Q) | BIT(Q_ROT) | AFTER_SCORES)
#define AFTER_K (BIT(K) | BIT(K_ROT) | AFTER_SCORES)
#define AFTER_V (BIT(V) | AFTER_Z)

static const unsigned reached_in_layer[QKV_SITE_COUNT] = {
    [QKV_SITE_RESID_PRE] =
        BIT(RESID_PRE) | BIT(Q_IN) | BIT(K_IN) | BIT(V_IN) | AFTER_Q | AFTER_K | AFTER_V,
    [QKV_SITE_Q_IN] = BIT(Q_IN) | AFTER_Q,
    [QKV_SITE_K_IN] = BIT(K_IN) | AFTER_K,
    [QKV_SITE_V_IN] = BIT(V_IN) | AFTER_V,
    [QKV_SITE_Q] = AFTER_Q,
    [QKV_SITE_K] = AFTER_K,
    [QKV_SITE_V] = AFTER_V,
    [QKV_SITE_Q_ROT] = BIT(Q_ROT) | AFTER_SCORES,
    [QKV_SITE_K_ROT] = BIT(K_ROT) | AFTER_SCORES,
    [QKV_SITE_SCORES] = AFTER_SCORES,
    [QKV_SITE_PATTERN] = BIT(PATTERN) | AFTER_Z,
    [QKV_SITE_Z] = AFTER_Z,
    [QKV_SITE_ATTN_OUT] = AFTER_ATTN_OUT,
    [QKV_SITE_MLP_ACT] = BIT(MLP_ACT) | BIT(MLP_OUT) | BIT(RESID_POST),
    [QKV_SITE_MLP_OUT] = BIT(MLP_OUT) | BIT(RESID_POST),
    [QKV_SITE_RESID_POST] = BIT(RESID_POST),
    [QKV_SITE_LOGITS] = BIT(LOGITS),
    [QKV_SITE_FINAL_NORM] = BIT(FINAL_NORM) | BIT(LOGITS),
};

int qkv_site_reaches(const qkv_hparams *hp, qkv_site site, int32_t layer, qkv_site seen,
                     int32_t seen_layer) {
    if (seen_layer != layer) return seen_layer > layer;
    /* Side by side with attention, the feed-forward depends on the layer's input alone. */
    const int in_mlp = seen == QKV_SITE_MLP_OUT || seen == QKV_SITE_MLP_ACT;
    if (hp->parallel && in_mlp && site != QKV_SITE_MLP_OUT && site != QKV_SITE_MLP_ACT)
        return site == QKV_SITE_RESID_PRE;
    return (reached_in_layer[site] >> seen & 1) != 0;
}

int qkv_site_follows_attention(qkv_site site) {
    return (reached_in_layer[QKV_SITE_ATTN_OUT] >> site & 1) != 0;
}

int qkv_heads_are_normed_together(const qkv_model *model, qkv_site site, int32_t il) {
    struct ggml_tensor *const *w = model->layers[il].w;
    const struct ggml_tensor *norm = site == QKV_SITE_Q_IN   ? w[QKV_LAYER_Q_NORM]
                                     : site == QKV_SITE_K_IN ? w[QKV_LAYER_K_NORM]
                                                             : NULL;
    return norm && norm->ne[0] != model->hp.head_dim;
}
