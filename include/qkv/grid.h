/*
 * Grids: matrices arranged in rows and columns with titles, and how they are drawn.
 *
 *     const float weights[] = {1, 0, 0.25f, 0.75f};
 *     qkv_panel panel = QKV_PANEL_INIT;
 *     panel.values = weights;
 *     panel.n_rows = panel.n_cols = 2;
 *     panel.title = "Modifying *Query* with ε = 5e-1";
 *     qkv_grid_style style = QKV_GRID_STYLE_INIT;
 *     style.title = "The Attention Weight after Modifying Query";
 *     qkv_grid *grid = NULL;
 *     if (qkv_grid_new(&grid, 1, 2, &err) == QKV_OK &&
 *         qkv_grid_set_panel(grid, 0, 0, &panel, &err) == QKV_OK) {
 *         qkv_grid_write(grid, &style, "figure.svg", &err); // .png, .svg or .pdf
 *     }
 *     qkv_grid_free(grid);
 *
 * In titles, text between asterisks is set in italics and `\*` is an asterisk. A text is cut, with
 * an ellipsis, after 2000 characters, a label after 200. Everything handed over is copied. Values
 * must be finite. Files are written to a temporary name and renamed; the same grid gives the same
 * bytes. A grid belongs to one thread at a time.
 *
 * What a reader of a figure may rely on: values beyond the range get the colour of its end, and the
 * colour bar is pointed there. An empty cell is an exact zero and "0" one that rounds to zero
 * (on a log scale: one that lies below its floor).
 * Every cell has a pixel of its own as long as a printed page can show it: panels grow up to 500
 * points, as far as a sheet of paper has room for all of them, then the resolution of a PNG grows up
 * to 300 dpi. Beyond that, or where `fixed_dpi` and `fixed_panel_size` forbid it, a pixel shows the
 * largest value of the cells that it covers (of a diverging scale: the one of largest magnitude), and
 * a line after the small print says of how many. Images inside SVG and PDF keep the same bound.
 * Columns and diagonals that hold a tenth of a map's weight or more are drawn at least three pixels
 * wide, over neighbours that are weaker; the small print says so, too.
 * A scale that is not linear is named beside the colour bar. A panel whose values are all exactly 0
 * says so. A middle dot at the edge of a label is a space. Panels that share their labels are
 * labelled once, at the left and lower edge of the grid.
 */
#ifndef QKV_GRID_H
#define QKV_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/bytes.h"
#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_grid qkv_grid;

/* One matrix: n_rows x n_cols, row-major. row_labels and col_labels (n_rows, n_cols strings, UTF-8)
 * or NULL: indices. */
typedef struct qkv_panel {
    size_t size;
    const float *values;
    int32_t n_rows;
    int32_t n_cols;
    const char *title;
    const char *const *row_labels;
    const char *const *col_labels;
    int32_t first_col; /* index of the first column, where leading columns were left out */
    /* Which cells a mask took away: where row and column index lie `window` or more apart (0: no
     * window; -C, and `causal`: before the row's own C columns, counted from 0), and with `causal` all columns after the row's own. How they look is the style's; one
     * that holds another value than 0 is drawn with it. */
    int32_t causal;
    int32_t window;
    int32_t extra_cols; /* leading columns that are not counted and never masked: learned sinks */
    int32_t borrowed;   /* 1: values are not copied, and live and stay as they are until the grid
                           is freed */
    const char *side;   /* left of the panel, e.g. what its row of panels is; NULL: nothing */
    int32_t has_gaps;   /* 1: NaN stands for no value, e.g. a score that an edit has masked */
} qkv_panel;

#define QKV_PANEL_INIT                                                                             \
    { .size = sizeof(qkv_panel) }

typedef enum qkv_scale { QKV_SCALE_LINEAR, QKV_SCALE_LOG, QKV_SCALE_POWER } qkv_scale;

/* How letters are kept in SVG and PDF. Outlines look the same everywhere. Text can be searched,
 * selected and edited; a PDF brings its fonts along, but an SVG names them, and its reader must have
 * them. So the default is text in a PDF and outlines in an SVG. A PNG has neither. */
typedef enum qkv_text_form { QKV_TEXT_AUTO, QKV_TEXT_PATHS, QKV_TEXT_TEXT } qkv_text_form;

/* "linear", "log", "power"; NULL past the end. */
QKV_API const char *qkv_scale_name(qkv_scale scale);

