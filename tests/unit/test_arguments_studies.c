/*
 * Every public function is called with NULL in place of each pointer, with indices that are out of
 * range and with structs that have no size: that is an error, or nothing found, and never a crash.
 * Afterwards everything still works. tests/headers/interface.sh fails when a function of the public
 * headers is called in no test_arguments*.c.
 *
 * Here: what is made of sweeps: sharing, plots.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "qkv/qkv.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static qkv_error err;

static const char SPEC[] =
    "{\"prompts\": [\"abc\"], \"targets\": \"q\", \"ops\": \"zero\", \"metrics\": \"sink\"}";

static struct {
    engine e;
    qkv_sweep *sweep;
    qkv_sweep_reader *reader;
    qkv_plot *plot;
    char results[512], fresh[512]; /* paths */
} it;

static int make_all(void **state) {
    (void)state;
    engine_open(&it.e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    snprintf(it.results, sizeof it.results, "%s", scratch_path("results.sqlite"));
    snprintf(it.fresh, sizeof it.fresh, "%s", scratch_path("fresh.sqlite"));
    OK(qkv_sweep_new(&it.sweep, it.e.model, SPEC, &err));
    OK(qkv_sweep_share(it.sweep, it.results, NULL, NULL, &err));
    OK(qkv_sweep_reader_open(&it.reader, it.results, &err));
    OK(qkv_plot_new(&it.plot, it.reader, NULL, &err));
    return 0;
}

static int free_all(void **state) {
    qkv_plot_free(it.plot);
    qkv_sweep_reader_close(it.reader);
    qkv_sweep_free(it.sweep);
    engine_close(&it.e);
    return scratch_clean(state);
}

/* A refused call has written no file. */
static void expect_no_file(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_null(file);
}

/* ---- sharing ---- */

static int send_nothing(void *user, int32_t to, const void *data, size_t n_bytes) {
    (void)user, (void)to, (void)data, (void)n_bytes;
    return 0;
}

static int receive_nothing(void *user, int32_t *from, void *data, size_t *n_bytes) {
    (void)user, (void)data;
    *from = 0;
    *n_bytes = 0;
    return 0;
}

static int nothing_waits(void *user, int milliseconds) {
    (void)milliseconds;
    (void)user;
    return 0;
}

/* One wrong field each; `set` changes a struct that would work. */
#define SHARE_REFUSED(set)                                                                         \
    do {                                                                                           \
        qkv_sweep_transport transport = {.size = sizeof transport,                                 \
                                         .n_processes = 1,                                         \
                                         .send = send_nothing,                                     \
                                         .receive = receive_nothing,                               \
                                         .is_waiting = nothing_waits};                             \
        qkv_sweep_share_options options = QKV_SWEEP_SHARE_OPTIONS_INIT;                            \
        options.transport = &transport;                                                            \
        set;                                                                                       \
        int stopped = 7;                                                                           \
        REFUSED(qkv_sweep_share(it.sweep, it.fresh, &options, &stopped, &err));                    \
        assert_int_equal(stopped, 0);                                                              \
        expect_no_file(it.fresh);                                                                  \
    } while (0)

static void test_share(void **state) {
    (void)state;
    REFUSED(qkv_sweep_share(NULL, it.fresh, NULL, NULL, &err));
    REFUSED(qkv_sweep_share(it.sweep, NULL, NULL, NULL, &err));
    SHARE_REFUSED(options.size = 0);
    SHARE_REFUSED(transport.size = 0);
    SHARE_REFUSED(transport.send = NULL);
    SHARE_REFUSED(transport.receive = NULL);
    SHARE_REFUSED(transport.is_waiting = NULL);
    SHARE_REFUSED(transport.rank = 1);
    SHARE_REFUSED(transport.rank = -1);
    SHARE_REFUSED(transport.n_processes = 0);
    SHARE_REFUSED(transport.n_processes = -1);
    SHARE_REFUSED(options.n_processes = 2); /* and a transport */
    SHARE_REFUSED((options.transport = NULL, options.n_processes = -1));
    SHARE_REFUSED((options.transport = NULL, options.n_processes = INT32_MAX));
    SHARE_REFUSED((options.shard = 1, options.n_shards = 0));
    SHARE_REFUSED((options.shard = 0, options.n_shards = 2));
    SHARE_REFUSED((options.shard = 3, options.n_shards = 2));
    SHARE_REFUSED((options.shard = -1, options.n_shards = -1));
    OK(qkv_sweep_share(it.sweep, it.results, NULL, NULL, &err));
}

/* ---- plots ---- */

/* Refused by the check of options alone, and by the making of a plot. */
#define PLOT_REFUSED(set)                                                                          \
    do {                                                                                           \
        qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;                                          \
        qkv_plot *plot = it.plot;                                                                  \
        set;                                                                                       \
        REFUSED(qkv_plot_options_check(&options, &err));                                           \
        REFUSED(qkv_plot_new(&plot, it.reader, &options, &err));                                   \
        assert_null(plot);                                                                         \
    } while (0)

static void test_plot_options(void **state) {
    (void)state;
    static const char *const words[] = {"qkv", NULL};
    PLOT_REFUSED(options.size = 0);
    PLOT_REFUSED(options.kind = (qkv_plot_kind)99);
    PLOT_REFUSED(options.kind = (qkv_plot_kind)-1);
    PLOT_REFUSED(options.by = (qkv_plot_by)99);
    PLOT_REFUSED(options.band = (qkv_plot_band)99);
    PLOT_REFUSED(options.scale = (qkv_plot_scale)99);
    PLOT_REFUSED(options.axis = (qkv_plot_scale)99);
    PLOT_REFUSED(options.order = (qkv_plot_order)99);
    PLOT_REFUSED(options.top = -1);
    PLOT_REFUSED(options.top = INT32_MAX);
    PLOT_REFUSED(options.range[0] = NAN);
    PLOT_REFUSED(options.range[1] = INFINITY);
    PLOT_REFUSED(options.range[1] = -1);
    PLOT_REFUSED(options.dpi = NAN);
    PLOT_REFUSED(options.dpi = -1);
    PLOT_REFUSED(options.n_command = 1);
    PLOT_REFUSED((options.command = words, options.n_command = 2));
    PLOT_REFUSED(options.session = it.e.session); /* without `page` it would have no effect */
    OK(qkv_plot_options_check(NULL, &err));
}

static void test_plot_new(void **state) {
    (void)state;
    qkv_plot_options options = QKV_PLOT_OPTIONS_INIT;
    qkv_plot *plot = NULL;
    REFUSED(qkv_plot_new(NULL, it.reader, NULL, &err));
    REFUSED(qkv_plot_new(&plot, NULL, NULL, &err));
    options.layers = "0-1,99";
    REFUSED(qkv_plot_new(&plot, it.reader, &options, &err));
    options.layers = "-99";
    REFUSED(qkv_plot_new(&plot, it.reader, &options, &err));
    options.layers = NULL;
    options.heads = "";
    REFUSED(qkv_plot_new(&plot, it.reader, &options, &err));
    options.heads = NULL;
    options.metric = "";
    REFUSED(qkv_plot_new(&plot, it.reader, &options, &err));
    qkv_plot_free(NULL);
    OK(qkv_plot_new(&plot, it.reader, NULL, &err));
    qkv_plot_free(plot);
}

static void test_plot(void **state) {
    (void)state;
    qkv_plot_info info = QKV_PLOT_INFO_INIT;
    qkv_plot_value value = QKV_PLOT_VALUE_INIT;
    char *bytes = NULL;
    size_t n = 0;
    REFUSED(qkv_plot_get_info(NULL, &info, &err));
    REFUSED(qkv_plot_get_info(it.plot, NULL, &err));
    REFUSED(qkv_plot_get_info(it.plot, &(qkv_plot_info){0}, &err));
    OK(qkv_plot_get_info(it.plot, &info, &err));
    REFUSED(qkv_plot_get_value(NULL, 0, &value, &err));
    REFUSED(qkv_plot_get_value(it.plot, 0, NULL, &err));
    REFUSED(qkv_plot_get_value(it.plot, 0, &(qkv_plot_value){0}, &err));
    REFUSED(qkv_plot_get_value(it.plot, info.n_values, &value, &err));
    REFUSED(qkv_plot_get_value(it.plot, SIZE_MAX, &value, &err));
    assert_null(qkv_plot_warning(NULL, 0));
    assert_null(qkv_plot_warning(it.plot, SIZE_MAX));
    REFUSED(qkv_plot_write(NULL, "x.svg", &err));
    REFUSED(qkv_plot_write(it.plot, NULL, &err));
    REFUSED(qkv_plot_write(it.plot, "no_suffix", &err));
    REFUSED(qkv_plot_render(it.plot, "html", &bytes, &n, &err)); /* made without `page` */
    REFUSED(qkv_plot_write(it.plot, "x.html", &err));
    REFUSED(qkv_plot_render(NULL, "svg", &bytes, &n, &err));
    REFUSED(qkv_plot_render(it.plot, NULL, &bytes, &n, &err));
    REFUSED(qkv_plot_render(it.plot, "", &bytes, &n, &err));
    REFUSED(qkv_plot_render(it.plot, "svg", NULL, &n, &err));
    REFUSED(qkv_plot_render(it.plot, "svg", &bytes, NULL, &err));
    OK(qkv_plot_render(it.plot, "svg", &bytes, &n, &err));
    qkv_bytes_free(bytes);
}

/* ---- reproductions ---- */

static void reproductions(void **state) {
    (void)state;
    qkv_plot_info info = QKV_PLOT_INFO_INIT;
    qkv_reproduction *r = NULL, *none = NULL;
    qkv_plot *plot = NULL;
    qkv_reproduction_info about = QKV_REPRODUCTION_INFO_INIT;
    qkv_reproduction_difference difference = QKV_REPRODUCTION_DIFFERENCE_INIT;
    char *bytes = NULL;
    size_t n = 0;
    assert_null(qkv_plot_kind_name((qkv_plot_kind)99));
    OK(qkv_plot_get_info(it.plot, &info, &err));
    const size_t length = strlen(info.recipe);
    REFUSED(qkv_reproduction_read(NULL, info.recipe, length, "x", &err));
    REFUSED(qkv_reproduction_read(&none, NULL, length, "x", &err));
    REFUSED(qkv_reproduction_read(&none, info.recipe, length, NULL, &err));
    REFUSED(qkv_reproduction_open(NULL, "x", &err));
    REFUSED(qkv_reproduction_open(&none, NULL, &err));
    OK(qkv_reproduction_read(&r, info.recipe, length, "x", &err));
    REFUSED(qkv_reproduction_get_info(NULL, &about, &err));
    REFUSED(qkv_reproduction_get_info(r, NULL, &err));
    REFUSED(qkv_reproduction_get_info(r, &(qkv_reproduction_info){0}, &err));
    REFUSED(qkv_reproduction_plot(r, NULL, it.reader, &err));
    REFUSED(qkv_reproduction_plot(NULL, &plot, it.reader, &err));
    REFUSED(qkv_reproduction_plot(r, &plot, NULL, &err));
    REFUSED(qkv_reproduction_compare(NULL, info.recipe, &difference, &err));
    REFUSED(qkv_reproduction_compare(r, NULL, &difference, &err));
    REFUSED(qkv_reproduction_compare(r, info.recipe, NULL, &err));
    REFUSED(qkv_reproduction_compare(r, "7", &difference, &err));
    REFUSED(qkv_reproduction_insert(NULL, &n, "<svg>", 5, "x", info.recipe, &err));
    REFUSED(qkv_reproduction_insert(&bytes, NULL, "<svg>", 5, "x", info.recipe, &err));
    REFUSED(qkv_reproduction_insert(&bytes, &n, NULL, 5, "x", info.recipe, &err));
    REFUSED(qkv_reproduction_insert(&bytes, &n, "<svg>", 5, NULL, info.recipe, &err));
    REFUSED(qkv_reproduction_insert(&bytes, &n, "<svg>", 5, "x", NULL, &err));
    OK(qkv_reproduction_plot(r, &plot, it.reader, &err));
    OK(qkv_plot_get_info(plot, &info, &err));
    OK(qkv_reproduction_compare(r, info.recipe, &difference, &err));
    assert_true(difference.same_bits && difference.same_versions);
    qkv_plot_free(plot);
    qkv_reproduction_free(r);
    qkv_reproduction_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reproductions),     cmocka_unit_test(test_share),
        cmocka_unit_test(test_plot_options), cmocka_unit_test(test_plot_new),
        cmocka_unit_test(test_plot),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
