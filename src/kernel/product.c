#include "kernel/product.h"

#include <string.h>

#include "ggml.h"
#include "kernel/vector.h"

/* A panel is what a kernel multiplies at a time: two vectors of columns. Against it stand six rows,
 * which makes twelve sums: as many as sixteen registers allow, and enough to hide the latency of a
 * multiply-add. A panel of which one half is empty is multiplied with twice as many rows. */
#define PANEL ((int64_t)2 * LANES)
#define KERNEL_ROWS 6
#define GROUP_ROWS ((int64_t)2 * KERNEL_ROWS)

/* Rows that meet a piece of all columns before the next piece. */
#define TILE_ROWS (4 * GROUP_ROWS)
/* Rows of a tile are so far apart: a little more than they are long, because values of rows that are a
 * power of two apart can only be read one at a time. */
#define TILE_STEP (QKV_PIECE + 16)

/* A piece of so many columns stays in the second-level cache. Then rows are converted group by group,
 * into the first-level one; with more columns a whole tile at a time, and each panel stays in the
 * first-level cache while the tile passes it. */
#define FEW_COLUMNS 192

/* Columns at a time, which bounds the memory for sums. */
#define MOST_COLUMNS 512

static int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

/* ---- activations ---- */

int64_t qkv_packed_size(int64_t width, int64_t columns) {
    return round_up(columns, PANEL) * width;
}

int64_t qkv_packed_parts(int64_t columns) {
    return round_up(columns, PANEL) / PANEL;
}

float *qkv_column_at(const qkv_columns *x, int64_t t) {
    return x->data + (x->index ? x->index[t] / x->repeat : t) * x->stride;
}

/* Packed values come piece by piece, so that a piece of all columns lies together; in it panel by
 * panel. A panel holds value 0 of its columns, then value 1 of them, ... */
static int64_t panel_at(int64_t width, int64_t columns, int64_t k, int64_t panel) {
    const int64_t n = width - k < QKV_PIECE ? width - k : QKV_PIECE;
    return k * round_up(columns, PANEL) + panel * PANEL * n;
}

/* Value k of all columns of a panel; missing columns are 0. */
static float *values_at(float *packed, int64_t width, int64_t columns, int64_t k, int64_t panel) {
    const int64_t begin = k / QKV_PIECE * QKV_PIECE;
    return packed + panel_at(width, columns, begin, panel) + (k - begin) * PANEL;
}

static void clear_panel(float *packed, int64_t width, int64_t columns, int64_t panel) {
    for (int64_t k = 0; k < width; k += QKV_PIECE) {
        const int64_t n = width - k < QKV_PIECE ? width - k : QKV_PIECE;
        memset(packed + panel_at(width, columns, k, panel), 0,
               (size_t)(n * PANEL) * sizeof *packed);
    }
}

void qkv_pack(float *packed, const qkv_columns *x, int64_t width, int64_t part) {
    enum { STRIP = 16 }; /* a cache line of each column */
    _Static_assert(QKV_PIECE % STRIP == 0, "a strip lies in one piece");
    const float *from[PANEL];
    int64_t n = x->n - part * PANEL;
    n = n < PANEL ? n : PANEL;
    for (int64_t j = 0; j < n; j++) from[j] = qkv_column_at(x, part * PANEL + j);
    if (n < PANEL) clear_panel(packed, width, x->n, part);
    for (int64_t k = 0; k < width; k += STRIP) {
        const int64_t m = k + STRIP < width ? STRIP : width - k;
        float *to = values_at(packed, width, x->n, k, part);
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = 0; i < m; i++) to[i * PANEL + j] = from[j][k + i];
        }
    }
}

void qkv_pack_rows(float *packed, const float *x, int64_t stride, int64_t width, int64_t columns,
                   int64_t part) {
    const int64_t n = columns - part * PANEL < PANEL ? columns - part * PANEL : PANEL;
    if (n < PANEL) clear_panel(packed, width, columns, part);
    for (int64_t k = 0; k < width; k++)
        memcpy(values_at(packed, width, columns, k, part), x + k * stride + part * PANEL,
               (size_t)n * sizeof *packed);
}

