/* The page of a figure, worked out in points. See layout.h. */
#include "draw/layout.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "draw/panel_slots.h"

/* Distances in points. */
static const double COLUMN_GAP = 15, ROW_GAP = 13;
static const double FORMULA_GAP = 9;           /* beside a title that is wider than its line */
static const double TITLE_GAP = 4.5;           /* panel title above its panel */
static const double LABEL_GAP = 3, MARK = 2.5; /* panel to labels; length of a tick */
static const double NAME_SIZE = 8, NAME_GAP = 3.5, SIDE_GAP = 5;
static const double BAR_GAP = 18, BAR_WIDTH = 11;
static const double FIGURE_TITLE_SIZE = 11.5, FIGURE_TITLE_GAP = 16;
static const double SMALL_SIZE = QKV_SMALLEST_LETTERS, SMALL_GAP = 7, SMALL_GREY = 0.35;

/* ---- captions and marks ---- */

int qkv_layout_caption(qkv_layout *layout, PangoLayout *words, double x, double y, int upright,
                       double grey) {
    if (!words) return 0;
    const qkv_caption caption = {words, x, y, upright, grey};
    if (QKV_PUSH(layout->captions, layout->captions_capacity, layout->n_captions, caption)) {
        return 1;
    }
    g_object_unref(words);
    return 0;
}

int qkv_layout_mark(qkv_layout *layout, double x, double y, double width, double height) {
    const qkv_box box = {x, y, width, height};
    return QKV_PUSH(layout->marks, layout->marks_capacity, layout->n_marks, box);
}

qkv_box qkv_caption_ink(const qkv_caption *caption) {
    PangoRectangle ink;
    pango_layout_get_extents(caption->words, &ink, NULL);
    const double x = (double)ink.x / PANGO_SCALE, y = (double)ink.y / PANGO_SCALE;
    const double width = (double)ink.width / PANGO_SCALE, height = (double)ink.height / PANGO_SCALE;
    if (!caption->upright) return (qkv_box){caption->x + x, caption->y + y, width, height};
    return (qkv_box){caption->x + y, caption->y - x - width, height, width};
}

/* ---- around a panel ---- */

double qkv_axis_reach(const qkv_axis *axis) {
    return axis->n_labels ? LABEL_GAP + (axis->marked ? MARK : 0) + axis->depth : 0;
}

int qkv_layout_row_axis(qkv_layout *layout, const qkv_axis *axis, const qkv_box *panel) {
    const double right = panel->x - LABEL_GAP - (axis->marked ? MARK : 0);
    for (size_t i = 0; i < axis->n_labels; i++) {
        PangoLayout *words = axis->labels[i].layout;
        const double middle = panel->y + axis->labels[i].at;
        if (!qkv_layout_caption(layout, g_object_ref(words), right - qkv_words_right(words),
                                middle + QKV_CENTRE * axis->size - qkv_words_baseline(words), 0,
                                0)) {
            return 0;
        }
        if (axis->marked && !qkv_layout_mark(layout, panel->x - MARK - QKV_LINE_WIDTH,
                                             middle - QKV_LINE_WIDTH / 2, MARK, QKV_LINE_WIDTH)) {
            return 0;
        }
    }
    return 1;
}

static int place_col_axis(qkv_layout *layout, const qkv_panel_slot *slot, const qkv_box *panel) {
    const qkv_axis *axis = &slot->col_axis;
    const double bottom = panel->y + panel->height;
    const double top = bottom + LABEL_GAP + (axis->marked ? MARK : 0);
    for (size_t i = 0; i < axis->n_labels; i++) {
        PangoLayout *words = axis->labels[i].layout;
        const double middle = panel->x + axis->labels[i].at;
        const double x = axis->upright
                             ? middle + QKV_CENTRE * axis->size - qkv_words_baseline(words)
                             : middle - qkv_words_width(words) / 2;
        const double y = axis->upright
                             ? top + qkv_words_right(words)
                             : top + 2 * QKV_CENTRE * axis->size - qkv_words_baseline(words);
        if (!qkv_layout_caption(layout, g_object_ref(words), x, y, axis->upright, 0)) return 0;
        if (axis->marked && !qkv_layout_mark(layout, middle - QKV_LINE_WIDTH / 2,
                                             bottom + QKV_LINE_WIDTH, QKV_LINE_WIDTH, MARK)) {
            return 0;
        }
    }
    return 1;
}

