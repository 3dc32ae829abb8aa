/*
 * A step of the random walk (stress_walk.c): a model, a prompt, some variants and captures, and how they are
 * run. All of it follows from a seed and the step's number.
 */
#ifndef QKV_TESTS_WALK_CASE_H
#define QKV_TESTS_WALK_CASE_H

#include "reference/ref_forward.h"
#include "support/dice.h"
#include "support/engine.h"

enum { WALK_TOKENS = 303, WALK_EDITS = 3, WALK_VARIANTS = 4, WALK_CAPTURES = 5, WALK_TEXT = 320 };

typedef struct walk_model {
    char path[512];
    engine eng; /* without a session */
    ref_model *ref;
} walk_model;

typedef struct walk_variant {
    ref_edit edits[WALK_EDITS];
    size_t n;
    char text[WALK_TEXT];
} walk_variant;

/* What the session has done before on these or other tokens. */
typedef enum walk_history {
    WALK_NEW,
    WALK_PREPARED, /* a plan that prepares for others */
    WALK_REPEATED, /* the same plan */
    WALK_OTHER,    /* another prompt */
    WALK_HISTORIES
} walk_history;

typedef struct walk_case {
    const walk_model *model;
    int T;
    int32_t tokens[WALK_TOKENS], other[WALK_TOKENS]; /* other: what patch:src takes from */
    walk_variant variants[WALK_VARIANTS];
    const char *texts[WALK_VARIANTS + 1]; /* of the variants, then NULL */
    size_t n_variants;
    char captures[WALK_CAPTURES][WALK_TEXT];
    const char *captured[WALK_CAPTURES + 1];
    qkv_session_options session;
    walk_history history;
    char prepared[WALK_TEXT];
    int n_prompt; /* of a text that continues to T tokens; 0: no such text */
    int recompute;
    int refused; /* variants that were drawn and that the library does not take */
} walk_case;

/* Which of n_models models the case is about: then it is drawn with that model. */
size_t walk_choose_model(dice *d, size_t n_models);
void walk_draw(walk_case *c, const walk_model *model, dice *d);
/* What to type, and where, to see it. */
void walk_print(const walk_case *c);

#endif
