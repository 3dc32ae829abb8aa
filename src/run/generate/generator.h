/*
 * What a generator holds: the texts, the edits as a plan, and each variant's keys and values.
 */
#ifndef QKV_RUN_GENERATOR_H
#define QKV_RUN_GENERATOR_H

#include "qkv/generate.h"
#include "run/plan/planner.h"

/* Tokens that one pass takes at most: as many columns as products take at a time. */
#define QKV_GENERATOR_CHUNK 512

/* One variant of the text. */
typedef struct qkv_branch {
    int32_t *tokens; /* n_positions */
    int64_t n_tokens;
    int32_t
        join;   /* the first layer with an edit: below it all is the baseline's, while it shares */
    int shares; /* its text is the baseline's so far */
    int ended;
    qkv_kv_cache cache;
    float *logits;             /* V */
    _Atomic uint64_t *changed; /* per edit */
} qkv_branch;

struct qkv_generator {
    qkv_plan *plan; /* of the prompt: edits, and prompts to patch from */
    int recompute;
    qkv_branch *branches; /* one for each variant of the plan */
    int64_t n_computed;   /* tokens that caches hold, and texts have */
    int is_long;          /* RoPE is that of long prompts */
    qkv_patches patches;
    int has_patches, patches_are_long; /* the latter: computed with such RoPE */

    /* The pass that was built last, and what it was built for. */
    qkv_graph graph;
    int has_graph;
    qkv_step step;
    qkv_cost cost;
    int64_t graph_batch, graph_tokens, graph_texts, graph_keys[QKV_MASK_COUNT];
    int graph_logits, graph_one_new;
    qkv_member *members; /* room for all variants, and of the graph */
    size_t *variants;    /* which variants the members are */
    size_t *graph_variants;
    int32_t *joins;
    qkv_kv_layer **caches; /* n_layer × variants */
    uint8_t *keep;         /* (n_layer + 1) × sites */
    uint8_t *logit_rows;   /* QKV_GENERATOR_CHUNK */
    int32_t *in_tokens;    /* QKV_GENERATOR_CHUNK × variants */
};

/* generator_step.c: has a text of so many tokens the RoPE of long prompts? */
int qkv_generator_is_long(const qkv_generator *generator, int64_t n_tokens);
/* The texts of all variants that have not ended have n_tokens tokens; computes those
 * that caches do not hold yet. */
int qkv_generator_compute(qkv_generator *generator, qkv_session *session, int64_t n_tokens,
                          qkv_error *err);
/* Memory of a variant's cache. What it shares with the baseline is left out. */
int qkv_generator_allocate(qkv_generator *generator, size_t variant, qkv_error *err);
void qkv_generator_release_cache(const qkv_generator *generator, qkv_branch *branch);

#endif