void qkv_pack_column(float *packed, int64_t width, int64_t columns, int64_t column,
                     const float *x) {
    for (int64_t k = 0; k < width; k += QKV_PIECE) {
        const int64_t n = width - k < QKV_PIECE ? width - k : QKV_PIECE;
        float *to = packed + panel_at(width, columns, k, column / PANEL) + column % PANEL;
        for (int64_t i = 0; i < n; i++) to[i * PANEL] = x[k + i];
    }
}

void qkv_pack_row(float *packed, int64_t width, int64_t columns, int64_t k, const float *x) {
    for (int64_t c = 0; c < columns; c += PANEL)
        memcpy(values_at(packed, width, columns, k, c / PANEL), x + c,
               (size_t)(columns - c < PANEL ? columns - c : PANEL) * sizeof *packed);
}

void qkv_packed_drop_columns(float *packed, int64_t width, int64_t columns, int64_t n) {
    _Static_assert(QKV_PIECE % PANEL == 0, "whole panels are dropped");
    for (int64_t k = 0; k < width; k += QKV_PIECE) {
        const int64_t terms = width - k < QKV_PIECE ? width - k : QKV_PIECE;
        float *piece = packed + panel_at(width, columns, k, 0);
        memmove(piece, piece + n * terms,
                (size_t)((round_up(columns, PANEL) - n) * terms) * sizeof *packed);
    }
}

void qkv_packed_drop_rows(float *packed, int64_t width, int64_t columns, int64_t n) {
    memmove(packed, packed + panel_at(width, columns, n, 0),
            (size_t)((width - n) * round_up(columns, PANEL)) * sizeof *packed);
}

/* ---- kernels ---- */

/* A kernel adds what n terms come to, to the sums that it finds, or stores it where these are the
 * first. Rows are `step` apart, their sums `sum_step`. */

static inline void add_up(float *sum, vector value, int first) {
    if (!first) value += vector_load(sum);
    vector_store(sum, value);
}

#define SIX(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define SIX_MORE(X) X(6) X(7) X(8) X(9) X(10) X(11)

#define SUMS_2(r) vector low##r = {0}, high##r = {0};
#define STEP_2(r)                                                                                  \
    {                                                                                              \
        const vector w = a[(r)*step + k] - (vector){0};                                            \
        low##r += w * x0;                                                                          \
        high##r += w * x1;                                                                         \
    }
#define STORE_2(r)                                                                                 \
    add_up(sums + (r)*sum_step, low##r, first);                                                    \
    add_up(sums + (r)*sum_step + LANES, high##r, first);

static inline void multiply_panel(const float *restrict a, int64_t step,
                                  const float *restrict panel, int64_t n, float *restrict sums,
                                  int64_t sum_step, int first) {
    SIX(SUMS_2)
    for (int64_t k = 0; k < n; k++) {
        const vector x0 = vector_load(panel + k * PANEL),
                     x1 = vector_load(panel + k * PANEL + LANES);
        SIX(STEP_2)
    }
    SIX(STORE_2)
}

#define SUMS_1(r) vector low##r = {0};
#define STEP_1(r) low##r += (a[(r)*TILE_STEP + k] - (vector){0}) * x0;
#define STORE_1(r) add_up(sums + (r)*PANEL, low##r, first);
#define STORE_1B(r) add_up(more + ((r)-KERNEL_ROWS) * PANEL, low##r, first);

/* The first half of a panel, with twelve rows of a tile; the sums of the last six are elsewhere. */
static void multiply_half_panel(const float *restrict a, const float *restrict panel, int64_t n,
                                float *restrict sums, float *restrict more, int first) {
    SIX(SUMS_1)
    SIX_MORE(SUMS_1)
    for (int64_t k = 0; k < n; k++) {
        const vector x0 = vector_load(panel + k * PANEL);
        SIX(STEP_1)
        SIX_MORE(STEP_1)
    }
    SIX(STORE_1)
    SIX_MORE(STORE_1B)
}

/* With so few columns the lanes are rows, eight at a time: a token, and its variants. Squares of four
 * rows by four values are turned over, once for all columns. The sums and their order are the same. */
#define FEWEST_COLUMNS 4
typedef float eight __attribute__((vector_size(8 * sizeof(float))));
typedef float four
    __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));

