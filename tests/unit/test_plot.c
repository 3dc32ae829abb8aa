/* Plots: their numbers are means that can be worked out from the rows by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/plot.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "support/sweep_maker.h"

enum { LAYERS = 2, HEADS = 3, PROMPTS = 3, EPSILONS = 2 };

static const sweep_shape SHAPE = {.layers = LAYERS,
                                  .heads = HEADS,
                                  .prompts = PROMPTS,
                                  .targets = "q,v",
                                  .ops = "scale,zero",
                                  .epsilons = "1e-3,1",
                                  .metrics = "sink,kl",
                                  .done = -1};

static qkv_sweep_reader *open_made(const char *name, int64_t done) {
    sweep_shape shape = SHAPE;
    qkv_sweep_reader *file = NULL;
    qkv_error err = {0};
    shape.done = done;
    assert_true(make_sweep(scratch_path(name), &shape));
    expect_ok(qkv_sweep_reader_open(&file, scratch_path(name), &err), &err, name);
    return file;
}

static qkv_plot *make(qkv_sweep_reader *file, const qkv_plot_options *options) {
    qkv_plot *plot = NULL;
    qkv_error err = {0};
    expect_ok(qkv_plot_new(&plot, file, options, &err), &err, "plot");
    return plot;
}

static qkv_plot_info info_of(const qkv_plot *plot) {
    qkv_plot_info info = QKV_PLOT_INFO_INIT;
    qkv_error err = {0};
    expect_ok(qkv_plot_get_info(plot, &info, &err), &err, "info");
    return info;
}

static qkv_plot_value value_of(const qkv_plot *plot, size_t index) {
    qkv_plot_value value = QKV_PLOT_VALUE_INIT;
    qkv_error err = {0};
    expect_ok(qkv_plot_get_value(plot, index, &value, &err), &err, "value");
    return value;
}

/* ---- the same numbers, from the rows ---- */

typedef struct want {
    const char *target, *op;
    double epsilon;      /* NaN: none */
    int32_t layer, head; /* QKV_PLOT_AVERAGED: any */
    int change;
} want;

/* The mean over the heads that fit, for one prompt. */
static double mean_of_prompt(qkv_sweep_reader *file, const qkv_sweep_rows *rows, const want *w,
                             int64_t prompt) {
    double sum = 0;
    int count = 0;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT, *r = &row;
    for (size_t i = 0; qkv_sweep_rows_get(rows, i, r); i++) {
        const char *target = qkv_sweep_reader_target(file, (size_t)r->target);
        if (r->prompt != prompt || strcmp(target, w->target) != 0) continue;
        if (strcmp(qkv_sweep_reader_op(file, (size_t)r->op), w->op) != 0) continue;
        if (isnan(w->epsilon) ? !isnan(r->epsilon) : r->epsilon != w->epsilon) continue;
        if (w->layer >= 0 && r->layer != w->layer) continue;
        if (w->head >= 0 && r->head != w->head) continue;
        /* make_sweep: the unedited value is (1 + layer + head) / (layers + heads) + prompt / 100. */
        const double unedited =
            (1.0 + r->layer + r->head) / (LAYERS + HEADS) + (double)prompt / 100;
        sum += r->value - (w->change ? unedited : 0);
        count++;
    }
    assert_true(count > 0);
    return sum / count;
}

static void check_value(qkv_sweep_reader *file, const qkv_plot_value *v, const want *w) {
    qkv_sweep_rows *rows;
    double sum = 0, low = INFINITY, high = -INFINITY;
    assert_int_equal(qkv_sweep_reader_rows(file, "sink", &rows, NULL), QKV_OK);
    for (int64_t p = 0; p < PROMPTS; p++) {
        const double mean = mean_of_prompt(file, rows, w, p);
        sum += mean;
        low = fmin(low, mean);
        high = fmax(high, mean);
    }
    qkv_sweep_rows_free(rows);
    assert_string_equal(v->target, w->target);
    assert_int_equal(v->layer, w->layer);
    assert_int_equal(v->head, w->head);
    assert_true(isnan(w->epsilon) ? isnan(v->epsilon) : v->epsilon == w->epsilon);
    assert_int_equal(v->n, PROMPTS);
    if (fabs(v->mean - sum / PROMPTS) > 1e-12) fail_msg("%g is not %g", v->mean, sum / PROMPTS);
    assert_true(fabs(v->low - low) < 1e-12 && fabs(v->high - high) < 1e-12);
}

