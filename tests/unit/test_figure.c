/* Figures: their numbers are the session's, their bytes the file's, mistakes errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/figure.h"
#include "qkv/measure.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"

static const int32_t TOKENS[] = {5, 6, 7, 8, 9};
enum { N_TOKENS = sizeof TOKENS / sizeof *TOKENS, LAYER = 3, HEAD = 1 };

static engine shared;

static int open_model(void **state) {
    (void)state;
    engine_open(&shared, QKV_TEST_MODELS "/default.gguf", 1);
    return 0;
}

static int close_model(void **state) {
    engine_close(&shared);
    return scratch_clean(state);
}

static qkv_prompt ids(void) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = TOKENS;
    prompt.n_tokens = N_TOKENS;
    return prompt;
}

static qkv_figure_side side_of(const char *label, const char *edits) {
    qkv_figure_side side = QKV_FIGURE_SIDE_INIT;
    side.label = label;
    side.edits = edits;
    return side;
}

/* The ids above at a fixed head. */
static qkv_figure_options options_for(const qkv_prompt *prompt) {
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    options.prompts = prompt;
    options.n_prompts = 1;
    options.layer = LAYER;
    options.head = HEAD;
    return options;
}

static qkv_figure *make(qkv_figure_kind kind, const qkv_figure_options *options) {
    qkv_figure *figure = NULL;
    qkv_error err = {0};
    const int status =
        kind == QKV_FIGURE_MODIFY ? qkv_figure_modify(&figure, shared.session, options, &err)
        : kind == QKV_FIGURE_MEAN ? qkv_figure_mean(&figure, shared.session, options, &err)
                                  : qkv_figure_grid(&figure, shared.session, options, &err);
    expect_ok(status, &err, "figure");
    return figure;
}

static qkv_figure_panel panel_of(const qkv_figure *figure, size_t row, size_t col) {
    qkv_error err = {0};
    qkv_figure_panel panel = QKV_FIGURE_PANEL_INIT;
    expect_ok(qkv_figure_get_panel(figure, row, col, &panel, &err), &err, "panel");
    return panel;
}

static qkv_figure_info info_of(const qkv_figure *figure) {
    qkv_error err = {0};
    qkv_figure_info info = QKV_FIGURE_INFO_INIT;
    expect_ok(qkv_figure_get_info(figure, &info, &err), &err, "info");
    return info;
}

/* ---- numbers ---- */

/* What a panel must hold: the pattern of the head shown, from a run of its edits alone. */
static void check_panel(const qkv_figure *figure, size_t row, size_t col) {
    const qkv_figure_panel panel = panel_of(figure, row, col);
    const char *const variants[] = {panel.edits[0] ? panel.edits : NULL, NULL};
    static const char *const captures[] = {"pattern@3.h1", NULL};
    qkv_error err = {0};
    qkv_prompt prompt = QKV_PROMPT_INIT;
    expect_ok(qkv_figure_get_prompt(figure, panel.prompt, &prompt, &err), &err, "prompt");
    const engine_run run = {prompt.tokens, prompt.n_tokens, variants, captures, NULL};
    qkv_result *result = engine_execute(&shared, &run);
    const qkv_tensor wanted =
        engine_tensor(result, panel.edits[0] != '\0', QKV_SITE_PATTERN, LAYER);
    assert_int_equal(panel.n_rows, prompt.n_tokens);
    assert_int_equal(panel.n_cols, prompt.n_tokens);
    assert_memory_equal(panel.values, wanted.data, tensor_count(&wanted) * sizeof(float));
    qkv_result_free(result);
}

static void check_panels(const qkv_figure *figure, size_t rows, size_t cols) {
    const qkv_figure_info info = info_of(figure);
    assert_int_equal(info.rows, rows);
    assert_int_equal(info.cols, cols);
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols; col++) check_panel(figure, row, col);
    }
}

static void modify_has_the_numbers_of_a_run(void **state) {
    (void)state;
    const qkv_prompt prompt = ids();
    qkv_figure_options options = options_for(&prompt);
    options.eps = "5e-1,1e-3";
    options.baseline = 1;
    qkv_figure *figure = make(QKV_FIGURE_MODIFY, &options);
    check_panels(figure, 3, 3);
    assert_string_equal(panel_of(figure, 0, 0).edits, "");
    assert_string_equal(panel_of(figure, 0, 1).edits, "q@3.h1=scale:5e-1");
    assert_string_equal(panel_of(figure, 2, 2).edits, "v@3.h1=scale:1e-3");
    assert_string_equal(panel_of(figure, 1, 1).title, "Modifying *Key* with \xce\xb5 = 5e-1");
    qkv_figure_free(figure);
}

