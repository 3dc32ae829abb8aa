/*
 * Studies from the inside: how a kind of study is added, and what one is made of.
 *
 * A kind is a line in study_kinds.c: a struct of options, a table of its fields (study/fields.h), and
 * a function that is given the inputs and the options and fills the study:
 *
 *     typedef struct lens_options { int32_t top; const char *answer; } lens_options;
 *
 *     static int make_lens(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
 *         const lens_options *options = given;
 *         const char *const columns[] = {"layer", "token", "probability"};
 *         qkv_study_set_title(study, "What *The River* Becomes");
 *         int status = qkv_study_add_table(study, "layers", "Every layer", columns, 3, err);
 *         for (...)
 *             status = qkv_study_add_row(study, (study_value[]){STUDY_NUMBER(layer), STUDY_TEXT(token),
 *                                                               STUDY_NUMBER(p)}, err);
 *         if (status == QKV_OK) status = qkv_study_add_heatmap(study, "layers", "Title", &map, err);
 *         qkv_study_link(study, STUDY_LAYERS_TOKENS, 0);
 *         qkv_study_note(study, "the final norm is the model's own");
 *         return status;
 *     }
 *
 * The frame does everything else: it reads and checks the options (also those of a forged recipe),
 * tokenizes the prompts, makes recipe and id, and writes files. Options whose value is 0, NULL or
 * QKV_AUTO have their default and are left out of recipes; what the default is, the maker decides.
 *
 * Everything that is added is copied. Once memory has run short, what is added is dropped, and the
 * study fails as a whole in the end: results of set_title, note, warn and link need not be looked at.
 *
 *     study.c          the object, and adding to it
 *     study_kinds.c    the list of kinds
 *     study_make.c     inputs and options to a study
 *     study_recipe.c   its recipe
 *     study_copy.c     charts, copied
 *     study_write.c    files: pictures
 *     study_numbers.c  files: tables
 *     study_html.c     pages; study_maps.c: the attention in them
 */
#ifndef QKV_STUDY_STUDY_H
#define QKV_STUDY_STUDY_H

#include "base/fail.h"
#include "base/json.h"
#include "qkv/chart.h"
#include "qkv/study.h"
#include "study/fields.h"
#include "study/figure_recipe.h"
#include "study/prompt.h"

/* ---- what a maker is given ---- */

typedef struct study_inputs {
    qkv_session *session;
    const qkv_model *model; /* of the session */
    qkv_session *other;     /* of kinds that need two; else NULL */
    const qkv_model *other_model;
    study_prompts prompts; /* with tokens and labels (of axes) */
    const char *results;   /* as in qkv_study_inputs; so below */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
} study_inputs;

typedef struct study_kind {
    const char *name;  /* "lens", also of the command */
    const char *title; /* what it is, for lists */
    const field *fields;
    size_t n_fields;
    size_t options_size; /* of the struct; it starts as 0, FIELD_INDEX as QKV_AUTO */
    size_t least_prompts, most_prompts;
    int needs_other;
    size_t n_printed;  /* tables that the command prints; 0: the first */
    int keeps_results; /* it goes on from a file */
    int (*make)(qkv_study *study, const study_inputs *in, const void *options, qkv_error *err);
} study_kind;

extern const study_kind *const qkv_study_kinds[];
extern const size_t qkv_study_n_kinds;
/* NULL where there is none. */
const study_kind *qkv_study_find_kind(const char *name);

