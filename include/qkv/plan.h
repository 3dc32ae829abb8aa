/*
 * Plans: what to change and what to look at.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *model = NULL;
 *     qkv_plan *plan = NULL;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *         qkv_plan_add_variant(plan, "q@3.h1=scale:1e-3 + v@2.g0=zero", NULL, &err) == QKV_OK &&
 *         qkv_plan_add_capture(plan, "pattern@3", &err) == QKV_OK) {
 *         printf("%zu variants, the baseline among them\n", qkv_plan_n_variants(plan));
 *     }
 *     qkv_plan_free(plan);
 *     qkv_model_free(model);
 *
 * A site is a named place of the forward pass. An edit changes the tensor there, a capture keeps
 * it. A variant is a set of edits run together; variant 0 is always the unedited baseline.
 *
 *     edit     SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}]=OP[:ARGS]
 *                  q@3.h5=scale:1e-3    k@2-4.g*[0]=mean:head    v@*=zero
 *                  resid_post@1[0]{2533,1415}=set:0    q@3.h2{0:16}=zero
 *     variant  EDIT + EDIT ...
 *                  q@0.h1=scale:0.5 + v@2.g0=zero
 *              freeze:SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}]: stays as in the unedited run
 *                  z@1.h0=zero + freeze:mlp_out@*
 *     capture  SITE[@LAYERS[.HEADS]][{CHANNELS}][:REDUCTION]
 *                  pattern@3    pattern@0-5.h2    logits    logits[-1]    final_norm[-1]
 *                  pattern@*:first    pattern@3.h0:mean=256    resid_post@*{2533}
 *
 * LAYERS and HEADS: `3`, `2-4`, `0,2,5-7`, `-1` (the last), `*`. In place of SITE@LAYER, a hook of
 * TransformerLens: `blocks.3.attn.hook_q` (qkv/hooks.h). A plan holds the site, and the numbers of layers
 * and heads that were counted from the end. Heads carry a letter: `h` counts query heads, `g`
 * key/value heads; on k and v, `h3` changes what query head 3 alone sees, `g1` changes it for its
 * whole group. No head part means all heads.
 * TOKENS: `[5]`, `[1:]`, `[:4]`, `[2:8]`, `[-1]` (the last), `[0,3,5:7]`; on scores and pattern
 * `[ROWS,COLUMNS]`, each one index or one range, e.g. `[:,0]`. With patch:NAME, `[5<-7]`, `[2:5<-4:7]`:
 * token 5 takes token 7 of the other prompt; not on scores and pattern.
 * CHANNELS, of the innermost axis, in the order of captures: like tokens, `{7}`, `{0:16}`, `{-1}`,
 * `{0,3,5:7}`. Captures of the same tensor that name several are joined. Scores and patterns have none.
 *
 * All edits of a variant read the unedited tensor and apply at once; two that overlap are an error,
 * and so is a selector that matches nothing. What cannot be added leaves the plan as it was.
 *
 * A plan keeps its model alive. It belongs to one thread at a time.
 */
#ifndef QKV_PLAN_H
#define QKV_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(enumerator, name, shape in row-major order, what it is) */
#define QKV_SITE_LIST(X)                                                                           \
    X(RESID_PRE, "resid_pre", "T,D", "input of the layer")                                         \
    X(Q, "q", "T,H,d", "queries, after projection, bias and QK-norm, before RoPE")                 \
    X(K, "k", "T,G,d", "keys, after projection, bias and QK-norm, before RoPE")                    \
    X(V, "v", "T,G,d", "values")                                                                   \
    X(Q_ROT, "q_rot", "T,H,d", "queries after RoPE")                                               \
    X(K_ROT, "k_rot", "T,G,d", "keys after RoPE")                                                  \
    X(SCORES, "scores", "H,T,T",                                                                   \
      "scaled, soft-capped, with ALiBi's bias; before mask and softmax")                           \
    X(PATTERN, "pattern", "H,T,T", "attention weights, after the softmax")                         \
    X(Z, "z", "T,H,d", "pattern times v, per query head")                                          \
    X(ATTN_OUT, "attn_out", "T,D", "what attention, or what stands for it, adds to the stream")    \
    X(MLP_OUT, "mlp_out", "T,D", "what the feed-forward block adds to the residual stream")        \
    X(RESID_POST, "resid_post", "T,D", "output of the layer")                                      \
    X(LOGITS, "logits", "T,V", "scores of the next token; has no layer")                           \
    X(FINAL_NORM, "final_norm", "T,D",                                                             \
      "what the output matrix sees, after the final norm; no layer")                               \
    X(MLP_ACT, "mlp_act", "T,F", "neurons after the activation: what the down projection sees")    \
    X(Q_IN, "q_in", "T,H,D", "the layer's input as one query head reads it, before the norm")      \
    X(K_IN, "k_in", "T,G,D", "the layer's input as one key head reads it, before the norm")        \
    X(V_IN, "v_in", "T,G,D", "the layer's input as one value head reads it, before the norm")      \
    X(GATE, "gate", "T,H,d",                                                                       \
      "what z is multiplied by before the output matrix, where there is a gate")

