/*
 * Maps as bytes: of a masked one only what queries see, in F32 or F16, little-endian, as base64. Maps
 * that are too many or too large are pooled, each cell the number of largest magnitude of its block.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/first_key.h"
#include "base/memory.h"
#include "study/html_page.h"

/* ---- the mask ---- */

/* attention.js has the same: the keys that a row of the map shows. */
static void visible_range(const html_map *map, size_t row, size_t *first, size_t *end) {
    const size_t window = map->window > 0 ? (size_t)map->window : 0;
    const size_t first_key = (size_t)qkv_first_key(map->window, (int64_t)row);
    *first = 0;
    *end = map->cols;
    if (!map->is_masked) return;
    *first = first_key;
    if (window && row + window < map->cols) *end = row + window;
    if (map->causal) *end = row + 1;
}

int qkv_html_map_is_masked(const html_map *map) {
    const html_map masked = {.rows = map->rows,
                             .cols = map->cols,
                             .causal = map->causal,
                             .window = map->window,
                             .is_masked = 1};
    if (map->rows != map->cols || (!map->causal && map->window == 0)) return 0;
    for (size_t row = 0; row < map->rows; row++) {
        size_t first, end;
        visible_range(&masked, row, &first, &end);
        for (size_t col = 0; col < map->cols; col++) {
            const int seen = col >= first && col < end;
            if (!seen && map->values[row * map->cols + col] != 0) return 0;
        }
    }
    return 1;
}

size_t qkv_html_map_count(const html_map *map) {
    size_t n = 0;
    for (size_t row = 0; row < map->rows; row++) {
        size_t first, end;
        visible_range(map, row, &first, &end);
        n += end - first;
    }
    return n;
}

/* ---- pooling ---- */

/* Both sides are pooled alike, so that what lies above the diagonal stays there; a window does not
 * become one of whole cells. */
int qkv_html_map_pool(const html_map *map, size_t step, html_map *out, qkv_error *err) {
    const size_t rows = (map->rows + step - 1) / step, cols = (map->cols + step - 1) / step;
    float *cells = qkv_calloc(rows * cols, sizeof *cells);
    *out = (html_map){.values = cells,
                      .rows = rows,
                      .cols = cols,
                      .step = step * map->step,
                      .causal = map->causal,
                      .is_masked = map->is_masked && map->causal};
    if (!cells) return qkv_fail_memory(err);
    for (size_t row = 0; row < map->rows; row++) {
        for (size_t col = 0; col < map->cols; col++) {
            float *cell = &cells[row / step * cols + col / step];
            const float value = map->values[row * map->cols + col];
            if (fabsf(value) > fabsf(*cell)) *cell = value;
        }
    }
    return QKV_OK;
}

/* ---- bytes ---- */

uint16_t qkv_half_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const float size = fabsf(value);
    if (isnan(value)) return (uint16_t)(sign | 0x7e00);
    if (size >= 65520) return (uint16_t)(sign | 0x7c00);
    if (size < 0x1p-14f) return (uint16_t)(sign | (uint16_t)lrintf(size * 0x1p24f));
    const uint32_t rest = bits & 0x7fffffff, odd = rest >> 13 & 1;
    return (uint16_t)(sign | ((rest - 0x38000000 + 0xfff + odd) >> 13));
}

static void put_number(unsigned char *to, float value, html_type type) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == HTML_F16) bits = qkv_half_of(value);
    for (int i = 0; i < (type == HTML_F16 ? 2 : 4); i++) to[i] = (unsigned char)(bits >> 8 * i);
}

static int put_numbers(const html_map *map, html_type type, qkv_text *out) {
    const size_t size = type == HTML_F16 ? 2 : 4, n = qkv_html_map_count(map);
    unsigned char *bytes = qkv_calloc(n, size), *at = bytes;
    if (!bytes) return 0;
    for (size_t row = 0; row < map->rows; row++) {
        size_t first, end;
        visible_range(map, row, &first, &end);
        for (size_t col = first; col < end; col++, at += size) {
            put_number(at, map->values[row * map->cols + col], type);
        }
    }
    qkv_base64_append(out, bytes, n * size);
    free(bytes);
    return !out->failed;
}

json_t *qkv_html_map_json(const html_map *map, html_type type) {
    qkv_text numbers = {0};
    json_t *json = NULL;
    qkv_text_puts(&numbers, "");
    if (put_numbers(map, type, &numbers)) {
        json = json_pack("{s:s, s:I, s:I, s:I, s:b, s:b, s:i, s:s}", "type",
                         type == HTML_F16 ? "F16" : "F32", "rows", (json_int_t)map->rows, "cols",
                         (json_int_t)map->cols, "step", (json_int_t)map->step, "masked",
                         map->is_masked, "causal", map->causal, "window", (int)map->window, "data",
                         numbers.data);
    }
    qkv_text_release(&numbers);
    return json;
}