/* Values k to k + 3 of eight rows. */
typedef struct square {
    eight k[4];
} square;

/* The values of two rows that are four apart. */
static inline eight two_rows(const float *a) {
    const four x = *(const four *)a, y = *(const four *)(a + 4 * TILE_STEP);
    return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7);
}

static inline square turn(const float *a) {
    const eight r0 = two_rows(a), r1 = two_rows(a + TILE_STEP);
    const eight r2 = two_rows(a + 2 * TILE_STEP), r3 = two_rows(a + 3 * TILE_STEP);
    const eight a0 = __builtin_shufflevector(r0, r1, 0, 8, 1, 9, 4, 12, 5, 13),
                b0 = __builtin_shufflevector(r2, r3, 0, 8, 1, 9, 4, 12, 5, 13);
    const eight a1 = __builtin_shufflevector(r0, r1, 2, 10, 3, 11, 6, 14, 7, 15),
                b1 = __builtin_shufflevector(r2, r3, 2, 10, 3, 11, 6, 14, 7, 15);
    return (square){{__builtin_shufflevector(a0, b0, 0, 1, 8, 9, 4, 5, 12, 13),
                     __builtin_shufflevector(a0, b0, 2, 3, 10, 11, 6, 7, 14, 15),
                     __builtin_shufflevector(a1, b1, 0, 1, 8, 9, 4, 5, 12, 13),
                     __builtin_shufflevector(a1, b1, 2, 3, 10, 11, 6, 7, 14, 15)}};
}

/* One value of eight rows. */
static inline eight gather(const float *a) {
    return (eight){a[0],
                   a[TILE_STEP],
                   a[2 * TILE_STEP],
                   a[3 * TILE_STEP],
                   a[4 * TILE_STEP],
                   a[5 * TILE_STEP],
                   a[6 * TILE_STEP],
                   a[7 * TILE_STEP]};
}

/* Eight rows are called a strip. Enough of them at a time hide the latency of a multiply-add. */
#define STRIP_ROWS 8
#define MOST_STRIPS 3

/* `strips` times eight rows with `columns` columns, whose values k are at x + k · FEWEST_COLUMNS. Both
 * numbers are constants wherever this is called, and nothing of the loops over them is left. */
static inline __attribute__((always_inline)) void
multiply_strips(const float *restrict a, const float *restrict x, int64_t n, int strips,
                int columns, eight sums[static MOST_STRIPS * FEWEST_COLUMNS]) {
    eight own[MOST_STRIPS * FEWEST_COLUMNS] = {{0}};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
#pragma GCC unroll 3
        for (int s = 0; s < strips; s++) {
            const square w = turn(a + (int64_t)s * STRIP_ROWS * TILE_STEP + k);
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
#pragma GCC unroll 4
                for (int c = 0; c < columns; c++)
                    own[s * FEWEST_COLUMNS + c] +=
                        w.k[i] * (x[(k + i) * FEWEST_COLUMNS + c] - (eight){0});
            }
        }
    }
    for (; k < n; k++) {
#pragma GCC unroll 3
        for (int s = 0; s < strips; s++) {
            const eight w = gather(a + (int64_t)s * STRIP_ROWS * TILE_STEP + k);
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++)
                own[s * FEWEST_COLUMNS + c] += w * (x[k * FEWEST_COLUMNS + c] - (eight){0});
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < strips * FEWEST_COLUMNS; i++) sums[i] = own[i];
}

/* Rows that multiply_few takes at a time: fewer with more columns, for the sake of registers. */
static int few_rows(int64_t columns) {
    return columns == 1 ? 3 * STRIP_ROWS : 2 * STRIP_ROWS;
}

