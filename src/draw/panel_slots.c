/* Measuring panels: sizes, shared labels, titles. See panel_slots.h. */
#include "draw/panel_slots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const double THINNEST = 0.1;     /* of the side: a longer strip gives up square cells */
static const double MOST_THINNEST = 48; /* points */
static const double LONGEST_WORD = 110; /* of a chart, points */
static const double LABEL_SHARE = 0.36; /* of the side: longer labels are ellipsised */
/* One size for all titles: the largest at which none has more lines, else the smallest. */
static const struct {
    double size;
    int most_lines;
} TITLE_SIZES[] = {{9.5, 1}, {9, 1}, {8.5, 1}, {8, 2}, {7.25, 2}, {QKV_SMALLEST_LETTERS, 2}};
static const double SIDE_SIZE = 8;

/* Cells of an aspect other than 1 are as wide as square ones would be, or as high. */
static void size_panel(qkv_panel_slot *slot, double side, double aspect) {
    const double n_rows = slot->panel->n_rows / aspect, n_cols = slot->panel->n_cols;
    const double pitch = side / fmax(n_rows, n_cols),
                 thinnest = fmin(THINNEST * side, MOST_THINNEST);
    slot->width = fmax(n_cols * pitch, thinnest);
    slot->height = fmax(n_rows * pitch, thinnest);
}

/* Drawn sizes, and which panels lie at the edges. An empty row or column keeps its room. */
static void size_slots(qkv_panel_slots *slots, const qkv_grid *grid, double side) {
    for (int32_t r = 0; r < slots->rows; r++) {
        for (int32_t c = 0; c < slots->cols; c++) {
            qkv_panel_slot *slot = qkv_panel_slot_at(slots, r, c);
            const qkv_panel_data *panel = qkv_grid_panel(grid, r, c);
            if (!panel->values) continue;
            slot->panel = panel;
            size_panel(slot, side, grid->aspect > 0 ? grid->aspect : 1);
            slots->col_width[c] = fmax(slots->col_width[c], slot->width);
            slots->row_height[r] = fmax(slots->row_height[r], slot->height);
        }
    }
    for (int32_t c = 0; c < slots->cols; c++) {
        if (slots->col_width[c] == 0) slots->col_width[c] = side;
        int32_t r = slots->rows - 1;
        while (r > 0 && !qkv_panel_slot_at(slots, r, c)->panel) r--;
        qkv_panel_slot_at(slots, r, c)->lowest = 1;
    }
    for (int32_t r = 0; r < slots->rows; r++) {
        if (slots->row_height[r] == 0) slots->row_height[r] = side;
        int32_t c = 0;
        while (c < slots->cols - 1 && !qkv_panel_slot_at(slots, r, c)->panel) c++;
        qkv_panel_slot_at(slots, r, c)->leftmost = 1;
    }
}

static int same_labels(char *const *a, char *const *b, int32_t n) {
    if (!a || !b) return a == b;
    for (int32_t i = 0; i < n; i++) {
        if (strcmp(a[i], b[i]) != 0) return 0;
    }
    return 1;
}

static int same_rows(const qkv_panel_slot *a, const qkv_panel_slot *b) {
    return a->height == b->height && a->panel->n_rows == b->panel->n_rows &&
           same_labels(a->panel->row_labels, b->panel->row_labels, a->panel->n_rows);
}

static int same_cols(const qkv_panel_slot *a, const qkv_panel_slot *b) {
    return a->width == b->width && a->panel->n_cols == b->panel->n_cols &&
           a->panel->first_col == b->panel->first_col &&
           same_labels(a->panel->col_labels, b->panel->col_labels, a->panel->n_cols);
}

/* Whether all panels of a grid row (by = 0) have the same row labels, or all of a grid column
 * (by = 1) the same column labels. */
static int shared(const qkv_panel_slots *slots, int32_t line, int by) {
    const qkv_panel_slot *first = NULL;
    const int32_t n = by ? slots->rows : slots->cols;
    for (int32_t i = 0; i < n; i++) {
        const qkv_panel_slot *slot =
            by ? qkv_panel_slot_at(slots, i, line) : qkv_panel_slot_at(slots, line, i);
        if (!slot->panel) continue;
        if (!first) first = slot;
        if (!(by ? same_cols(first, slot) : same_rows(first, slot))) return 0;
    }
    return 1;
}

/* Whether tokens have room at the rows (by = 0) or columns (by = 1) of every panel. */
static int tokens_fit(const qkv_panel_slots *slots, int by, const qkv_lettering *lettering) {
    for (int32_t i = 0; i < slots->rows * slots->cols; i++) {
        const qkv_panel_slot *slot = &slots->slots[i];
        if (!slot->panel) continue;
        const double pitch =
            by ? slot->width / slot->panel->n_cols : slot->height / slot->panel->n_rows;
        if (!qkv_axis_stride(lettering, pitch)) return 0;
    }
    return 1;
}

/* Whether rows and columns are labelled with words, so that one must look like the other. */
static int are_words(const qkv_panel_slots *slots) {
    for (int32_t i = 0; i < slots->rows * slots->cols; i++) {
        const qkv_panel_data *panel = slots->slots[i].panel;
        if (panel && !(qkv_labels_are_words(panel->row_labels, panel->n_rows) &&
                       qkv_labels_are_words(panel->col_labels, panel->n_cols)))
            return 0;
    }
    return 1;
}

/* All panels have tokens, or all have positions. */
static void choose_labels(qkv_panel_slots *slots, const qkv_lettering *lettering) {
    slots->row_tokens = tokens_fit(slots, 0, lettering);
    slots->col_tokens = tokens_fit(slots, 1, lettering);
    if (are_words(slots)) slots->row_tokens = slots->col_tokens &= slots->row_tokens;
}

