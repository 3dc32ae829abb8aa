/*
 * Architecture families, described by data.
 *
 * A family says which tensors a model of it has and how its block is put together; the forward pass
 * (run/graph/forward.c) reads these fields, or asks whether a weight is there, and never which family it
 * is. Adding a family is one file with a const qkv_family and one line in QKV_FAMILY_LIST.
 *
 * Letters in shapes: D width, H query heads, G key/value heads, d head width, Q = H*d, K = G*d, U and Z
 * the same of values (G and H times their width), S = Q + K + U (fused projection), B = 2Q (queries and
 * their gates), F feed-forward, W = 2F (gate and up in one), E experts, f feed-forward of one expert,
 * s that of the shared one, V vocabulary, C context, R = rotated pairs, p a layer's own embedding, P = p times
 * the number of layers, v the width of values, 1 one, * any.
 * Of linear mixers: c taps of the convolution, x its channels, i inner width, h heads of the state (value
 * heads), w = i/h width of a head, b = 2h, t = 3D.
 */
#ifndef QKV_MODEL_FAMILY_FAMILY_H
#define QKV_MODEL_FAMILY_FAMILY_H

#include <stdint.h>

/* X(slot, name in the file, shape innermost first). Names of layer tensors are prefixed with
 * blk.N. */
#define QKV_LAYER_WEIGHT_LIST(X)                                                                   \
    X(ATTN_NORM, "attn_norm.weight", "D")                                                          \
    X(ATTN_NORM_BIAS, "attn_norm.bias", "D")                                                       \
    X(ATTN_NORM_2, "attn_norm_2.weight", "D")                                                      \
    X(ATTN_NORM_2_BIAS, "attn_norm_2.bias", "D")                                                   \
    X(QKV, "attn_qkv.weight", "DS")                                                                \
    X(QKV_BIAS, "attn_qkv.bias", "S")                                                              \
    X(Q, "attn_q.weight", "DQ")                                                                    \
    X(Q_BIAS, "attn_q.bias", "Q")                                                                  \
    X(K, "attn_k.weight", "DK")                                                                    \
    X(K_BIAS, "attn_k.bias", "K")                                                                  \
    X(V, "attn_v.weight", "DU")                                                                    \
    X(V_BIAS, "attn_v.bias", "U")                                                                  \
    X(Q_NORM, "attn_q_norm.weight", "d")                                                           \
    X(Q_NORM_BIAS, "attn_q_norm.bias", "d")                                                        \
    X(K_NORM, "attn_k_norm.weight", "d")                                                           \
    X(K_NORM_BIAS, "attn_k_norm.bias", "d")                                                        \
    X(SINKS, "attn_sinks.weight", "H")                                                             \
    X(O, "attn_output.weight", "ZD")                                                               \
    X(O_BIAS, "attn_output.bias", "D")                                                             \
    X(POST_ATTN_NORM, "post_attention_norm.weight", "D")                                           \
    X(ATTN_OUT_NORM, "attn_output_norm.weight", "D")                                               \
    X(ATTN_OUT_NORM_BIAS, "attn_output_norm.bias", "D")                                            \
    X(FFN_NORM, "ffn_norm.weight", "D")                                                            \
    X(FFN_NORM_BIAS, "ffn_norm.bias", "D")                                                         \
    X(GATE, "ffn_gate.weight", "DF")                                                               \
    X(GATE_BIAS, "ffn_gate.bias", "F")                                                             \
    X(UP, "ffn_up.weight", "DF")                                                                   \
    X(UP_BIAS, "ffn_up.bias", "F")                                                                 \
    X(DOWN, "ffn_down.weight", "FD")                                                               \
    X(DOWN_BIAS, "ffn_down.bias", "D")                                                             \
    X(ROUTER, "ffn_gate_inp.weight", "DE")                                                         \
    X(ROUTER_BIAS, "ffn_gate_inp.bias", "E")                                                       \
    X(CHOICE_BIAS, "exp_probs_b.bias", "E")                                                        \
    X(GATE_EXPERTS, "ffn_gate_exps.weight", "DfE")                                                 \
    X(GATE_EXPERTS_BIAS, "ffn_gate_exps.bias", "fE")                                               \
    X(UP_EXPERTS, "ffn_up_exps.weight", "DfE")                                                     \
    X(UP_EXPERTS_BIAS, "ffn_up_exps.bias", "fE")                                                   \
    X(DOWN_EXPERTS, "ffn_down_exps.weight", "fDE")                                                 \
    X(DOWN_EXPERTS_BIAS, "ffn_down_exps.bias", "DE")                                               \
    X(SHARED_ROUTER, "ffn_gate_inp_shexp.weight", "D")                                             \
    X(SHARED_GATE, "ffn_gate_shexp.weight", "Ds")                                                  \
    X(SHARED_UP, "ffn_up_shexp.weight", "Ds")                                                      \
    X(SHARED_DOWN, "ffn_down_shexp.weight", "sD")                                                  \
    X(POST_FFN_NORM, "post_ffw_norm.weight", "D")                                                  \
    X(LAYER_OUT_NORM, "layer_output_norm.weight", "D")                                             \
    X(LAYER_OUT_NORM_BIAS, "layer_output_norm.bias", "D")                                          \
    X(V_NORM, "attn_v_norm.weight", "v")                                                           \
    X(LAYER_SCALE, "layer_output_scale.weight", "1")                                               \
    X(OWN_GATE, "inp_gate.weight", "Dp")                                                           \
    X(OWN_PROJ, "proj.weight", "pD")                                                               \
    X(OWN_NORM, "post_norm.weight", "D")

