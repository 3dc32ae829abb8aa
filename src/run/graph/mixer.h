/*
 * Linear mixers, which stand in place of attention or beside it. What a token takes from those before it
 * comes through a state of fixed size, and through a short convolution.
 *
 * A pass starts with empty states. In a step, states are those that the texts have left in caches
 * (kv_cache.h), and are left there again.
 */
#ifndef QKV_RUN_MIXER_H
#define QKV_RUN_MIXER_H

#include "run/graph/build.h"

#define MIXER(g, il, slot) ((g)->model->layers[il].mixer[QKV_MIXER_##slot])

/* What the mixer of the layer makes of its input x [D, T, B], before the output matrix: [inner, T, B]. */
struct ggml_tensor *qkv_mixer(qkv_graph *g, int32_t il, struct ggml_tensor *x);

/* The output matrix. */
struct ggml_tensor *qkv_mixer_output(qkv_graph *g, int32_t il, struct ggml_tensor *x);

/* causal_conv.c: every channel of x [C, T, B] with taps on the token and those before it, w [taps, C], and a
 * bias [C], which may be NULL. */
struct ggml_tensor *qkv_causal_conv(qkv_graph *g, int32_t il, struct ggml_tensor *w,
                                    struct ggml_tensor *bias, struct ggml_tensor *x);

/* Layout of a delta-net layer's inputs. */
typedef struct qkv_delta_inputs {
    struct ggml_tensor *qkv; /* [q, k, v] after the convolution: [C, T, B] */
    struct ggml_tensor *alpha,
        *beta; /* [h, T, B] each; beta NULL: both are in alpha, by key heads */
    struct ggml_tensor *decay, *bias; /* [h] each */
} qkv_delta_inputs;

/* delta_rule.c: what is read from the states, [inner, T, B]. */
struct ggml_tensor *qkv_delta_rule(qkv_graph *g, int32_t il, const qkv_delta_inputs *in);

/* Floats of a layer's states for one text: of the convolution, and of the heads. */
size_t qkv_conv_state_size(const qkv_hparams *hp);
size_t qkv_head_state_size(const qkv_hparams *hp);

#endif
