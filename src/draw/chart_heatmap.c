/*
 * Heatmaps: a grid of matrices whose cells may have no value, whose labels are short, and whose
 * size follows the number of cells. Everything else is the grid's.
 */
#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "draw/colormap.h"
#include "draw/grid_data.h"
#include "draw/page.h"
#include "draw/ruler.h"

enum { MOST_PANELS = 64, WIDEST_ROW = 4 };
static const double PITCH = 22, LEAST_SIDE = 130, MOST_SIDE = 380, PAGE = 900; /* points */
/* Cells with words below or beside them are not thinner, so that no word is left out. */
static const double LEAST_WORD_PITCH = 6.2;
/* Cells with texts: their height, and their width by the number of letters. */
static const double TEXT_HEIGHT = 11, LETTER = 3.7, LEAST_TEXT = 18, MOST_TEXT = 40;
static const double TEXT_PAGE = 3300;

/* A map of our own, whose panels are *panels, to be freed. */
static int read_map(qkv_heatmap *map, qkv_heatmap_panel **panels, const qkv_heatmap *given,
                    qkv_error *err) {
    void *read = NULL;
    int status = qkv_sized_read(map, sizeof *map, given, "qkv_heatmap", err);
    if (status != QKV_OK) return status;
    if (!map->panels || map->n_panels < 1 || map->n_panels > MOST_PANELS) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a heatmap has 1 to %d panels, not %zu", MOST_PANELS,
                        map->n_panels);
    }
    status = qkv_sized_read_items(&read, sizeof **panels, map->panels, map->n_panels,
                                  "qkv_heatmap_panel", err);
    map->panels = *panels = read;
    return status;
}

static int has_hues(const qkv_heatmap *map) {
    return map->n_categories && map->colormap == QKV_COLORMAP_AUTO;
}

static int check_categories(const qkv_heatmap *map, qkv_error *err) {
    if (map->n_categories >= QKV_MOST_BANDS || !map->categories ||
        !(map->color.low < map->color.high))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "%zu categories of a heatmap: at most %d, with their names and a range",
                        map->n_categories, QKV_MOST_BANDS - 1);
    for (size_t i = 0; i < map->n_panels; i++) {
        const qkv_heatmap_panel *panel = &map->panels[i];
        const size_t n = (size_t)panel->n_rows * (size_t)panel->n_cols;
        for (size_t c = 0; c < n; c++) {
            const int32_t category = panel->cell_categories ? panel->cell_categories[c] : -2;
            if (category < -1 || category >= (int32_t)map->n_categories)
                return qkv_fail(err, QKV_ERR_ARGUMENT, "cell %zu of panel %zu has no category", c,
                                i);
        }
    }
    return QKV_OK;
}

static int check_map(const qkv_heatmap *map, qkv_error *err) {
    for (size_t i = 0; i < map->n_panels; i++) {
        const qkv_heatmap_panel *panel = &map->panels[i];
        if (!panel->values || panel->n_rows < 1 || panel->n_cols < 1) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "panel %zu of the heatmap is empty", i);
        }
    }
    return map->n_categories ? check_categories(map, err) : QKV_OK;
}

static size_t cells_of(const qkv_heatmap_panel *panel) {
    return (size_t)panel->n_rows * (size_t)panel->n_cols;
}

/* ---- the colour range ---- */

/* All values, or those above 0. */
static qkv_extent extent_of(const qkv_heatmap *map, int positive) {
    qkv_extent extent = QKV_EXTENT_NONE;
    for (size_t p = 0; p < map->n_panels; p++) {
        const qkv_heatmap_panel *panel = &map->panels[p];
        for (size_t i = 0; i < cells_of(panel); i++) {
            if (positive && !(panel->values[i] > 0)) continue;
            qkv_extent_add(&extent, panel->values[i]);
        }
    }
    return extent;
}

static int has_range(const qkv_heatmap *map) {
    return map->color.low < map->color.high;
}

static void choose_range(qkv_grid_style *style, const qkv_heatmap *map, const qkv_extent *data) {
    if (has_range(map)) {
        style->low = map->color.low;
        style->high = map->color.high;
    } else if (style->diverging) {
        style->high = fmax(fabs(data->least), fabs(data->most));
        if (!(style->high > 0)) style->high = 1;
        style->low = -style->high;
    } else if (data->least < data->most) {
        style->low = data->least;
        style->high = data->most;
    } else { /* one value: in the middle of the bar, but zeros at its end */
        style->low = data->least > 0 || data->least < 0 ? data->least - fabs(data->least) : 0;
        style->high = data->least > 0 || data->least < 0 ? data->least + fabs(data->least) : 1;
    }
}