/* The weights of linear mixers, which stand beside attention or in its place: a list, and sets, of their
 * own. A name may be that of a slot above: a layer has the one or the other. */
#define QKV_MIXER_WEIGHT_LIST(X)                                                                   \
    X(QKV, "attn_qkv.weight", "Dx")                                                                \
    X(GATE, "attn_gate.weight", "Di")                                                              \
    X(CONV, "ssm_conv1d.weight", "cx")                                                             \
    X(CONV_BIAS, "ssm_conv1d.bias", "x")                                                           \
    X(DECAY, "ssm_a", "h")                                                                         \
    X(STEP_BIAS, "ssm_dt.bias", "h")                                                               \
    X(ALPHA, "ssm_alpha.weight", "Dh")                                                             \
    X(BETA, "ssm_beta.weight", "Dh")                                                               \
    X(BETA_ALPHA, "ssm_ba.weight", "Db")                                                           \
    X(NORM, "ssm_norm.weight", "w")                                                                \
    X(OUT, "ssm_out.weight", "iD")                                                                 \
    X(SHORT_IN, "shortconv.in_proj.weight", "Dt")                                                  \
    X(SHORT_TAPS, "shortconv.conv.weight", "cx")                                                   \
    X(SHORT_OUT, "shortconv.out_proj.weight", "iD")

#define QKV_MODEL_WEIGHT_LIST(X)                                                                   \
    X(TOKEN_EMBD, "token_embd.weight", "DV")                                                       \
    X(POSITION_EMBD, "position_embd.weight", "DC")                                                 \
    X(TOKEN_TYPES, "token_types.weight", "D*")                                                     \
    X(EMBD_NORM, "token_embd_norm.weight", "D")                                                    \
    X(EMBD_NORM_BIAS, "token_embd_norm.bias", "D")                                                 \
    X(OUTPUT_NORM, "output_norm.weight", "D")                                                      \
    X(OUTPUT_NORM_BIAS, "output_norm.bias", "D")                                                   \
    X(OUTPUT, "output.weight", "DV")                                                               \
    X(OUTPUT_BIAS, "output.bias", "V")                                                             \
    X(ROPE_FREQS, "rope_freqs.weight", "R")                                                        \
    X(ROPE_LONG, "rope_factors_long.weight", "R")                                                  \
    X(ROPE_SHORT, "rope_factors_short.weight", "R")                                                \
    X(OWN_EMBD, "per_layer_token_embd.weight", "PV")                                               \
    X(OWN_MODEL_PROJ, "per_layer_model_proj.weight", "DP")                                         \
    X(OWN_MODEL_NORM, "per_layer_proj_norm.weight", "p")