/* ---- kinds ---- */

static void lines_are_means_over_heads_then_prompts(void **state) {
    (void)state;
    static const char *const targets[] = {"q", "v"};
    static const double epsilons[] = {1e-3, 1};
    qkv_sweep_reader *file = open_made("lines.sqlite", -1);
    qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
    options.metric = "sink";
    options.op = "scale";
    qkv_plot *plot = make(file, &options);
    const qkv_plot_info info = info_of(plot);
    assert_int_equal(info.kind, QKV_PLOT_LINES);
    assert_string_equal(info.metric, "sink");
    assert_string_equal(info.op, "scale");
    assert_int_equal(info.n_values, 2 * EPSILONS);
    assert_int_equal(info.n_cells, 2 * EPSILONS * LAYERS * HEADS * PROMPTS);
    assert_int_equal(info.n_missing + info.n_undefined, 0);
    assert_null(qkv_plot_warning(plot, 0));
    /* Mean of (1 + layer + head) / 5 is 0.5, of prompt / 100 it is 0.01. */
    assert_true(fabs(info.reference - 0.51) < 1e-12);
    assert_non_null(strstr(info.recipe, "\"command\":null"));
    for (size_t i = 0; i < info.n_values; i++) {
        const qkv_plot_value v = value_of(plot, i);
        const want w = {targets[i / EPSILONS], "scale",           epsilons[i % EPSILONS],
                        QKV_PLOT_AVERAGED,     QKV_PLOT_AVERAGED, 0};
        check_value(file, &v, &w);
    }
    qkv_plot_free(plot);
    options.by = QKV_PLOT_BY_HEAD;
    options.target = "v";
    options.heads = "1-2";
    plot = make(file, &options);
    assert_int_equal(info_of(plot).n_values, LAYERS * 2 * EPSILONS);
    const qkv_plot_value v = value_of(plot, (1 * 2 + 0) * EPSILONS + 1); /* layer 1, head 1, ε 1 */
    check_value(file, &v, &(want){"v", "scale", 1, 1, 1, 0});
    qkv_plot_free(plot);
    qkv_sweep_reader_close(file);
}

static void a_heatmap_has_a_value_for_every_head(void **state) {
    (void)state;
    static const char *const targets[] = {"q", "v"};
    for (int change = 0; change < 2; change++) {
        qkv_sweep_reader *file = open_made("heatmap.sqlite", -1);
        qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
        options.metric = "sink";
        options.op = "zero";
        options.change = change;
        qkv_plot *plot = make(file, &options);
        assert_int_equal(info_of(plot).kind, QKV_PLOT_HEATMAP);
        assert_int_equal(info_of(plot).n_values, 2 * LAYERS * HEADS);
        for (int i = 0; i < 2 * LAYERS * HEADS; i++) {
            const qkv_plot_value v = value_of(plot, (size_t)i);
            const want w = {targets[i / (LAYERS * HEADS)],
                            "zero",
                            (double)NAN,
                            i / HEADS % LAYERS,
                            i % HEADS,
                            change};
            check_value(file, &v, &w);
        }
        qkv_plot_free(plot);
        qkv_sweep_reader_close(file);
    }
}

