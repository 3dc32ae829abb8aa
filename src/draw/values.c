/*
 * Numbers in the cells: one size for all panels whose cells are of one size, white on dark and
 * black on light cells. Each panel has them when they fit into it. Exact zeros stay empty, so that
 * what a mask took away is seen at a glance; "0" is a value that rounds to zero.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "draw/paint.h"
#include "draw/ticks.h"
#include "draw/words_show.h"

static const double LARGEST = 6.5, SMALLEST = 4.3; /* points, when there must be room */
static const double UNREADABLE = 1;                /* not drawn even when asked for */
/* Of a cell's width that a number takes, and what it may take before it becomes too small. */
static const double SHARE = 0.72, MOST_SHARE = 0.86;
static const double HEIGHT_SHARE = 0.7;
static const double LEAST_ROOM = 1.6; /* of a cut text, in letter sizes */
static const double SAME_CELL = 1e-6;
static const double NOTE_SIZE = 7, NOTE_MARGIN = 2.5; /* in a panel of zeros, points */

static const double TEXT_SHARE = 0.92, TEXT_HEIGHT = 0.66; /* of a cell, that a text may take */

static double cell_width(const qkv_box *box, const qkv_panel_data *panel) {
    return fmin(box->width / panel->n_cols, box->height / panel->n_rows);
}

/* A text's width at size 1. Digits are all of one width, so this is asked for once per shape. */
static double relative_width(const qkv_painter *painter, const char *text) {
    if (!text[0]) return 0;
    PangoLayout *words = qkv_words_new(painter->lettering, text, QKV_WORDS_LABEL, 10, 0);
    const double width = words ? qkv_words_width(words) / 10 : 0;
    if (words) g_object_unref(words);
    return width;
}

/* The widest number of a panel, at size 1. Shapes are compared by length first: few are
 * measured. */
static double widest_number(const qkv_painter *painter, const qkv_panel_data *panel) {
    double widest = 0;
    char text[QKV_NUMBER_SIZE], seen[QKV_NUMBER_SIZE] = "";
    const size_t n = (size_t)panel->n_rows * (size_t)panel->n_cols;
    for (size_t i = 0; i < n; i++) {
        qkv_cell_text(text, painter->style, panel->values[i]);
        for (char *c = text; *c; c++) *c = *c >= '0' && *c <= '9' ? '0' : *c;
        if (strlen(text) < strlen(seen) || strcmp(text, seen) == 0) continue;
        widest = fmax(widest, relative_width(painter, text));
        memcpy(seen, text, sizeof seen);
    }
    return widest;
}

/* The size of texts in cells: the largest at which they fit, else the smallest, and what is still too long
 * is cut. 0 where no line fits. */
static double text_size(const qkv_painter *painter, const qkv_panel_data *panel,
                        const qkv_box *box) {
    const double least = fmax(painter->lettering->least, SMALLEST);
    const double room = TEXT_SHARE * box->width / panel->n_cols;
    const double most = fmin(fmax(LARGEST, least), TEXT_HEIGHT * box->height / panel->n_rows);
    double width = 0;
    if (most < least || room < LEAST_ROOM * least) return 0;
    const size_t n = (size_t)panel->n_rows * (size_t)panel->n_cols;
    for (size_t i = 0; i < n; i++)
        width = fmax(width, relative_width(painter, panel->cell_texts[i]));
    return width > 0 ? fmin(most, fmax(least, room / width)) : most;
}

/* The size that fits one panel, 0 when none does. */
static double fitting_size(const qkv_painter *painter, const qkv_panel_data *panel, double cell) {
    const double least =
        fmax(painter->lettering->least, painter->style->cell_values > 0 ? UNREADABLE : SMALLEST);
    double size = fmin(fmax(LARGEST, least), HEIGHT_SHARE * cell);
    if (size < least) return 0; /* before the values of a huge matrix are looked at */
    const double width = widest_number(painter, panel);
    if (width > 0) {
        const double tight =
            fmin(fmax(SMALLEST, painter->lettering->least), MOST_SHARE * cell / width);
        size = fmin(size, fmax(SHARE * cell / width, tight));
    }
    return size < least ? 0 : size;
}

double *qkv_values_sizes(const qkv_painter *painter) {
    const int32_t n = painter->grid->rows * painter->grid->cols;
    double *sizes = qkv_calloc((size_t)n, sizeof *sizes);
    if (!sizes || painter->style->cell_values == 0) return sizes;
    for (int32_t i = 0; i < n; i++) {
        const qkv_panel_data *panel = &painter->grid->panels[i];
        if (!panel->values) continue;
        const double cell = cell_width(&painter->layout->panels[i], panel);
        sizes[i] = panel->cell_texts ? text_size(painter, panel, &painter->layout->panels[i])
                                     : fitting_size(painter, panel, cell);
        for (int32_t k = 0; k < i && sizes[i] > 0; k++) {
            const qkv_panel_data *other = &painter->grid->panels[k];
            if (sizes[k] == 0 ||
                fabs(cell_width(&painter->layout->panels[k], other) - cell) > SAME_CELL) {
                continue;
            }
            sizes[k] = sizes[i] = fmin(sizes[k], sizes[i]);
        }
    }
    return sizes;
}

