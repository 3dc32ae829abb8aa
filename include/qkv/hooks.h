/*
 * Unstable: may change in every version.
 *
 * Names of places in the forward pass as TransformerLens has them, and what they are called here.
 *
 *     char place[QKV_HOOK_SIZE];
 *     if (qkv_hook_translate(place, "blocks.3.attn.hook_q", &err) == QKV_OK) {
 *         printf("%s\n", place); // q@3
 *     }
 *
 * docs/coming-from.md says where a site differs from the hook. Nothing here has state: any thread may
 * ask.
 */
#ifndef QKV_HOOKS_H
#define QKV_HOOKS_H

#include <stddef.h>

#include "qkv/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(what stands after "blocks.L.", or the whole name for a site without layer; the site's
 * enumerator) */
#define QKV_HOOK_LIST(X)                                                                           \
    X("hook_resid_pre", RESID_PRE)                                                                 \
    X("hook_q_input", Q_IN)                                                                        \
    X("hook_k_input", K_IN)                                                                        \
    X("hook_v_input", V_IN)                                                                        \
    X("attn.hook_q", Q)                                                                            \
    X("attn.hook_k", K)                                                                            \
    X("attn.hook_v", V)                                                                            \
    X("attn.hook_rot_q", Q_ROT)                                                                    \
    X("attn.hook_rot_k", K_ROT)                                                                    \
    X("attn.hook_attn_scores", SCORES)                                                             \
    X("attn.hook_pattern", PATTERN)                                                                \
    X("attn.hook_z", Z)                                                                            \
    X("hook_attn_out", ATTN_OUT)                                                                   \
    X("hook_mlp_out", MLP_OUT)                                                                     \
    X("hook_resid_post", RESID_POST)                                                               \
    X("mlp.hook_post", MLP_ACT)                                                                    \
    X("ln_final.hook_normalized", FINAL_NORM)

enum { QKV_HOOK_SIZE = 64 };

/* The hooks above: "attn.hook_q"; NULL past the end. *site (may be NULL) receives the site. */
QKV_API const char *qkv_hook_name(size_t index, qkv_site *site);
/* "blocks.3.attn.hook_q" to "q@3", "blocks.-1.hook_resid_post" to "resid_post@-1" (the last layer),
 * "blocks.*.hook_mlp_out" to "mlp_out@*", "ln_final.hook_normalized" to "final_norm". out is "" on
 * failure. */
QKV_API int qkv_hook_translate(char out[QKV_HOOK_SIZE], const char *hook, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