static void multiply_few(const float *restrict a, const float *restrict x, int64_t n,
                         int64_t columns, eight sums[static MOST_STRIPS * FEWEST_COLUMNS]) {
    switch (columns) {
    case 1:
        multiply_strips(a, x, n, 3, 1, sums);
        break;
    case 2:
        multiply_strips(a, x, n, 2, 2, sums);
        break;
    case 3:
        multiply_strips(a, x, n, 2, 3, sums);
        break;
    default:
        multiply_strips(a, x, n, 2, 4, sums);
        break;
    }
}

/* ---- weights ---- */

qkv_weights_view qkv_weights_matrix(const struct ggml_tensor *weights, int64_t number) {
    return (qkv_weights_view){.data = (const char *)weights->data + (size_t)number * weights->nb[2],
                              .row_bytes = weights->nb[1],
                              .block_bytes = ggml_type_size(weights->type),
                              .block = ggml_blck_size(weights->type),
                              .rows = weights->ne[1],
                              .width = weights->ne[0],
                              .type = weights->type,
                              .convert = qkv_converter(weights->type)};
}

/* What a thread works with. */
typedef struct workplace {
    float *tile; /* rows × TILE_STEP */
    float *sums; /* rows / KERNEL_ROWS × panels × KERNEL_ROWS × PANEL */
} workplace;

size_t qkv_product_scratch(void) {
    return (size_t)TILE_ROWS * TILE_STEP + (size_t)TILE_ROWS * MOST_COLUMNS;
}

int64_t qkv_product_rows(int64_t rows, int n_threads) {
    const int64_t each = round_up(rows / (4 * (int64_t)n_threads), GROUP_ROWS);
    return each < GROUP_ROWS ? GROUP_ROWS : each < TILE_ROWS ? each : TILE_ROWS;
}

/* Where weights [k, ...) of a row are. */
static const char *weights_at(const qkv_weights_view *w, int64_t row, int64_t k) {
    return w->data + (size_t)row * w->row_bytes + (size_t)(k / w->block) * w->block_bytes;
}

/* Asks for a piece of a row: pieces are too far from each other for the processor to guess, and it
 * would wait for each of them. Once when there is time, and again shortly before it is needed, because
 * rows that are powers of two apart drive each other out of the first-level cache. */
static void fetch(const qkv_weights_view *w, int64_t row, int64_t k) {
    enum { LINE = 64 };
    const int64_t n = w->width - k < QKV_PIECE ? w->width - k : QKV_PIECE;
    const size_t bytes = (size_t)(n / w->block) * w->block_bytes;
    const char *at = weights_at(w, row, k);
    for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch(at + i);
}

/* Weights [k, k + n) of rows [first, end) as F32, and zeros up to a whole `group`. */
static void convert_tile(const qkv_weights_view *w, int64_t first, int64_t end, int64_t group,
                         int64_t k, int64_t n, float *tile) {
    enum { NEAR = 2 };
    const int64_t rows = end - first, padded = round_up(rows, group);
    for (int64_t r = 0; r < rows; r++) {
        if (k + QKV_PIECE < w->width) fetch(w, first + r, k + QKV_PIECE);
        if (first + r + NEAR < w->rows) fetch(w, first + r + NEAR, k);
        w->convert(weights_at(w, first + r, k), tile + r * TILE_STEP, n);
    }
    if (padded > rows)
        memset(tile + rows * TILE_STEP, 0, (size_t)((padded - rows) * TILE_STEP) * sizeof *tile);
}

static float *sums_of(const workplace *at, int64_t panels, int64_t row, int64_t panel) {
    return at->sums + (row / KERNEL_ROWS * panels + panel) * KERNEL_ROWS * PANEL;
}

/* Rows [from, from + rows) of a tile, which are at the beginning of at->tile, with n values of
 * columns, from the first panel on. */