static void a_ranking_is_in_order(void **state) {
    (void)state;
    static const qkv_plot_order orders[] = {QKV_PLOT_ORDER_AUTO, QKV_PLOT_ORDER_SMALLEST};
    qkv_sweep_reader *file = open_made("ranking.sqlite", -1);
    for (size_t o = 0; o < 2; o++) {
        qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
        options.kind = QKV_PLOT_RANKING;
        options.metric = "sink";
        options.target = "q";
        options.op = "scale";
        options.epsilon = "1";
        options.top = 4;
        options.order = orders[o];
        qkv_plot *plot = make(file, &options);
        assert_int_equal(info_of(plot).n_values, 4);
        double last = o ? -INFINITY : INFINITY;
        for (size_t i = 0; i < 4; i++) {
            const qkv_plot_value v = value_of(plot, i);
            check_value(file, &v, &(want){"q", "scale", 1, v.layer, v.head, 0});
            assert_true(o ? v.mean >= last : v.mean <= last);
            last = v.mean;
        }
        const qkv_plot_value first = value_of(plot, 0);
        assert_int_equal(first.layer, o ? 0 : LAYERS - 1);
        assert_int_equal(first.head, o ? 0 : HEADS - 1);
        qkv_plot_free(plot);
    }
    qkv_sweep_reader_close(file);
}

/* ---- the object ---- */

static void a_plot_outlives_its_file(void **state) {
    (void)state;
    char metric[] = "sink", op[] = "zero", title[] = "Of its own";
    qkv_sweep_reader *file = open_made("outlived.sqlite", -1);
    qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
    options.metric = metric, options.op = op, options.title = title;
    qkv_plot *plot = make(file, &options);
    memset(metric, 'x', sizeof metric - 1);
    memset(op, 'x', sizeof op - 1);
    memset(title, 'x', sizeof title - 1);
    qkv_sweep_reader_close(file);
    qkv_error err = {0};
    assert_string_equal(info_of(plot).title, "Of its own");
    expect_ok(qkv_plot_write(plot, scratch_path("outlived.svg"), &err), &err, "write");
    assert_int_equal(qkv_plot_write(plot, scratch_path("outlived.gif"), &err), QKV_ERR_ARGUMENT);
    qkv_plot_free(plot);
}

static void memory_holds_what_a_file_holds(void **state) {
    (void)state;
    static const char *const formats[] = {"png", "svg", "pdf"};
    qkv_sweep_reader *file = open_made("bytes.sqlite", -1);
    qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
    options.metric = "sink";
    options.op = "scale";
    for (int i = 0; i < 9; i++) { /* every kind in every format */
        const char *format = formats[i % 3];
        char name[32], *bytes = NULL, *stored;
        size_t n = 0, size = 0;
        qkv_error err = {0};
        options.kind = (qkv_plot_kind)(QKV_PLOT_HEATMAP + i / 3);
        options.epsilon = options.kind == QKV_PLOT_LINES ? NULL : "1e-3";
        qkv_plot *plot = make(file, &options);
        snprintf(name, sizeof name, "plot%d.%s", i, format);
        expect_ok(qkv_plot_write(plot, scratch_path(name), &err), &err, name);
        expect_ok(qkv_plot_render(plot, format, &bytes, &n, &err), &err, name);
        stored = slurp(scratch_path(name), &size);
        assert_true(n > 1000);
        assert_int_equal(n, size);
        assert_memory_equal(bytes, stored, n);
        free(stored);
        qkv_bytes_free(bytes);
        assert_int_equal(qkv_plot_render(plot, "gif", &bytes, &n, &err), QKV_ERR_ARGUMENT);
        assert_true(!bytes && n == 0);
        qkv_plot_free(plot);
    }
    qkv_sweep_reader_close(file);
}

static void what_is_missing_is_said(void **state) {
    (void)state;
    qkv_sweep_reader *file = open_made("part.sqlite", 20);
    qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
    options.metric = "sink";
    options.op = "zero";
    qkv_plot *plot = make(file, &options);
    const qkv_plot_info info = info_of(plot);
    assert_true(info.n_missing > 0 && info.n_missing < info.n_cells);
    char text[128];
    snprintf(text, sizeof text, "the sweep is unfinished: %zu of %zu values are missing",
             info.n_missing, info.n_cells);
    assert_string_equal(qkv_plot_warning(plot, 0), text);
    assert_null(qkv_plot_warning(plot, 1));
    const qkv_plot_value last = value_of(plot, info.n_values - 1);
    assert_true(isnan(last.mean) && last.n == 0);
    qkv_plot_free(plot);
    qkv_sweep_reader_close(file);
}

