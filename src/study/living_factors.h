/* Which edits of a panel are factors of the scores that are shown: what a page has sliders for. */
#ifndef QKV_STUDY_LIVING_FACTORS_H
#define QKV_STUDY_LIVING_FACTORS_H

#include <stddef.h>
#include <stdint.h>

/* What a factor multiplies in the scores of the head that is shown. */
typedef enum living_axis { LIVING_QUERY, LIVING_KEY, LIVING_NOTHING } living_axis;

/* One edit of a panel that is a factor: SITE@...=scale:ε in the layer shown. */
typedef struct living_factor {
    char *target; /* "q@5.h0" */
    char *site;   /* "q" */
    double eps;
    living_axis axis;
    uint8_t *tokens; /* a byte for each, 0 or 1; NULL: all */
} living_factor;

/* The factors of a panel; its maps can be made of scores where all its edits are factors. */
typedef struct living_factors {
    living_factor *items;
    size_t n;
    int complete;
} living_factors;

/* living.c */
void qkv_living_release_factors(living_factors *factors);

#endif
