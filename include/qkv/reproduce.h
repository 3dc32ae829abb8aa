/*
 * Studies, figures among them, and charts made again from the recipe that their files carry, and compared with what
 * they showed.
 *
 *     qkv_reproduction *r = NULL;
 *     qkv_study *study = NULL;
 *     qkv_study_info info = QKV_STUDY_INFO_INIT;
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_reproduction_difference difference = QKV_REPRODUCTION_DIFFERENCE_INIT;
 *     if (qkv_reproduction_open(&r, "lens.png", &err) == QKV_OK &&
 *         qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_reproduction_study(r, &study, session, NULL, &err) == QKV_OK &&
 *         qkv_study_get_info(study, &info, &err) == QKV_OK &&
 *         qkv_reproduction_compare(r, info.recipe, &difference, &err) == QKV_OK) {
 *         printf("%s\n", difference.same_bits ? "the same" : "not the same");
 *     }
 *     qkv_study_free(study);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *     qkv_reproduction_free(r);
 *
 * Files are not trusted: a recipe is read field by field, and types and limits are checked.
 * Nothing in it is executed, or used as the name of a file. It belongs to one thread at a time.
 */
#ifndef QKV_REPRODUCE_H
#define QKV_REPRODUCE_H

#include "qkv/plot.h"
#include "qkv/study.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_reproduction qkv_reproduction;

/* The recipe in a file: PNG, SVG, PDF, HTML, Markdown, JSON, safetensors, or a recipe by itself. */
QKV_API int qkv_reproduction_open(qkv_reproduction **out, const char *path, qkv_error *err);
/* The same of a file in memory; `name` is for messages. */
QKV_API int qkv_reproduction_read(qkv_reproduction **out, const char *bytes, size_t n_bytes,
                                  const char *name, qkv_error *err);
QKV_API void qkv_reproduction_free(qkv_reproduction *r);

/* Strings belong to the reproduction. They are the file's: print them with care. */
typedef struct qkv_reproduction_info {
    size_t size;
    int32_t is_plot;    /* 1: a chart of a sweep, which needs its results; 0: a study or figure */
    const char *format; /* of the file: "png"; "recipe": one by itself */
    const char *kind;   /* of study, "modify", or of chart, "heatmap" */
    const char *id;     /* 8 characters */
    const char *model;  /* the name its file had, for people */
    const char *model_hash;   /* as qkv_model_hash; of a chart "", where its results do not say */
    const char *results;      /* of a chart: the name its results had, for people */
    const char *results_hash; /* of a chart */
    const char *recipe;       /* JSON */
    int32_t is_study;         /* 1: a study that is not a figure */
    const char *other_model;  /* of a study of two models: the second one */
    const char *other_hash;
} qkv_reproduction_info;

#define QKV_REPRODUCTION_INFO_INIT                                                                 \
    { .size = sizeof(qkv_reproduction_info) }

QKV_API int qkv_reproduction_get_info(const qkv_reproduction *r, qkv_reproduction_info *info,
                                      qkv_error *err);

/* Made again; also with another model or other results, whose numbers may then differ. `other` is a session of the
 * second model, where there is one. What was set of the look is what the file was drawn with. */
QKV_API int qkv_reproduction_study(const qkv_reproduction *r, qkv_study **out, qkv_session *session,
                                   qkv_session *other, qkv_error *err);
/* The same of a chart of a sweep. */
QKV_API int qkv_reproduction_plot(const qkv_reproduction *r, qkv_plot **out,
                                  qkv_sweep_reader *results, qkv_error *err);

/* The numbers of the file and those of what was made again. */
typedef struct qkv_reproduction_difference {
    size_t size;
    int32_t same_bits;     /* 1: all plotted values are the same, bit for bit */
    int32_t same_versions; /* 1: of qkv, ggml and its backend: bits should be the same */
    int32_t same_shape;    /* 0: panels of another size: nothing is compared */
    size_t n_panels;
    size_t n_different; /* panels with other values */
    size_t row, col;    /* the one with the largest difference */
    double largest;     /* absolute difference of the values that the recipe holds: up to 16 of a
                             * panel, its least and largest value and its norm */
} qkv_reproduction_difference;

#define QKV_REPRODUCTION_DIFFERENCE_INIT                                                           \
    { .size = sizeof(qkv_reproduction_difference) }

/* With the recipe of what was made again (qkv_study_info, qkv_plot_info). */
QKV_API int qkv_reproduction_compare(const qkv_reproduction *r, const char *recipe,
                                     qkv_reproduction_difference *out, qkv_error *err);

/* A file with a recipe (the text of one) put in, in place of any that it has: PNG, SVG, PDF, HTML,
 * Markdown. *out is the caller's to free with qkv_bytes_free. */
QKV_API int qkv_reproduction_insert(char **out, size_t *n_out, const char *bytes, size_t n_bytes,
                                    const char *name, const char *recipe, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
