/*
 * What the families with gated delta-net layers have in common (Qwen 3 Next, Qwen 3.5).
 */
#ifndef QKV_MODEL_FAMILY_DELTA_NET_H
#define QKV_MODEL_FAMILY_DELTA_NET_H

#include "model/hf/hf.h"

/* Norms multiply by 1 + w, but for the one inside the mixer. */
#define QKV_DELTA_NET_NORMS                                                                        \
    {"input_layernorm", "attn_norm", &qkv_maker_plus_one},                                         \
        {"post_attention_layernorm", "post_attention_norm", &qkv_maker_plus_one},                  \
        {"self_attn.q_norm", "attn_q_norm", &qkv_maker_plus_one},                                  \
        {"self_attn.k_norm", "attn_k_norm", &qkv_maker_plus_one}, {                                \
        "linear_attn.norm", "ssm_norm", NULL                                                       \
    }

#define QKV_DELTA_NET_EXPERTS                                                                      \
    {"mlp.gate.weight", "ffn_gate_inp.weight", NULL},                                              \
        {"mlp.experts.#.gate_proj.weight", "ffn_gate_exps.weight", &qkv_maker_stack},              \
        {"mlp.experts.#.up_proj.weight", "ffn_up_exps.weight", &qkv_maker_stack},                  \
        {"mlp.experts.#.down_proj.weight", "ffn_down_exps.weight", &qkv_maker_stack},              \
        {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", &qkv_maker_first_rows},               \
        {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", &qkv_maker_second_rows},                \
        {"mlp.experts.down_proj", "ffn_down_exps.weight", NULL},                                   \
        {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight", NULL},                      \
        {"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight", NULL},                     \
        {"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight", NULL}, {                       \
        "mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight", NULL                        \
    }

/* Value heads are dealt out to the key heads: Qwen 3.5. */
#define QKV_DELTA_NET_DEALT                                                                        \
    {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight", &qkv_maker_dealt_values},                \
        {"linear_attn.in_proj_z.weight", "attn_gate.weight", &qkv_maker_dealt_heads},              \
        {"linear_attn.in_proj_a.weight", "ssm_alpha.weight", &qkv_maker_dealt_heads},              \
        {"linear_attn.in_proj_b.weight", "ssm_beta.weight", &qkv_maker_dealt_heads},               \
        {"linear_attn.conv1d.weight", "ssm_conv1d.weight", &qkv_maker_dealt_conv},                 \
        {"linear_attn.A_log", "=ssm_a", &qkv_maker_dealt_decay},                                   \
        {"linear_attn.dt_bias", "ssm_dt.bias", &qkv_maker_dealt_heads}, {                          \
        "linear_attn.out_proj.weight", "ssm_out.weight", &qkv_maker_dealt_columns                  \
    }

#define QKV_DELTA_NET_DEFAULTS                                                                      \
    "\"rms_norm_eps\": 1e-6, \"head_dim\": 256, \"partial_rotary_factor\": 0.25,"                   \
    " \"linear_conv_kernel_dim\": 4, \"linear_key_head_dim\": 128, \"linear_value_head_dim\": 128," \
    " \"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32"

/* qwen35.c */
extern const qkv_hf_name qkv_delta_net_model_names[];
extern const qkv_slot_override qkv_delta_net_overrides[];

/* A layer of the models with experts. */
#define QKV_HAS_DELTA_NET_EXPERTS                                                                  \
    (QKV_HAS(ATTN_NORM) | QKV_HAS_SPLIT_HEADS | QKV_HAS_HEAD_NORMS | QKV_HAS(O) |                  \
     QKV_HAS(FFN_NORM) | QKV_HAS_EXPERTS | QKV_HAS_SHARED_EXPERT | QKV_HAS(SHARED_ROUTER))

#define QKV_HAS_DELTA_NET                                                                          \
    (QKV_HAS_MIXER(QKV) | QKV_HAS_MIXER(GATE) | QKV_HAS_MIXER(CONV) | QKV_HAS_MIXER(DECAY) |       \
     QKV_HAS_MIXER(STEP_BIAS) | QKV_HAS_MIXER(NORM) | QKV_HAS_MIXER(OUT))

#endif