static void multiply_tile(const workplace *at, int64_t from, int64_t rows, const float *piece,
                          int64_t columns, int64_t n, int first) {
    const int64_t panels = qkv_packed_parts(columns);
    for (int64_t p = 0; p < panels; p++) {
        const float *panel = piece + p * PANEL * n;
        const int half = columns - p * PANEL <= LANES;
        for (int64_t r = 0; r < rows; r += GROUP_ROWS) {
            const float *a = at->tile + r * TILE_STEP;
            float *sums = sums_of(at, panels, from + r, p);
            float *more = sums_of(at, panels, from + r + KERNEL_ROWS, p);
            if (half) {
                multiply_half_panel(a, panel, n, sums, more, first);
            } else {
                multiply_panel(a, TILE_STEP, panel, n, sums, PANEL, first);
                multiply_panel(a + KERNEL_ROWS * TILE_STEP, TILE_STEP, panel, n, more, PANEL,
                               first);
            }
        }
    }
}

/* The sums of one strip: lane r of sums[c] is row r, column c. */
static void add_strip(const workplace *at, int64_t row, int64_t rows, const eight *sums,
                      int64_t columns, int first) {
    for (int64_t r = 0; r < STRIP_ROWS && row + r < rows; r++) {
        float *sum = sums_of(at, 1, row + r, 0) + (row + r) % KERNEL_ROWS * PANEL;
        for (int64_t c = 0; c < columns; c++) sum[c] = first ? sums[c][r] : sums[c][r] + sum[c];
    }
}

/* The first columns of a panel, close together. */
static void take_columns(float *x, const float *piece, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        memcpy(x + k * FEWEST_COLUMNS, piece + k * PANEL, FEWEST_COLUMNS * sizeof *x);
}

/* As multiply_tile, of few_rows rows at most. */
static void multiply_tile_few(const workplace *at, int64_t from, int64_t rows, const float *x,
                              int64_t columns, int64_t n, int first) {
    eight sums[MOST_STRIPS * FEWEST_COLUMNS];
    multiply_few(at->tile, x, n, columns, sums);
    for (int64_t r = 0; r < rows; r += STRIP_ROWS)
        add_strip(at, from + r, from + rows, sums + r / STRIP_ROWS * FEWEST_COLUMNS, columns,
                  first);
}

static void write_out(const workplace *at, int64_t first, int64_t end, const qkv_columns *out,
                      int64_t from, int64_t columns) {
    const int64_t panels = qkv_packed_parts(columns);
    for (int64_t t = 0; t < columns; t++) {
        float *to = qkv_column_at(out, from + t) + first;
        for (int64_t r = 0; r < end - first; r++)
            to[r] = sums_of(at, panels, r, t / PANEL)[r % KERNEL_ROWS * PANEL + t % PANEL];
    }
}

/* Rows [first, end), a tile at most, with `columns` of `all` columns from number `from` on. */
static void product_of_tile(const qkv_weights_view *w, int64_t first, int64_t end,
                            const float *packed, int64_t all, int64_t from, int64_t columns,
                            const workplace *at) {
    const int few = columns <= FEWEST_COLUMNS;
    const int64_t group = few ? few_rows(columns) : GROUP_ROWS;
    const int64_t step = columns <= FEW_COLUMNS ? group : TILE_ROWS;
    float x[QKV_PIECE * FEWEST_COLUMNS];
    for (int64_t r = first; r < end; r++) fetch(w, r, 0);
    for (int64_t k = 0; k < w->width; k += QKV_PIECE) {
        const int64_t n = w->width - k < QKV_PIECE ? w->width - k : QKV_PIECE;
        const float *piece = packed + panel_at(w->width, all, k, from / PANEL);
        if (few) take_columns(x, piece, n);
        for (int64_t r = first; r < end; r += step) {
            const int64_t last = r + step < end ? r + step : end;
            convert_tile(w, r, last, group, k, n, at->tile);
            if (few)
                multiply_tile_few(at, r - first, last - r, x, columns, n, k == 0);
            else
                multiply_tile(at, r - first, last - r, piece, columns, n, k == 0);
        }
    }
}