static int set_scale(qkv_grid_style *style, const qkv_heatmap *map, qkv_error *err) {
    const qkv_extent all = extent_of(map, 0), above = extent_of(map, 1);
    if (all.least > all.most) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the heatmap has no value in any cell");
    }
    if (map->color.scale == QKV_SCALE_LOG && (all.least < 0 || map->diverging)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a log colour scale cannot show values below 0, and the least is %g",
                        all.least);
    }
    style->diverging = map->diverging || (!has_range(map) && all.least < 0 && all.most > 0);
    style->colormap = map->colormap != QKV_COLORMAP_AUTO ? map->colormap
                      : style->diverging                 ? QKV_COLORMAP_COOLWARM
                                                         : QKV_COLORMAP_VIRIDIS;
    choose_range(style, map, &all);
    style->scale = map->color.scale;
    if (style->scale == QKV_SCALE_LOG) {
        if (!(above.most > 0)) {
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "a log colour scale needs a value above 0, and there is none");
        }
        style->log_floor = style->low > 0 ? style->low : above.least;
        if (style->log_floor >= style->high) style->log_floor = style->high / 10;
    }
    return QKV_OK;
}

/* ---- panels ---- */

/* Band 0 is not a category. */
static double band_value(const qkv_heatmap *map, const qkv_heatmap_panel *panel, size_t cell) {
    const double range = map->color.high - map->color.low;
    const int32_t category = panel->cell_categories[cell];
    if (isnan(panel->values[cell])) return NAN;
    return qkv_band_value(category + 1, (panel->values[cell] - map->color.low) / range);
}

