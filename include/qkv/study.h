/*
 * Studies: a question about a model, its answer as tables and pictures.
 *
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_study *study = NULL;
 *     qkv_prompt prompt = QKV_PROMPT_INIT;
 *     prompt.text = "The river runs to the";
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_study_new(&study, "lens", &err) == QKV_OK &&
 *         qkv_study_set(study, "answer", " sea", &err) == QKV_OK &&
 *         qkv_study_add_prompt(study, &prompt, &err) == QKV_OK &&
 *         qkv_study_run(study, session, NULL, &err) == QKV_OK)
 *         qkv_study_write(study, "lens.png", &err);
 *     qkv_study_free(study);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * A study is of a kind. What a kind can be asked is a list of fields, the options of the command of the same
 * name with `_` for `-`: they have names, bounds and a sentence each, and are set by name. Values are checked when
 * they are set. What comes out holds all it needs and depends on nothing; it belongs to one thread at a time.
 * Running it uses the session, and so belongs to its thread. Messages name fields between backquotes.
 */
#ifndef QKV_STUDY_H
#define QKV_STUDY_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/prompt.h"
#include "qkv/session.h"
#include "qkv/sweep.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_study qkv_study;

/* ---- kinds, and the fields of each ---- */

/* The name of a kind, "lens"; NULL past the end. */
QKV_API const char *qkv_study_kind_name(size_t index);

typedef struct qkv_study_kind {
    size_t size;
    const char *name;
    const char *title;       /* one line: what it answers */
    const char *description; /* paragraphs; fields between backquotes */
    const char *examples;    /* command lines, one to a line */
    size_t least_prompts, most_prompts;
    /* What its prompts are, in turn: "clean|corrupt". NULL: they are alike. */
    const char *prompt_names;
    size_t default_prompts; /* so many of the library's own where none is given; 0: an error */
    const char *operand;    /* the field that the command takes without its name; NULL: none */
    int32_t n_models;       /* 1, or 2: a comparison */
    int32_t resumes;        /* 1: the field `results` names a file from which it continues */
    int32_t has_cells;      /* 1: it has cells that processes can share (qkv_study_make_sweep) */
    const char *former;     /* its name in recipes of earlier versions; NULL: the same */
    const char *command;    /* of the program: its name, or "figure modify" */
    const char *formats;    /* that it can be written as: "png|svg|..." */
} qkv_study_kind;

#define QKV_STUDY_KIND_INIT                                                                        \
    { .size = sizeof(qkv_study_kind) }

QKV_API int qkv_study_get_kind(const char *name, qkv_study_kind *kind, qkv_error *err);

typedef enum qkv_field_type {
    QKV_FIELD_FLAG,    /* "true" or "false" */
    QKV_FIELD_INTEGER, /* least to most */
    QKV_FIELD_REAL,    /* least to most */
    QKV_FIELD_RANGE,   /* "LO,HI", two numbers */
    QKV_FIELD_LENGTH,  /* "85mm", "8.5cm", "3.3in" or "240pt"; as JSON, points */
    QKV_FIELD_WORD,    /* one of `words` */
    QKV_FIELD_TEXT,
    QKV_FIELD_LIST, /* texts: set again, it grows */
    QKV_FIELD_FILE, /* the text of a file: the command line takes the file's name */
    QKV_FIELD_PATH  /* the name of a file */
} qkv_field_type;

/* What a field is for. */
typedef enum qkv_field_use {
    QKV_FIELD_WORK, /* what is computed: part of the recipe and its id */
    QKV_FIELD_LOOK, /* how it is drawn and written: may be set after the run, but of a figure */
    QKV_FIELD_INPUT /* where from and what with: not part of the recipe */
} qkv_field_use;

typedef struct qkv_study_field {
    size_t size;
    const char *name;
    qkv_field_type type;
    qkv_field_use use;
    const char *words;   /* of a word, "tv|js|kl"; else NULL */
    double least, most;  /* of numbers; both 0: any */
    const char *value;   /* how help calls its value, "N"; NULL: flags and words */
    const char *help;    /* a sentence without a capital or full stop */
    const char *outputs; /* formats that it has an effect on, "png|svg"; NULL: all */
} qkv_study_field;

#define QKV_STUDY_FIELD_INIT                                                                       \
    { .size = sizeof(qkv_study_field) }

/* The fields of a kind, one after the other. Returns 0 past the last one, and for a kind that there is not. */
QKV_API int qkv_study_get_field(const char *kind, size_t index, qkv_study_field *field);

/* ---- making one ---- */

QKV_API int qkv_study_new(qkv_study **out, const char *kind, qkv_error *err);
/* The same from a recipe that people write, {"study": KIND, "options": {...}}, with its options set; or a sweep and its
 * tables, {"sweep": {...}, "tables": [...]}, which is the study "effects". What else it may have, "title", "about" and
 * "prompts", is the caller's to read. */
QKV_API int qkv_study_load(qkv_study **out, const char *recipe, qkv_error *err);
/* A field from a text, as the command line has it: "12", "true", "linear". NULL: true, of a flag; the default,
 * of others. */
QKV_API int qkv_study_set(qkv_study *study, const char *name, const char *value, qkv_error *err);
/* Several fields at once, from a JSON object. Either all are set or none is. */
QKV_API int qkv_study_set_json(qkv_study *study, const char *object, qkv_error *err);
/* It is copied. Of a grid, prompts with a name are the sources of patch:NAME, and those named QKV_SET_PROMPT the set
 * that mean:set and patch:resample are about. */