static void mean_has_a_row_for_every_prompt(void **state) {
    (void)state;
    qkv_prompt prompts[] = {ids(), QKV_PROMPT_INIT};
    prompts[1].text = "A quiet street in the rain, and more";
    prompts[1].length = strlen("A quiet street in the rain");
    qkv_figure_options options = options_for(prompts);
    options.n_prompts = 2;
    options.all_heads = 1;
    qkv_figure *figure = make(QKV_FIGURE_MEAN, &options);
    check_panels(figure, 2, 3);
    assert_string_equal(panel_of(figure, 1, 2).edits, "v@3=mean:head");
    qkv_prompt kept = QKV_PROMPT_INIT;
    assert_int_equal(qkv_figure_get_prompt(figure, 1, &kept, NULL), QKV_OK);
    assert_string_equal(kept.text, "A quiet street in the rain");
    assert_int_equal(qkv_figure_get_prompt(figure, 2, &kept, NULL), QKV_ERR_ARGUMENT);
    qkv_figure_free(figure);
}

static void a_grid_joins_the_edits_of_its_sides(void **state) {
    (void)state;
    const qkv_prompt prompt = ids();
    const qkv_figure_side rows[] = {side_of("Value", "v@{layer}=zero"), side_of("Plain", NULL)};
    const qkv_figure_side cols[] = {side_of("Half", "q@{layer}.h{head}=scale:0.5"),
                                    side_of(NULL, "")};
    qkv_figure_options options = options_for(&prompt);
    options.rows = rows;
    options.n_rows = 2;
    options.cols = cols;
    options.n_cols = 2;
    qkv_figure *figure = make(QKV_FIGURE_GRID, &options);
    check_panels(figure, 2, 2);
    assert_string_equal(panel_of(figure, 0, 0).edits, "v@3=zero + q@3.h1=scale:0.5");
    assert_string_equal(panel_of(figure, 0, 0).title, "Value, Half");
    assert_string_equal(panel_of(figure, 1, 1).edits, "");
    assert_non_null(strstr(qkv_figure_warning(figure, 0), "v@3=zero (row 1, column 1) was not"));
    assert_null(qkv_figure_warning(figure, 1));
    qkv_figure_free(figure);
}

static void a_grid_patches_from_a_source(void **state) {
    (void)state;
    static const int32_t other[N_TOKENS] = {15, 16, 17, 18, 19};
    const qkv_prompt prompt = ids();
    qkv_prompt source = ids();
    source.tokens = other;
    source.name = "a";
    const qkv_figure_side col = side_of("Patched", "resid_pre@0=patch:a");
    qkv_figure_options options = options_for(&prompt);
    options.cols = &col;
    options.n_cols = 1;
    options.sources = &source;
    options.n_sources = 1;
    options.report = 1;
    qkv_figure *figure = make(QKV_FIGURE_GRID, &options);
    static const char *const captures[] = {"pattern@3.h1", NULL};
    const engine_run run = {other, N_TOKENS, NULL, captures, NULL};
    qkv_result *result = engine_execute(&shared, &run);
    const qkv_tensor wanted = engine_tensor(result, 0, QKV_SITE_PATTERN, LAYER);
    const qkv_figure_panel panel = panel_of(figure, 0, 0);
    assert_memory_equal(panel.values, wanted.data, tensor_count(&wanted) * sizeof(float));
    qkv_result_free(result);
    qkv_figure_free(figure);
}

static void differences_and_keys_left_out(void **state) {
    (void)state;
    const qkv_prompt prompt = ids();
    qkv_figure_options options = options_for(&prompt);
    options.diff = 1;
    options.skip_keys = 2;
    options.report = 1;
    qkv_figure *figure = make(QKV_FIGURE_MODIFY, &options);
    const qkv_figure_panel panel = panel_of(figure, 0, 1);
    assert_int_equal(panel.n_cols, N_TOKENS - 2);
    for (int i = 0; i < N_TOKENS; i++) {
        for (int k = 2; k < N_TOKENS; k++) {
            const float drawn = panel.values[i * (N_TOKENS - 2) + k - 2];
            const int at = i * N_TOKENS + k;
            assert_true(drawn == panel.map[at] - panel.unmodified[at]);
        }
    }
    const qkv_figure_info info = info_of(figure);
    assert_true(info.low == -info.high && info.high > 0);
    qkv_figure_free(figure);
}

