/*
 * Embeddings that layers have of their own.
 *
 * A second matrix has a short embedding of each token for each layer. It is joined with a projection of the
 * token's usual embedding, and at its layer's end it opens a gate, whose result is projected back to the
 * width of the residual stream and added. It depends on the tokens alone: passes that start in the middle of
 * the network compute it again.
 */
#include <math.h>

#include "run/graph/build.h"

struct ggml_tensor *qkv_token_embeddings(qkv_graph *g) {
    const int64_t texts = g->step ? g->step->n_texts : 1;
    if (g->embedded) return g->embedded;
    g->in_tokens = qkv_input(g, GGML_TYPE_I32, g->n_tokens * texts, 1, 1);
    struct ggml_tensor *x = ggml_get_rows(g->ctx, MODEL(g, TOKEN_EMBD), g->in_tokens);
    x = ggml_reshape_3d(g->ctx, x, x->ne[0], g->n_tokens, texts);
    return g->embedded = qkv_scaled(g, x, g->model->hp.embedding_scale);
}

/* Those of all layers, [p, n_layer, T, texts]. */
static struct ggml_tensor *all_layers(qkv_graph *g) {
    const qkv_hparams *hp = &g->model->hp;
    const int64_t p = hp->n_embd_own, L = hp->n_layer;
    if (g->own_embeddings) return g->own_embeddings;
    struct ggml_tensor *x = qkv_token_embeddings(g);
    struct ggml_tensor *own = ggml_get_rows(g->ctx, MODEL(g, OWN_EMBD), g->in_tokens);
    own = ggml_scale(g->ctx, own, sqrtf((float)p));
    own = ggml_reshape_4d(g->ctx, own, p, L, x->ne[1], x->ne[2]);
    struct ggml_tensor *usual = qkv_linear(g, MODEL(g, OWN_MODEL_PROJ), NULL, x);
    usual = ggml_scale(g->ctx, usual, 1 / sqrtf((float)hp->n_embd));
    usual = ggml_reshape_4d(g->ctx, usual, p, L, x->ne[1], x->ne[2]);
    usual = qkv_norm(g, MODEL(g, OWN_MODEL_NORM), NULL, usual);
    g->own_embeddings = ggml_scale(g->ctx, ggml_add(g->ctx, usual, own), 1 / sqrtf(2));
    return g->own_embeddings;
}

/* Those of a layer for every member of the batch: those that join a step later have the first one's text. */
static struct ggml_tensor *of_layer(qkv_graph *g, int32_t il) {
    struct ggml_tensor *all = all_layers(g);
    struct ggml_tensor *x = ggml_view_3d(g->ctx, all, all->ne[0], all->ne[2], all->ne[3],
                                         all->nb[2], all->nb[3], (size_t)il * all->nb[1]);
    x = ggml_cont(g->ctx, x); // [p, T, texts]
    if (!g->step) {
        x = qkv_for_each_variant(g, x);
        return ggml_reshape_3d(g->ctx, x, all->ne[0], g->n_tokens, g->n_batch);
    }
    if (x->ne[2] == g->n_batch) return x;
    struct ggml_tensor *first =
        ggml_view_3d(g->ctx, x, x->ne[0], x->ne[1], 1, x->nb[1], x->nb[2], 0);
    first = ggml_repeat_4d(g->ctx, first, x->ne[0], x->ne[1], g->n_batch - x->ne[2], 1);
    return ggml_concat(g->ctx, x, first, 2);
}

struct ggml_tensor *qkv_own_embedding(qkv_graph *g, int32_t il, struct ggml_tensor *x) {
    struct ggml_tensor *own = of_layer(g, il);
    if (x->ne[1] != own->ne[1]) own = qkv_wanted_rows(g, own);
    struct ggml_tensor *gate = qkv_activated(g, il, qkv_linear(g, LAYER(g, il, OWN_GATE), NULL, x));
    gate = ggml_mul(g->ctx, gate, own);
    return qkv_norm(g, LAYER(g, il, OWN_NORM), NULL,
                    qkv_linear(g, LAYER(g, il, OWN_PROJ), NULL, gate));
}
