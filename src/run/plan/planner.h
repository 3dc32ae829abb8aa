/*
 * How a plan is run: its passes, and what each of them starts with, computes and keeps.
 */
#ifndef QKV_RUN_PLANNER_H
#define QKV_RUN_PLANNER_H

#include "base/text.h"
#include "run/result.h"
#include "run/run.h"
#include "run/session.h"

typedef struct qkv_planner {
    qkv_session *session;
    const qkv_plan *plan;
    qkv_result *result;
    const qkv_observer *observer; /* may be NULL */
    qkv_text *explanation; /* not NULL: nothing is computed, passes are described here instead */
    qkv_patches patches;
    int is_long;          /* the plan's tokens begin a text that is a long prompt (graph.h) */
    double done;          /* variants, and prompts that are patched from */
    double per_flop;      /* so many of them are an operation; 0: not counted */
    uint8_t *keep;        /* of the pass at hand: (n_layer + 1) × sites */
    uint8_t *frozen;      /* likewise: what edits freeze, QKV_KEEP_* */
    uint8_t *has_resid;   /* n_layer + 1: the trunk has the layer's input, or will have it */
    uint8_t *has_heads;   /* likewise its q, k and v */
    uint8_t *needs_trunk; /* n_layer + 1: some variant starts there, or will */
    uint8_t *output_rows; /* T: for tokens whose logits or normed states are captured */
} qkv_planner;

/* One pass: which variants, from where. */
typedef struct qkv_pass {
    const size_t *variants; /* numbers of the plan's variants; one 0 for the baseline */
    size_t n_variants;
    int32_t from;
    qkv_start start;
    int64_t before;        /* tokens that are left out at the beginning */
    const int32_t *tokens; /* of another prompt, whose trunk is not kept; NULL: the plan's own */
} qkv_pass;

/* planner.c */
int32_t qkv_planner_first_layer(const qkv_plan *plan, const qkv_variant *variant);
/* The tensors that edits of a plan patch from; the caller's to free. is_long: see qkv_planner. */
int qkv_planner_sources(qkv_session *session, const qkv_plan *plan, int is_long,
                        qkv_patches *patches, qkv_error *err);
size_t qkv_place(qkv_site site, int32_t layer);
size_t qkv_n_places(const qkv_plan *plan);

/* planner_sources.c */
#define QKV_NO_SOURCE SIZE_MAX /* the plan's own prompt, for edits that freeze */
/* Marks, as QKV_KEEP_WHOLE, the places of edits that patch from the source, or freeze. Returns whether there
 * are any. */
int qkv_planner_mark_sources(const qkv_plan *plan, size_t source, uint8_t *places);
/* Runs one source, and all of them but the plan's own prompt. */
int qkv_planner_run_source(qkv_planner *p, size_t source, qkv_error *err);
int qkv_planner_run_sources(qkv_planner *p, qkv_error *err);
/* NULL when memory is short. */
float *qkv_planner_copy(const struct ggml_tensor *tensor);
/* The unedited pass over a prompt of any length, by itself. It keeps what p->keep says and shows it to
 * `take`, but for an explanation. */
int qkv_planner_run_other(qkv_planner *p, const int32_t *tokens, size_t n_tokens,
                          int (*take)(void *user, const qkv_graph *g, qkv_error *err), void *user,
                          qkv_error *err);
/* set_means.c: the means over the set that edits take, computed as far as the session does not have them. */
int qkv_planner_means(qkv_planner *p, qkv_error *err);
/* Prompts that have to be run for that. */
size_t qkv_planner_n_set_prompts(const qkv_planner *p);

/* pass.c: builds the graph of a pass, and computes it unless only an explanation is wanted. The
 * caller reads g->kept, which is empty for an explanation, and releases g whatever is returned.
 * `members` has room for n_variants and one more, the baseline that an observer compares with. */
int qkv_pass_run(qkv_planner *p, const qkv_pass *pass, qkv_graph *g, qkv_member *members,
                 qkv_error *err);

/* untouched.c: tokens at the beginning of the prompt that no edit of a variant reaches. */
int64_t qkv_untouched_tokens(const qkv_plan *plan, size_t variant);
/* Can passes of these variants, which fork in layer `from`, leave such tokens out? Then sorts them by how
 * many there are. */
int qkv_untouched_sort(const qkv_planner *p, int32_t from, size_t *variants, size_t n);

/* How many queries attention takes at a time; T where whole maps are needed. */
int64_t qkv_pass_block_rows(const qkv_planner *p);

/* How many variants of a pass fit into the memory budget together. */
size_t qkv_pass_capacity(const qkv_planner *p, qkv_start start);

#endif
