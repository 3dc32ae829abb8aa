/*
 * Writing results to files, for numpy, PyTorch or any reader of safetensors.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_plan *plan = NULL;
 *     qkv_result *result = NULL;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *         qkv_plan_add_capture(plan, "pattern", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_session_run(session, &result, plan, &err) == QKV_OK) {
 *         qkv_store_write(result, plan, model, "out.safetensors", &err);
 *     }
 *     qkv_result_free(result);
 *     qkv_session_free(session);
 *     qkv_plan_free(plan);
 *     qkv_model_free(model);
 *
 * The suffix says how. `.safetensors`: every tensor as `v0/pattern.3` (variant, site, layer; logits
 * without a layer, a reduction after it: `v0/pattern.3.first`), with texts about it in
 * `__metadata__`. `.json`: the same as readable numbers, for small results. `.npz`: an archive
 * that numpy.load opens, with the same names and the metadata as JSON in `__metadata__`. `.npy`: when
 * exactly one tensor was captured. Files are written to a temporary name and renamed. Nothing here has
 * state: any thread may write.
 *
 * Keys of the metadata, all of them in docs/files.md; in safetensors, whose values are texts, lists
 * and objects are JSON texts:
 *
 *     prompt                 where qkv_plan_set_prompt gave it
 *     tokens, token_strings  ids, and what each stands for
 *     edits                  of every variant, a list of texts
 *     tensors                by name: variant, site, layer, heads, channels, shape, axes, reduction
 *     captures               as they were given
 *     variant.1              the edits of variant 1, as they were given
 *     edits_changed.1        how many values each of them changed; null: it was not computed
 *     edits_selected.1       how many it covers
 *     source.NAME            the tokens that patch:NAME took its values from
 *     heads.pattern.3        "h0,h2", where a tensor does not hold all heads
 *     channels.resid_post.3  a list, where a tensor does not hold all channels
 *     side.pattern.3.mean    cells on a side of a pooled map
 *     logits_tokens          the positions that rows of logits belong to, where not to all; also
 *                            final_norm_tokens
 *     model, model_hash      the last part of its path; what identifies it
 *     architecture, qkv_version
 */
#ifndef QKV_STORE_H
#define QKV_STORE_H

#include "qkv/bytes.h"
#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

QKV_API int qkv_store_write(const qkv_result *result, const qkv_plan *plan, const qkv_model *model,
                            const char *path, qkv_error *err);

/* The same bytes in memory, freed with qkv_bytes_free. `format` is a suffix: "safetensors". */
QKV_API int qkv_store_render(const qkv_result *result, const qkv_plan *plan, const qkv_model *model,
                             const char *format, char **bytes, size_t *n_bytes, qkv_error *err);

/* What such a file says about itself, as a JSON object, freed with qkv_text_free. No tensor is
 * written. */
QKV_API int qkv_store_describe(const qkv_result *result, const qkv_plan *plan,
                               const qkv_model *model, char **json, qkv_error *err);

/* Fails where qkv_store_write would fail whatever the disk is like: an unknown suffix, several
 * tensors for .npy, too many values for .json, more than 4 GB for .npz. */
QKV_API int qkv_store_check(const qkv_result *result, const char *path, qkv_error *err);

enum { QKV_STORE_NAME_SIZE = 64 };

/* The name of a tensor in a file, e.g. "v0/pattern.3"; "" and 0 where there is no such site or
 * reduction, else 1. */
QKV_API int qkv_store_name(char out[QKV_STORE_NAME_SIZE], size_t variant, qkv_site site,
                           int32_t layer, qkv_reduction reduction);

#ifdef __cplusplus
}
#endif

#endif
