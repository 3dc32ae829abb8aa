/*
 * Everything that is written to a file can be had in memory, as the same bytes: tables of measured
 * values, results, rows of a sweep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/csv.h"
#include "base/json.h"
#include "qkv/qkv.h"
#include "study/table.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "support/sweep_maker.h"

static const int32_t tokens[] = {1, 5, 9, 2};
static const char *const variants[] = {"q@0.h1=scale:0.5", "k@1=zero + v@1.g0=scale:2"};

typedef struct fixture {
    engine e;
    qkv_measure *measure;
    qkv_plan *plan;
    qkv_table *table;
    qkv_prompt prompt;
    qkv_table_names names;
} fixture;

static void open_fixture(fixture *f) {
    qkv_error err = {0};
    engine_open(&f->e, QKV_TEST_MODELS "/default.gguf", 1);
    expect_ok(qkv_measure_new(&f->measure, "sink,tv,loss", NULL, &err), &err, "measure");
    expect_ok(qkv_plan_new(&f->plan, f->e.model, tokens, 4, &err), &err, "plan");
    for (int i = 0; i < 2; i++)
        expect_ok(qkv_plan_add_variant(f->plan, variants[i], NULL, &err), &err, variants[i]);
    expect_ok(qkv_measure_run(f->measure, &f->table, f->e.session, f->plan, &err), &err, "run");
    f->prompt = (qkv_prompt)QKV_PROMPT_INIT;
    f->prompt.text = "a \"quoted\", text";
    f->prompt.tokens = tokens;
    f->prompt.n_tokens = 4;
    f->names = (qkv_table_names)QKV_TABLE_NAMES_INIT;
    f->names.measure = f->measure;
    f->names.model = f->e.model;
    f->names.prompts = &f->prompt;
    f->names.n_prompts = 1;
    f->names.variants = variants;
    f->names.n_variants = 2;
}

static void close_fixture(fixture *f) {
    qkv_table_free(f->table);
    qkv_plan_free(f->plan);
    qkv_measure_free(f->measure);
    engine_close(&f->e);
}

static void expect_file(const char *path, const char *bytes, size_t n_bytes) {
    size_t size = 0;
    char *file = slurp(path, &size);
    assert_int_equal(size, n_bytes);
    assert_memory_equal(file, bytes, n_bytes);
    assert_int_equal(bytes[n_bytes], '\0');
    free(file);
}

static void tables(void **state) {
    (void)state;
    fixture f;
    qkv_error err = {0};
    open_fixture(&f);
    for (int json = 0; json < 2; json++) {
        char *bytes = NULL;
        size_t n_bytes = 0;
        const char *path = scratch_path(json ? "t.json" : "t.csv");
        expect_ok(qkv_table_write(f.table, path, &f.names, &err), &err, path);
        expect_ok(
            qkv_table_render(f.table, json ? "json" : "csv", &f.names, &bytes, &n_bytes, &err),
            &err, "memory");
        expect_file(path, bytes, n_bytes);
        if (!json) {
            static const char first[] =
                "prompt,variant,layer,head,metric,value\n0,baseline,,,loss,";
            assert_memory_equal(bytes, first, sizeof first - 1);
        }
        qkv_bytes_free(bytes);
    }
    close_fixture(&f);
}

/* JSON holds as many rows as there are values, and what they refer to. */
static void json_table(void **state) {
    (void)state;
    fixture f;
    qkv_error err = {0};
    char *bytes = NULL;
    size_t n_bytes = 0;
    open_fixture(&f);
    expect_ok(qkv_table_render(f.table, "json", &f.names, &bytes, &n_bytes, &err), &err, "json");
    json_t *json = json_loads(bytes, 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), qkv_table_size(f.table));
    assert_int_equal(json_array_size(json_object_get(json, "variants")), 3);
    const json_t *prompt = json_array_get(json_object_get(json, "prompts"), 0);
    assert_string_equal(json_string_value(json_object_get(prompt, "text")), f.prompt.text);
    assert_int_equal(json_array_size(json_object_get(prompt, "tokens")), 4);
    json_decref(json);
    qkv_bytes_free(bytes);
    close_fixture(&f);
}

