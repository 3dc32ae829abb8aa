/*
 * HTML pages: one file that needs nothing else. A page is a title, notes, a recipe and a list of parts; what makes
 * one contributes parts, html_page.c writes the file, and one script shows it (src/server/page/offline.js).
 *
 *     html_page.c       the file: frame, style, scripts, data
 *     html_map.c        maps as bytes: precision, pooling, base64
 *     html_attention.c  the attention that cells open
 *     html_figure.c     the part "maps" of a figure: its panels, with a slider for every factor
 *     html_report.c     the parts "facts", "table" and "list" of a figure that was measured
 *     html_study.c      the parts "heatmap", "image" and "table" of a study
 *     html_sweep.c      the part "sweep" of a chart: its cells at every ε
 *
 * Each part is an object with its "type", by which the script chooses what shows it.
 */
#ifndef QKV_STUDY_HTML_PAGE_H
#define QKV_STUDY_HTML_PAGE_H

#include "base/fail.h"
#include "base/json.h"
#include "base/text.h"
#include "qkv/grid.h"
#include "qkv/session.h"
#include "study/prompt.h"

/* ---- html_page.c ---- */

typedef struct html_page {
    const char *title;       /* text between asterisks is in italics; NULL or "": none is shown */
    const char *name;        /* the window's, where there is no title */
    const char *small_print; /* NULL: none */
    const char *about;       /* what the file holds, in sentences; NULL: nothing is said */
    const char *options;     /* of the command that makes it again; NULL: none */
    const char *id;          /* of the recipe */
    const char *recipe;      /* NULL: none */
    qkv_colormap colormap;
    const json_t *parts;     /* a list */
    const json_t *attention; /* that cells open; NULL: none */
} html_page;

/* Appends the whole file. */
int qkv_html_page_write(const html_page *page, qkv_text *out, qkv_error *err);

/* ---- html_map.c ---- */

/* A map to be stored. */
typedef struct html_map {
    const float *values;     /* [rows, cols] */
    size_t rows, cols, step; /* step: tokens of a cell */
    int32_t causal, window;
    int is_masked; /* nothing but 0 where the mask is: what queries see is stored and nothing else */
} html_map;

typedef enum html_type { HTML_F32, HTML_F16 } html_type;

/* Is everything 0 that the mask takes away? */
int qkv_html_map_is_masked(const html_map *map);
/* How many numbers are stored of it. */
size_t qkv_html_map_count(const html_map *map);
/* The map with a cell for every step x step, the number of largest magnitude of its block; values are
 * the caller's to free. */
int qkv_html_map_pool(const html_map *map, size_t step, html_map *out, qkv_error *err);
/* As JSON, with its numbers in base64. NULL when memory is short. */
json_t *qkv_html_map_json(const html_map *map, html_type type);
/* F16 of a number, to the nearest, of two the even one. */
uint16_t qkv_half_of(float value);

/* ---- html_attention.c ---- */

/* The layers and heads whose attention a page has; a list that is NULL: 0, 1, 2, ...; below 0: none. */
typedef struct html_places {
    const int32_t *layers, *heads;
    size_t n_layers, n_heads;
} html_places;

/* Numbers that a page stores of a prompt's attention. */
size_t qkv_html_attention_count(const html_places *places, const qkv_own_prompt *prompt,
                                int causal);
/* A prompt, its labels and an empty list of scores, which qkv_html_attention_add appends to, layer by layer; `layer`
 * counts in the places. */
json_t *qkv_html_attention_prompt(int64_t id, const qkv_own_prompt *prompt);
int qkv_html_attention_add(json_t *entry, const html_places *places, size_t layer,
                           qkv_session *session, const qkv_own_prompt *prompt, qkv_error *err);
/* All of them, with what the model does to scores; takes over the prompts. names: of two maps that are shown beside
 * each other; the first NULL: there is one. NULL when memory is short. */
json_t *qkv_html_attention(const html_places *places, const qkv_model *model,
                           const char *const names[2], json_t *prompts);

/* ---- texts and numbers of parts: html_page.c ---- */

json_t *qkv_html_texts(const char *const *texts, size_t n);  /* null without a list */
json_t *qkv_html_integers(const int32_t *numbers, size_t n); /* the same */

#endif