typedef enum qkv_colormap {
    QKV_COLORMAP_AUTO,     /* coolwarm; of a heatmap whose values have one sign, viridis */
    QKV_COLORMAP_COOLWARM, /* blue, grey, red: the only one that can show a diverging scale */
    QKV_COLORMAP_VIRIDIS,
    QKV_COLORMAP_CIVIDIS,
    QKV_COLORMAP_MAGMA,
    QKV_COLORMAP_GREY /* light to dark; 0 is not white */
} qkv_colormap;

/* "auto", "coolwarm", "viridis", "cividis", "magma", "grey"; NULL past the end. */
QKV_API const char *qkv_colormap_name(qkv_colormap colormap);

/* How cells look that a mask took away. */
typedef enum qkv_masked {
    QKV_MASKED_AUTO, /* white */
    QKV_MASKED_ZERO, /* like a weight of 0 */
    QKV_MASKED_WHITE,
    QKV_MASKED_HATCH /* thin lines on white */
} qkv_masked;

/* "auto", "zero", "white", "hatch"; NULL past the end. */
QKV_API const char *qkv_masked_name(qkv_masked masked);

/* What a pixel shows that covers several cells. */
typedef enum qkv_pooling {
    QKV_POOLING_AUTO,     /* largest; of a diverging scale, magnitude */
    QKV_POOLING_LARGEST,  /* the largest of the values */
    QKV_POOLING_MAGNITUDE /* the value of largest magnitude */
} qkv_pooling;

typedef struct qkv_grid_style {
    size_t size;
    const char *title;       /* below the grid, centred; NULL = none */
    const char *small_print; /* last line(s), small; NULL = none; may be long, is wrapped */
    const char *bar_label;   /* "Attention Weight" */
    const char *row_axis;    /* "Query"; NULL = none */
    const char *col_axis;    /* "Key"; NULL = none */
    double low, high;        /* range of the colour scale, 0 and 1 */
    qkv_scale scale;
    double gamma;      /* exponent of the power scale, 0.5 */
    double log_floor;  /* smallest value the log scale tells apart, 1e-4 */
    int32_t diverging; /* 1: grey at 0, for differences; low = -high */
    /* 1: token labels (or indices) on the axes, thinned out where they do not fit */
    int32_t labels;
    int32_t cell_values; /* -1: where there is room, 0: never, 1: always */
    double dpi;          /* of a PNG, 150; vector output is in points */
    double panel_size;   /* side of a panel in points, 170 */
    /* embedded in the file (PNG text chunk, SVG metadata, PDF keywords); NULL = none */
    const char *recipe;
    qkv_colormap colormap;
    qkv_masked masked;
    qkv_pooling pooling;
    /* 1: holds however many cells there are; 0: may grow, so that each of them has a pixel */
    int32_t fixed_dpi;
    int32_t fixed_panel_size;
    qkv_text_form text;
    const char *font; /* family that is tried first; NULL: DejaVu Sans. An unknown one is refused */
    /* Of the page, points; 0: as wide as its content. Letters follow down to 5 points, then gaps and
     * margins, then panels; what does not fit is refused. panel_size then says how large panels are in proportion
     * to letters where there is room. */
    double width;
    double gap; /* least distance between panels in points; 0: 15 across, 13 down */
    /* Of the names of axes, points; other letters in proportion, but none below 5 points, and titles
     * of panels smaller where they do not fit. 0: 8, on a page of given width what it allows. */
    double font_size;
} qkv_grid_style;

#define QKV_GRID_STYLE_INIT                                                                        \
    {                                                                                              \
        .size = sizeof(qkv_grid_style), .bar_label = "Attention Weight", .row_axis = "Query",      \
        .col_axis = "Key", .low = 0, .high = 1, .scale = QKV_SCALE_LINEAR, .gamma = 0.5,           \
        .log_floor = 1e-4, .labels = 1, .cell_values = -1, .dpi = 150, .panel_size = 170           \
    }

QKV_API int qkv_grid_new(qkv_grid **out, int32_t rows, int32_t cols, qkv_error *err);
QKV_API void qkv_grid_free(qkv_grid *grid);
/* A cell of the grid that is given no panel stays empty. */
QKV_API int qkv_grid_set_panel(qkv_grid *grid, int32_t row, int32_t col, const qkv_panel *panel,
                               qkv_error *err);

/* Draws to a file; its suffix says how. */
QKV_API int qkv_grid_write(const qkv_grid *grid, const qkv_grid_style *style, const char *path,
                           qkv_error *err);

/* The same bytes in memory. *bytes is the caller's to free with
 * qkv_bytes_free; a NUL stands after its end. */
QKV_API int qkv_grid_render(const qkv_grid *grid, const qkv_grid_style *style, const char *format,
                            char **bytes, size_t *n_bytes, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
