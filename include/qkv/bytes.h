/*
 * Files in memory: what can be written to a file can be had as bytes.
 *
 *     const float weights[] = {1, 0, 0.25f, 0.75f};
 *     qkv_panel panel = QKV_PANEL_INIT;
 *     panel.values = weights;
 *     panel.n_rows = panel.n_cols = 2;
 *     qkv_grid_style style = QKV_GRID_STYLE_INIT;
 *     qkv_grid *grid = NULL;
 *     char *bytes = NULL;
 *     size_t n_bytes = 0;
 *     if (qkv_grid_new(&grid, 1, 1, &err) == QKV_OK &&
 *         qkv_grid_set_panel(grid, 0, 0, &panel, &err) == QKV_OK &&
 *         qkv_grid_render(grid, &style, "svg", &bytes, &n_bytes, &err) == QKV_OK) {
 *         fwrite(bytes, 1, n_bytes, stdout);
 *     }
 *     qkv_bytes_free(bytes);
 *     qkv_grid_free(grid);
 *
 * They are the bytes that the file would have, and a NUL stands after them, so that a text can be
 * used as a string. *bytes is NULL on failure. Bytes belong to the caller, in any
 * thread.
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
