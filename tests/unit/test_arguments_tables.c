/*
 * As test_arguments.c: NULL in place of each pointer, and what makes no sense. Here: tables and
 * results in memory, and the callback of a session.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "qkv/qkv.h"
#include "run/run.h"
#include "study/table.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static const int32_t TOKENS[] = {5, 9, 40, 77};
enum { N = 4 };

static qkv_error err;

static struct {
    engine e;
    qkv_plan *plan, *measured;
    qkv_result *result;
    qkv_measure *measure;
    qkv_table *table;
    qkv_table_names names;
} it;

static int make_all(void **state) {
    (void)state;
    static const char *const captures[] = {"pattern", NULL};
    engine_open(&it.e, tiny_model(&(tiny_options){.family = "llama"}, "tiny.gguf"), 1);
    const engine_run run = {.tokens = TOKENS, .n_tokens = N, .captures = captures};
    it.plan = engine_plan(&it.e, &run);
    OK(qkv_session_run(it.e.session, &it.result, it.plan, &err));
    OK(qkv_plan_new(&it.measured, it.e.model, TOKENS, N, &err));
    OK(qkv_measure_new(&it.measure, "sink", NULL, &err));
    OK(qkv_measure_run(it.measure, &it.table, it.e.session, it.measured, &err));
    it.names = (qkv_table_names)QKV_TABLE_NAMES_INIT;
    it.names.measure = it.measure;
    it.names.model = it.e.model;
    return 0;
}

static int free_all(void **state) {
    qkv_table_free(it.table);
    qkv_measure_free(it.measure);
    qkv_plan_free(it.measured);
    qkv_result_free(it.result);
    qkv_plan_free(it.plan);
    engine_close(&it.e);
    return scratch_clean(state);
}

static void test_table(void **state) {
    (void)state;
    const char *path = scratch_path("t.csv");
    char *bytes = NULL;
    size_t n = 0;
    qkv_table_names none = QKV_TABLE_NAMES_INIT;
    REFUSED(qkv_table_write(NULL, path, &it.names, &err));
    REFUSED(qkv_table_write(it.table, NULL, &it.names, &err));
    REFUSED(qkv_table_write(it.table, path, NULL, &err));
    REFUSED(qkv_table_write(it.table, path, &none, &err));
    REFUSED(qkv_table_write(it.table, path, &(qkv_table_names){0}, &err));
    REFUSED(qkv_table_write(it.table, scratch_path("t.txt"), &it.names, &err));
    REFUSED(qkv_table_render(NULL, "csv", &it.names, &bytes, &n, &err));
    REFUSED(qkv_table_render(it.table, NULL, &it.names, &bytes, &n, &err));
    REFUSED(qkv_table_render(it.table, "odd", &it.names, &bytes, &n, &err));
    REFUSED(qkv_table_render(it.table, "csv", NULL, &bytes, &n, &err));
    REFUSED(qkv_table_render(it.table, "csv", &it.names, NULL, &n, &err));
    REFUSED(qkv_table_render(it.table, "csv", &it.names, &bytes, NULL, &err));
    assert_null(bytes);
    OK(qkv_table_render(it.table, "csv", &it.names, &bytes, &n, &err));
    qkv_bytes_free(bytes);
}

static void test_table_writer(void **state) {
    (void)state;
    qkv_table_writer *writer = NULL;
    char *bytes = NULL;
    size_t n = 0;
    qkv_table_writer_free(NULL);
    REFUSED(qkv_table_writer_open(NULL, scratch_path("w.csv"), &it.names, &err));
    REFUSED(qkv_table_writer_open(&writer, NULL, &it.names, &err));
    REFUSED(qkv_table_writer_open(&writer, scratch_path("w.csv"), NULL, &err));
    REFUSED(qkv_table_writer_new(NULL, "csv", &it.names, &err));
    REFUSED(qkv_table_writer_new(&writer, NULL, &it.names, &err));
    REFUSED(qkv_table_writer_new(&writer, "csv", NULL, &err));
    assert_null(writer);
    OK(qkv_table_writer_new(&writer, "csv", &it.names, &err));
    REFUSED(qkv_table_writer_add(NULL, 0, it.table, &err));
    REFUSED(qkv_table_writer_add(writer, 0, NULL, &err));
    REFUSED(qkv_table_writer_finish(NULL, &err));
    REFUSED(qkv_table_writer_take(NULL, &bytes, &n, &err));
    REFUSED(qkv_table_writer_take(writer, NULL, &n, &err));
    REFUSED(qkv_table_writer_take(writer, &bytes, NULL, &err));
    OK(qkv_table_writer_add(writer, 0, it.table, &err));
    OK(qkv_table_writer_take(writer, &bytes, &n, &err));
    REFUSED(qkv_table_writer_add(writer, 0, it.table, &err)); /* it is finished */
    qkv_bytes_free(bytes);
    qkv_table_writer_free(writer);
}