/* ---- the head ---- */

static void the_strongest_sink_is_chosen(void **state) {
    (void)state;
    static const char *const captures[] = {"pattern@*", NULL};
    const engine_run run = {TOKENS, N_TOKENS, NULL, captures, NULL};
    qkv_result *result = engine_execute(&shared, &run);
    qkv_head_choice best = {.sink = -1};
    for (int32_t layer = 0; layer < shared.info->n_layer; layer++) {
        const qkv_tensor map = engine_tensor(result, 0, QKV_SITE_PATTERN, layer);
        for (int32_t h = 0; h < map.n_heads; h++) {
            const double sink =
                qkv_measure_first_column(map.data + h * N_TOKENS * N_TOKENS, N_TOKENS);
            if (sink > best.sink) best = (qkv_head_choice){0, layer, h, sink};
        }
    }
    qkv_result_free(result);
    qkv_error err = {0};
    qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
    expect_ok(qkv_choose_head(shared.session, TOKENS, N_TOKENS, QKV_AUTO, QKV_AUTO, &choice, &err),
              &err, "choice");
    assert_int_equal(choice.layer, best.layer);
    assert_int_equal(choice.head, best.head);
    assert_true(choice.sink == best.sink);
    const qkv_prompt prompt = ids();
    qkv_figure_options options = options_for(&prompt);
    options.layer = options.head = QKV_AUTO;
    qkv_figure *figure = make(QKV_FIGURE_MODIFY, &options);
    const qkv_figure_info info = info_of(figure);
    assert_int_equal(info.layer, best.layer);
    assert_int_equal(info.head, best.head);
    assert_true(info.sink == best.sink);
    assert_non_null(strstr(info.small_print, "strongest first-token sink"));
    qkv_figure_free(figure);
}

