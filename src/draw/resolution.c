/* Sizes and resolutions at which every cell has a pixel. See resolution.h. */
#include "draw/resolution.h"

#include <math.h>

/* Up to here the cells of a panel may differ by a pixel: that cannot be seen. */
enum { FEW_CELLS = 70 };
/* Points that a panel grows to, and all panels of a row or column. */
static const double LARGEST_PANEL = 500, PAGE_WIDTH = 620, PAGE_HEIGHT = 880;
static const double MOST_DPI = 300;    /* that cells ask for: what is printed */
static const double MOST_SIDE = 32000; /* pixels: a little less than cairo can address */
/* Pixels: crisp where a viewer smooths images, also of the small panels of a page of many. */
static const double IMAGE_SIDE = 1024, SMALL_IMAGE_SIDE = 128;
static const double SLACK = 0.01; /* of a pixel */

/* The most cells along a side of any panel. */
static int32_t most_cells(const qkv_grid *grid) {
    int32_t most = 1;
    for (int32_t i = 0; i < grid->rows * grid->cols; i++) {
        const qkv_panel_data *panel = &grid->panels[i];
        if (!panel->values) continue;
        if (panel->n_rows > most) most = panel->n_rows;
        if (panel->n_cols > most) most = panel->n_cols;
    }
    return most;
}

/* A whole number of pixels for each cell. */
double qkv_resolution_panel_size(const qkv_grid *grid, const qkv_grid_style *style) {
    const int32_t n = most_cells(grid);
    const double pixels = style->panel_size * style->dpi / 72;
    const double page = fmin(PAGE_WIDTH / grid->cols, PAGE_HEIGHT / grid->rows);
    const double limit = fmax(fmin(LARGEST_PANEL, page), style->panel_size);
    if (style->width > 0 || style->fixed_panel_size || n <= FEW_CELLS) return style->panel_size;
    const double grown = n * ceil(pixels / n - SLACK) * 72 / style->dpi;
    if (grown <= limit) return grown;
    return pixels >= n ? style->panel_size : limit;
}

double qkv_resolution_dpi(const qkv_grid *grid, const qkv_grid_style *style,
                          const qkv_layout *layout) {
    const int32_t n = most_cells(grid);
    const double width = layout->scale * layout->width, height = layout->scale * layout->height;
    const double wanted = 72 * n / layout->panel_size;
    if (style->fixed_dpi || wanted <= style->dpi * (1 + 1e-9)) return style->dpi;
    const double most = fmin(MOST_DPI, fmin(MOST_SIDE * 72 / fmax(width, height),
                                            72 * sqrt(QKV_MOST_PAGE / (width * height))));
    /* Blocks of as many cells as it takes. */
    const double block = ceil(wanted / fmax(most, style->dpi) - 1e-9);
    return fmax(72 * ceil(n / block) / layout->panel_size, style->dpi);
}

qkv_image_size qkv_resolution_images(const qkv_grid *grid, const qkv_layout *layout) {
    const double printed = ceil(72 * most_cells(grid) / layout->panel_size / MOST_DPI - SLACK);
    double cells = 0, images = 1;
    for (int32_t i = 0; i < grid->rows * grid->cols; i++) {
        const qkv_panel_data *panel = &grid->panels[i];
        if (!panel->values || qkv_panel_is_vector(grid, panel)) continue;
        cells += (double)panel->n_rows * (double)panel->n_cols;
        images++;
    }
    const double side = grid->rows * grid->cols > QKV_FEW_PANELS ? SMALL_IMAGE_SIDE : IMAGE_SIDE;
    return (qkv_image_size){.least = (int32_t)fmin(sqrt(QKV_MOST_PAGE / images), side),
                            .pool =
                                (int32_t)fmax(ceil(sqrt(cells / QKV_MOST_PAGE)), fmax(printed, 1))};
}

/* ---- what became of it ---- */

static int32_t share(int32_t cells, int32_t pixels) {
    return (int32_t)(((int64_t)cells + pixels - 1) / pixels);
}

static int is_uneven(int32_t cells, int32_t pixels) {
    return cells > pixels && cells % pixels != 0;
}

qkv_pixel_cells qkv_resolution_cells(const qkv_painter *painter) {
    qkv_pixel_cells found = {1, 1, 0, 0, 0};
    for (int32_t i = 0; i < painter->grid->rows * painter->grid->cols; i++) {
        const qkv_panel_data *panel = &painter->grid->panels[i];
        int32_t width, height;
        if (!panel->values) continue;
        if (painter->pixels == 0 && qkv_panel_is_vector(painter->grid, panel)) continue;
        qkv_panel_pixels(painter, panel, &painter->layout->panels[i], &width, &height);
        found.widened += qkv_panel_is_widened(painter, panel, &painter->layout->panels[i]);
        const int32_t rows = share(panel->n_rows, height), cols = share(panel->n_cols, width);
        if (rows > 1 || cols > 1) found.panels++;
        if (rows * cols <= found.rows * found.cols) continue;
        found.rows = rows;
        found.cols = cols;
        found.uneven = is_uneven(panel->n_rows, height) || is_uneven(panel->n_cols, width);
    }
    return found;
}

static void print_pooling(qkv_text *text, const qkv_pixel_cells *cells,
                          const qkv_grid_style *style) {
    qkv_text_printf(text, "%sa pixel shows the %s of %s%d \xc3\x97 %d cells",
                    text->length ? " \xc2\xb7 " : "",
                    qkv_style_pooling(style) == QKV_POOLING_MAGNITUDE ? "value of largest magnitude"
                                                                      : "largest",
                    cells->uneven ? "up to " : "", (int)cells->rows, (int)cells->cols);
}

void qkv_resolution_note(qkv_text *text, const qkv_pixel_cells *cells,
                         const qkv_grid_style *style) {
    if (cells->rows > 1 || cells->cols > 1) print_pooling(text, cells, style);
    if (!cells->widened) return;
    qkv_text_printf(
        text,
        "%skeys and distances that hold a tenth of the weight or more are drawn at least "
        "%d pixels wide",
        text->length ? " \xc2\xb7 " : "", QKV_STRONG_PIXELS);
}
