/*
 * Studies from the inside: how a kind of study is added, and what one is made of.
 *
 * A kind is a line in study_kinds.c: a struct of options, a table of its fields (study/fields.h), and
 * a function that is given the inputs and the options and fills the study:
 *
 *     typedef struct lens_options { int32_t top; const char *answer; } lens_options;
 *
 *     static const field fields[] = {
 *         FIELD(lens_options, top, INT, "N", 1, 100, "how many of the most likely tokens (default 5)"),
 *         ...
 *     };
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
 * tokenizes the prompts, makes recipe and id, and writes files; the command line, Python and the server list
 * the fields, and have the kind with them. Options whose value is 0, NULL or QKV_AUTO have their default and
 * are left out of recipes; what the default is, the maker decides, and the field's sentence says.
 *
 * Everything that is added is copied. Once memory has run short, what is added is dropped, and the
 * study fails as a whole in the end: results of set_title, note, warn and link need not be looked at.
 *
 *     study.c          the object, and adding to it
 *     study_kinds.c    the list of kinds, and their fields
 *     study_make.c     setting fields, and inputs and options to a study
 *     study_load.c     the same from a recipe that people write
 *     study_recipe.c   its recipe
 *     edit_inputs.c    what edits name: other prompts, vectors
 *     study_copy.c     charts, copied
 *     study_write.c    files: pictures
 *     study_numbers.c  files: tables
 *     html_study.c     pages; study_maps.c: the attention in them
 */
#ifndef QKV_STUDY_STUDY_H
#define QKV_STUDY_STUDY_H

#include "base/fail.h"
#include "base/json.h"
#include "draw/draw.h"
#include "qkv/chart.h"
#include "qkv/study.h"
#include "qkv/sweep.h"
#include "study/edit_inputs.h"
#include "study/fields.h"
#include "study/figure.h"
#include "study/prompt.h"
#include "study/study_recipe.h"

/* ---- what a maker is given ---- */

typedef struct study_inputs {
    qkv_session *session;
    const qkv_model *model; /* of the session */
    qkv_session *other;     /* of kinds that need two; else NULL */
    const qkv_model *other_model;
    qkv_own_prompts prompts; /* with tokens and labels (of axes) */
    edit_inputs edits;       /* what edits name */
    const char *results;     /* a file to continue from; NULL: none */
} study_inputs;

typedef struct study_kind {
    const char *name;        /* "lens" */
    const char *command;     /* "figure modify"; NULL: as its name */
    const char *former;      /* its name in recipes of earlier versions; NULL: the same */
    const char *title;       /* what it is, for lists */
    const char *description; /* paragraphs; fields between backquotes */
    const char *examples;    /* command lines */
    field_table fields;      /* of the options; all are work */
    field_table look;        /* of a figure, into the same struct */
    int figure;              /* a qkv_figure_kind and 1: what it makes is a figure; 0: it is not */
    size_t options_size;     /* of the struct; it starts as 0, FIELD_INDEX as QKV_AUTO */
    size_t least_prompts, most_prompts;
    const char *prompt_names; /* "clean|corrupt": what prompts are, in turn; NULL: they are alike */
    size_t default_prompts;   /* so many of the library's own where none is given; 0: an error */
    const char *operand;      /* the field that the command takes as its operand; NULL: none */
    const char *
        edits; /* the fields that hold edits, "variant|edit", which may name other inputs; NULL: none */
    int no_pictures; /* it has tables alone: no file is a drawing */
    int needs_other;
    size_t n_printed;  /* tables that the command prints; 0: the study's, or the first */
    int keeps_results; /* it continues from a file */
    /* Options and prompts that cannot be, told without a model; it may also add prompts that options bring.
     * NULL: nothing. */
    int (*check)(qkv_study *study, const void *options, qkv_error *err);
    /* The cells that it is computed from, where processes may share them. NULL: it is computed at once. */
    int (*cells)(qkv_sweep **out, const study_inputs *in, const void *options, qkv_error *err);
    int (*make)(qkv_study *study, const study_inputs *in, const void *options, qkv_error *err);
} study_kind;

extern const study_kind *const qkv_study_kinds[];
extern const size_t qkv_study_n_kinds;
/* NULL where there is none. */
const study_kind *qkv_study_find_kind(const char *name);
/* The same of a name that a recipe has, which may be a former one. */
const study_kind *qkv_study_find_recorded(const char *name);

enum { STUDY_MOST_TEXT = 1 << 20 }; /* bytes of a text that a recipe brings along */

/* ---- making ---- */

