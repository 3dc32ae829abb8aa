/*
 * Files in memory: what can be written to a file can be had as bytes.
 *
 *     char *bytes;  size_t n_bytes;
 *     qkv_grid_render(grid, &style, "png", &bytes, &n_bytes, &err);
 *     fwrite(bytes, 1, n_bytes, stdout);
 *     qkv_bytes_free(bytes);
 *
 * They are the bytes that the file would have, and a NUL stands behind them, so that a text can be
 * used as a string. *bytes is NULL on failure. Bytes belong to whoever asked for them.
 */
#ifndef QKV_BYTES_H
#define QKV_BYTES_H

#include <stddef.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

QKV_API void qkv_bytes_free(char *bytes);

#ifdef __cplusplus
}
#endif

#endif
