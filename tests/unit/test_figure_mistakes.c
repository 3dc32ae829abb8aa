/*
 * Figures that cannot be made or drawn: each mistake is an error that names it, nothing comes out,
 * and existing objects stay usable.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "study/figure.h"
#include "support/figure_maker.h"
#include "support/scratch.h"

static void expect_refused(qkv_figure_kind kind, const qkv_figure_options *options,
                           const char *message) {
    qkv_error err = {0};
    qkv_figure *figure = (qkv_figure *)&err;
    assert_int_equal(qkv_figure_make(&figure, figure_engine.session, kind, options, &err),
                     QKV_ERR_ARGUMENT);
    assert_null(figure);
    if (!strstr(err.message, message)) fail_msg("'%s' does not say '%s'", err.message, message);
    assert_int_equal(qkv_figure_make(&figure, figure_engine.session, kind, options, NULL),
                     QKV_ERR_ARGUMENT);
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
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_options good = figure_options_for(&prompt);
    const qkv_figure_kind modify = QKV_FIGURE_MODIFY;
    REFUSED(modify, options.layer = 99, "layer 99 is out of range");
    REFUSED(modify, options.head = 99, "head 99 is out of range");
    REFUSED(modify, options.layer = QKV_FROM_END(99), "layer -99 is out of range");
    REFUSED(modify, options.skip_keys = FIGURE_N_TOKENS, "`skip_keys` 5 leaves nothing");
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
    REFUSED(modify, options.scale = (qkv_scale)7, "not one of its constants");
    REFUSED(modify, options.labels = (qkv_figure_labels)-1, "not one of its constants");
    REFUSED(modify, (options.diff = 1, options.baseline = 1), "exclude each other");
    REFUSED(modify, (options.diff = 1, options.scale = QKV_SCALE_LOG), "`scale` log");
    REFUSED(modify, options.sink_column = 1, "no learned sinks");
    REFUSED(modify, options.eps = "", "`eps`");
    REFUSED(modify, options.eps = "1,,2", "'' is not a number");
    REFUSED(modify, options.eps = "inf", "'inf' is not a number");
    REFUSED(modify, options.size = 0, "qkv_figure_options has no size");
}

static void fields_of_other_figures_are_refused(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_side side = figure_side("A", "q@0=zero");
    const qkv_figure_options good = figure_options_for(&prompt);
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

static void mistakes_of_heads_and_rows_are_refused(void **state) {
    (void)state;
    const qkv_prompt prompts[] = {figure_ids(), figure_ids()};
    qkv_figure_options good = figure_options_for(prompts);
    good.layer = good.head = QKV_AUTO;
    const qkv_figure_kind heads = QKV_FIGURE_HEADS, rows = QKV_FIGURE_ROWS;
    REFUSED(QKV_FIGURE_MODIFY, options.layers = "1", "belong to the figures heads and rows");
    REFUSED(QKV_FIGURE_MEAN, options.variant = "q@0=zero", "belong to the figures heads and rows");
    REFUSED(QKV_FIGURE_MODIFY, options.query = 1, "belong to the figures heads and rows");
    REFUSED(heads, options.n_prompts = 2, "one prompt");
    REFUSED(heads, options.head = 0, "`head`");
    REFUSED(heads, options.query = 1, "`query`");
    REFUSED(heads, options.labels = QKV_LABELS_INDEX, "no labels");
    REFUSED(heads, options.values = QKV_VALUES_ALWAYS, "no numbers");
    REFUSED(heads, (options.baseline = 1, options.variant = "q@0=zero"), "`baseline`");
    REFUSED(heads, options.diff = 1, "give `variant`");
    REFUSED(heads, options.report = 1, "`report` is not for the figure heads");
    REFUSED(heads, options.sink_column = 1, "`sink_column`");
    REFUSED(heads, (options.layer = 1, options.layers = "2"), "exclude each other");
    REFUSED(heads, options.all_heads = 1, "`all_heads`");
    REFUSED(heads, options.show = QKV_SHOW_SCORES, "figure grid");
    REFUSED(rows, options.baseline = 1, "give `variant`");
    REFUSED(rows, options.masked = QKV_MASKED_HATCH, "`masked` is not for the figure rows");
    REFUSED(rows, options.report = 1, "`report` is not for the figure rows");
    const qkv_figure_kind pattern = QKV_FIGURE_PATTERN;
    REFUSED(rows, options.heads = "0,1", "`heads` belongs to the figure pattern");
    REFUSED(pattern, options.heads = "0,1", "`layer`");
    REFUSED(pattern, (options.layer = 1, options.head = 1, options.heads = "0,1"), "exclude");
    REFUSED(pattern, (options.layer = 1, options.heads = "0,1", options.report = 1), "one head");
    REFUSED(pattern, options.diff = 1, "give `variant`");
    REFUSED(pattern, options.layers = "1", "`layers` is not for the figure pattern");
    REFUSED(pattern, options.query = 2, "`query` is not for the figure pattern");
    REFUSED(pattern, options.all_heads = 1, "`all_heads`");
    REFUSED(rows, options.query = FIGURE_N_TOKENS, "has tokens 0 to 4");
    REFUSED(rows, options.query = -FIGURE_N_TOKENS - 1, "`query` -6 is out of range");
}

static void too_many_panels_are_refused(void **state) {
    (void)state;
    enum { N_SIDES = 2048 };
    static qkv_figure_side sides[N_SIDES];
    const qkv_prompt prompts[] = {figure_ids(), figure_ids()};
    qkv_figure_options good = figure_options_for(prompts);
    for (size_t i = 0; i < N_SIDES; i++) sides[i] = figure_side("A", "");
    good.rows = good.cols = sides;
    const qkv_figure_kind grid = QKV_FIGURE_GRID;
    REFUSED(grid, (options.n_rows = 65, options.n_cols = 64),
            "65 x 64 panels are too many for one figure: at most 4096");
    REFUSED(grid, (options.n_rows = 64, options.n_cols = 64, options.baseline = 1), "64 x 65");
    REFUSED(grid, (options.n_rows = 2, options.n_cols = N_SIDES, options.n_prompts = 2),
            "2 x 4096 panels are too many");
    REFUSED(grid, (options.n_cols = N_SIDES, options.n_prompts = 2, options.baseline = 1),
            "2 x 2049 panels are too many");
}

static void bad_prompts_are_refused(void **state) {
    (void)state;
    qkv_prompt prompts[2] = {figure_ids(), figure_ids()};
    const qkv_figure_options good = figure_options_for(prompts);
    REFUSED(QKV_FIGURE_MODIFY, options.prompts = NULL, "`prompts` is NULL");
    prompts[0].n_tokens = 0;
    expect_refused(QKV_FIGURE_MODIFY, &good, "the prompt is empty");
    prompts[0] = figure_ids();
    prompts[0].tokens = NULL;
    expect_refused(QKV_FIGURE_MODIFY, &good, "neither text nor token ids");
    prompts[0].text = "";
    expect_refused(QKV_FIGURE_MODIFY, &good, "the prompt is empty");
    prompts[0] = figure_ids();
    prompts[0].text = "both";
    expect_refused(QKV_FIGURE_MODIFY, &good, "not both");
    prompts[0] = figure_ids();
    prompts[0].flags = 64;
    expect_refused(QKV_FIGURE_MODIFY, &good, "unknown flags");
    prompts[0] = figure_ids();
    prompts[1].size = 0;
    REFUSED(QKV_FIGURE_MEAN, options.n_prompts = 2, "another size than the first");
    prompts[1] = figure_ids();
    prompts[1].name = NULL;
    const qkv_figure_side side = figure_side("A", "q@0=patch:a");
    REFUSED(QKV_FIGURE_GRID,
            (options.rows = &side, options.n_rows = 1, options.sources = &prompts[1],
             options.n_sources = 1),
            "a source needs a name");
}

static void errors_of_a_run_are_handed_on(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_side row = figure_side("A", "q@0=zero"), col = figure_side("B", "q@0.h0=zero");
    qkv_figure_options options = figure_options_for(&prompt);
    options.rows = &row;
    options.cols = &col;
    options.n_rows = options.n_cols = 1;
    qkv_error err = {0};
    qkv_figure *figure = NULL;
    assert_int_not_equal(
        qkv_figure_make(&figure, figure_engine.session, QKV_FIGURE_GRID, &options, &err), QKV_OK);
    assert_non_null(strstr(err.message, "overlap"));
    assert_null(figure);
}

static void missing_things_are_refused(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_figure *figure = NULL;
    char *bytes = NULL;
    size_t n = 0;
    assert_int_equal(qkv_figure_make(NULL, figure_engine.session, QKV_FIGURE_MODIFY, NULL, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_make(&figure, NULL, QKV_FIGURE_MODIFY, NULL, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_render(NULL, "png", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_null(qkv_figure_warning(NULL, 0));
    assert_null(qkv_figure_part_name(NULL));
    assert_int_equal(qkv_figure_options_check((qkv_figure_kind)9, NULL, &err), QKV_ERR_ARGUMENT);
    qkv_figure_free(NULL);
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_options options = figure_options_for(&prompt);
    figure = make_figure(QKV_FIGURE_MODIFY, &options);
    assert_int_equal(qkv_figure_render(figure, "png", NULL, &n, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_figure_render(figure, "bmp", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "'bmp'"));
    assert_int_equal(qkv_figure_render(figure, "html", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "without `page` or `report`"));
    assert_int_equal(qkv_figure_render(figure, "md", &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "without `report`"));
    assert_null(figure_panel(figure, 0, 0).map);
    /* A failure leaves the figure as it was. */
    assert_int_equal(qkv_figure_render(figure, "svg", &bytes, &n, &err), QKV_OK);
    qkv_bytes_free(bytes);
    qkv_figure_free(figure);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(fields_of_other_figures_are_refused),
        cmocka_unit_test(mistakes_of_heads_and_rows_are_refused),
        cmocka_unit_test(too_many_panels_are_refused),
        cmocka_unit_test(bad_prompts_are_refused),
        cmocka_unit_test(errors_of_a_run_are_handed_on),
        cmocka_unit_test(missing_things_are_refused),
    };
    return cmocka_run_group_tests(tests, figure_open, figure_close);
}