#define QKV_SITE_ENUM(id, name, shape, what) QKV_SITE_##id,
typedef enum qkv_site { QKV_SITE_LIST(QKV_SITE_ENUM) QKV_SITE_COUNT } qkv_site;
#undef QKV_SITE_ENUM

/* What a pattern can be reduced to while it is computed, so that the whole map is never in memory.
 * X(enumerator, name, what it is) */
#define QKV_REDUCTION_LIST(X)                                                                      \
    X(NONE, "", "the whole map")                                                                   \
    X(FIRST, "first", "H,T: weight on the first key, per query")                                   \
    X(COLUMNS, "columns", "H,T: sum over the queries, per key")                                    \
    X(DIAGONALS, "diagonals", "H,T: mean over the queries, per distance back")                     \
    X(MEAN, "mean", "H,N,N: the map pooled to at most N x N cells, by their mean")                 \
    X(MAX, "max", "H,N,N: the same by their largest weight")                                       \
    X(SINK, "sink", "H,T: what the model's learned sink takes of each query, 1 minus the row's sum")

#define QKV_REDUCTION_ENUM(id, name, what) QKV_REDUCTION_##id,
typedef enum qkv_reduction {
    QKV_REDUCTION_LIST(QKV_REDUCTION_ENUM) QKV_REDUCTION_COUNT
} qkv_reduction;
#undef QKV_REDUCTION_ENUM

/* The lists above for those who cannot read macros, and the operations of edits: from 0 on, NULL
 * past the end. */
QKV_API const char *qkv_site_name(qkv_site site);
QKV_API const char *qkv_site_shape(qkv_site site);       /* "T,H,d" */
QKV_API const char *qkv_site_description(qkv_site site); /* "queries after RoPE" */
/* 0: it comes after all layers, and is written without one: logits and final_norm. */
QKV_API int qkv_site_has_layer(qkv_site site);

QKV_API const char *qkv_reduction_name(qkv_reduction kind);
QKV_API const char *qkv_reduction_description(qkv_reduction kind);

QKV_API const char *qkv_op_name(size_t index);        /* "scale" */
QKV_API const char *qkv_op_arguments(size_t index);   /* after the colon: "a factor" */
QKV_API const char *qkv_op_description(size_t index); /* what it does to the selected elements */

typedef struct qkv_plan qkv_plan;

/* A plan for one token sequence. Tokens are copied. */
QKV_API int qkv_plan_new(qkv_plan **out, const qkv_model *model, const int32_t *tokens,
                         size_t n_tokens, qkv_error *err);
/* A plan for a prompt and an answer after it, whose log-probability is wanted: n_tokens in all, of which
 * the first n_prompt are the prompt. Negative token numbers of edits count from the end of the prompt, and
 * other prompts (qkv_plan_add_source) are followed by the same answer. Edits that name no tokens act on all
 * of them. */
QKV_API int qkv_plan_new_answer(qkv_plan **out, const qkv_model *model, const int32_t *tokens,
                                size_t n_tokens, size_t n_prompt, qkv_error *err);
QKV_API void qkv_plan_free(qkv_plan *plan);

/* The text that the tokens were made of, for files to tell; copied. It changes nothing else. */
QKV_API int qkv_plan_set_prompt(qkv_plan *plan, const char *text, size_t length, qkv_error *err);

/* Names another prompt, so that edits can say patch:NAME: a token takes the values of the one at the same
 * place, in a prompt with as many tokens as the plan's own, or those that [5<-7] names, in any prompt. */
QKV_API int qkv_plan_add_source(qkv_plan *plan, const char *name, const int32_t *tokens,
                                size_t n_tokens, qkv_error *err);

/* Adds a variant; *index (may be NULL) receives its number, from 1. The text is checked in full
 * here. */
QKV_API int qkv_plan_add_variant(qkv_plan *plan, const char *edits, size_t *index, qkv_error *err);

QKV_API int qkv_plan_add_capture(qkv_plan *plan, const char *capture, qkv_error *err);

/* Names a capture of plans to come on the same tokens, with edits in the same layers. A run of this
 * plan leaves in the session what they start with there, as far as its memory_budget goes, and
 * computes attention as they will; what does not fit they compute again. Captures nothing here. */
QKV_API int qkv_plan_prepare(qkv_plan *plan, const char *capture, qkv_error *err);

QKV_API size_t qkv_plan_n_variants(const qkv_plan *plan); /* with the baseline */
/* The text of a variant's edits as it was given; "" for the baseline. */
QKV_API const char *qkv_plan_variant_text(const qkv_plan *plan, size_t variant);
QKV_API const int32_t *qkv_plan_tokens(const qkv_plan *plan, size_t *n_tokens);

/* What qkv_plan_set_prompt was given; NULL: nothing. *length may be NULL. */
QKV_API const char *qkv_plan_prompt(const qkv_plan *plan, size_t *length);

/* Captures as they were given; NULL past the end. */
QKV_API const char *qkv_plan_capture_text(const qkv_plan *plan, size_t index);
/* 1 when the logits of this token are captured: they are the rows of the logits, in order. */
QKV_API int qkv_plan_wants_logits(const qkv_plan *plan, size_t token);

#ifdef __cplusplus
}
#endif

#endif