/* Lines of tables of fields: STUDY_FIELD(lens_options, top, INT, 0, 100). */
#define STUDY_FIELD(type, name, kind, least, most)                                                 \
    { #name, FIELD_##kind, offsetof(type, name), NULL, least, most }
#define STUDY_WORDS(type, name, words)                                                             \
    { #name, FIELD_WORD, offsetof(type, name), words, 0, 0 }
enum { STUDY_MOST_TEXT = 1 << 20 }; /* bytes of a text that a recipe brings along */

/* ---- making ---- */

/* A cell of a table. */
typedef struct study_value {
    double number; /* NaN: none */
    const char *text;
} study_value;

#define STUDY_NUMBER(value) ((study_value){(double)(value), NULL})
#define STUDY_TEXT(value) ((study_value){0, (value)})

/* The title of the whole, also of pictures without one of their own; *text* is italic. */
int qkv_study_set_title(qkv_study *study, const char *format, ...) QKV_PRINTF(2, 3);

/* Names of tables, columns and pictures are lower-case words, fit for SQL and the command line; titles
 * are for people. The first table is what the command prints, the first picture what -o draws. */
int qkv_study_add_table(qkv_study *study, const char *name, const char *title,
                        const char *const *columns, size_t n_columns, qkv_error *err);
/* To the table that was added last: as many values as it has columns. */
int qkv_study_add_row(qkv_study *study, const study_value *values, qkv_error *err);

int qkv_study_add_heatmap(qkv_study *study, const char *name, const char *title,
                          const qkv_heatmap *map, qkv_error *err);
int qkv_study_add_lines(qkv_study *study, const char *name, const char *title,
                        const qkv_lines *lines, qkv_error *err);
int qkv_study_add_bars(qkv_study *study, const char *name, const char *title, const qkv_bars *bars,
                       qkv_error *err);

/* What stands behind the cells of the heatmap that was added last (all of its panels): rows are layers
 * from 0 on, columns the query heads, or the tokens of a prompt. In a page, cells then open the
 * attention of that layer on this prompt. */
typedef enum study_cells { STUDY_NO_CELLS, STUDY_LAYERS_HEADS, STUDY_LAYERS_TOKENS } study_cells;
int qkv_study_link(qkv_study *study, study_cells cells, size_t prompt);
/* Where rows or columns of that heatmap leave some out: the layer of each row, and the head or token of
 * each column. As many as it has; copied. */
int qkv_study_link_places(qkv_study *study, const int32_t *layers, const int32_t *columns);

/* The text that all links are about, as their prompt 0, where the study's prompts are not what was run. */
int qkv_study_link_tokens(qkv_study *study, const qkv_model *model, const int32_t *tokens,
                          size_t n_tokens, qkv_error *err);

/* Cells open a second map beside the first: of another prompt with as many tokens, or, where the study has
 * two models, of the same prompt in the second one with these edits (NULL: none). */
typedef struct study_second {
    const char *names[2]; /* of the first map and of the second; kept by the study, so is edits */
    size_t prompt;
    const char *edits;
} study_second;
void qkv_study_link_second(qkv_study *study, const study_second *second);

/* How far a long one is. Fails where somebody wants it to end. */
int qkv_study_progress(const study_inputs *in, int64_t done, int64_t wanted, qkv_error *err);

/* A line of the small print: definitions, what was left out. Model, version and id come by themselves. */
int qkv_study_note(qkv_study *study, const char *format, ...) QKV_PRINTF(2, 3);
/* A line on standard error. */
int qkv_study_warn(qkv_study *study, const char *format, ...) QKV_PRINTF(2, 3);

/* ---- the object ---- */

typedef struct study_table {
    char *name, *title;
    char **columns;
    size_t n_columns;
    study_value *cells; /* row by row; texts are the table's */
    size_t n_cells, capacity;
} study_table;

typedef enum study_chart { STUDY_HEATMAP, STUDY_LINES, STUDY_BARS } study_chart;

typedef struct study_picture {
    char *name, *title; /* title may be NULL */
    study_chart chart;
    union {
        qkv_heatmap map;
        qkv_lines lines;
        qkv_bars bars;
    } of;
    study_cells cells;
    size_t prompt;                   /* of the cells */
    const int32_t *layers, *columns; /* NULL: 0, 1, 2, ... */
} study_picture;

struct qkv_study {
    const study_kind *kind;
    char *title;
    study_table *tables;
    size_t n_tables, tables_capacity;
    size_t numbers_table; /* that a CSV holds unless another is named */
    study_picture *pictures;
    size_t n_pictures, pictures_capacity;
    char **notes, **warnings;
    size_t n_notes, notes_capacity, n_warnings, warnings_capacity;
    void **kept; /* memory that charts point to */
    size_t n_kept, kept_capacity;
    int failed; /* memory ran short */
    json_t *recipe;
    char *recipe_text;
    char id[RECIPE_ID_SIZE];
    qkv_text model;       /* for the small print */
    study_prompts linked; /* in place of the prompts, for links; none: those */
    study_second second;  /* names[0] NULL: none */
    json_t *attention;    /* that cells open in a page; NULL: none */
    int is_too_large;     /* for a page: the attention */
};

size_t qkv_study_n_rows(const study_table *table);

/* study_copy.c: the study's copies, whose arrays it keeps. */
int qkv_study_copy_heatmap(qkv_study *study, qkv_heatmap *to, const qkv_heatmap *from,
                           qkv_error *err);
int qkv_study_copy_lines(qkv_study *study, qkv_lines *to, const qkv_lines *from, qkv_error *err);
int qkv_study_copy_bars(qkv_study *study, qkv_bars *to, const qkv_bars *from, qkv_error *err);
/* Memory that is freed with the study, or NULL. */
void *qkv_study_keep(qkv_study *study, const void *bytes, size_t n);
const char *qkv_study_keep_text(qkv_study *study, const char *text);

/* study_recipe.c. The second is the text with the look in it, freed by the caller. */
int qkv_study_make_recipe(qkv_study *study, const study_inputs *in, const qkv_study_inputs *given,
                          const void *options, qkv_error *err);
int qkv_study_recipe_with(const qkv_study *study, const qkv_study_look *look, char **text,
                          qkv_error *err);
extern const field qkv_study_look_fields[];
extern const size_t qkv_study_n_look_fields;

/* study_make.c: from JSON, as recipes have it. */
int qkv_study_read_options(void **out, const study_kind *kind, const json_t *from, qkv_error *err);
int qkv_study_make_json(qkv_study **out, const study_kind *kind, const qkv_study_inputs *inputs,
                        const json_t *options, qkv_error *err);

/* study_write.c */
void qkv_study_small_print(const qkv_study *study, qkv_text *text);
int qkv_study_find_picture(const qkv_study *study, const char *name, size_t *at, qkv_error *err);
int qkv_study_find_table(const qkv_study *study, const char *name, size_t *at, qkv_error *err);

/* study_numbers.c */
int qkv_study_csv(const qkv_study *study, const qkv_study_look *look, qkv_text *out,
                  qkv_error *err);
int qkv_study_json(const qkv_study *study, const qkv_study_look *look, qkv_text *out,
                   qkv_error *err);
int qkv_study_sqlite(const qkv_study *study, const qkv_study_look *look, char **bytes,
                     size_t *n_bytes, qkv_error *err);

#endif