/* ---- errors ---- */

static void refuse(qkv_sweep_reader *file, const qkv_plot_options *options, int status,
                   const char *part) {
    qkv_plot *plot = (qkv_plot *)&status;
    qkv_error err = {0};
    assert_int_equal(qkv_plot_new(&plot, file, options, &err), status);
    assert_null(plot);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
}

static void choices_and_arguments_are_checked(void **state) {
    (void)state;
    qkv_sweep_reader *file = open_made("errors.sqlite", -1), *none = open_made("none.sqlite", 0);
    qkv_plot_options o = QKV_PLOT_OPTIONS_INIT;
    refuse(NULL, NULL, QKV_ERR_ARGUMENT, "file of results");
    refuse(none, NULL, QKV_ERR_UNSUPPORTED, "no results yet");
    refuse(file, NULL, QKV_ERR_ARGUMENT, "`metric`: kl, sink");
    o.metric = "sink";
    refuse(file, &o, QKV_ERR_ARGUMENT, "`op`: scale, zero");
    o.op = "scale";
    o.top = 5;
    refuse(file, &o, QKV_ERR_ARGUMENT, "`top` has no meaning for lines");
    o.top = -1;
    refuse(file, &o, QKV_ERR_ARGUMENT, "`top` must be");
    o.top = 0;
    o.kind = (qkv_plot_kind)9;
    refuse(file, &o, QKV_ERR_ARGUMENT, "`kind` is not one");
    o.kind = QKV_PLOT_AUTO;
    o.range[0] = 2, o.range[1] = 1;
    refuse(file, &o, QKV_ERR_ARGUMENT, "`range`");
    o.range[0] = (double)NAN;
    assert_int_equal(qkv_plot_options_check(&o, NULL), QKV_ERR_ARGUMENT);
    o.range[0] = o.range[1] = 0;
    o.dpi = -1;
    refuse(file, &o, QKV_ERR_ARGUMENT, "`dpi`");
    o.dpi = 0;
    o.n_command = 1;
    refuse(file, &o, QKV_ERR_ARGUMENT, "`command`");
    o.n_command = 0;
    o.size = 0;
    refuse(file, &o, QKV_ERR_ARGUMENT, "_INIT");
    assert_int_equal(qkv_plot_options_check(NULL, NULL), QKV_OK);
    qkv_plot_value value = QKV_PLOT_VALUE_INIT;
    qkv_plot_info info = QKV_PLOT_INFO_INIT;
    assert_int_equal(qkv_plot_get_value(NULL, 0, &value, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_plot_get_info(NULL, &info, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_plot_write(NULL, "x.svg", NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_plot_new(NULL, file, NULL, NULL), QKV_ERR_ARGUMENT);
    assert_null(qkv_plot_warning(NULL, 0));
    o = (qkv_plot_options)QKV_PLOT_OPTIONS_INIT;
    o.metric = "sink", o.op = "zero";
    qkv_plot *plot = make(file, &o);
    assert_int_equal(qkv_plot_get_value(plot, info_of(plot).n_values, &value, NULL),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_plot_write(plot, NULL, NULL), QKV_ERR_ARGUMENT);
    qkv_plot_free(plot);
    qkv_plot_free(NULL);
    qkv_sweep_reader_close(file);
    qkv_sweep_reader_close(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_means_over_heads_then_prompts),
        cmocka_unit_test(a_heatmap_has_a_value_for_every_head),
        cmocka_unit_test(a_ranking_is_in_order),
        cmocka_unit_test(a_plot_outlives_its_file),
        cmocka_unit_test(memory_holds_what_a_file_holds),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(choices_and_arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