/* "Query" left of the leftmost panel, at a distance that all panels of its column share; "Key"
 * below the lowest. */
static int place_names(qkv_layout *layout, const qkv_panel_slot *slot, const qkv_box *panel,
                       double left, const qkv_grid_style *style, const qkv_lettering *lettering) {
    if (slot->leftmost && style->row_axis) {
        PangoLayout *words = qkv_words_new(lettering, style->row_axis, QKV_WORDS_TITLE,
                                           qkv_lettering_size(lettering, NAME_SIZE), panel->height);
        if (!words) return 0;
        const double x = panel->x - left - NAME_GAP - qkv_words_height(words);
        const double y = panel->y + (panel->height + qkv_words_frame(words)) / 2;
        if (!qkv_layout_caption(layout, words, x, y, 1, 0)) return 0;
    }
    if (slot->lowest && style->col_axis) {
        PangoLayout *words = qkv_words_new(lettering, style->col_axis, QKV_WORDS_TITLE,
                                           qkv_lettering_size(lettering, NAME_SIZE),
                                           panel->width + QKV_TITLE_OVERHANG);
        if (!words) return 0;
        const double x = panel->x + (panel->width - qkv_words_frame(words)) / 2;
        const double y = panel->y + panel->height + qkv_axis_reach(&slot->col_axis) + NAME_GAP;
        if (!qkv_layout_caption(layout, words, x, y, 0, 0)) return 0;
    }
    return 1;
}

/* Level with the middle of its panel, its right edge at a distance that a column shares. */
static int place_side(qkv_layout *layout, const qkv_panel_slot *slot, const qkv_box *panel,
                      double left) {
    if (!slot->side) return 1;
    return qkv_layout_caption(layout, g_object_ref(slot->side),
                              panel->x - left - SIDE_GAP - qkv_words_width(slot->side),
                              panel->y + (panel->height - qkv_words_height(slot->side)) / 2, 0, 0);
}

static int place_title(qkv_layout *layout, const qkv_panel_slot *slot, const qkv_box *panel) {
    if (!slot->title) return 1;
    return qkv_layout_caption(layout, g_object_ref(slot->title),
                              panel->x + (panel->width - qkv_words_frame(slot->title)) / 2,
                              panel->y - TITLE_GAP - qkv_words_height(slot->title), 0, 0);
}

/* ---- columns and rows ---- */

static double text_height(const char *text, const qkv_lettering *lettering, double limit) {
    PangoLayout *words = text ? qkv_words_new(lettering, text, QKV_WORDS_TITLE,
                                              qkv_lettering_size(lettering, NAME_SIZE), limit)
                              : NULL;
    const double height = words ? NAME_GAP + qkv_words_height(words) : 0;
    if (words) g_object_unref(words);
    return height;
}

/* The room that the labels of each column's panels take to their left, without the axis name. */
static double labels_left(const qkv_panel_slots *slots, int32_t col) {
    double reach = 0;
    for (int32_t r = 0; r < slots->rows; r++) {
        reach = fmax(reach, qkv_axis_reach(&qkv_panel_slot_at(slots, r, col)->row_axis));
    }
    return reach;
}

static double name_left(const qkv_panel_slots *slots, int32_t col, const qkv_grid_style *style,
                        const qkv_lettering *lettering) {
    double room = 0;
    for (int32_t r = 0; r < slots->rows; r++) {
        const qkv_panel_slot *slot = qkv_panel_slot_at(slots, r, col);
        if (!slot->panel || !slot->leftmost) continue;
        room = fmax(room, text_height(style->row_axis, lettering, slot->height));
    }
    return room;
}

static double side_left(const qkv_panel_slots *slots, int32_t col) {
    double room = 0;
    for (int32_t r = 0; r < slots->rows; r++) {
        const qkv_panel_slot *slot = qkv_panel_slot_at(slots, r, col);
        if (slot->side) room = fmax(room, SIDE_GAP + qkv_words_width(slot->side));
    }
    return room;
}

/* How far titles reach out of their column, to each side. */
static double overhang(const qkv_panel_slots *slots, int32_t col) {
    double widest = 0;
    for (int32_t r = 0; r < slots->rows; r++) {
        const qkv_panel_slot *slot = qkv_panel_slot_at(slots, r, col);
        if (slot->title) widest = fmax(widest, qkv_words_frame(slot->title));
    }
    return fmax(widest - slots->col_width[col], 0) / 2;
}

