#include "support/figure_maker.h"

#include <stdlib.h>

#include "support/scratch.h"

const int32_t FIGURE_TOKENS[FIGURE_N_TOKENS] = {5, 6, 7, 8, 9};
engine figure_engine;

int figure_open(void **state) {
    (void)state;
    engine_open(&figure_engine, QKV_TEST_MODELS "/default.gguf", 1);
    return 0;
}

int figure_close(void **state) {
    engine_close(&figure_engine);
    return scratch_clean(state);
}

qkv_prompt figure_ids(void) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = FIGURE_TOKENS;
    prompt.n_tokens = FIGURE_N_TOKENS;
    return prompt;
}

qkv_figure_side figure_side(const char *label, const char *edits) {
    qkv_figure_side side = QKV_FIGURE_SIDE_INIT;
    side.label = label;
    side.edits = edits;
    return side;
}

qkv_figure_options figure_options_for(const qkv_prompt *prompt) {
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    options.prompts = prompt;
    options.n_prompts = 1;
    options.layer = FIGURE_LAYER;
    options.head = FIGURE_HEAD;
    return options;
}

qkv_figure *make_figure(qkv_figure_kind kind, const qkv_figure_options *options) {
    qkv_figure *figure = NULL;
    qkv_error err = {0};
    expect_ok(qkv_figure_make(&figure, figure_engine.session, kind, options, &err), &err, "figure");
    return figure;
}

shown_panel figure_panel(const qkv_figure *figure, size_t row, size_t col) {
    if (row >= figure->rows || col >= figure->cols) abort(); /* a mistake in a test */
    const figure_cell *cell = &figure->cells[row * figure->cols + col];
    const int has_maps = figure->options.report;
    return (shown_panel){.title = cell->title,
                         .edits = cell->edits,
                         .prompt = cell->prompt,
                         .n_rows = (int64_t)cell->n_rows,
                         .n_cols = (int64_t)cell->n_cols,
                         .values = cell->values,
                         .map = has_maps ? cell->pattern : NULL,
                         .unmodified = has_maps ? figure->plain[cell->prompt] : NULL,
                         .layer = cell->layer,
                         .head = cell->head};
}

shown_info figure_info(const qkv_figure *figure) {
    return (shown_info){.kind = figure->kind,
                        .rows = figure->rows,
                        .cols = figure->cols,
                        .n_prompts = figure->prompts.n,
                        .layer = figure->layer,
                        .head = figure->head,
                        .sink = figure->sink,
                        .low = figure->low,
                        .high = figure->high,
                        .gamma = figure->gamma,
                        .log_floor = qkv_figure_log_floor(figure),
                        .title = figure->title,
                        .edits = figure->operations.length ? figure->operations.data : "",
                        .small_print = figure->small_print,
                        .recipe = figure->recipe,
                        .id = figure->id,
                        .scale = figure->scale,
                        .colormap = figure->colormap,
                        .masked = figure->masked};
}