/* Several tables, one after the other. */
static void writers(void **state) {
    (void)state;
    fixture f;
    qkv_error err = {0};
    qkv_table_writer *writer = NULL;
    char *one = NULL, *two = NULL;
    size_t n_one = 0, n_two = 0;
    open_fixture(&f);
    expect_ok(qkv_table_render(f.table, "csv", &f.names, &one, &n_one, &err), &err, "one");
    expect_ok(qkv_table_writer_new(&writer, "csv", &f.names, &err), &err, "writer");
    expect_ok(qkv_table_writer_add(writer, 0, f.table, &err), &err, "first");
    expect_ok(qkv_table_writer_add(writer, QKV_ALL_PROMPTS, f.table, &err), &err, "second");
    assert_int_equal(qkv_table_writer_finish(writer, &err), QKV_ERR_ARGUMENT);
    expect_ok(qkv_table_writer_take(writer, &two, &n_two, &err), &err, "bytes");
    assert_memory_equal(two, one, n_one);
    static const char row[] = ",baseline,,,loss,";
    assert_memory_equal(two + n_one, row, sizeof row - 1);
    assert_int_equal(qkv_table_writer_add(writer, 0, f.table, &err), QKV_ERR_ARGUMENT);
    char *again = NULL;
    assert_int_equal(qkv_table_writer_take(writer, &again, &n_two, &err), QKV_ERR_ARGUMENT);
    assert_null(again);
    qkv_table_writer_free(writer);
    qkv_bytes_free(one);
    qkv_bytes_free(two);
    close_fixture(&f);
}

/* A writer needs nothing of what it was made with: a garbage collector may free that first. */
static void writer_outlives_its_names(void **state) {
    (void)state;
    for (int json = 0; json < 2; json++) {
        const char *format = json ? "json" : "csv";
        fixture f;
        qkv_error err = {0};
        qkv_table_writer *writer = NULL;
        char *one = NULL, *two = NULL, own[] = "q@0.h1=scale:0.5";
        const char *list[] = {own, variants[1]};
        size_t n_one = 0, n_two = 0;
        open_fixture(&f);
        expect_ok(qkv_table_render(f.table, format, &f.names, &one, &n_one, &err), &err, "one");
        f.names.variants = list;
        expect_ok(qkv_table_writer_new(&writer, format, &f.names, &err), &err, "writer");
        qkv_measure_free(f.measure);
        f.measure = NULL;
        engine_close(&f.e);
        f.e = (engine){0};
        memset(own, '?', sizeof own - 1);
        list[1] = NULL;
        expect_ok(qkv_table_writer_add(writer, 0, f.table, &err), &err, "rows");
        expect_ok(qkv_table_writer_take(writer, &two, &n_two, &err), &err, "bytes");
        assert_int_equal(n_two, n_one);
        assert_memory_equal(two, one, n_one);
        qkv_table_writer_free(writer);
        qkv_bytes_free(one);
        qkv_bytes_free(two);
        close_fixture(&f);
    }
}

/* Names that are not all there, and a table of another measure; the writer stays usable. */
static void bad_names(void **state) {
    (void)state;
    fixture f;
    qkv_error err = {0};
    qkv_table_writer *writer = NULL;
    qkv_measure *fewer = NULL;
    char *bytes = NULL;
    size_t n = 0;
    open_fixture(&f);
    const char *no_text[] = {variants[0], NULL};
    f.names.variants = no_text;
    assert_int_equal(qkv_table_writer_new(&writer, "csv", &f.names, &err), QKV_ERR_ARGUMENT);
    f.names.variants = variants;
    f.prompt.tokens = NULL;
    assert_int_equal(qkv_table_writer_new(&writer, "json", &f.names, &err), QKV_ERR_ARGUMENT);
    f.prompt.tokens = tokens;
    expect_ok(qkv_measure_new(&fewer, "sink", NULL, &err), &err, "measure");
    f.names.measure = fewer;
    for (int json = 0; json < 2; json++) {
        const char *format = json ? "json" : "csv";
        expect_ok(qkv_table_writer_new(&writer, format, &f.names, &err), &err, "writer");
        assert_int_equal(qkv_table_writer_add(writer, 0, f.table, &err), QKV_ERR_ARGUMENT);
        expect_ok(qkv_table_writer_take(writer, &bytes, &n, &err), &err, "nothing was added");
        if (!json) assert_string_equal(bytes, "prompt,variant,layer,head,metric,value\n");
        qkv_bytes_free(bytes);
        qkv_table_writer_free(writer);
    }
    qkv_measure_free(fewer);
    close_fixture(&f);
}