/* Only a formula reaches so far. */
static int is_formula(double over) {
    return over > QKV_TITLE_OVERHANG / 2 + 0.25; /* beyond rounding */
}

static double row_above(const qkv_panel_slots *slots, int32_t row) {
    double height = 0;
    for (int32_t c = 0; c < slots->cols; c++) {
        const qkv_panel_slot *slot = qkv_panel_slot_at(slots, row, c);
        if (slot->title) height = fmax(height, qkv_words_height(slot->title) + TITLE_GAP);
    }
    return height;
}

static double row_below(const qkv_panel_slots *slots, int32_t row, const qkv_grid_style *style,
                        const qkv_lettering *lettering) {
    double reach = 0;
    for (int32_t c = 0; c < slots->cols; c++) {
        const qkv_panel_slot *slot = qkv_panel_slot_at(slots, row, c);
        if (!slot->panel) continue;
        double here = qkv_axis_reach(&slot->col_axis);
        if (slot->lowest) {
            here += text_height(style->col_axis, lettering, slot->width + QKV_TITLE_OVERHANG);
        }
        /* Panels stand at the top of their row; what a lower neighbour leaves free counts. */
        reach = fmax(reach, slot->height + here - slots->row_height[row]);
    }
    return reach;
}

/* The panels' boxes. *right and *bottom receive where the matrices end, *below what hangs under the
 * last row. */
static void place_panels(qkv_layout *layout, const qkv_panel_slots *slots,
                         const qkv_grid_style *style, const qkv_lettering *lettering, qkv_box *area,
                         double *below) {
    const double across = style->gap > 0 ? style->gap : COLUMN_GAP;
    const double down = style->gap > 0 ? style->gap : ROW_GAP;
    double x = QKV_MARGIN, y = QKV_MARGIN;
    for (int32_t c = 0; c < slots->cols; c++) {
        const double over = overhang(slots, c), before = c > 0 ? overhang(slots, c - 1) : 0;
        const double end = x; /* with the gap */
        x += labels_left(slots, c) + name_left(slots, c, style, lettering) + side_left(slots, c);
        if (is_formula(over) || is_formula(before))
            x = fmax(x, end + over + (c > 0 ? before + FORMULA_GAP - across : 0));
        if (c == 0) area->x = x;
        for (int32_t r = 0; r < slots->rows; r++) {
            const qkv_panel_slot *slot = qkv_panel_slot_at(slots, r, c);
            qkv_box *panel = &layout->panels[r * slots->cols + c];
            panel->x = x + (slots->col_width[c] - slot->width) / 2;
            panel->width = slot->width;
        }
        x += slots->col_width[c];
        area->width = x - area->x;
        x += across;
    }
    for (int32_t r = 0; r < slots->rows; r++) {
        y += row_above(slots, r);
        if (r == 0) area->y = y;
        for (int32_t c = 0; c < slots->cols; c++) {
            qkv_box *panel = &layout->panels[r * slots->cols + c];
            panel->y = y;
            panel->height = qkv_panel_slot_at(slots, r, c)->height;
        }
        y += slots->row_height[r];
        area->height = y - area->y;
        *below = row_below(slots, r, style, lettering);
        y += *below + down;
    }
}

static int place_around_panels(qkv_layout *layout, const qkv_panel_slots *slots,
                               const qkv_grid_style *style, const qkv_lettering *lettering) {
    for (int32_t c = 0; c < slots->cols; c++) {
        const double left = labels_left(slots, c);
        for (int32_t r = 0; r < slots->rows; r++) {
            const qkv_panel_slot *slot = qkv_panel_slot_at(slots, r, c);
            const qkv_box *panel = &layout->panels[r * slots->cols + c];
            if (!slot->panel) continue;
            const double named = left + name_left(slots, c, style, lettering);
            if (!place_title(layout, slot, panel) || !place_side(layout, slot, panel, named) ||
                !qkv_layout_row_axis(layout, &slot->row_axis, panel) ||
                !place_col_axis(layout, slot, panel) ||
                !place_names(layout, slot, panel, left, style, lettering)) {
                return 0;
            }
        }
    }
    return 1;
}

/* ---- the page ---- */

/* A text under the middle of the area, unless that would push it over the margin. Returns where it
 * ends. */