void qkv_product(const qkv_weights_view *w, int64_t first, int64_t end, const float *packed,
                 const qkv_columns *out, float *scratch) {
    const workplace at = {scratch, scratch + TILE_ROWS * TILE_STEP};
    for (int64_t r = first; r < end; r += TILE_ROWS) {
        const int64_t last = r + TILE_ROWS < end ? r + TILE_ROWS : end;
        for (int64_t t = 0; t < out->n; t += MOST_COLUMNS) {
            const int64_t columns = out->n - t < MOST_COLUMNS ? out->n - t : MOST_COLUMNS;
            product_of_tile(w, r, last, packed, out->n, t, columns, &at);
            write_out(&at, r, last, out, t, columns);
        }
    }
}

/* ---- activations ---- */

static const float *panel_of(const qkv_row_product *p, int64_t k, int64_t column) {
    return p->packed +
           panel_at(p->packed_width, p->packed_columns, k, (p->first_column + column) / PANEL);
}

/* One row by one panel: the sums of multiply_panel, in the same order. */
static void multiply_row(const float *restrict a, const float *restrict panel, int64_t n,
                         float *restrict sums, int first) {
    vector low0 = {0}, high0 = {0};
    for (int64_t k = 0; k < n; k++) {
        const vector w = a[k] - (vector){0};
        low0 += w * vector_load(panel + k * PANEL);
        high0 += w * vector_load(panel + k * PANEL + LANES);
    }
    add_up(sums, low0, first);
    add_up(sums + LANES, high0, first);
}

static void multiply_single(const qkv_row_product *p, int64_t row, int64_t column) {
    float sums[PANEL] = {0};
    const int64_t columns = p->columns - column < PANEL ? p->columns - column : PANEL;
    for (int64_t k = 0; k < p->width; k += QKV_PIECE)
        multiply_row(p->a + row * p->a_stride + k, panel_of(p, k, column),
                     p->width - k < QKV_PIECE ? p->width - k : QKV_PIECE, sums, k == 0);
    memcpy(p->out + row * p->out_stride + column, sums, (size_t)columns * sizeof *sums);
}

/* Six rows by one panel that are not all there: on the side. */
static void multiply_edge(const qkv_row_product *p, int64_t row, int64_t column) {
    float a[KERNEL_ROWS * QKV_PIECE] = {0}, sums[KERNEL_ROWS * PANEL];
    const int64_t rows = p->rows - row < KERNEL_ROWS ? p->rows - row : KERNEL_ROWS;
    const int64_t columns = p->columns - column < PANEL ? p->columns - column : PANEL;
    for (int64_t k = 0; k < p->width; k += QKV_PIECE) {
        const int64_t n = p->width - k < QKV_PIECE ? p->width - k : QKV_PIECE;
        for (int64_t r = 0; r < rows; r++)
            memcpy(a + r * QKV_PIECE, p->a + (row + r) * p->a_stride + k, (size_t)n * sizeof *a);
        multiply_panel(a, QKV_PIECE, panel_of(p, k, column), n, sums, PANEL, k == 0);
    }
    for (int64_t r = 0; r < rows; r++)
        memcpy(p->out + (row + r) * p->out_stride + column, sums + r * PANEL,
               (size_t)columns * sizeof *sums);
}

void qkv_multiply_rows(const qkv_row_product *p) {
    for (int64_t column = 0; column < p->columns; column += PANEL) {
        for (int64_t row = 0; row < p->rows; row += KERNEL_ROWS) {
            if (row + 1 == p->rows) {
                multiply_single(p, row, column);
                continue;
            }
            if (row + KERNEL_ROWS > p->rows || column + PANEL > p->columns) {
                multiply_edge(p, row, column);
                continue;
            }
            for (int64_t k = 0; k < p->width; k += QKV_PIECE)
                multiply_panel(p->a + row * p->a_stride + k, p->a_stride, panel_of(p, k, column),
                               p->width - k < QKV_PIECE ? p->width - k : QKV_PIECE,
                               p->out + row * p->out_stride + column, p->out_stride, k == 0);
        }
    }
}