QKV_API int qkv_study_add_prompt(qkv_study *study, const qkv_prompt *prompt, qkv_error *err);
/* What the recipe says about where it comes from: the words of a command line. */
QKV_API int qkv_study_set_command(qkv_study *study, const char *const *words, size_t n_words,
                                  qkv_error *err);
/* Whether all that was set can be computed, as far as can be told without a model. Running asks this first. */
QKV_API int qkv_study_check(qkv_study *study, qkv_error *err);
/* The cells that a study is computed from, for processes that share them (qkv_sweep_share) before it runs with the
 * same file as `results`. Kinds that are computed at once have none, which is an error. */
QKV_API int qkv_study_make_sweep(qkv_study *study, const qkv_model *model, qkv_sweep **out,
                                 qkv_error *err);
/* Computes it. `other` is the session of the second model of a comparison, else NULL. Once only. */
QKV_API int qkv_study_run(qkv_study *study, qkv_session *session, qkv_session *other,
                          qkv_error *err);
QKV_API void qkv_study_free(qkv_study *study);

/* ---- what came out ---- */

/* Texts belong to the study. */
typedef struct qkv_study_info {
    size_t size;
    const char *kind;  /* "lens" */
    const char *title; /* of the whole */
    size_t n_tables, n_pictures;
    const char *recipe; /* JSON, without the look */
    const char *id;     /* of the recipe, 8 characters */
    size_t n_printed;   /* the first so many tables are the answer in short */
    size_t n_failed;    /* of the study `check`: what does not hold; the command then fails */
    /* Of a figure; 0, -1 and NULL of other studies. */
    size_t n_maps, map_rows, map_columns; /* its panels, row by row; with the baseline's column */
    size_t n_prompts;
    int32_t layer, head;      /* that it shows; -1: several */
    double low, high;         /* range of the colour scale */
    const char *figure_title; /* the figure's own; NULL: none */
    const char *edits;        /* what is done, "q@5.h0=scale:ε, k@5.h0=scale:ε, ..." */
    const char *small_print;  /* the line below the figure */
} qkv_study_info;

#define QKV_STUDY_INFO_INIT                                                                        \
    { .size = sizeof(qkv_study_info) }

QKV_API int qkv_study_get_info(const qkv_study *study, qkv_study_info *info, qkv_error *err);

typedef struct qkv_study_table {
    size_t size;
    const char *name, *title;
    size_t n_rows, n_columns;
} qkv_study_table;

#define QKV_STUDY_TABLE_INIT                                                                       \
    { .size = sizeof(qkv_study_table) }

QKV_API int qkv_study_get_table(const qkv_study *study, size_t table, qkv_study_table *to,
                                qkv_error *err);
/* The name of a column; NULL past the end. */
QKV_API const char *qkv_study_column(const qkv_study *study, size_t table, size_t column);
/* A cell is a number (NaN: none) or, where *text is not NULL, a text. */
QKV_API int qkv_study_get_value(const qkv_study *study, size_t table, size_t row, size_t column,
                                double *number, const char **text, qkv_error *err);

/* The name and the title of a picture; NULL past the end. */
QKV_API const char *qkv_study_picture_name(const qkv_study *study, size_t picture);
QKV_API const char *qkv_study_picture_title(const qkv_study *study, size_t picture);

/* A panel of a figure. Everything belongs to the study. */
typedef struct qkv_study_map {
    size_t size;
    const char *title;
    const char *edits; /* "": unmodified */
    size_t prompt;
    int32_t layer, head; /* what is shown; -1: several */
    int64_t n_rows, n_columns;
    const float *values;     /* n_rows x n_columns, as drawn: keys left out, differences taken */
    const float *whole;      /* n_rows x n_rows, the whole map; NULL unless `report` was set */
    const float *unmodified; /* the same of the prompt without edits */
} qkv_study_map;

#define QKV_STUDY_MAP_INIT                                                                         \
    { .size = sizeof(qkv_study_map) }

QKV_API int qkv_study_get_map(const qkv_study *study, size_t index, qkv_study_map *map,
                              qkv_error *err);
/* A prompt of a figure with its tokens, also where it was given as text. They belong to the study. */
QKV_API int qkv_study_get_prompt(const qkv_study *study, size_t index, qkv_prompt *prompt,
                                 qkv_error *err);

/* Lines about what was computed, and what a reader should know; NULL past the end. */
QKV_API const char *qkv_study_get_note(const qkv_study *study, size_t index);
QKV_API const char *qkv_study_warning(const qkv_study *study, size_t index);

/* ---- files ---- */

/* Whether what was set of the look can be drawn: names of pictures and tables; before anything is written. */
QKV_API int qkv_study_check_look(const qkv_study *study, qkv_error *err);

/* .html: a page of all pictures and tables, whose cells open the attention that they are about where `page` was
 * set. .png, .svg, .pdf: a picture, the first or the one of `picture`. .csv: a table, likewise `table`. .json: all
 * tables. .sqlite: a table of SQL for each of them. Pages, pictures, JSON and SQLite carry the recipe.
 *
 * Of a figure, .html is a page whose maps change as you drag: edits that scale q or k of the layer shown have a
 * slider, exact at every factor. .md and .json are the report, where `report` was set. .safetensors and .npz: the
 * values of the panels as r0.c0, r0.c1, ...; .csv: the same, a row for each. */
QKV_API int qkv_study_write(const qkv_study *study, const char *path, qkv_error *err);
/* The same bytes in memory; the format is "png", ... *bytes is the caller's to free with qkv_bytes_free. */
QKV_API int qkv_study_render(const qkv_study *study, const char *format, char **bytes,
                             size_t *n_bytes, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