static int make_axes(const qkv_panel_slots *slots, qkv_panel_slot *slot, int rows_shown,
                     int cols_shown, int flat, double side, const qkv_lettering *lettering,
                     qkv_error *err) {
    const qkv_panel_data *panel = slot->panel;
    const double limit = flat ? fmin(LABEL_SHARE * side, LONGEST_WORD) : LABEL_SHARE * side;
    const qkv_axis_input left = {
        panel->row_labels, panel->n_rows, 0, slot->height / panel->n_rows, limit, 0, flat,
        !slots->row_tokens};
    const qkv_axis_input below = {panel->col_labels,
                                  panel->n_cols,
                                  panel->first_col,
                                  slot->width / panel->n_cols,
                                  limit,
                                  1,
                                  flat,
                                  !slots->col_tokens};
    int status = QKV_OK;
    if (rows_shown) status = qkv_axis_make(&slot->row_axis, lettering, &left, err);
    if (status == QKV_OK && cols_shown) {
        status = qkv_axis_make(&slot->col_axis, lettering, &below, err);
    }
    return status;
}

static int make_all_axes(qkv_panel_slots *slots, int flat, double side,
                         const qkv_lettering *lettering, qkv_error *err) {
    int status = QKV_OK;
    choose_labels(slots, lettering);
    for (int32_t r = 0; r < slots->rows && status == QKV_OK; r++) {
        const int row_shared = shared(slots, r, 0);
        for (int32_t c = 0; c < slots->cols && status == QKV_OK; c++) {
            qkv_panel_slot *slot = qkv_panel_slot_at(slots, r, c);
            if (!slot->panel) continue;
            status = make_axes(slots, slot, slot->leftmost || !row_shared,
                               slot->lowest || !shared(slots, c, 1), flat, side, lettering, err);
        }
    }
    return status;
}

/* Titles of all panels; words that were made go to their slots. */
static int make_titles(qkv_panel_slots *slots, qkv_panel_title *titles,
                       const qkv_lettering *lettering, qkv_error *err) {
    const size_t n = (size_t)slots->rows * (size_t)slots->cols;
    qkv_title_lines made = {0, 0};
    int status = QKV_OK, enough = 0;
    for (size_t i = 0; i < sizeof TITLE_SIZES / sizeof *TITLE_SIZES && !enough; i++) {
        status = qkv_title_lines_make(
            &made, titles, n, qkv_lettering_size(lettering, TITLE_SIZES[i].size), lettering, err);
        if (status != QKV_OK) return status;
        enough = made.fits && made.lines <= TITLE_SIZES[i].most_lines;
    }
    for (size_t i = 0; i < n; i++) slots->slots[i].title = titles[i].words;
    return QKV_OK;
}

static int make_all_titles(qkv_panel_slots *slots, const qkv_lettering *lettering, qkv_error *err) {
    const size_t n = (size_t)slots->rows * (size_t)slots->cols;
    qkv_panel_title *titles = qkv_calloc(n, sizeof *titles);
    if (!titles) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const qkv_panel_data *panel = slots->slots[i].panel;
        if (panel) titles[i].text = panel->title;
        titles[i].limit = slots->col_width[i % (size_t)slots->cols] + QKV_TITLE_OVERHANG;
    }
    const int status = make_titles(slots, titles, lettering, err);
    free(titles);
    return status;
}

static int make_sides(qkv_panel_slots *slots, const qkv_lettering *lettering, qkv_error *err) {
    for (int32_t i = 0; i < slots->rows * slots->cols; i++) {
        qkv_panel_slot *slot = &slots->slots[i];
        if (!slot->panel || !slot->panel->side) continue;
        slot->side = qkv_words_new(lettering, slot->panel->side, QKV_WORDS_TITLE,
                                   qkv_lettering_size(lettering, SIDE_SIZE), 0);
        if (!slot->side) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

int qkv_panel_slots_make(qkv_panel_slots *slots, const qkv_grid *grid, const qkv_grid_style *style,
                         const qkv_lettering *lettering, qkv_error *err) {
    *slots = (qkv_panel_slots){.rows = grid->rows, .cols = grid->cols};
    slots->slots = qkv_calloc((size_t)grid->rows * (size_t)grid->cols, sizeof *slots->slots);
    slots->col_width = qkv_calloc((size_t)grid->cols, sizeof *slots->col_width);
    slots->row_height = qkv_calloc((size_t)grid->rows, sizeof *slots->row_height);
    int status = QKV_OK;
    if (!slots->slots || !slots->col_width || !slots->row_height) status = qkv_fail_memory(err);
    if (status == QKV_OK) {
        size_slots(slots, grid, style->panel_size);
        if (style->labels) {
            status = make_all_axes(slots, grid->is_chart, style->panel_size, lettering, err);
        }
    }
    if (status == QKV_OK) status = make_all_titles(slots, lettering, err);
    if (status == QKV_OK) status = make_sides(slots, lettering, err);
    if (status != QKV_OK) qkv_panel_slots_release(slots);
    return status;
}

void qkv_panel_slots_release(qkv_panel_slots *slots) {
    for (int32_t i = 0; slots->slots && i < slots->rows * slots->cols; i++) {
        g_clear_object(&slots->slots[i].title);
        g_clear_object(&slots->slots[i].side);
        qkv_axis_release(&slots->slots[i].row_axis);
        qkv_axis_release(&slots->slots[i].col_axis);
    }
    free(slots->slots);
    free(slots->col_width);
    free(slots->row_height);
    *slots = (qkv_panel_slots){0};
}
