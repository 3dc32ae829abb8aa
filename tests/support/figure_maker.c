#include "support/figure_maker.h"

#include "support/scratch.h"

const int32_t FIGURE_TOKENS[FIGURE_N_TOKENS] = {5, 6, 7, 8, 9};
engine figure_engine;

int (*const figure_makers[QKV_FIGURE_KINDS])(qkv_figure **, qkv_session *,
                                             const qkv_figure_options *, qkv_error *) = {
    [QKV_FIGURE_MODIFY] = qkv_figure_modify, [QKV_FIGURE_MEAN] = qkv_figure_mean,
    [QKV_FIGURE_GRID] = qkv_figure_grid,     [QKV_FIGURE_HEADS] = qkv_figure_heads,
    [QKV_FIGURE_ROWS] = qkv_figure_rows,     [QKV_FIGURE_PATTERN] = qkv_figure_pattern,
};

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
    expect_ok(figure_makers[kind](&figure, figure_engine.session, options, &err), &err, "figure");
    return figure;
}

qkv_figure_panel figure_panel(const qkv_figure *figure, size_t row, size_t col) {
    qkv_error err = {0};
    qkv_figure_panel panel = QKV_FIGURE_PANEL_INIT;
    expect_ok(qkv_figure_get_panel(figure, row, col, &panel, &err), &err, "panel");
    return panel;
}

qkv_figure_info figure_info(const qkv_figure *figure) {
    qkv_error err = {0};
    qkv_figure_info info = QKV_FIGURE_INFO_INIT;
    expect_ok(qkv_figure_get_info(figure, &info, &err), &err, "info");
    return info;
}
