/*
 * Round numbers: where a colour bar and an axis of indices get their ticks, and how numbers are
 * written in a figure.
 */
#ifndef QKV_DRAW_TICKS_H
#define QKV_DRAW_TICKS_H

#include "draw/colormap.h"
#include "qkv/grid.h"

enum { QKV_MAX_TICKS = 24, QKV_MAX_MINOR = 128, QKV_NUMBER_SIZE = 32 };

typedef struct qkv_tick {
    double place; /* on the bar, 0..1 */
    char label[QKV_NUMBER_SIZE];
} qkv_tick;

/* Ticks of the style's range and scale, from low to high, at most `most` of them (2 or more).
 * Returns how many. */
int qkv_ticks_make(qkv_tick ticks[QKV_MAX_TICKS], const qkv_grid_style *style, int most);

/* Where the small ticks of a log scale go: at 1 to 9 times the powers of ten, at the powers alone
 * where there are many. None on other scales. Returns how many. */
int qkv_ticks_minor(double places[QKV_MAX_MINOR], const qkv_grid_style *style);

/* As few digits as tell the number apart, at most `digits`: 0.05, 1, 250, 1e-06. */
void qkv_number_text(char text[QKV_NUMBER_SIZE], double value, int digits);

/* The smallest of 1, 2, 5, 10, 20, 50 ... that is not below `least`. */
int qkv_nice_step(double least);

/* The text of a cell's value, three or four characters for what is common: ".83", "1.0", "−.12";
 * "0" for what rounds to zero, and "" for an exact zero: masked cells stay empty. A log scale tells
 * small values apart, so their text does too: "2e-3", down to its floor; and so does that of a
 * range that ends below 0.1, down to a part in 200 of it. */
void qkv_cell_text(char text[QKV_NUMBER_SIZE], const qkv_grid_style *style, double value);

#endif
