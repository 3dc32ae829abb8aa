/*
 * What kind of site a site is, and the edits that a thorough test goes through: every site, every
 * operation, four ways to select layers, heads, tokens and channels.
 */
#ifndef QKV_TESTS_REF_CASES_H
#define QKV_TESTS_REF_CASES_H

#include <stddef.h>

#include "reference/ref_edit.h"
#include "reference/ref_model.h"

int ref_has_heads(qkv_site site);
/* k, v, k_rot, k_in and v_in: held per group, seen by every query head of the group. */
int ref_is_shared(qkv_site site);
/* q_in, k_in and v_in: the layer's input, once for each head. */
int ref_is_input(qkv_site site);
/* The site whose shape a shared site has where every query head sees its own. */
qkv_site ref_seen_like(qkv_site site);
/* Does the layer have it? One that uses another's keys and values has none. */
int ref_layer_has_site(const ref_model *model, qkv_site site, int layer);
/* Channels or vectors of layers of several shapes; k_in by query heads that share keys, where keys are normalised over all heads. */
int ref_refuses(const ref_model *model, const ref_edit *edit);
/* More than one, so that there is a mean over the others. */
/* Has a layer of the edit positions that a mask could count anew? */
int ref_can_move(const ref_model *model, const ref_edit *edit);
int ref_has_other_heads(const ref_model *m, qkv_site site);
/* scores and pattern: queries x keys. */
int ref_is_map(qkv_site site);

/* logits and final_norm have none. */
int ref_has_layer(qkv_site site);

/* An encoder has no logits, and not always a final norm. */
int ref_has_site(const ref_model *model, qkv_site site);

/* 1 when an edit can change what is seen at a site of a layer. */
int ref_reaches(const ref_model *model, const ref_edit *edit, qkv_site site, int layer);

/* Numbers for the edit's operation with which it does something, but nothing extreme. */
void ref_choose_arguments(ref_edit *edit);
/* A vector for a prompt of n_tokens, where the operation takes one: the same for all rows, by head, or
 * by token too. To be called when heads are chosen. */
void ref_choose_vector(const ref_model *model, int n_tokens, ref_edit *edit, int which);

enum { REF_MAX_CASES = 2048, REF_TEXT_SIZE = 96 };

typedef struct ref_cases {
    ref_edit edits[REF_MAX_CASES];
    char text[REF_MAX_CASES][REF_TEXT_SIZE];
    const char *variants[REF_MAX_CASES + 1]; /* the texts, then NULL */
    size_t n;
} ref_cases;

/* For prompts of n_tokens, at least 7. Freed with free. */
ref_cases *ref_make_cases(const ref_model *model, int n_tokens);

/* Every site x every operation once, with one of the four selectors: which one changes from case
 * to case, and with `turn`, so that four turns have them all. */
ref_cases *ref_make_cases_once(const ref_model *model, int n_tokens, int turn);

#endif
