/*
 * What the tests of qkv_figure share: a session on the default model, a prompt of a few ids, and
 * figures that are expected to be made. Whatever fails here fails the running cmocka test.
 */
#ifndef QKV_TESTS_SUPPORT_FIGURE_MAKER_H
#define QKV_TESTS_SUPPORT_FIGURE_MAKER_H

#include "study/figure.h"
#include "support/engine.h"

/* What a figure shows, and one of its panels; they belong to it. */
typedef struct shown_info {
    qkv_figure_kind kind;
    size_t rows, cols, n_prompts;
    int32_t layer, head;
    double sink, low, high, gamma, log_floor;
    const char *title, *edits, *small_print, *recipe, *id;
    qkv_scale scale;
    qkv_colormap colormap;
    qkv_masked masked;
} shown_info;

typedef struct shown_panel {
    const char *title, *edits;
    size_t prompt;
    int64_t n_rows, n_cols;
    const float *values, *map, *unmodified;
    int32_t layer, head;
} shown_panel;

enum { FIGURE_N_TOKENS = 5, FIGURE_LAYER = 3, FIGURE_HEAD = 1 };
extern const int32_t FIGURE_TOKENS[FIGURE_N_TOKENS];

/* Between these two, which are the setup and the teardown of a group of tests. */
extern engine figure_engine;
int figure_open(void **state);
int figure_close(void **state);

qkv_prompt figure_ids(void);
qkv_figure_side figure_side(const char *label, const char *edits);
/* One prompt at the layer and head above. */
qkv_figure_options figure_options_for(const qkv_prompt *prompt);

/* The caller's to free. */
qkv_figure *make_figure(qkv_figure_kind kind, const qkv_figure_options *options);
shown_panel figure_panel(const qkv_figure *figure, size_t row, size_t col);
shown_info figure_info(const qkv_figure *figure);

#endif
