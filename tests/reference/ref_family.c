/* See ref_family.h. */
#include "reference/ref_family.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
static const ref_family table[] = {
    {"llama", REF_RMS, REF_BEFORE, REF_REORDERED, .activation = REF_SILU},
    {"granite", REF_RMS, REF_BEFORE, REF_REORDERED, .activation = REF_SILU, .divides_logits = 1},
    {"smollm3", REF_RMS, REF_BEFORE, REF_REORDERED, .activation = REF_SILU, .unturned_every = 4},
    {"qwen2", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU},
    {"qwen3", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU,
     .head_norm = REF_SHARED_WEIGHTS},
    {"qwen3moe", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU,
     .head_norm = REF_SHARED_WEIGHTS},
    {"phi3", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU, .fused_gate = 1},
    {"seed_oss", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU,
     .ffn_before = "post_attention_norm"},
    {"ernie4_5", REF_RMS, REF_BEFORE, REF_ADJACENT, .activation = REF_SILU},
    {"arcee", REF_RMS, REF_BEFORE, REF_REORDERED, .activation = REF_RELU_SQUARED},
    {"olmo", REF_LAYER, REF_BEFORE, REF_REORDERED, .activation = REF_SILU, .bare_norms = 1},
    {"olmoe", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU, .head_norm = REF_ALL_HEADS,
     .keeps_shares = 1},
    {"granitemoe", REF_RMS, REF_BEFORE, REF_REORDERED, .activation = REF_SILU, .divides_logits = 1},
    {"qwen2moe", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU, .keeps_shares = 1},
    {"glm4", REF_RMS, REF_BEFORE_AND_AFTER, REF_ADJACENT, .activation = REF_SILU, .fused_gate = 1},
    {"glm4moe", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU, .sigmoid_router = 1,
     .head_norm = REF_SHARED_WEIGHTS, .ffn_before = "post_attention_norm"},
    {"minimax-m2", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU, .sigmoid_router = 1,
     .head_norm = REF_ALL_HEADS},
    {"mistral3", REF_RMS, REF_BEFORE, REF_REORDERED, .activation = REF_SILU, .yarn_log = 1},
    {"hunyuan-dense", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU,
     .head_norm = REF_SHARED_WEIGHTS, .norm_after_turning = 1},
    {"apertus", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_XIELU,
     .head_norm = REF_SHARED_WEIGHTS},
    {"exaone4", REF_RMS, REF_AFTER, REF_HALVES, .activation = REF_SILU,
     .head_norm = REF_SHARED_WEIGHTS, .full_every = 4, .turned_in_windows = 1, .windows_in_layers = 64},
    {"phimoe", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_SILU, .mixes = 1},
    {"llama4", REF_RMS, REF_BEFORE, REF_ADJACENT, .activation = REF_SILU, .full_every = 4,
     .unturned_every = 4, .chunked = 1, .bare_head_norms = 1, .tempers_unturned = 1,
     .sigmoid_router = 1, .keeps_shares = 1, .shares_input = 1},
    {"olmo2", REF_RMS, REF_AFTER, REF_HALVES, .activation = REF_SILU, .head_norm = REF_ALL_HEADS,
     .full_every = 4, .unscaled_windows = 1},
    {"gemma", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_GELU_TANH, .sqrt_embedding = 1},
    {"gemma2", REF_RMS, REF_BEFORE_AND_AFTER, REF_HALVES, .activation = REF_GELU_TANH,
     .sqrt_embedding = 1, .full_every = 2},
    {"gemma3", REF_RMS, REF_BEFORE_AND_AFTER, REF_HALVES, .activation = REF_GELU_TANH,
     .head_norm = REF_SHARED_WEIGHTS, .sqrt_embedding = 1, .full_every = 6, .local_base = 1},
    {"gpt-oss", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_CLAMPED, .full_every = 2,
     .ffn_before = "post_attention_norm"},
    {"gpt2", REF_LAYER, REF_BEFORE, REF_NO_TURNING, .activation = REF_GELU_TANH},
    {"starcoder", REF_LAYER, REF_BEFORE, REF_NO_TURNING, .activation = REF_GELU_TANH},
    {"starcoder2", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_GELU_TANH},
    {"stablelm", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_SILU,
     .head_norm = REF_OWN_WEIGHTS},
    {"gptneox", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_GELU_ERF, .parallel = 1},
    {"phi2", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_GELU_TANH, .parallel = 1},
    {"falcon", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_GELU_ERF, .parallel = 1},
    {"command-r", REF_LAYER, REF_BEFORE, REF_ADJACENT, .activation = REF_SILU,
     .head_norm = REF_OWN_WEIGHTS, .parallel = 1},
    {"cohere2", REF_LAYER, REF_BEFORE, REF_ADJACENT, .activation = REF_SILU,
     .parallel = 1, .full_every = 4, .unturned_every = 4},
    {"gpt_neo", REF_LAYER, REF_BEFORE, REF_NO_TURNING, .activation = REF_GELU_TANH},
    {"opt", REF_LAYER, REF_BEFORE, REF_NO_TURNING, .activation = REF_RELU},
    {"gptj", REF_LAYER, REF_BEFORE, REF_ADJACENT, .activation = REF_GELU_TANH, .parallel = 1},
    {"codegen", REF_LAYER, REF_BEFORE, REF_ADJACENT, .activation = REF_GELU_TANH, .parallel = 1},
    {"persimmon", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_RELU_SQUARED,
     .head_norm = REF_SHARED_WEIGHTS},
    {"bloom", REF_LAYER, REF_BEFORE, REF_NO_TURNING, .activation = REF_GELU_TANH, .last_slope = 8},
    {"mpt", REF_LAYER, REF_BEFORE, REF_NO_TURNING, .activation = REF_GELU_ERF},
    {"bert", REF_LAYER, REF_ON_SUM, REF_NO_TURNING, .activation = REF_GELU_ERF, .encoder = 1},
    {"modern-bert", REF_LAYER, REF_BEFORE, REF_HALVES, .activation = REF_GELU_ERF, .full_from = 3,
     .local_base = 1, .fused_gate = 1, .half_windows = 1, .bare_start = 1, .encoder = 1},
    {"eurobert", REF_RMS, REF_BEFORE, REF_HALVES, .activation = REF_SILU, .encoder = 1},
    {"nomic-bert", REF_LAYER, REF_ON_SUM, REF_HALVES, .activation = REF_SILU, .encoder = 1},
};
/* clang-format on */

const ref_family *ref_family_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}
