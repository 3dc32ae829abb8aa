/*
 * What a figure keeps for its page: the scores of the head that is shown, of which the page makes maps at any factor
 * (attention.js), and which edits of a panel are factors of them: these have sliders.
 */
#ifndef QKV_STUDY_FIGURE_SCORES_H
#define QKV_STUDY_FIGURE_SCORES_H

#include "qkv/session.h"

struct qkv_figure;

/* What a factor multiplies in the scores of the head that is shown. */
typedef enum factor_axis { FACTOR_QUERY, FACTOR_KEY, FACTOR_NOTHING } factor_axis;

/* One edit of a panel that is a factor: SITE@...=scale:ε in the layer shown. */
typedef struct edit_factor {
    char *target; /* "q@5.h0" */
    char *site;   /* "q" */
    double eps;
    factor_axis axis;
    uint8_t *tokens; /* a byte for each, 0 or 1; NULL: all */
} edit_factor;

/* The factors of a panel; its maps can be made of scores where all its edits are factors. */
typedef struct edit_factors {
    edit_factor *items;
    size_t n;
    int complete;
} edit_factors;

void qkv_edit_factors_release(edit_factors *factors);

/* What the layer and head shown have, and the scores of every prompt. */
typedef struct figure_scores {
    float **maps; /* per prompt: [T, T], scaled, not capped, unedited; NULL: no panel needs them */
    double softcap; /* 0: none */
    double sink;    /* learned */
    double slope;   /* of ALiBi; 0: none */
    int has_sink;
    int32_t causal, window;
} figure_scores;

/* Facts about the model; before prompts are computed. */
int qkv_figure_scores_new(figure_scores **out, const struct qkv_figure *fig, const qkv_model *model,
                          qkv_error *err);
void qkv_figure_scores_free(figure_scores *all, size_t n_prompts);
/* The factors of a prompt's panels, and its scores where they help; after the run of its plan. */
int qkv_figure_scores_take(struct qkv_figure *fig, qkv_session *session, size_t prompt,
                           const qkv_plan *plan, const qkv_result *result, qkv_error *err);

/* ---- head_scores.c ---- */

/* Captures the scores of a head, -1: of all, before the cap: what was captured (of variant 1 where there
 * is a cap, of the baseline where there is none) goes through qkv_scores_plain, which takes away the bias, too. */
int qkv_scores_capture(qkv_plan *plan, int32_t layer, int32_t head, double softcap, qkv_error *err);
void qkv_scores_plain(float *to, const float *from, size_t n_tokens, double softcap, double slope);

#endif
