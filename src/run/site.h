/*
 * Sites: their shapes and which of them an edit can reach.
 */
#ifndef QKV_RUN_SITE_H
#define QKV_RUN_SITE_H

#include <stdint.h>

#include "model/model.h"
#include "qkv/plan.h"

typedef enum qkv_site_axes {
    QKV_AXES_FLAT,     /* [T][D]; of final_norm, no layer */
    QKV_AXES_QUERY,    /* [T][H][d]; of q_in [T][H][D] */
    QKV_AXES_KEYVALUE, /* [T][G][d], or [T][H][d] where a group was split; of k_in and v_in D */
    QKV_AXES_MAP,      /* [H][T][T] */
    QKV_AXES_VOCAB,    /* [T][V], no layer */
    QKV_AXES_NEURON    /* [T][F] */
} qkv_site_axes;

qkv_site_axes qkv_site_get_axes(qkv_site site);

int qkv_site_has_heads(qkv_site site);
/* Has the layer such a tensor of its own? One that uses another layer's keys and values has none of them. */
int qkv_site_is_in_layer(qkv_site site, const qkv_hparams *hp, int32_t il);
/* Heads of the site in a layer; 0 for sites without heads. The layer of sites without one is n_layer. */
int32_t qkv_site_n_heads(qkv_site site, const qkv_hparams *hp, int32_t il);
/* Length of the innermost axis there: d, the width of values, T, D, F or V. */
int64_t qkv_site_width(qkv_site site, const qkv_hparams *hp, int32_t il, int64_t n_tokens);

int qkv_site_is_layer_input(qkv_site site); /* resid_pre: all of the layer reads it */
/* q_in, k_in and v_in: heads read copies of one tensor, the layer's input. */
int qkv_site_is_input(qkv_site site);
int qkv_site_is_rotary(qkv_site site);  /* q and k, also turned: files may reorder their channels */
int qkv_site_is_cached(qkv_site site);  /* k_rot and v: a cache of keys and values holds them */
int qkv_site_is_masked(qkv_site site);  /* scores: the mask hides cells afterwards */
int qkv_site_is_weights(qkv_site site); /* pattern: 0 where the mask hides a cell */

/* Of an input of heads: where the layer's weights have what makes q, k or v of it (model/model.h). */
enum { QKV_NO_NORM = -1 };
typedef struct qkv_projection {
    qkv_site makes;
    int32_t weight, bias, norm;
} qkv_projection;
qkv_projection qkv_site_projection(qkv_site site);

/* The site whose tensor, in a run without edits, is that of every head; of most sites, the site. */
qkv_site qkv_site_unedited(qkv_site site);

/* Does the layer normalise its q (k, for k_in) over all heads together? Then what one head reads changes
 * the others too. */
int qkv_heads_are_normed_together(const qkv_model *model, qkv_site site, int32_t il);

/* Can a change at (site, layer) show at (seen, seen_layer)? The layer of sites without one is
 * n_layer. */
int qkv_site_reaches(const qkv_hparams *hp, qkv_site site, int32_t layer, qkv_site seen,
                     int32_t seen_layer);

/* Does a change of a token show in its key or value, in the same layer? */
int qkv_site_feeds_keys(qkv_site site);
/* Do channels stay apart from a site to one that depends on it? At the site itself, and from v to z. */
int qkv_site_keeps_channels(qkv_site site, qkv_site seen);

/* Is it after attention in its layer? Tokens do not meet there. */
int qkv_site_follows_attention(qkv_site site);

#endif
