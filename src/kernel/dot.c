/* Products of weights with a few columns: product.h says in what order sums are taken. */
#include "kernel/product.h"

#include <string.h>

#include "ggml.h"
#include "kernel/vector.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

/* Rows that meet the columns together. Their terms are converted a piece at a time, which stays in the
 * first-level cache until it is multiplied. */
#define ROWS 4
_Static_assert(QKV_PIECE % QKV_DOT_SUMS == 0, "a piece is whole rounds");

/* Columns at a time: with ROWS rows, as many sums as registers have room for. */
#define AT_ONCE (LANES == 16 ? 4 : 2)

/* Columns whose sums are kept while rows are read: more of them take another turn. */
#define MOST_COLUMNS 16

/* The partial sums of a row with a column. */
typedef float dot_sums[QKV_DOT_SUMS];

/* ---- sums ---- */

/* What rows and columns meet in: rows `step` bytes apart, and the sums of a row, one column after
 * another. */
typedef struct dot_tile {
    const char *w;
    size_t step;
    const float *x[AT_ONCE];
    dot_sums *sums;
    int64_t sums_step;
} dot_tile;

/* Weights k, k + 1, ... of a row, of one of the types that a vector is made of at once. */
static inline __attribute__((always_inline)) vector weights_at(const char *row, int64_t k,
                                                               enum ggml_type type) {
#if LANES == 16
    const __m256i *halves = (const __m256i *)(const void *)(row + k * 2);
    if (type == GGML_TYPE_F16) return (vector)_mm512_cvtph_ps(_mm256_loadu_si256(halves));
    if (type == GGML_TYPE_BF16)
        return (vector)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(halves)), 16);
#elif LANES == 8 && defined(__F16C__) && defined(__AVX2__)
    const __m128i *halves = (const __m128i *)(const void *)(row + k * 2);
    if (type == GGML_TYPE_F16) return (vector)_mm256_cvtph_ps(_mm_loadu_si128(halves));
    if (type == GGML_TYPE_BF16)
        return (vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(halves)), 16);
#endif
    (void)type;
    return vector_load((const float *)(const void *)row + k);
}

/* The type that the terms of weights are read as: their own, or F32 once they are converted. */
static enum ggml_type read_as(const qkv_weights_view *w) {
#if LANES == 16 || (LANES == 8 && defined(__F16C__) && defined(__AVX2__))
    if (w->type == GGML_TYPE_F16 || w->type == GGML_TYPE_BF16) return w->type;
#endif
    (void)w;
    return GGML_TYPE_F32;
}

/* The sums of number i, of `rows` times `columns` times `vectors`. */
static inline float *sums_at(const dot_tile *t, int i, int columns, int vectors) {
    const int vector_number = i % vectors, c = i / vectors % columns, r = i / vectors / columns;
    return t->sums[r * t->sums_step + c] + (int64_t)vector_number * LANES;
}

/* Adds n terms, whole rounds: `vectors` vectors of the sums of all rows and columns, then the next ones.
 * The three numbers are constants wherever this is called, and nothing of the loops over them is left. */
static inline __attribute__((always_inline)) void
add_rounds(const dot_tile *t, enum ggml_type type, int64_t n, int rows, int columns, int vectors) {
    const int all = rows * columns * vectors;
    for (int first = 0; first < QKV_DOT_SUMS; first += vectors * LANES) {
        vector own[ROWS * AT_ONCE];
#pragma GCC unroll 16
        for (int i = 0; i < all; i++) own[i] = vector_load(sums_at(t, i, columns, vectors) + first);
        for (int64_t k = first; k < n; k += QKV_DOT_SUMS) {
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                const int64_t term = k + (int64_t)v * LANES;
                vector x[AT_ONCE];
#pragma GCC unroll 4
                for (int c = 0; c < columns; c++) x[c] = vector_load(t->x[c] + term);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++) {
                    const vector w = weights_at(t->w + (size_t)r * t->step, term, type);
#pragma GCC unroll 4
                    for (int c = 0; c < columns; c++)
                        own[(r * columns + c) * vectors + v] += w * x[c];
                }
            }
        }
#pragma GCC unroll 16
        for (int i = 0; i < all; i++) vector_store(sums_at(t, i, columns, vectors) + first, own[i]);
    }
}

/* X(columns), for as many as there are at once */
#if LANES == 16
#define EACH_COUNT(X) X(1) X(2) X(3) X(4)
#else
#define EACH_COUNT(X) X(1) X(2)
#endif

/* One column takes two vectors of its sums at a time: enough sums to hide the latency of a
 * multiply-add. */
static inline __attribute__((always_inline)) void add_as(const dot_tile *t, enum ggml_type type,
                                                         int64_t n, int rows, int columns) {
    switch (columns) {
#define ONE_COUNT(count)                                                                           \
    case count:                                                                                    \
        if (rows == ROWS)                                                                          \
            add_rounds(t, type, n, ROWS, count, (count) == 1 ? 2 : 1);                             \
        else                                                                                       \
            add_rounds(t, type, n, 1, count, (count) == 1 ? 2 : 1);                                \
        break;
        EACH_COUNT(ONE_COUNT)
#undef ONE_COUNT
    default:
        break;
    }
}