static void bad_arguments(void **state) {
    (void)state;
    fixture f;
    qkv_error err = {0};
    qkv_table_writer *writer = NULL;
    char *bytes = NULL;
    size_t n = 0;
    open_fixture(&f);
    assert_int_equal(qkv_table_render(f.table, "xml", &f.names, &bytes, &n, &err),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_render(f.table, NULL, &f.names, &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_render(NULL, "csv", &f.names, &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_render(f.table, "csv", NULL, &bytes, &n, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_render(f.table, "csv", &f.names, NULL, &n, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_write(f.table, NULL, &f.names, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_writer_open(NULL, "t.csv", &f.names, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_table_writer_add(NULL, 0, f.table, &err), QKV_ERR_ARGUMENT);
    f.names.model = NULL;
    assert_int_equal(qkv_table_writer_new(&writer, "json", &f.names, &err), QKV_ERR_ARGUMENT);
    f.names.n_variants = 1;
    f.names.variants = NULL;
    assert_int_equal(qkv_table_writer_new(&writer, "csv", &f.names, &err), QKV_ERR_ARGUMENT);
    f.names.size = 0;
    assert_int_equal(qkv_table_writer_new(&writer, "csv", &f.names, &err), QKV_ERR_ARGUMENT);
    assert_null(writer);
    assert_null(bytes);
    qkv_table_writer_free(NULL);
    close_fixture(&f);
}

static void results(void **state) {
    (void)state;
    static const char *const formats[] = {"safetensors", "json", "npy"};
    engine e;
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    char *bytes = NULL;
    size_t n = 0;
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    expect_ok(qkv_plan_new(&plan, e.model, tokens, 4, &err), &err, "plan");
    expect_ok(qkv_plan_add_capture(plan, "pattern@1", &err), &err, "capture");
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "run");
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "r.%s", formats[i]);
        const char *path = scratch_path(name);
        expect_ok(qkv_store_write(result, plan, e.model, path, &err), &err, path);
        expect_ok(qkv_store_render(result, plan, e.model, formats[i], &bytes, &n, &err), &err,
                  name);
        expect_file(path, bytes, n);
        qkv_bytes_free(bytes);
    }
    assert_int_equal(qkv_store_render(result, plan, e.model, "xml", &bytes, &n, &err),
                     QKV_ERR_ARGUMENT);
    assert_null(bytes);
    assert_int_equal(qkv_store_render(NULL, plan, e.model, "npy", &bytes, &n, &err),
                     QKV_ERR_ARGUMENT);
    qkv_result_free(result);
    qkv_plan_free(plan);
    expect_ok(qkv_plan_new(&plan, e.model, tokens, 4, &err), &err, "plan");
    expect_ok(qkv_plan_add_capture(plan, "pattern", &err), &err, "capture");
    expect_ok(qkv_session_run(e.session, &result, plan, &err), &err, "run");
    assert_int_equal(qkv_store_render(result, plan, e.model, "npy", &bytes, &n, &err),
                     QKV_ERR_ARGUMENT);
    assert_memory_equal(err.message, "npy can hold one tensor", 23);
    qkv_result_free(result);
    qkv_plan_free(plan);
    engine_close(&e);
}

static void sweeps(void **state) {
    (void)state;
    qkv_error err = {0};
    const char *path = scratch_path("s.sqlite");
    const sweep_shape shape = {.layers = 2,
                               .heads = 3,
                               .prompts = 2,
                               .targets = "q,k",
                               .ops = "scale,zero",
                               .epsilons = "1e-3,1",
                               .metrics = "sink,kl",
                               .done = 20};
    assert_true(make_sweep(path, &shape));
    for (int json = 0; json < 2; json++) {
        qkv_sweep_summary a = QKV_SWEEP_SUMMARY_INIT, b = QKV_SWEEP_SUMMARY_INIT;
        char *bytes = NULL;
        size_t n = 0;
        const char *out = scratch_path(json ? "s.json" : "s.csv");
        expect_ok(qkv_sweep_export(path, out, &a, &err), &err, out);
        expect_ok(qkv_sweep_render(path, json ? "json" : "csv", &bytes, &n, &b, &err), &err, out);
        expect_file(out, bytes, n);
        assert_true(a.n_missing == b.n_missing && b.n_missing > 0 && a.n_rows == b.n_rows);
        qkv_bytes_free(bytes);
        assert_int_equal(qkv_sweep_render(path, "xml", &bytes, &n, NULL, &err), QKV_ERR_ARGUMENT);
        assert_int_equal(qkv_sweep_render(NULL, "csv", &bytes, &n, NULL, &err), QKV_ERR_ARGUMENT);
        assert_null(bytes);
    }
}

static void fields(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"plain", "plain", "\"plain\""},
        {"a,b", "\"a,b\"", "\"a,b\""},
        {"say \"no\"", "\"say \"\"no\"\"\"", "\"say \\\"no\\\"\""},
        {"two\nlines", "\"two\nlines\"", "\"two\\nlines\""},
        {"", "", "\"\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_text csv = {0}, json = {0};
        qkv_csv_append(&csv, cases[i][0]);
        qkv_json_append(&json, cases[i][0]);
        assert_string_equal(csv.data ? csv.data : "", cases[i][1]);
        assert_string_equal(json.data, cases[i][2]);
        qkv_text_release(&csv);
        qkv_text_release(&json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),    cmocka_unit_test(json_table),
        cmocka_unit_test(writers),   cmocka_unit_test(writer_outlives_its_names),
        cmocka_unit_test(bad_names), cmocka_unit_test(bad_arguments),
        cmocka_unit_test(results),   cmocka_unit_test(sweeps),
        cmocka_unit_test(fields),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
