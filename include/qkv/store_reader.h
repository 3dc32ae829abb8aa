/*
 * Reading files of tensors back: what qkv/store.h writes, and any other safetensors, .npy or .npz.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_plan *plan = NULL;
 *     qkv_result *result = NULL;
 *     qkv_store_reader *file = NULL;
 *     qkv_store_item item = QKV_STORE_ITEM_INIT;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *         qkv_plan_add_capture(plan, "pattern@3", &err) == QKV_OK &&
 *         qkv_session_run(session, &result, plan, &err) == QKV_OK &&
 *         qkv_store_write(result, plan, model, "out.safetensors", &err) == QKV_OK &&
 *         qkv_store_reader_open(&file, "out.safetensors", &err) == QKV_OK) {
 *         for (size_t i = 0; qkv_store_reader_item(file, i, &item); i++) {
 *             printf("%s: %s, %lld values\n", item.name, item.type, (long long)item.n_values);
 *         }
 *         printf("%s\n", qkv_store_reader_metadata(file));
 *     }
 *     qkv_store_reader_close(file);
 *     qkv_result_free(result);
 *     qkv_plan_free(plan);
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * What a file is shows in its bytes, not in its name. safetensors, .npy and .npz are mapped, and values
 * are converted when they are asked for; JSON is read whole. A file belongs to one thread at a time.
 */
#ifndef QKV_STORE_READER_H
#define QKV_STORE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_store_reader qkv_store_reader;

enum { QKV_STORE_MAX_DIMS = 8 };

/* One tensor. Texts belong to the file. */
typedef struct qkv_store_item {
    size_t size;
    const char *name;
    const char *type; /* "F32", "BF16", "I64", ... */
    int32_t n_dims;
    int64_t shape[QKV_STORE_MAX_DIMS]; /* row-major */
    int64_t n_values;
} qkv_store_item;

#define QKV_STORE_ITEM_INIT                                                                        \
    { .size = sizeof(qkv_store_item) }

QKV_API int qkv_store_reader_open(qkv_store_reader **out, const char *path, qkv_error *err);
QKV_API void qkv_store_reader_close(qkv_store_reader *file);

/* "safetensors", "json", "npz" or "npy". */
QKV_API const char *qkv_store_reader_format(const qkv_store_reader *file);
/* What the file says about itself, as the text of a JSON object: "{}" where it says nothing. Values
 * that are JSON texts in a safetensors file are what they mean here: lists are lists. */
QKV_API const char *qkv_store_reader_metadata(const qkv_store_reader *file);

/* Tensors by name: fills *item and returns 1, or returns 0 past the end. */
QKV_API int qkv_store_reader_item(const qkv_store_reader *file, size_t index, qkv_store_item *item);
/* `n` values of a tensor from `first` on. */
QKV_API int qkv_store_reader_values(const qkv_store_reader *file, size_t index, int64_t first,
                                    int64_t n, double *values, qkv_error *err);
/* All values of a tensor as they are stored, little-endian and of its type, at any address; they
 * belong to the file. NULL where there is no such tensor. */
QKV_API const void *qkv_store_reader_data(const qkv_store_reader *file, size_t index);

#ifdef __cplusplus
}
#endif

#endif