#define QKV_WEIGHT_ENUM(slot, name, shape) QKV_LAYER_##slot,
enum qkv_layer_weight { QKV_LAYER_WEIGHT_LIST(QKV_WEIGHT_ENUM) QKV_LAYER_WEIGHT_COUNT };
#undef QKV_WEIGHT_ENUM
#define QKV_WEIGHT_ENUM(slot, name, shape) QKV_MIXER_##slot,
enum qkv_mixer_weight { QKV_MIXER_WEIGHT_LIST(QKV_WEIGHT_ENUM) QKV_MIXER_WEIGHT_COUNT };
#undef QKV_WEIGHT_ENUM
#define QKV_WEIGHT_ENUM(slot, name, shape) QKV_MODEL_##slot,
enum qkv_model_weight { QKV_MODEL_WEIGHT_LIST(QKV_WEIGHT_ENUM) QKV_MODEL_WEIGHT_COUNT };
#undef QKV_WEIGHT_ENUM

/* A set of slots: there are more than 64. */
__extension__ typedef unsigned __int128 qkv_slot_set;

#define QKV_HAS(slot) ((qkv_slot_set)1 << QKV_LAYER_##slot)
#define QKV_HAS_MODEL(slot) (UINT64_C(1) << QKV_MODEL_##slot)
#define QKV_HAS_MIXER(slot) (UINT32_C(1) << QKV_MIXER_##slot)

/* Sets that many families share. */
#define QKV_HAS_NORM_BIASES (QKV_HAS(ATTN_NORM_BIAS) | QKV_HAS(FFN_NORM_BIAS))
#define QKV_HAS_SPLIT_HEADS (QKV_HAS(Q) | QKV_HAS(K) | QKV_HAS(V))
#define QKV_HAS_HEAD_BIASES (QKV_HAS(Q_BIAS) | QKV_HAS(K_BIAS) | QKV_HAS(V_BIAS))
#define QKV_HAS_HEAD_NORMS (QKV_HAS(Q_NORM) | QKV_HAS(K_NORM))
#define QKV_HAS_GATED_MLP (QKV_HAS(GATE) | QKV_HAS(UP) | QKV_HAS(DOWN))
#define QKV_HAS_PLAIN_MLP (QKV_HAS(UP) | QKV_HAS(UP_BIAS) | QKV_HAS(DOWN) | QKV_HAS(DOWN_BIAS))
#define QKV_HAS_EXPERTS                                                                            \
    (QKV_HAS(ROUTER) | QKV_HAS(GATE_EXPERTS) | QKV_HAS(UP_EXPERTS) | QKV_HAS(DOWN_EXPERTS))
#define QKV_HAS_SHARED_EXPERT (QKV_HAS(SHARED_GATE) | QKV_HAS(SHARED_UP) | QKV_HAS(SHARED_DOWN))
/* What a layer without attention has none of, and one without a feed-forward. */
#define QKV_HAS_OF_ATTENTION                                                                       \
    (QKV_HAS(QKV) | QKV_HAS(QKV_BIAS) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_BIASES |                \
     QKV_HAS_HEAD_NORMS | QKV_HAS(SINKS) | QKV_HAS(O) | QKV_HAS(O_BIAS))
#define QKV_HAS_OF_MLP                                                                             \
    (QKV_HAS(FFN_NORM) | QKV_HAS(FFN_NORM_BIAS) | QKV_HAS_GATED_MLP | QKV_HAS_PLAIN_MLP |          \
     QKV_HAS(GATE_BIAS) | QKV_HAS_EXPERT_PARTS | QKV_HAS(POST_FFN_NORM))
/* All that a layer without experts lacks where others have them. */
#define QKV_HAS_EXPERT_PARTS                                                                       \
    (QKV_HAS_EXPERTS | QKV_HAS_SHARED_EXPERT | QKV_HAS(ROUTER_BIAS) | QKV_HAS(CHOICE_BIAS) |       \
     QKV_HAS(GATE_EXPERTS_BIAS) | QKV_HAS(UP_EXPERTS_BIAS) | QKV_HAS(DOWN_EXPERTS_BIAS) |          \
     QKV_HAS(SHARED_ROUTER))
/* What the layers of the llama kind consist of. */
#define QKV_HAS_LLAMA_LAYER                                                                        \
    (QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS(O) | QKV_HAS(FFN_NORM) | QKV_HAS_GATED_MLP)
#define QKV_HAS_MODEL_ENDS (QKV_HAS_MODEL(TOKEN_EMBD) | QKV_HAS_MODEL(OUTPUT_NORM))

/* Keys that change what a model computes. A file that sets one which its family does not list in
 * `keys` is refused: to ignore it would silently run another model. X(id, key without ARCH.) */