static void test_results(void **state) {
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    REFUSED(qkv_store_render(NULL, it.plan, it.e.model, "json", &bytes, &n, &err));
    REFUSED(qkv_store_render(it.result, NULL, it.e.model, "json", &bytes, &n, &err));
    REFUSED(qkv_store_render(it.result, it.plan, NULL, "json", &bytes, &n, &err));
    REFUSED(qkv_store_render(it.result, it.plan, it.e.model, NULL, &bytes, &n, &err));
    REFUSED(qkv_store_render(it.result, it.plan, it.e.model, "odd", &bytes, &n, &err));
    REFUSED(qkv_store_render(it.result, it.plan, it.e.model, "json", NULL, &n, &err));
    REFUSED(qkv_store_render(it.result, it.plan, it.e.model, "json", &bytes, NULL, &err));
    REFUSED(qkv_store_describe(NULL, it.plan, it.e.model, &bytes, &err));
    REFUSED(qkv_store_describe(it.result, NULL, it.e.model, &bytes, &err));
    REFUSED(qkv_store_describe(it.result, it.plan, NULL, &bytes, &err));
    REFUSED(qkv_store_describe(it.result, it.plan, it.e.model, NULL, &err));
    REFUSED(qkv_sweep_render(NULL, "csv", &bytes, &n, NULL, &err));
    REFUSED(qkv_sweep_render("x.sqlite", NULL, &bytes, &n, NULL, &err));
    REFUSED(qkv_sweep_render("x.sqlite", "odd", &bytes, &n, NULL, &err));
    REFUSED(qkv_sweep_render("x.sqlite", "csv", NULL, &n, NULL, &err));
    REFUSED(qkv_sweep_render("x.sqlite", "csv", &bytes, NULL, NULL, &err));
    REFUSED(qkv_sweep_render("x.sqlite", "csv", &bytes, &n, &(qkv_sweep_summary){0}, &err));
    assert_null(bytes);
}

static void test_progress(void **state) {
    (void)state;
    const qkv_progress progress = QKV_PROGRESS_INIT;
    REFUSED(qkv_session_set_progress(NULL, &progress, &err));
    REFUSED(qkv_session_set_progress(it.e.session, &(qkv_progress){0}, &err));
    REFUSED(qkv_session_report(NULL, "cells", 0, 1, &err));
    REFUSED(qkv_session_report(it.e.session, NULL, 0, 1, &err));
    REFUSED(qkv_session_begin_work(NULL, "cells", 1, &err));
    REFUSED(qkv_session_begin_work(it.e.session, NULL, 1, &err));
    REFUSED(qkv_session_begin_work(it.e.session, "cells", -1, &err));
    REFUSED(qkv_session_begin_work(it.e.session, "cells", (double)NAN, &err));
    REFUSED(qkv_session_reach(NULL, 0, 1, &err));
    REFUSED(qkv_session_reach(it.e.session, 0, 1, &err)); /* no work has begun */
    assert_int_equal(qkv_session_end_work(NULL, QKV_ERR_IO), QKV_ERR_IO);
    assert_int_equal(qkv_session_end_work(it.e.session, QKV_OK), QKV_OK);
    OK(qkv_session_set_progress(it.e.session, NULL, &err));
    OK(qkv_session_report(it.e.session, "cells", 0, 1, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_writer),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