/* How it is drawn and written. Fields that are 0 or NULL have their default. */
typedef struct study_look {
    const char *picture; /* its name; NULL: the first */
    const char *table;   /* of a CSV; NULL: the first */
    const char *title;   /* NULL: the picture's own, "": none */
    double dpi;          /* of a PNG; 0: 150, with a width 300 */
    int colormap;        /* a qkv_colormap */
    int text;            /* a qkv_text_form, of an SVG or PDF */
    const char *font;    /* NULL: DejaVu Sans */
    double width;        /* of the page, points; 0: as wide as its content */
    int32_t no_notes;    /* 1: without the small print */
    int32_t no_recipe;   /* 1: files carry none */
    double font_size;    /* points, 5 to 72; 0: 8, or what the width allows */
} study_look;

/* What is set that is neither work nor look. */
typedef struct study_asked {
    int32_t page;        /* 1: keep what an HTML page needs */
    int32_t report;      /* 1: measure what a report of a figure says */
    const char *results; /* a file to continue from; NULL: none */
    /* Taken by edit_inputs.c before a study runs. */
    const char *source, *set_prompts;
    int32_t read_vectors;
} study_asked;

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

/* What the cells are about of the heatmap that was added last (all of its panels): rows are layers
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

/* Work of several runs, in the one model or in both: as qkv_session_begin_work and those that belong
 * to it. */
int qkv_study_begin(const study_inputs *in, const char *what, size_t total, qkv_error *err);
int qkv_study_reach(const study_inputs *in, double done, double next, qkv_error *err);
int qkv_study_end(const study_inputs *in, int status);

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

/* What is made of prompts and options before a study runs, and stays while they do. */
typedef struct study_ready {
    qkv_model *model;        /* that it is for; NULL: nothing is made yet */
    qkv_own_prompts prompts; /* those without a name */
    qkv_sweep *sweep;        /* of its cells; NULL: not made yet */
} study_ready;

struct qkv_study {
    const study_kind *kind;
    qkv_figure *figure; /* of kinds that make one; else NULL */
    json_t *set[3];     /* what was set, by qkv_field_use */
    qkv_prompt *given;  /* prompts; their texts and tokens are the study's */
    size_t n_given, given_capacity;
    study_ready ready;
    qkv_edit_data *edit_data; /* vectors and the set of prompts that edits name; NULL: none */
    char **command;           /* words, for the recipe */
    size_t n_command;
    int has_run;
    size_t n_failed; /* lines of the study that say FAILED */
    char *title;
    study_table *tables;
    size_t n_tables, tables_capacity;
    size_t numbers_table; /* that a CSV holds unless another is named */
    size_t n_printed;     /* where its kind does not say */
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
    qkv_text model;         /* for the small print */
    qkv_own_prompts linked; /* in place of the prompts, for links; none: those */
    study_second second;    /* names[0] NULL: none */
    json_t *attention;      /* that cells open in a page; NULL: none */
    int is_too_large;       /* for a page: the attention */
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

/* study_kinds.c: the tables of a kind's fields, by qkv_field_use. */
void qkv_study_tables(const study_kind *kind, field_table tables[3]);
extern const field_table qkv_study_look_table;

/* study_recipe.c. The second is the text with the look in it, freed by the caller. */
int qkv_study_make_recipe(qkv_study *study, const study_inputs *in, const void *options,
                          qkv_error *err);
int qkv_study_recipe_with(const qkv_study *study, const study_look *look, char **text,
                          qkv_error *err);

/* study_make.c */
/* Its cells, made once: qkv_sweep_free it. */
int qkv_study_get_sweep(qkv_study *study, const study_inputs *in, const void *options,
                        qkv_sweep **out, qkv_error *err);
/* Prompts or options have changed. */
void qkv_study_forget_ready(qkv_study *study);
/* The prompts with a name, or those without one. Release them also after a failure. */
int qkv_study_take_prompts(qkv_own_prompts *to, const qkv_study *study, int named,
                           const qkv_model *model, qkv_error *err);
int qkv_study_set_options(qkv_study *study, const json_t *options, qkv_error *err);
/* Into a struct of the kind's, to be freed also after a failure. */
int qkv_study_read_options(void **out, const study_kind *kind, const json_t *from, qkv_error *err);

/* study_write.c */
const char *qkv_study_formats(const study_kind *kind);
void qkv_study_small_print(const qkv_study *study, qkv_text *text);
int qkv_study_find_picture(const qkv_study *study, const char *name, size_t *at, qkv_error *err);
int qkv_study_find_table(const qkv_study *study, const char *name, size_t *at, qkv_error *err);

/* study_numbers.c */
int qkv_study_csv(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err);
int qkv_study_json(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err);
int qkv_study_sqlite(const qkv_study *study, const study_look *look, char **bytes, size_t *n_bytes,
                     qkv_error *err);

/* ---- pages: study_maps.c, html_study.c ---- */

/* Adds "attention" to the data of a page: null where no picture is linked, or all is too much. Called
 * while the study has its inputs. */
int qkv_study_take_maps(qkv_study *study, const study_inputs *in, qkv_error *err);

/* html_study.c: appends the page. */
int qkv_study_html(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err);

#endif