/* White on dark cells and on strong colours, black on light ones. The limit lies above the one of
 * equal contrast ratios (0.18): small white figures read better on saturated blue and red. */
static uint32_t text_color(uint32_t cell) {
    return qkv_color_luminance(cell) < 0.33 ? 0xffffff : 0x000000;
}

/* Half way from a cell's colour to its text's: for zeros, which must not shout. */
static uint32_t faded(uint32_t cell, uint32_t text) {
    return (cell >> 1 & 0x7f7f7f) + (text >> 1 & 0x7f7f7f);
}

/* Texts are ellipsised to their cells. */
static void paint_texts(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                        double size) {
    const double dx = box->width / panel->n_cols, dy = box->height / panel->n_rows;
    const size_t n = (size_t)panel->n_rows * (size_t)panel->n_cols;
    for (size_t i = 0; i < n; i++) {
        const char *text = panel->cell_texts[i];
        if (!text[0]) continue;
        PangoLayout *words =
            qkv_words_new(painter->lettering, text, QKV_WORDS_LABEL, size, TEXT_SHARE * dx);
        if (!words) return;
        const size_t row = i / (size_t)panel->n_cols, col = i % (size_t)panel->n_cols;
        const double value = panel->values[i];
        const uint32_t cell =
            isnan(value) ? QKV_NO_VALUE_COLOR : qkv_color_table_color(painter->colors, value);
        qkv_paint_color(painter, text_color(cell));
        cairo_move_to(painter->cr, box->x + ((double)col + 0.5) * dx - qkv_words_width(words) / 2,
                      box->y + ((double)row + 0.5) * dy + QKV_CENTRE * size -
                          qkv_words_baseline(words));
        qkv_words_show(painter->cr, words);
        g_object_unref(words);
    }
}

void qkv_paint_values(const qkv_painter *painter, const qkv_panel_data *panel, const qkv_box *box,
                      double size) {
    if (panel->cell_texts) {
        paint_texts(painter, panel, box, size);
        return;
    }
    PangoLayout *words = qkv_words_new(painter->lettering, "0", QKV_WORDS_LABEL, size, 0);
    if (!words) return;
    PangoRectangle ink;
    pango_layout_get_extents(words, &ink, NULL);
    const double middle = (ink.y + ink.height / 2.0) / PANGO_SCALE; /* of a digit */
    const double dx = box->width / panel->n_cols, dy = box->height / panel->n_rows;
    for (int32_t r = 0; r < panel->n_rows; r++) {
        for (int32_t c = 0; c < panel->n_cols; c++) {
            const double value = panel->values[(size_t)r * (size_t)panel->n_cols + (size_t)c];
            char text[QKV_NUMBER_SIZE];
            qkv_cell_text(text, painter->style, value);
            if (!*text) continue;
            pango_layout_set_text(words, text, -1);
            const uint32_t cell = qkv_color_table_color(painter->colors, value);
            const uint32_t color = text_color(cell);
            qkv_paint_color(painter, strcmp(text, "0") == 0 ? faded(cell, color) : color);
            cairo_move_to(painter->cr, box->x + (c + 0.5) * dx - qkv_words_width(words) / 2,
                          box->y + (r + 0.5) * dy - middle);
            qkv_words_show(painter->cr, words);
        }
    }
    g_object_unref(words);
}

void qkv_paint_zeros(const qkv_painter *painter, const qkv_box *box) {
    const double size = fmin(qkv_lettering_size(painter->lettering, NOTE_SIZE), box->height / 3);
    PangoLayout *words = qkv_words_new(painter->lettering, "all values are exactly 0",
                                       QKV_WORDS_PLAIN, size, box->width - 2 * NOTE_MARGIN);
    if (!words) return;
    const double width = qkv_words_width(words), height = qkv_words_height(words);
    const double middle_x = box->x + box->width / 2, middle_y = box->y + box->height / 2;
    qkv_paint_color(painter, 0xffffff);
    cairo_rectangle(painter->cr, middle_x - width / 2 - NOTE_MARGIN,
                    middle_y - height / 2 - NOTE_MARGIN, width + 2 * NOTE_MARGIN,
                    height + 2 * NOTE_MARGIN);
    cairo_fill(painter->cr);
    qkv_paint_color(painter, 0x1a1a1a);
    cairo_move_to(painter->cr, middle_x - qkv_words_frame(words) / 2, middle_y - height / 2);
    qkv_words_show(painter->cr, words);
    g_object_unref(words);
}