static void add_whole(const dot_tile *t, enum ggml_type type, int64_t n, int rows, int columns) {
    switch (type) {
    case GGML_TYPE_F16:
        add_as(t, GGML_TYPE_F16, n, rows, columns);
        break;
    case GGML_TYPE_BF16:
        add_as(t, GGML_TYPE_BF16, n, rows, columns);
        break;
    default:
        add_as(t, GGML_TYPE_F32, n, rows, columns);
        break;
    }
}

/* The last terms, less than a round, from number k on: with zeros after them. */
static void add_rest(const dot_tile *t, size_t term_bytes, enum ggml_type type, int64_t k,
                     int64_t n, int rows, int columns) {
    for (int i = 0; i < rows * columns; i++) {
        const int r = i / columns, c = i % columns;
        float w[QKV_DOT_SUMS] = {0}, x[QKV_DOT_SUMS] = {0};
        memcpy(w, t->w + (size_t)r * t->step + (size_t)k * term_bytes, (size_t)n * term_bytes);
        memcpy(x, t->x[c] + k, (size_t)n * sizeof *x);
        const dot_tile one = {
            .w = (const char *)w, .x = {x}, .sums = t->sums + r * t->sums_step + c};
        add_whole(&one, type, QKV_DOT_SUMS, 1, 1);
    }
}

static float total(dot_sums sums) {
    for (int half = QKV_DOT_SUMS / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) sums[i] += sums[i + half];
    }
    return sums[0];
}

/* ---- rows ---- */

/* Rows that are multiplied together: ROWS of them, or 1 where so many are not left. */
typedef struct dot_rows {
    const qkv_weights_view *w;
    int64_t first;
    int n;
    float *room; /* for QKV_PIECE terms of each, as F32 */
} dot_rows;

static const char *terms_at(const qkv_weights_view *w, int64_t row, int64_t k) {
    return w->data + (size_t)row * w->row_bytes + (size_t)(k / w->block) * w->block_bytes;
}

/* Asks for the same terms of the rows that come next, as far as the second-level cache: the processor
 * does not guess beyond a page of memory, which may be just a row. */
static void fetch_next(const dot_rows *rows, int64_t k, int64_t n) {
    enum { LINE = 64, SECOND_LEVEL = 2 };
    const qkv_weights_view *w = rows->w;
    const size_t bytes = (size_t)(n / w->block) * w->block_bytes;
    const int64_t next = rows->first + rows->n;
    for (int64_t r = next; r < next + rows->n && r < w->rows; r++) {
        const char *at = terms_at(w, r, k);
        for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch(at + i, 0, SECOND_LEVEL);
    }
}

/* Terms [k, k + n) of the rows: where they lie, or converted. */
static void take_terms(const dot_rows *rows, enum ggml_type type, int64_t k, int64_t n,
                       dot_tile *tile) {
    const qkv_weights_view *w = rows->w;
    fetch_next(rows, k, n);
    if (w->type == type) {
        tile->w = terms_at(w, rows->first, k);
        tile->step = w->row_bytes;
        return;
    }
    for (int r = 0; r < rows->n; r++)
        w->convert(terms_at(w, rows->first + r, k), rows->room + r * QKV_PIECE, n);
    tile->w = (const char *)rows->room;
    tile->step = QKV_PIECE * sizeof *rows->room;
}

/* With up to MOST_COLUMNS columns. */
static void multiply_rows(const dot_rows *rows, const float *const *x, float *const *out,
                          int columns) {
    const enum ggml_type type = read_as(rows->w);
    const size_t term_bytes = ggml_type_size(type);
    dot_sums sums[ROWS * MOST_COLUMNS];
    memset(sums, 0, (size_t)(rows->n * columns) * sizeof *sums);
    for (int64_t k = 0; k < rows->w->width; k += QKV_PIECE) {
        const int64_t left = rows->w->width - k, n = left < QKV_PIECE ? left : QKV_PIECE;
        const int64_t whole = n / QKV_DOT_SUMS * QKV_DOT_SUMS;
        dot_tile tile = {.sums_step = columns};
        take_terms(rows, type, k, n, &tile);
        for (int c = 0; c < columns; c += AT_ONCE) {
            const int some = columns - c < AT_ONCE ? columns - c : AT_ONCE;
            for (int i = 0; i < some; i++) tile.x[i] = x[c + i] + k;
            tile.sums = sums + c;
            add_whole(&tile, type, whole, rows->n, some);
            if (whole < n) add_rest(&tile, term_bytes, type, whole, n - whole, rows->n, some);
        }
    }
    for (int i = 0; i < rows->n * columns; i++)
        out[i % columns][rows->first + i / columns] = total(sums[i]);
}

void qkv_dot_product(const qkv_weights_view *w, int64_t first, int64_t end, const qkv_columns *x,
                     const qkv_columns *out, float *scratch) {
    const float *in[MOST_COLUMNS];
    float *to[MOST_COLUMNS];
    for (int64_t t = 0; t < out->n; t += MOST_COLUMNS) {
        const int columns = (int)(out->n - t < MOST_COLUMNS ? out->n - t : MOST_COLUMNS);
        for (int c = 0; c < columns; c++) {
            in[c] = qkv_column_at(x, t + c);
            to[c] = qkv_column_at(out, t + c);
        }
        dot_rows rows = {.w = w, .room = scratch};
        for (int64_t row = first; row < end; row += rows.n) {
            rows.first = row;
            rows.n = end - row < ROWS ? 1 : ROWS;
            multiply_rows(&rows, in, to, columns);
        }
    }
}