#define QKV_FAMILY_KEY_LIST(X)                                                                     \
    X(ATTN_SCALE, "attention.scale")                                                               \
    X(EMBEDDING_SCALE, "embedding_scale")                                                          \
    X(RESIDUAL_SCALE, "residual_scale")                                                            \
    X(LOGIT_SCALE, "logit_scale")                                                                  \
    X(ATTN_SOFTCAP, "attn_logit_softcapping")                                                      \
    X(LOGIT_SOFTCAP, "final_logit_softcapping")                                                    \
    X(PARALLEL, "use_parallel_residual")                                                           \
    X(EXPERTS, "expert_count")                                                                     \
    X(CLAMP, "attention.clamp_kqv")                                                                \
    X(ALIBI, "attention.max_alibi_bias")                                                           \
    X(MLA, "attention.key_length_mla")                                                             \
    X(TEMPERATURE, "attention.temperature_scale")                                                  \
    X(SHARED_EXPERTS, "expert_shared_count")                                                       \
    X(EXPERT_GROUPS, "expert_group_count")                                                         \
    X(EXPERT_SCALE, "expert_weights_scale")                                                        \
    X(EXPERT_GATING, "expert_gating_func")                                                         \
    X(DENSE_LAYERS, "leading_dense_block_count")                                                   \
    X(EXPERT_PERIOD, "interleave_moe_layer_step")                                                  \
    X(LATER_LAYERS, "nextn_predict_layers")                                                        \
    X(YARN_LOG, "rope.scaling.yarn_log_multiplier")                                                \
    X(LINEAR_BIASES, "linear_biases")                                                              \
    X(NORM_WEIGHTS, "norm_weights")                                                                \
    X(HEAD_NORMS, "attention.head_norms")                                                          \
    X(SHARED_KV, "attention.shared_kv_layers")                                                     \
    X(OWN_EMBEDDINGS, "embedding_length_per_layer_input")

#define QKV_KEY_ENUM(id, key) QKV_KEY_##id,
enum qkv_family_key { QKV_FAMILY_KEY_LIST(QKV_KEY_ENUM) QKV_KEY_COUNT };
#undef QKV_KEY_ENUM
#define QKV_READS(id) (UINT32_C(1) << QKV_KEY_##id)

typedef enum qkv_norm_kind { QKV_NORM_RMS, QKV_NORM_LAYER } qkv_norm_kind;
/* How a model knows the order of tokens: by turning queries and keys, by learned vectors that are added
 * to the embeddings, or by a bias of the scores (ALiBi). */
typedef enum qkv_position_kind {
    QKV_POSITION_ROPE,
    QKV_POSITION_LEARNED,
    QKV_POSITION_ALIBI
} qkv_position_kind;
typedef enum qkv_activation {
    QKV_ACT_SILU,
    QKV_ACT_GELU_TANH,
    QKV_ACT_GELU_ERF,
    QKV_ACT_RELU,
    QKV_ACT_RELU_SQUARED,
    QKV_ACT_XIELU,         /* with numbers of each layer's own: qkv_xielu */
    QKV_ACT_SWIGLU_CLAMPED /* (up + 1) gate sigmoid(1.702 gate), gate <= 7, -7 <= up <= 7 */
} qkv_activation;

/* What a router makes of its scores; see run/graph/router.c. */
typedef enum qkv_router_kind {
    QKV_ROUTER_SOFTMAX,
    QKV_ROUTER_SIGMOID,
    QKV_ROUTER_MIXER,
    QKV_ROUTER_COUNT
} qkv_router_kind;

/* Queries that come later in the text are multiplied by 1 + scale · ln(1 + floor((position + offset) / step)). */
typedef struct qkv_temperature {
    float scale; /* 0: they are not */
    int32_t step, offset;
} qkv_temperature;

typedef enum qkv_mlp_kind {
    QKV_MLP_PLAIN,
    QKV_MLP_GATED,
    QKV_MLP_GATED_FUSED /* gate and up are one matrix, gate first */
} qkv_mlp_kind;

/* What mixes tokens in layers that have no attention, or beside it: its state has one size, however long the
 * text is. */
typedef enum qkv_mixer_kind {
    QKV_MIXER_NONE,
    QKV_MIXER_DELTA,      /* gated delta rule; value heads share key heads in turn: h mod g */
    QKV_MIXER_DELTA_RUNS, /* the same; value heads that share a key head follow each other */
    QKV_MIXER_SHORT_CONV, /* a convolution between two gates: no state but its last inputs */
} qkv_mixer_kind;

