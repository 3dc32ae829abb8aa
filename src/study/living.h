/*
 * Living figures: what an HTML file holds so that its page can show more than was drawn.
 *
 *     living.c        while a figure is made: the scores of its head, and which edits are factors
 *     head_scores.c   these scores before the cap, and what counts as a factor (qkv/head_scores.h)
 *     living_numbers.c  maps as bytes: precision, pooling, base64
 *     living_json.c   all that a figure's page is told
 *     living_page.c   the page: its frame, style and scripts in one file that needs nothing else
 *     figure_html.c, plot_html.c  the pages of figures and of charts
 *
 * The scripts are src/server/page/offline.js and what it imports. attention.js there says why maps can
 * be made of scores at every factor.
 */
#ifndef QKV_STUDY_LIVING_H
#define QKV_STUDY_LIVING_H

#include "base/fail.h"
#include "base/json.h"
#include "base/text.h"
#include "study/figure.h"

/* ---- living.c ---- */

/* What the layer and head shown have, and the scores of every prompt. */
typedef struct living {
    float *
        *scores; /* per prompt: [T, T], scaled, not capped, unedited; NULL: no panel needs them */
    double softcap; /* 0: none */
    double sink;    /* learned */
    int has_sink;
    int32_t causal, window;
} living;

/* Facts about the model; before prompts are computed. */
int qkv_living_new(living **out, const qkv_figure *fig, const qkv_model *model, qkv_error *err);
void qkv_living_free(living *all, size_t n_prompts);
/* The factors of a prompt's panels, and its scores where they help; after the run of its plan. */
int qkv_living_take(qkv_figure *fig, qkv_session *session, size_t prompt, const qkv_plan *plan,
                    const qkv_result *result, qkv_error *err);

/* ---- head_scores.c ---- */

/* Captures the scores of a head, -1: of all, before the cap: what was captured (of variant 1 where there
 * is a cap, of the baseline where there is none) goes through qkv_living_uncap. */
int qkv_living_add_scores(qkv_plan *plan, int32_t layer, int32_t head, double softcap,
                          qkv_error *err);
void qkv_living_uncap(float *to, const float *from, size_t n, double softcap);

/* ---- living_numbers.c ---- */

/* A map to be stored. */
typedef struct living_map {
    const float *values;     /* [rows, cols] */
    size_t rows, cols, step; /* step: tokens of a cell */
    int32_t causal, window;
    int is_masked; /* nothing but 0 where the mask is: what queries see is stored and nothing else */
} living_map;

typedef enum living_type { LIVING_F32, LIVING_F16 } living_type;

/* Is everything 0 that the mask takes away? */
int qkv_living_is_masked(const living_map *map);
/* How many numbers are stored of it. */
size_t qkv_living_count(const living_map *map);
/* The map with a cell for every step x step, the number of largest magnitude of its block; values are
 * the caller's to free. */
int qkv_living_pool(const living_map *map, size_t step, living_map *out, qkv_error *err);
/* As JSON, with its numbers in base64. NULL when memory is short. */
json_t *qkv_living_map_json(const living_map *map, living_type type);
/* F16 of a number, to the nearest, of two the even one. */
uint16_t qkv_half_of(float value);

/* ---- living_json.c ---- */

/* All that the page of a figure is told. */
int qkv_living_figure_json(const qkv_figure *fig, json_t **out, qkv_error *err);
/* Colours of maps for the page: "#rrggbb#rrggbb...", `steps` + 1 of them. */
json_t *qkv_living_colors(qkv_colormap chosen);

/* ---- living_page.c ---- */

typedef struct living_page {
    const char *title;  /* plain text */
    const json_t *data; /* for offline.js */
    const char *body;   /* HTML below what the script makes; NULL: nothing */
    const char *recipe; /* NULL: none */
} living_page;

/* Appends the whole file. */
int qkv_living_page(const living_page *page, qkv_text *out, qkv_error *err);

/* ---- figure_html.c, plot_html.c ---- */

int qkv_figure_html(const qkv_figure *fig, qkv_text *out, qkv_error *err);

/* Plain text within HTML, also in an attribute; one line. */
void qkv_html_put_escaped(qkv_text *text, const char *bytes, size_t length);
void qkv_html_put(qkv_text *text, const char *string);
/* A title of a figure: text between asterisks is in italics, \* is an asterisk. */
void qkv_html_put_title(qkv_text *text, const char *title);

#endif
