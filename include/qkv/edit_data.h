/*
 * Unstable: may change in every version.
 *
 * What edits may name besides prompts of their own: vectors, and a set of prompts.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *model = NULL;
 *     qkv_edit_data *data = NULL;
 *     qkv_plan *plan = NULL;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_edit_data_new(&data, &err) == QKV_OK &&
 *         qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK) {
 *         const int64_t width = qkv_model_get_info(model)->n_embd;
 *         float *direction = calloc((size_t)width, sizeof *direction);
 *         if (direction) direction[0] = 1;
 *         if (qkv_edit_data_add_vector(data, "first", direction, &width, 1, &err) == QKV_OK &&
 *             qkv_plan_set_edit_data(plan, data, &err) == QKV_OK)
 *             qkv_plan_add_variant(plan, "resid_post@0=add:@first,by=4", NULL, &err);
 *         free(direction);
 *     }
 *     qkv_plan_free(plan);
 *     qkv_edit_data_free(data);
 *     qkv_model_free(model);
 *
 * Edits say add:@NAME,by=F (F times the vector is added to every selected row; F is 1 where it is left
 * out), remove:@NAME (the projection onto its direction is taken out: x - (x·u)u with u = v / |v|) and
 * set:@NAME. The channels are in the order of captures. A vector has the shape
 *
 *     [width]          the same for all rows: D, d or V numbers, as the site has them
 *     [heads, width]   of a site with heads: one row for each
 *     [T, ...]         one of these for each token of the prompt
 *
 * The set of prompts is what mean:set takes the mean of a site over (of all tokens of all prompts, or with
 * mean:set,per=position of the tokens at the same position), and what patch:resample[,seed=N] draws
 * another prompt from. Means are of the unedited model.
 *
 * Nothing is read from files unless qkv_edit_data_read_vectors is called: a program that takes edits from
 * strangers leaves it out, and an edit that names a file is then refused.
 *
 * Plans and options that were given the object keep what they need of it; it may be freed before them.
 */
#ifndef QKV_EDIT_DATA_H
#define QKV_EDIT_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_edit_data qkv_edit_data;

QKV_API int qkv_edit_data_new(qkv_edit_data **out, qkv_error *err);
QKV_API void qkv_edit_data_free(qkv_edit_data *data);

enum { QKV_VECTOR_MAX_DIMS = 3 };

/* Names a vector: values (row-major) are copied and must be finite. The name has no spaces, '+', ','
 * or ':', and no '/' unless after a '#'. */
QKV_API int qkv_edit_data_add_vector(qkv_edit_data *data, const char *name, const float *values,
                                     const int64_t *shape, int32_t n_dims, qkv_error *err);

/* Reads the vectors that the edits of a variant take from files, @FILE#TENSOR: a safetensors file and
 * one of its tensors, of type F32, F16 or BF16. They are named without their folders: edits that say
 * @some/where/dir.safetensors#name and files that are written say dir.safetensors#name. Other edits
 * are not looked at. */
QKV_API int qkv_edit_data_read_vectors(qkv_edit_data *data, const char *edits, qkv_error *err);

/* Gives the object its set of prompts, once: n_prompts of them, lengths[i] tokens each. All is copied. */
QKV_API int qkv_edit_data_set_prompts(qkv_edit_data *data, const int32_t *const *tokens,
                                      const size_t *lengths, size_t n_prompts, qkv_error *err);

/* Edits that are added to the plan from now on may name what is in the object. */
QKV_API int qkv_plan_set_edit_data(qkv_plan *plan, const qkv_edit_data *data, qkv_error *err);
/* What an edit has taken that its text does not tell: the hash of a vector or of the set of prompts, and
 * the prompt that was drawn. NULL where there is nothing
 * to tell. Belongs to the result. */
QKV_API const char *qkv_result_edit_note(const qkv_result *result, size_t variant, size_t edit);

#ifdef __cplusplus
}
#endif

#endif
