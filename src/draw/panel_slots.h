/*
 * What each panel of a grid needs around it, measured before anything has a place: the matrix's
 * drawn size, its title, and the labels it carries.
 *
 * Neighbours that share their labels are labelled once: the leftmost panel of a grid's row carries
 * the row labels, the lowest panel of a column the column labels. Where panels differ (another
 * prompt, another length) each carries its own.
 */
#ifndef QKV_DRAW_PANEL_SLOTS_H
#define QKV_DRAW_PANEL_SLOTS_H

#include "draw/axis.h"
#include "draw/grid_data.h"
#include "draw/lettering.h"

typedef struct qkv_panel_slot {
    const qkv_panel_data *panel; /* NULL: empty */
    double width, height;        /* of the matrix as drawn; cells are square */
    PangoLayout *title;          /* NULL: none */
    PangoLayout *side;           /* left of it all; NULL: none */
    qkv_axis row_axis, col_axis; /* no labels: not shown */
    int leftmost, lowest;        /* of its grid row and column: carries the axis names */
} qkv_panel_slot;

typedef struct qkv_panel_slots {
    qkv_panel_slot *slots; /* rows x cols */
    int32_t rows, cols;
    double *col_width;          /* of the widest matrix in each column of the grid */
    double *row_height;         /* of the highest in each row */
    int row_tokens, col_tokens; /* labels are tokens, in all panels; 0: positions */
} qkv_panel_slots;

/* How much wider than its panel's column a title may be before it is wrapped. */
#define QKV_TITLE_OVERHANG 8.0

int qkv_panel_slots_make(qkv_panel_slots *slots, const qkv_grid *grid, const qkv_grid_style *style,
                         const qkv_lettering *lettering, qkv_error *err);
void qkv_panel_slots_release(qkv_panel_slots *slots);

static inline qkv_panel_slot *qkv_panel_slot_at(const qkv_panel_slots *slots, int32_t row,
                                                int32_t col) {
    return &slots->slots[(size_t)row * (size_t)slots->cols + (size_t)col];
}

/*
 * Titles of panels in lines that are broken alike: where one title of as many words does not fit on
 * a line, all of them are broken after the same words, so that a row of titles reads as one. On a page
 * of given width, a formula may be somewhat longer than its line before it is broken.
 */

typedef struct qkv_panel_title {
    const char *text;   /* NULL: none */
    double limit;       /* of its lines */
    PangoLayout *words; /* made; the caller's to give back with g_object_unref */
} qkv_panel_title;

/* What came out. */
typedef struct qkv_title_lines {
    int lines; /* of the title that has most; 0: there is none */
    int fits;  /* no word or formula is longer than a line */
} qkv_title_lines;

/* Makes the words of n titles, in letters of `size`. */
int qkv_title_lines_make(qkv_title_lines *made, qkv_panel_title *titles, size_t n, double size,
                         const qkv_lettering *lettering, qkv_error *err);
/* Gives back their words. */
void qkv_title_lines_release(qkv_panel_title *titles, size_t n);

#endif