static double place_text(qkv_layout *layout, const qkv_box *area, double y, PangoLayout *words,
                         double grey) {
    if (!words) return -1;
    const double width = qkv_words_frame(words), height = qkv_words_height(words);
    const double wanted = area->x + (area->width - width) / 2;
    const double x = fmin(fmax(wanted, QKV_MARGIN), layout->width - QKV_MARGIN - width);
    return qkv_layout_caption(layout, words, x, y, 0, grey) ? y + height : -1;
}

double qkv_layout_texts(qkv_layout *layout, const qkv_box *area, double y, const char *title,
                        const char *small_print, const qkv_lettering *lettering) {
    const double room = layout->width - 2 * QKV_MARGIN;
    if (title) {
        y = place_text(layout, area, y + FIGURE_TITLE_GAP,
                       qkv_words_new(lettering, title, QKV_WORDS_TITLE,
                                     qkv_lettering_size(lettering, FIGURE_TITLE_SIZE), room),
                       0);
        if (y < 0) return -1;
    }
    if (small_print) {
        y = place_text(layout, area, y + (title ? SMALL_GAP : FIGURE_TITLE_GAP),
                       qkv_words_new(lettering, small_print, QKV_WORDS_PLAIN,
                                     qkv_lettering_size(lettering, SMALL_SIZE), room),
                       SMALL_GREY);
    }
    return y;
}

/* Moves everything to the middle of the page. */
static void centre(qkv_layout *layout, qkv_box *area) {
    const double dx = (layout->width - layout->content) / 2;
    for (int32_t i = 0; i < layout->rows * layout->cols; i++) layout->panels[i].x += dx;
    for (size_t i = 0; i < layout->n_captions; i++) layout->captions[i].x += dx;
    for (size_t i = 0; i < layout->n_marks; i++) layout->marks[i].x += dx;
    layout->bar.x += dx;
    area->x += dx;
}

static int compose(qkv_layout *layout, const qkv_panel_slots *slots, const qkv_grid *grid,
                   const qkv_grid_style *style, const qkv_lettering *lettering, qkv_error *err) {
    qkv_box area = {0};
    double below = 0;
    layout->row_tokens = slots->row_tokens;
    layout->col_tokens = slots->col_tokens;
    place_panels(layout, slots, style, lettering, &area, &below);
    if (!place_around_panels(layout, slots, style, lettering)) return qkv_fail_memory(err);
    const double over = overhang(slots, slots->cols - 1);
    const double gap = is_formula(over) ? fmax(BAR_GAP, over + FORMULA_GAP) : BAR_GAP;
    layout->bar = (qkv_box){area.x + area.width + gap, area.y, BAR_WIDTH, area.height};
    const double right =
        qkv_colorbar_place(layout, grid, style, lettering, area.y + area.height + below);
    if (right < 0) return qkv_fail_memory(err);
    layout->content = right + QKV_MARGIN;
    layout->width = style->width > 0 ? style->width : ceil(layout->content);
    if (style->width > 0) centre(layout, &area);
    const double bottom = qkv_layout_texts(layout, &area, area.y + area.height + below,
                                           style->title, style->small_print, lettering);
    if (bottom < 0) return qkv_fail_memory(err);
    layout->height = ceil(bottom + QKV_MARGIN);
    return QKV_OK;
}

int qkv_layout_make(qkv_layout *layout, const qkv_grid *grid, const qkv_grid_style *style,
                    const qkv_lettering *lettering, qkv_error *err) {
    *layout = (qkv_layout){.scale = 1, .rows = grid->rows, .cols = grid->cols};
    qkv_panel_slots slots = {0};
    int status = qkv_panel_slots_make(&slots, grid, style, lettering, err);
    if (status != QKV_OK) return status;
    layout->panels = qkv_calloc((size_t)grid->rows * (size_t)grid->cols, sizeof *layout->panels);
    status = layout->panels ? compose(layout, &slots, grid, style, lettering, err)
                            : qkv_fail_memory(err);
    qkv_panel_slots_release(&slots);
    if (status != QKV_OK) qkv_layout_release(layout);
    return status;
}

void qkv_layout_release(qkv_layout *layout) {
    for (size_t i = 0; i < layout->n_captions; i++) g_object_unref(layout->captions[i].words);
    free(layout->captions);
    free(layout->marks);
    free(layout->panels);
    *layout = (qkv_layout){0};
}
