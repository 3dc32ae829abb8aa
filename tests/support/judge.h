/*
 * The library and the scalar reference on one model and one prompt: what the first computes is
 * compared with the second, tensor by tensor. Whatever is wrong fails the running cmocka test.
 */
#ifndef QKV_TESTS_JUDGE_H
#define QKV_TESTS_JUDGE_H

#include "reference/ref_cases.h"
#include "reference/ref_forward.h"
#include "support/engine.h"

enum { JUDGE_TOKENS = 9 };

/* How far apart the two may be, times the largest value of the tensor or 1. */
extern const double judge_bound;

typedef struct judge {
    engine eng;
    ref_model *ref;
    int32_t tokens[JUDGE_TOKENS];
    int32_t other[JUDGE_TOKENS]; /* the prompt that patch:src takes from */
    ref_run *baseline, *source;  /* the reference's, of the two */
} judge;

void judge_open(judge *j, const char *path, int32_t n_threads);
void judge_close(judge *j);

/* Every site of the model; keys and values as the query heads see them. Ended by NULL. */
const char *const *judge_everything(const judge *j);
/* What a plan of these lists gives, on the prompt. */
qkv_result *judge_run(judge *j, const char *const *variants, const char *const *captures);

/* All that was captured of a variant against a run of the reference. Returns how many tensors there
 * were. */
size_t judge_tensors(const judge *j, const qkv_result *result, size_t variant,
                     const ref_run *expected, const char *text);
/* A variant of which everything was captured: all tensors, and what each edit selected and
 * changed. */
void judge_variant(const judge *j, const qkv_result *result, size_t variant,
                   const ref_run *expected, const ref_edit *edits, size_t n, const char *text);
/* Keys and values as the groups hold them, under those edits that split no group. */
void judge_groups(judge *j, const ref_cases *list);
/* Edits that change nothing, at every site, leave every bit as it is. */
void judge_identity(judge *j);

/* One tensor that a plan captures alone, so that the planner may leave out all it does not need. */
typedef struct observed {
    qkv_site site;
    int layer;
    char text[32]; /* the capture */
} observed;

observed judge_observe(qkv_site site, int layer);
/* Every case as seen there: right, and the baseline's own tensor exactly where the edit cannot reach
 * or changed nothing. */
void judge_observed(const qkv_result *result, const ref_cases *list, ref_run *const *expected,
                    const observed *o);

#endif