static int set_panel(qkv_grid *grid, size_t index, const qkv_heatmap *map, qkv_error *err) {
    const qkv_heatmap_panel *panel = &map->panels[index];
    const size_t n = cells_of(panel);
    float *values = qkv_calloc(n, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(has_hues(map) ? band_value(map, panel, i) : panel->values[i]);
    const qkv_panel copy = {.size = sizeof copy,
                            .values = values,
                            .n_rows = panel->n_rows,
                            .n_cols = panel->n_cols,
                            .title = panel->title,
                            .row_labels = panel->row_labels,
                            .col_labels = panel->col_labels};
    const int32_t row = (int32_t)index / grid->cols, col = (int32_t)index % grid->cols;
    int status = qkv_grid_set_panel(grid, row, col, &copy, err);
    if (status == QKV_OK && panel->cell_texts)
        status = qkv_grid_set_texts(grid, row, col, panel->cell_texts, err);
    free(values);
    return status;
}

static int make_grid(qkv_grid **grid, const qkv_heatmap *map, qkv_error *err) {
    const int32_t n = (int32_t)map->n_panels;
    const int32_t cols = n <= WIDEST_ROW ? n : (int32_t)ceil(sqrt(n));
    int status = qkv_grid_new(grid, (n + cols - 1) / cols, cols, err);
    if (status != QKV_OK) return status;
    (*grid)->is_chart = 1;
    for (size_t i = 0; i < map->n_panels && status == QKV_OK; i++) {
        status = set_panel(*grid, i, map, err);
    }
    return status;
}

static double panel_side(const qkv_heatmap *map, int32_t cols) {
    double longest = 1;
    for (size_t i = 0; i < map->n_panels; i++) {
        longest = fmax(longest, fmax(map->panels[i].n_rows, map->panels[i].n_cols));
    }
    return fmin(fmin(fmax(PITCH * longest, LEAST_SIDE), MOST_SIDE), PAGE / cols);
}

/* The side at which every word beside a panel has its place. */
static double words_side(const qkv_grid *grid) {
    double side = 0;
    for (int32_t i = 0; i < grid->rows * grid->cols; i++) {
        const qkv_panel_data *panel = &grid->panels[i];
        const double longest = fmax(panel->n_rows, panel->n_cols);
        if (qkv_labels_are_words(panel->row_labels, panel->row_labels ? panel->n_rows : 0) ||
            qkv_labels_are_words(panel->col_labels, panel->col_labels ? panel->n_cols : 0))
            side = fmax(side, LEAST_WORD_PITCH * longest);
    }
    return side;
}

static size_t count_letters(const char *text) {
    size_t n = 0;
    for (; text && *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* The width of cells that texts stand in; 0: none do. */
static double text_width(const qkv_heatmap *map) {
    size_t longest = 0;
    int any = 0;
    for (size_t i = 0; i < map->n_panels; i++) {
        const qkv_heatmap_panel *panel = &map->panels[i];
        if (!panel->cell_texts) continue;
        any = 1;
        for (size_t k = 0; k < cells_of(panel); k++) {
            const size_t n = count_letters(panel->cell_texts[k]);
            if (n > longest) longest = n;
        }
    }
    return any ? fmin(fmax(LETTER * (double)longest + 3, LEAST_TEXT), MOST_TEXT) : 0;
}

/* Cells with texts are wider than high. */
static double text_side(const qkv_heatmap *map, qkv_grid *grid, double width) {
    double side = LEAST_SIDE;
    grid->aspect = width / TEXT_HEIGHT;
    for (size_t i = 0; i < map->n_panels; i++) {
        side = fmax(side, width * map->panels[i].n_cols);
        side = fmax(side, TEXT_HEIGHT * map->panels[i].n_rows);
    }
    return fmin(side, TEXT_PAGE / grid->cols);
}

static int draw_map(const qkv_heatmap *map, const qkv_chart_style *style, const qkv_page_target *to,
                    qkv_error *err) {
    qkv_grid *grid = NULL;
    qkv_grid_style drawn = QKV_GRID_STYLE_INIT;
    drawn.title = style->title;
    drawn.small_print = style->small_print;
    drawn.recipe = style->recipe;
    drawn.dpi = style->dpi;
    drawn.text = style->text;
    drawn.font = style->font;
    drawn.width = style->width;
    drawn.font_size = style->font_size;
    drawn.bar_label = map->color.label;
    drawn.row_axis = map->row_axis;
    drawn.col_axis = map->col_axis;
    qkv_text label = {0};
    const char *bands[QKV_MOST_BANDS] = {"none"};
    for (size_t i = 0; i < map->n_categories; i++) bands[i + 1] = map->categories[i];
    int status = set_scale(&drawn, map, err);
    if (status == QKV_OK) status = make_grid(&grid, map, err);
    if (status == QKV_OK && has_hues(map)) {
        grid->bands = bands;
        grid->n_bands = (int32_t)map->n_categories + 1;
        drawn.low = 0;
        drawn.high = grid->n_bands;
        drawn.scale = QKV_SCALE_LINEAR;
        drawn.diverging = 0;
        qkv_text_printf(&label, "%s%spale %g, strong %g", map->color.label ? map->color.label : "",
                        map->color.label ? ": " : "", map->color.low, map->color.high);
        if (label.failed) status = qkv_fail_memory(err);
        drawn.bar_label = label.data;
    }
    if (status == QKV_OK) {
        const double text = text_width(map);
        drawn.panel_size =
            text > 0 ? text_side(map, grid, text)
                     : fmin(fmax(panel_side(map, grid->cols), words_side(grid)), PAGE / grid->cols);
        drawn.fixed_panel_size = 1;
        status = to->path ? qkv_grid_write(grid, &drawn, to->path, err)
                          : qkv_grid_render(grid, &drawn, to->format, to->bytes, to->n_bytes, err);
    }
    qkv_grid_free(grid);
    qkv_text_release(&label);
    return status;
}

static int draw_heatmap(const qkv_heatmap *given, const qkv_chart_style *given_style,
                        const qkv_page_target *to, qkv_error *err) {
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    qkv_heatmap map = QKV_HEATMAP_INIT;
    qkv_heatmap_panel *panels = NULL;
    int status = qkv_page_check_target(to, err);
    if (status == QKV_OK && !given_style)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "drawing a chart needs a style");
    if (status == QKV_OK)
        status = qkv_sized_read(&style, sizeof style, given_style, "qkv_chart_style", err);
    if (status == QKV_OK) status = read_map(&map, &panels, given, err);
    if (status == QKV_OK) status = check_map(&map, err);
    if (status == QKV_OK) status = draw_map(&map, &style, to, err);
    free(panels);
    return status;
}

int qkv_heatmap_write(const qkv_heatmap *map, const qkv_chart_style *style, const char *path,
                      qkv_error *err) {
    return draw_heatmap(map, style, &(qkv_page_target){.path = path}, err);
}

int qkv_heatmap_render(const qkv_heatmap *map, const qkv_chart_style *style, const char *format,
                       char **bytes, size_t *n_bytes, qkv_error *err) {
    return draw_heatmap(map, style, &(qkv_page_target){NULL, format, bytes, n_bytes}, err);
}
