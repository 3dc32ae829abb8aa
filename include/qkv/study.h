/*
 * Unstable: may change in every version.
 *
 * Studies: a question about a model, its answer as tables and pictures.
 *
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_study *study = NULL;
 *     qkv_prompt prompt = QKV_PROMPT_INIT;
 *     qkv_study_inputs inputs = QKV_STUDY_INPUTS_INIT;
 *     prompt.text = "The river runs to the";
 *     inputs.prompts = &prompt;
 *     inputs.n_prompts = 1;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK) {
 *         inputs.session = session;
 *         if (qkv_study_make(&study, "lens", &inputs, "{\"answer\": \" sea\"}", &err) == QKV_OK)
 *             qkv_study_write(study, "lens.png", NULL, &err);
 *     }
 *     qkv_study_free(study);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * A study of a kind has options, as JSON: those of the command of the same name, with `_` for `-`. What
 * comes out holds all it needs and depends on nothing; it belongs to one thread at a time. Making it uses
 * the session, and so belongs to its thread. Messages name options between backquotes.
 */
#ifndef QKV_STUDY_H
#define QKV_STUDY_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/grid.h"
#include "qkv/prompt.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_study qkv_study;

/* "lens" and what it is; NULL past the end. */
QKV_API const char *qkv_study_kind_name(size_t index);
QKV_API const char *qkv_study_kind_title(size_t index);
/* How many prompts a kind takes. Returns 0 where there is no such kind. */
QKV_API int qkv_study_kind_prompts(const char *kind, size_t *least, size_t *most);

/* What a study looks at. Everything is used while it is made, and copied where it is kept. */
typedef struct qkv_study_inputs {
    size_t size;
    qkv_session *session;
    qkv_session *other; /* of the second model of a comparison; else NULL */
    const qkv_prompt *prompts;
    size_t n_prompts;
    /* What its recipe says about where it comes from: the command line of a program. */
    const char *const *command;
    size_t n_command;
    int32_t living; /* 1: keep what an HTML page needs. It is no part of the recipe */
    /* A file that a long study keeps what it has computed in: made again with the same inputs, it goes on
     * from there, however it ended. Kinds that keep nothing refuse it. NULL: none. */
    const char *results;
    /* Called while a long study is computed, in units of its own; anything but 0 ends it with
     * QKV_ERR_CANCELLED. May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
} qkv_study_inputs;

#define QKV_STUDY_INPUTS_INIT                                                                      \
    { .size = sizeof(qkv_study_inputs) }

/* `options` is a JSON object; NULL: none. */
QKV_API int qkv_study_make(qkv_study **out, const char *kind, const qkv_study_inputs *inputs,
                           const char *options, qkv_error *err);
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

/* Lines about what was computed, and what a reader should know; NULL past the end. */
QKV_API const char *qkv_study_get_note(const qkv_study *study, size_t index);
QKV_API const char *qkv_study_warning(const qkv_study *study, size_t index);

/* ---- files ---- */

/* How it is drawn. Fields that are 0 or NULL: the default. */
typedef struct qkv_study_look {
    size_t size;
    const char *picture; /* its name; NULL: the first */
    const char *table;   /* of a CSV; NULL: the first */
    const char *title;   /* NULL: the picture's own, "": none */
    double dpi;          /* of a PNG; 0: 150 */
    qkv_colormap colormap;
    qkv_text_form text; /* of an SVG or PDF */
    const char *font;   /* NULL: DejaVu Sans */
    double width;       /* of the page, points; 0: as wide as its content */
    int32_t hide_notes; /* 1: without the small print */
    int32_t no_recipe;  /* 1: files carry none */
} qkv_study_look;

#define QKV_STUDY_LOOK_INIT                                                                        \
    { .size = sizeof(qkv_study_look) }

/* Names that the study does not have, or values that cannot be; before anything is written. */
QKV_API int qkv_study_check_look(const qkv_study *study, const qkv_study_look *look,
                                 qkv_error *err);

/* .html: a page of all pictures and tables, whose cells open the attention behind them where the study was
 * made with `living`. .png, .svg, .pdf: a picture. .csv: a table. .json: all tables. .sqlite: a table of
 * SQL for each of them. Pages, pictures, JSON and SQLite carry the recipe. `look` may be NULL. */
QKV_API int qkv_study_write(const qkv_study *study, const char *path, const qkv_study_look *look,
                            qkv_error *err);
/* The same bytes in memory; the format is "png", ... *bytes is the caller's to free with
 * qkv_bytes_free. */
QKV_API int qkv_study_render(const qkv_study *study, const char *format, const qkv_study_look *look,
                             char **bytes, size_t *n_bytes, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
