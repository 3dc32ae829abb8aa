/*
 * Unstable: may change in every version.
 *
 * Figures by their names: options as JSON, and as the words of a command line.
 *
 *     static const char json[] = "{\"kind\": \"modify\", \"layer\": 3, \"head\": 1, \"eps\": \"1e-3\"}";
 *     qkv_figure_spec *spec = NULL;
 *     if (qkv_figure_spec_new(&spec, json, sizeof json - 1, &err) == QKV_OK) {
 *         printf("qkv figure %s", qkv_figure_kind_name(qkv_figure_spec_kind(spec)));
 *         for (size_t i = 0; qkv_figure_spec_word(spec, i); i++)
 *             printf(" %s", qkv_figure_spec_word(spec, i));
 *         printf("\n");
 *     }
 *     qkv_figure_spec_free(spec);
 *
 * The fields are those of qkv_figure_options, by their names; enumerations are words ("scale": "log"),
 * a `scale` of "linear" is one whatever the prompt, and `rows` and `cols` are lists of {"label",
 * "edits"}. Prompts, sources and what belongs to files are not among them.
 *
 * A spec belongs to one thread at a time; it depends on nothing.
 */
#ifndef QKV_FIGURE_SPEC_H
#define QKV_FIGURE_SPEC_H

#include <stddef.h>

#include "qkv/figure.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_figure_spec qkv_figure_spec;

/* Types, words and limits are checked, names that no field has are refused, and fields are checked
 * to fit each other (qkv_figure_options_check). */
QKV_API int qkv_figure_spec_new(qkv_figure_spec **out, const char *json, size_t length,
                                qkv_error *err);
QKV_API void qkv_figure_spec_free(qkv_figure_spec *spec);
/* QKV_FIGURE_KINDS without a spec. */
QKV_API qkv_figure_kind qkv_figure_spec_kind(const qkv_figure_spec *spec);
/* The options as `qkv figure KIND` takes them, word by word; NULL past the end. */
QKV_API const char *qkv_figure_spec_word(const qkv_figure_spec *spec, size_t index);

/* The figure that the program would make: for a file of `format`, a suffix. `command` is what its
 * recipe tells of the command line; n_command may be 0. */
QKV_API int qkv_figure_spec_make(const qkv_figure_spec *spec, qkv_figure **out,
                                 qkv_session *session, const qkv_prompt *prompts, size_t n_prompts,
                                 const char *format, const char *const *command, size_t n_command,
                                 qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
