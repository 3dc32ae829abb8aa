/*
 * The pieces that the forward pass is made of: products, norms, activations; and the two blocks of
 * a layer. They add nodes to the graph and read from the model what they need.
 */
#ifndef QKV_RUN_BUILD_H
#define QKV_RUN_BUILD_H

#include "run/graph.h"
#include "run/product.h"

#define LAYER(g, il, slot) ((g)->model->layers[il].w[QKV_LAYER_##slot])
#define MODEL(g, slot) ((g)->model->w[QKV_MODEL_##slot])

/* A tensor that is filled in before the graph is computed. */
struct ggml_tensor *qkv_input(qkv_graph *g, enum ggml_type type, int64_t n0, int64_t n1,
                              int64_t n2);
/* The product with a weight, and a bias, which may be NULL. */
struct ggml_tensor *qkv_linear(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                               struct ggml_tensor *x);
/* The family's norm over the innermost axis; the input itself where there is no weight. */
struct ggml_tensor *qkv_norm(qkv_graph *g, struct ggml_tensor *w, struct ggml_tensor *bias,
                             struct ggml_tensor *x);
/* x times a factor; the input itself for 1. */
struct ggml_tensor *qkv_scaled(qkv_graph *g, struct ggml_tensor *x, float factor);
/* c tanh(x/c); the input itself for c = 0. */
struct ggml_tensor *qkv_softcap(qkv_graph *g, struct ggml_tensor *x, float c);
/* The inputs of a pass are the same for all its variants. */
struct ggml_tensor *qkv_for_each_variant(qkv_graph *g, struct ggml_tensor *x);

/* attention.c: the layer's input x as attention reads it, after the norm if there is one. */
struct ggml_tensor *qkv_attention_input(qkv_graph *g, int32_t il, struct ggml_tensor *x);
/* z [H·d, T, B] of the layer's input [D, T, B]. NULL where the pass ends with the maps. */
struct ggml_tensor *qkv_attention(qkv_graph *g, int32_t il, struct ggml_tensor *x);
/* feed_forward.c: of the normalised input [D, T, B]; plain, gated, or experts. */
struct ggml_tensor *qkv_feed_forward(qkv_graph *g, int32_t il, struct ggml_tensor *x);

#endif