static void a_choice_keeps_to_what_is_given(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
    expect_ok(qkv_choose_head(shared.session, TOKENS, N_TOKENS, 2, QKV_AUTO, &choice, &err), &err,
              "layer");
    assert_int_equal(choice.layer, 2);
    expect_ok(qkv_choose_head(shared.session, TOKENS, N_TOKENS, QKV_AUTO, 2, &choice, &err), &err,
              "head");
    assert_int_equal(choice.head, 2);
    expect_ok(qkv_choose_head(shared.session, TOKENS, N_TOKENS, 2, 3, &choice, &err), &err, "both");
    assert_int_equal(choice.layer, 2);
    assert_int_equal(choice.head, 3);
    assert_true(choice.sink == -1);
    assert_int_equal(qkv_choose_head(shared.session, TOKENS, N_TOKENS, 99, QKV_AUTO, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "layer 99 is out of range"));
    assert_int_equal(qkv_choose_head(shared.session, TOKENS, N_TOKENS, -2, 0, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_choose_head(NULL, TOKENS, N_TOKENS, 0, 0, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_choose_head(shared.session, NULL, 3, 0, QKV_AUTO, &choice, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(
        qkv_choose_head(shared.session, TOKENS, SIZE_MAX / 8, 0, QKV_AUTO, &choice, &err),
        QKV_ERR_PLAN);
    choice.size = 0;
    assert_int_equal(qkv_choose_head(shared.session, TOKENS, N_TOKENS, 0, 0, &choice, &err),
                     QKV_ERR_ARGUMENT);
}

/* ---- bytes ---- */

static void check_formats(qkv_figure *figure) {
    const char *format;
    for (size_t i = 0; (format = qkv_figure_format(i)); i++) {
        char name[32], *bytes = NULL;
        size_t n_bytes = 0, size = 0;
        qkv_error err = {0};
        snprintf(name, sizeof name, "figure.%s", format);
        const char *path = scratch_path(name);
        expect_ok(qkv_figure_check(figure, path, &err), &err, format);
        expect_ok(qkv_figure_write(figure, path, &err), &err, format);
        expect_ok(qkv_figure_render(figure, format, &bytes, &n_bytes, &err), &err, format);
        char *file = slurp(path, &size);
        assert_int_equal(size, n_bytes);
        assert_true(n_bytes > 1000);
        assert_memory_equal(file, bytes, size);
        assert_int_equal(bytes[n_bytes], '\0');
        free(file);
        qkv_bytes_free(bytes);
        remove(path);
    }
}

/* Every format, with neither session nor model alive. */
static void memory_holds_what_a_file_holds(void **state) {
    (void)state;
    engine own;
    qkv_error err = {0};
    qkv_figure *modify = NULL, *mean = NULL;
    qkv_prompt prompts[2] = {QKV_PROMPT_INIT, QKV_PROMPT_INIT};
    char first[] = "The river runs past the old mill.", second[] = "A good idea.";
    prompts[0].text = first;
    prompts[1].text = second;
    char title[] = "A *title*", eps[] = "0.5,1e-10";
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    options.prompts = prompts;
    options.n_prompts = 1;
    options.report = 1;
    options.title = title;
    options.eps = eps;
    engine_open(&own, QKV_TEST_MODELS "/default.gguf", 1);
    expect_ok(qkv_figure_modify(&modify, own.session, &options, &err), &err, "modify");
    options.n_prompts = 2;
    options.eps = NULL;
    expect_ok(qkv_figure_mean(&mean, own.session, &options, &err), &err, "mean");
    engine_close(&own);
    memset(first, 0, sizeof first);
    memset(title, 0, sizeof title);
    memset(eps, 0, sizeof eps);
    memset(prompts, 0, sizeof prompts);
    check_formats(modify);
    check_formats(mean);
    qkv_figure_free(modify);
    qkv_figure_free(mean);
}

static void the_recipe_says_where_a_figure_comes_from(void **state) {
    (void)state;
    static const char *const command[] = {"prog", "--flag", "x\"y"};
    const qkv_prompt prompt = ids();
    qkv_figure_options options = options_for(&prompt);
    options.command = command;
    options.n_command = 3;
    qkv_figure *figure = make(QKV_FIGURE_MODIFY, &options);
    assert_non_null(strstr(info_of(figure).recipe, "\"command\":[\"prog\",\"--flag\",\"x\\\"y\"]"));
    assert_non_null(strstr(info_of(figure).recipe, "\"tokens\":[5,6,7,8,9]"));
    assert_non_null(strstr(info_of(figure).edits, "q@3.h1=scale:\xce\xb5, k@3.h1"));
    char *svg = NULL;
    size_t n = 0;
    assert_int_equal(qkv_figure_render(figure, "svg", &svg, &n, NULL), QKV_OK);
    assert_non_null(strstr(svg, "\"model_hash\""));
    qkv_bytes_free(svg);
    qkv_figure_free(figure);
    options.n_command = 0;
    figure = make(QKV_FIGURE_MODIFY, &options);
    assert_non_null(strstr(info_of(figure).recipe, "\"command\":null"));
    qkv_figure_free(figure);
}

static void warnings_are_texts(void **state) {
    (void)state;
    int32_t many[90];
    for (int i = 0; i < 90; i++) many[i] = 5 + i;
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = many;
    prompt.n_tokens = 90;
    qkv_figure_options options = options_for(&prompt);
    options.values = QKV_VALUES_ALWAYS;
    options.labels = QKV_LABELS_TOKENS;
    options.panel_size = 60;
    qkv_figure *figure = make(QKV_FIGURE_MODIFY, &options);
    assert_null(qkv_figure_warning(figure, 0));
    char *bytes = NULL;
    size_t n = 0;
    for (int i = 0; i < 2; i++) { /* said once */
        assert_int_equal(qkv_figure_render(figure, "svg", &bytes, &n, NULL), QKV_OK);
        qkv_bytes_free(bytes);
    }
    assert_string_equal(qkv_figure_warning(figure, 0),
                        "`values` always: no numbers in 9 of 9 panels, their cells are too small; "
                        "try a larger `panel_size`");
    assert_non_null(strstr(qkv_figure_warning(figure, 1), "positions in place of tokens"));
    assert_null(qkv_figure_warning(figure, 2));
    qkv_figure_free(figure);
}

/* ---- mistakes ---- */

static void expect_refused(qkv_figure_kind kind, const qkv_figure_options *options,
                           const char *message) {
    qkv_error err = {0};
    qkv_figure *figure = (qkv_figure *)&err;
    int (*const makers[])(qkv_figure **, qkv_session *, const qkv_figure_options *,
                          qkv_error *) = {qkv_figure_modify, qkv_figure_mean, qkv_figure_grid};
    assert_int_equal(makers[kind](&figure, shared.session, options, &err), QKV_ERR_ARGUMENT);
    assert_null(figure);
    if (!strstr(err.message, message)) fail_msg("'%s' does not say '%s'", err.message, message);
    assert_int_equal(makers[kind](&figure, shared.session, options, NULL), QKV_ERR_ARGUMENT);
}

/* One wrong field each; `set` changes a struct that would work. */
#define REFUSED(kind, set, message)                                                                \
    do {                                                                                           \
        qkv_figure_options options = good;                                                         \
        set;                                                                                       \
        expect_refused(kind, &options, message);                                                   \
    } while (0)

static void bad_numbers_are_refused(void **state) {
    (void)state;
    const qkv_prompt prompt = ids();
    const qkv_figure_options good = options_for(&prompt);
    const qkv_figure_kind modify = QKV_FIGURE_MODIFY;
    REFUSED(modify, options.layer = 99, "layer 99 is out of range");
    REFUSED(modify, options.head = 99, "head 99 is out of range");
    REFUSED(modify, options.layer = -2, "layer -2 is out of range");
    REFUSED(modify, options.skip_keys = N_TOKENS, "`skip_keys` 5 leaves nothing");
    REFUSED(modify, options.skip_keys = INT64_MAX, "`skip_keys`");
    REFUSED(modify, options.skip_keys = -1, "`skip_keys`");
    REFUSED(modify, options.range[0] = 1, "`range`");
    REFUSED(modify, options.range[1] = NAN, "`range`");
    REFUSED(modify, options.range[1] = INFINITY, "`range`");
    REFUSED(modify, options.range[1] = -1, "`range`");
    REFUSED(modify, (options.diff = 1, options.range[1] = 1), "both sides");
    REFUSED(modify, options.gamma = 0.5, "`gamma`");
    REFUSED(modify, options.gamma = NAN, "`gamma`");
    REFUSED(modify, options.dpi = 1, "`dpi`");
    REFUSED(modify, options.panel_size = -3, "`panel_size`");
    REFUSED(modify, options.scale = (qkv_scale)7, "none of its constants");
    REFUSED(modify, options.labels = (qkv_figure_labels)-1, "none of its constants");
    REFUSED(modify, (options.diff = 1, options.baseline = 1), "exclude each other");
    REFUSED(modify, (options.diff = 1, options.scale = QKV_SCALE_LOG), "`scale` log");
    REFUSED(modify, options.sink_column = 1, "no learned sinks");
    REFUSED(modify, options.eps = "", "`eps`");
    REFUSED(modify, options.eps = "1,,2", "'' is none");
    REFUSED(modify, options.eps = "inf", "'inf' is none");
    REFUSED(modify, options.size = 0, "qkv_figure_options has no size");
}

static void fields_of_other_figures_are_refused(void **state) {
    (void)state;
    const qkv_prompt prompt = ids();
    const qkv_figure_side side = side_of("A", "q@0=zero");
    const qkv_figure_options good = options_for(&prompt);
    REFUSED(QKV_FIGURE_MEAN, options.eps = "1", "`eps` belongs");
    REFUSED(QKV_FIGURE_MODIFY, (options.rows = &side, options.n_rows = 1), "figure grid");
    REFUSED(QKV_FIGURE_MODIFY, options.show = QKV_SHOW_SCORES, "figure grid");
    REFUSED(QKV_FIGURE_MODIFY, options.n_prompts = 2, "one prompt");
    REFUSED(QKV_FIGURE_GRID, (void)0, "nothing to draw");
    REFUSED(QKV_FIGURE_GRID, options.n_rows = 1, "`rows` is NULL");
    REFUSED(QKV_FIGURE_GRID, (options.rows = &side, options.n_rows = 1, options.all_heads = 1),
            "`all_heads`");
    REFUSED(QKV_FIGURE_GRID,
            (options.rows = &side, options.n_rows = 1, options.show = QKV_SHOW_SCORES,
             options.report = 1),
            "`report`");
}

static void bad_prompts_are_refused(void **state) {
    (void)state;
    qkv_prompt prompts[2] = {ids(), ids()};
    const qkv_figure_options good = options_for(prompts);
    REFUSED(QKV_FIGURE_MODIFY, options.prompts = NULL, "`prompts` is NULL");
    prompts[0].n_tokens = 0;
    expect_refused(QKV_FIGURE_MODIFY, &good, "the prompt is empty");
    prompts[0] = ids();
    prompts[0].tokens = NULL;
    expect_refused(QKV_FIGURE_MODIFY, &good, "neither text nor token ids");
    prompts[0].text = "";
    expect_refused(QKV_FIGURE_MODIFY, &good, "the prompt is empty");
    prompts[0] = ids();
    prompts[0].text = "both";
    expect_refused(QKV_FIGURE_MODIFY, &good, "not both");
    prompts[0] = ids();
    prompts[0].flags = 64;
    expect_refused(QKV_FIGURE_MODIFY, &good, "unknown flags");
    prompts[0] = ids();
    prompts[1].size = 0;
    REFUSED(QKV_FIGURE_MEAN, options.n_prompts = 2, "another size than the first");
    prompts[1] = ids();
    prompts[1].name = NULL;
    const qkv_figure_side side = side_of("A", "q@0=patch:a");
    REFUSED(QKV_FIGURE_GRID,
            (options.rows = &side, options.n_rows = 1, options.sources = &prompts[1],
             options.n_sources = 1),
            "a source needs a name");
}

static void errors_of_a_run_are_handed_on(void **state) {
    (void)state;
    const qkv_prompt prompt = ids();
    const qkv_figure_side row = side_of("A", "q@0=zero"), col = side_of("B", "q@0.h0=zero");
    qkv_figure_options options = options_for(&prompt);
    options.rows = &row;
    options.cols = &col;
    options.n_rows = options.n_cols = 1;
    qkv_error err = {0};
    qkv_figure *figure = NULL;
    assert_int_not_equal(qkv_figure_grid(&figure, shared.session, &options, &err), QKV_OK);
    assert_non_null(strstr(err.message, "overlap"));
    assert_null(figure);
}

static void missing_things_are_refused(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_figure *figure = NULL;
    char *bytes = NULL;
    size_t n = 0;
    assert_int_equal(qkv_figure_modify(NULL, shared.session, NULL, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_modify(&figure, NULL, NULL, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_write(NULL, "a.png", &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_render(NULL, "png", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_check(NULL, "a.png", &err), QKV_ERR_ARGUMENT);
    assert_null(qkv_figure_warning(NULL, 0));
    assert_null(qkv_figure_part_name(NULL));
    assert_int_equal(qkv_figure_options_check((qkv_figure_kind)9, NULL, &err), QKV_ERR_ARGUMENT);
    qkv_figure_free(NULL);
    const qkv_prompt prompt = ids();
    const qkv_figure_options options = options_for(&prompt);
    figure = make(QKV_FIGURE_MODIFY, &options);
    assert_int_equal(qkv_figure_render(figure, "png", NULL, &n, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_render(figure, "bmp", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "'bmp'"));
    assert_int_equal(qkv_figure_render(figure, "html", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "without `report`"));
    assert_int_equal(qkv_figure_check(figure, "a.md", &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_write(figure, scratch_path("no/dir.png"), &err), QKV_ERR_IO);
    assert_null(panel_of(figure, 0, 0).map);
    qkv_figure_panel panel = QKV_FIGURE_PANEL_INIT;
    assert_int_equal(qkv_figure_get_panel(figure, 3, 0, &panel, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_get_panel(figure, 0, 3, &panel, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_get_panel(figure, 0, 0, NULL, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_get_info(figure, NULL, &err), QKV_ERR_ARGUMENT);
    /* A failure leaves the figure as it was. */
    assert_int_equal(qkv_figure_render(figure, "svg", &bytes, &n, &err), QKV_OK);
    qkv_bytes_free(bytes);
    qkv_figure_free(figure);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modify_has_the_numbers_of_a_run),
        cmocka_unit_test(mean_has_a_row_for_every_prompt),
        cmocka_unit_test(a_grid_joins_the_edits_of_its_sides),
        cmocka_unit_test(a_grid_patches_from_a_source),
        cmocka_unit_test(differences_and_keys_left_out),
        cmocka_unit_test(the_strongest_sink_is_chosen),
        cmocka_unit_test(a_choice_keeps_to_what_is_given),
        cmocka_unit_test(memory_holds_what_a_file_holds),
        cmocka_unit_test(the_recipe_says_where_a_figure_comes_from),
        cmocka_unit_test(warnings_are_texts),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(fields_of_other_figures_are_refused),
        cmocka_unit_test(bad_prompts_are_refused),
        cmocka_unit_test(errors_of_a_run_are_handed_on),
        cmocka_unit_test(missing_things_are_refused),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