/* Linear mixers: the same in all layers that have one. */
typedef struct qkv_mixer_shape {
    int32_t n_taps;   /* of the convolution: the token itself and those before it */
    int32_t state;    /* numbers of the state per channel of a head; width of a key head */
    int32_t n_groups; /* groups of heads that share what is written and read; key heads */
    int32_t n_heads;  /* of the state; value heads */
    int32_t inner;    /* channels of all heads */
} qkv_mixer_shape;

/* Which channels RoPE turns together: (2i, 2i+1), or (i, i + n/2). */
typedef enum qkv_rope_pairs { QKV_ROPE_ADJACENT, QKV_ROPE_HALVES } qkv_rope_pairs;

/* A slot that a family names or shapes otherwise than the lists above; NULL: as there. */
typedef struct qkv_slot_override {
    int slot; /* QKV_LAYER_* */
    const char *name, *shape;
} qkv_slot_override;

/* By the name that configurations and the key ARCH.hidden_activation have for it; -1: none. */
int qkv_activation_find(const char *name);
/* The usual name of one that has any. */
const char *qkv_activation_name(int activation);

struct qkv_hf;

typedef struct qkv_family {
    const char *name; /* general.architecture */
    qkv_norm_kind norm;
    qkv_position_kind position;
    qkv_rope_pairs rope_pairs;
    qkv_activation activation; /* unless the key hidden_activation names another */
    qkv_mlp_kind mlp;
    /* The file reorders the rows of W_q and W_k inside each head: channel 2i is the original i. */
    int qk_permuted;
    /* The feed-forward reads the layer's input, beside attention; the key use_parallel_residual
     * has the last word where the family reads it. */
    int parallel;
    int bidirectional; /* no causal mask, unless the key attention.causal says so */
    /* An encoder: its output is the final norm's, or without one the last layer's resid_post. */
    int has_no_logits;
    /* Where there is a window: every n-th layer sees everything; 0: no layer does. The first of them is
     * layer n - 1, or layer 0. */
    int window_period, full_layer_first;
    /* The file's number counts keys on both sides of a query, half of them on each. */
    int window_both_sides;
    int first_unnormed; /* the first layer's attention has no norm before it */
    /* Layers with a window turn by a base of their own, unscaled: rope.freq_base_swa, or this where the
     * file does not say it; 0: the base of the others. */
    int local_rope;
    float local_base;
    int proportional_rope;   /* the divisors of a file are those of pairs that do not turn */
    float alibi_exponent;    /* of the last slope, where the file does not say it (hparams.c) */
    int rope_skip_period;    /* every n-th layer does not turn at all; 0: all do */
    int unscaled;            /* scores are not, unless the file says a factor */
    int rope_in_windows;     /* where some layers have a window, the others do not turn */
    int norm_after_rope;     /* queries and keys are normalised after RoPE, and edited after that */
    int embedding_sqrt;      /* embeddings are multiplied by sqrt(D) */
    int logit_scale_divides; /* instead of multiplying */
    /* Instead of windows, layers see chunks of the text: a query sees the keys of its own chunk, up to itself. So
     * many keys to a chunk, where the key attention.chunk_size does not say it; 0: there are none. */
    int chunk;
    qkv_temperature temperature; /* of queries, where the file does not say it */
    int temperature_unturned;    /* in layers that do not turn alone */
    /* Norms of heads without weights, in layers that turn: unless the key attention.head_norms is false, or
     * there are so many experts and no key. */
    qkv_slot_set norms_without_weights;
    int experts_without_norm;
    /* A window counts in models of this many layers alone, as in llama.cpp, unless the key
     * attention.sliding_window_used says so; 0: in all. */
    int window_layers;
    int yarn_log_divides; /* the key yarn_log_multiplier m: q and k are divided by 1 + 0.1 m ln(factor) */
    /* Models of this many layers scale scores by 1/sqrt(D/H) instead of 1/sqrt(d). */
    int width_scaled_layers;
    /* The chosen experts keep their shares of a softmax over all, unless the key expert_weights_norm says
     * that they are brought to a sum of 1, as they are elsewhere. */
    int experts_keep_shares;
    qkv_router_kind
        router; /* unless the key expert_gating_func, where the family reads it, names another */
    int router_on_input; /* experts' inputs are multiplied by their shares, not their outputs */
    int groups_by_best;  /* groups of experts count as much as their best one, not their best two */
    /* Norms that files have no weights of: they are bound to ones. */
    qkv_slot_set layer_ones; /* sets of QKV_HAS(slot) */
    uint64_t model_ones;
    qkv_slot_set layer_required, layer_optional;
    qkv_slot_set sequential_required;        /* where the block is not parallel */
    uint64_t model_required, model_optional; /* sets of QKV_HAS_MODEL(slot) */
    uint32_t keys;                           /* set of QKV_READS(id) */
    /* Layers with tensors of a mixer have it, in place of attention or beside it. */
    qkv_mixer_kind mixer;
    uint32_t mixer_required, mixer_optional; /* sets of QKV_HAS_MIXER(slot) */
    const char *output_norm; /* what the final norm is called in files; NULL: as in the list */
    int attention_gate; /* W_q gives, per head, q and then a gate: z times its sigmoid goes into W_o */
    const qkv_slot_override *overrides; /* ended by a slot of -1, or NULL */
    const struct qkv_hf *hf;            /* its Hugging Face side (hf.h) */
} qkv_family;

