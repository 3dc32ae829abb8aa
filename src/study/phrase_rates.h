/* Phrase rates from the inside: the texts that heads were silenced for, and what is found in them. */
#ifndef QKV_STUDY_PHRASE_RATES_H
#define QKV_STUDY_PHRASE_RATES_H

#include "study/head_ablation.h"
#include "study/phrases.h"

/* In place of the number of a phrase. */
#define PHRASE_NONE ((size_t)-1)
#define PHRASE_SHORT ((size_t)-2) /* the text has too few characters */

typedef struct phrase_rates {
    const study_inputs *in;
    head_ablation how;
    phrase_list phrases;
    phrase_match match;
    size_t shorter, n_new;
    int32_t *layers, *heads; /* silenced */
    size_t n_heads;
    int one_by_one;
    char **edits;      /* n_variants - 1 */
    size_t n_variants; /* with the baseline */
    char **texts;      /* variants × prompts */
    size_t *found;     /* likewise: the first phrase of the list */
} phrase_rates;

/* How many heads a variant silences. */
size_t qkv_phrase_rates_n_silenced(const phrase_rates *r, size_t variant);
/* Texts of a variant in which any phrase is found, and in which this one is. */
size_t qkv_phrase_rates_matched(const phrase_rates *r, size_t variant);
size_t qkv_phrase_rates_with(const phrase_rates *r, size_t variant, size_t phrase);

/* phrase_rates_show.c: tables and pictures. */
int qkv_phrase_rates_show(const phrase_rates *r, qkv_study *study, qkv_error *err);

#endif