/* X(identifier): the object is qkv_family_IDENTIFIER, in family_IDENTIFIER.c */
#define QKV_FAMILY_LIST(X)                                                                         \
    X(llama)                                                                                       \
    X(llama4)                                                                                      \
    X(gpt2)                                                                                        \
    X(qwen2)                                                                                       \
    X(qwen2moe)                                                                                    \
    X(qwen3)                                                                                       \
    X(qwen3moe)                                                                                    \
    X(gemma)                                                                                       \
    X(gemma2)                                                                                      \
    X(gemma3)                                                                                      \
    X(gemma4)                                                                                      \
    X(phi2)                                                                                        \
    X(phi3)                                                                                        \
    X(gptneox)                                                                                     \
    X(olmo)                                                                                        \
    X(olmo2)                                                                                       \
    X(olmoe)                                                                                       \
    X(starcoder)                                                                                   \
    X(starcoder2)                                                                                  \
    X(stablelm)                                                                                    \
    X(falcon)                                                                                      \
    X(granite)                                                                                     \
    X(granitemoe)                                                                                  \
    X(command_r)                                                                                   \
    X(cohere2)                                                                                     \
    X(smollm3)                                                                                     \
    X(gpt_oss)                                                                                     \
    X(seed_oss)                                                                                    \
    X(ernie4_5)                                                                                    \
    X(arcee)                                                                                       \
    X(glm4)                                                                                        \
    X(qwen3next)                                                                                   \
    X(qwen35)                                                                                      \
    X(qwen35moe)                                                                                   \
    X(lfm2)                                                                                        \
    X(gpt_neo)                                                                                     \
    X(gptj)                                                                                        \
    X(opt)                                                                                         \
    X(codegen)                                                                                     \
    X(persimmon)                                                                                   \
    X(bloom)                                                                                       \
    X(mpt)                                                                                         \
    X(glm4moe)                                                                                     \
    X(minimax_m2)                                                                                  \
    X(mistral3)                                                                                    \
    X(hunyuan_dense)                                                                               \
    X(apertus)                                                                                     \
    X(exaone4)                                                                                     \
    X(phimoe)                                                                                      \
    X(bert)                                                                                        \
    X(modern_bert)                                                                                 \
    X(eurobert)                                                                                    \
    X(nomic_bert)

#define QKV_FAMILY_DECLARE(id) extern const qkv_family qkv_family_##id;
QKV_FAMILY_LIST(QKV_FAMILY_DECLARE)
#undef QKV_FAMILY_DECLARE

/* NULL when there is none of that name. */
const qkv_family *qkv_family_find(const char *name);
/* The i-th family, NULL past the end. */
const qkv_family *qkv_family_get(int index);

/* What a slot is called in a file and what shape it has. */
typedef struct qkv_weight_slot {
    const char *name, *shape;
} qkv_weight_slot;

qkv_weight_slot qkv_family_layer_slot(const qkv_family *family, int slot);
qkv_weight_slot qkv_family_mixer_slot(int slot);
qkv_weight_slot qkv_family_model_slot(int slot);
/* What messages call a layer by its mixer: "a gated delta-net layer". */
const char *qkv_mixer_name(qkv_mixer_kind kind);
/* The key without "ARCH.". */
const char *qkv_family_key_name(int key);

#endif
