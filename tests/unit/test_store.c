/*
 * Files of results, byte by byte: headers, offsets, values, metadata, and what is refused. Uses
 * a reader written for this test, so that writer and reader cannot share a mistake.
 */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "qkv/measure.h"
#include "qkv/store.h"
#include "qkv/version.h"
#include "store/store_formats.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

/* ---- reading back ---- */

typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static bytes slurp(const char *path) {
    bytes all = {malloc(1 << 22), 0};
    FILE *stream = fopen(path, "rb");
    assert_non_null(all.data);
    assert_non_null(stream);
    all.size = fread(all.data, 1, 1 << 22, stream);
    assert_true(all.size < 1 << 22);
    fclose(stream);
    return all;
}

/* The header of a safetensors file; *start receives where the values begin. */
static json_t *read_header(const bytes *file, size_t *start) {
    uint64_t length = 0;
    assert_true(file->size >= 8);
    for (int i = 7; i >= 0; i--) length = length << 8 | file->data[i];
    assert_true(length <= file->size - 8);
    assert_int_equal((8 + length) % 8, 0);
    assert_int_equal(file->data[8], '{');
    json_t *header = json_loadb((const char *)file->data + 8, length, 0, NULL);
    assert_non_null(header);
    *start = 8 + length;
    return header;
}

/* Tensors lie one after the other from 0 to the end, in the order of the header. */
static void check_offsets(json_t *header, const bytes *file, size_t start) {
    const char *name;
    json_t *entry;
    json_int_t expected = 0;
    json_object_foreach(header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) continue;
        json_int_t count = 1;
        size_t i;
        json_t *n;
        json_array_foreach(json_object_get(entry, "shape"), i, n) count *= json_integer_value(n);
        json_t *offsets = json_object_get(entry, "data_offsets");
        assert_string_equal(json_string_value(json_object_get(entry, "dtype")), "F32");
        assert_int_equal(json_integer_value(json_array_get(offsets, 0)), expected);
        expected += 4 * count;
        assert_int_equal(json_integer_value(json_array_get(offsets, 1)), expected);
    }
    assert_int_equal(start + (size_t)expected, file->size);
}

static const unsigned char *values_of(json_t *header, const char *name, const bytes *file,
                                      size_t start) {
    json_t *entry = json_object_get(header, name);
    assert_non_null(entry);
    json_t *begin = json_array_get(json_object_get(entry, "data_offsets"), 0);
    return file->data + start + json_integer_value(begin);
}

static const char *meta(json_t *header, const char *key) {
    return json_string_value(json_object_get(json_object_get(header, "__metadata__"), key));
}

/* ---- a result to write ---- */

enum { T = 6 };
static const int32_t tokens[T] = {1, 70, 71, 72, 73, 74};

typedef struct fixture {
    engine e;
    qkv_plan *plan;
    qkv_result *result;
} fixture;

static void start(fixture *f, const char *variant, const char *const *captures) {
    static const tiny_options options = {"llama", .n_kv_head = 2};
    qkv_error err;
    *f = (fixture){0};
    engine_open(&f->e, tiny_model(&options, "store.gguf"), 1);
    expect_ok(qkv_plan_new(&f->plan, f->e.model, tokens, T, &err), &err, "plan");
    if (variant) {
        expect_ok(qkv_plan_add_variant(f->plan, variant, NULL, &err), &err, variant);
    }
    for (; *captures; captures++) {
        expect_ok(qkv_plan_add_capture(f->plan, *captures, &err), &err, *captures);
    }
    expect_ok(qkv_session_run(f->e.session, &f->result, f->plan, &err), &err, "run");
}

static void stop(fixture *f) {
    qkv_result_free(f->result);
    qkv_plan_free(f->plan);
    engine_close(&f->e);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- tests ---- */

static void safetensors_of_a_result(void **state) {
    (void)state;
    fixture f;
    qkv_error err;
    start(&f, "v@1=scale:0.5", LIST("pattern@1.h0,2", "q@1", "logits"));
    const char *path = scratch_path("result.safetensors");
    expect_ok(qkv_store_write(f.result, f.plan, f.e.model, path, &err), &err, "write");

    bytes file = slurp(path);
    size_t begin;
    json_t *header = read_header(&file, &begin);
    check_offsets(header, &file, begin);
    assert_int_equal(json_object_size(header), 1 + 2 * 3);
    const struct {
        const char *name;
        size_t variant;
        qkv_site site;
    } expected[] = {
        {"v0/pattern.1", 0, QKV_SITE_PATTERN},
        {"v1/pattern.1", 1, QKV_SITE_PATTERN},
        {"v0/q.1", 0, QKV_SITE_Q},
        {"v1/q.1", 1, QKV_SITE_Q},
        {"v0/logits", 0, QKV_SITE_LOGITS},
        {"v1/logits", 1, QKV_SITE_LOGITS},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const qkv_tensor t = engine_tensor(f.result, expected[i].variant, expected[i].site, 1);
        assert_memory_equal(values_of(header, expected[i].name, &file, begin), t.data,
                            tensor_count(&t) * sizeof(float));
    }

    char hash[33];
    expect_ok(qkv_model_hash(f.e.model, hash, &err), &err, "hash");
    assert_string_equal(meta(header, "model_hash"), hash);
    assert_string_equal(meta(header, "tokens"), "[1,70,71,72,73,74]");
    assert_string_equal(meta(header, "architecture"), "llama");
    assert_string_equal(meta(header, "variant.0"), "");
    assert_string_equal(meta(header, "variant.1"), "v@1=scale:0.5");
    assert_string_equal(meta(header, "edits_changed.0"), "[]");
    assert_string_equal(meta(header, "edits_changed.1"), "[96]"); /* 6 tokens, 2 heads, 8 wide */
    assert_string_equal(meta(header, "heads.pattern.1"), "h0,h2");
    assert_null(meta(header, "heads.q.1"));
    assert_string_equal(meta(header, "qkv_version"), qkv_version());
    json_decref(header);
    free(file.data);
    stop(&f);
}

/* Names that tell reductions apart, and what shapes do not say in the metadata. */
static void reductions_and_rows(void **state) {
    (void)state;
    fixture f;
    qkv_error err;
    start(&f, NULL,
          LIST("pattern@1", "pattern@1.h2:first", "pattern@1:mean=4", "logits[1]", "logits[-1]"));
    const char *path = scratch_path("reduced.safetensors");
    expect_ok(qkv_store_write(f.result, f.plan, f.e.model, path, &err), &err, "write");
    bytes file = slurp(path);
    size_t begin;
    json_t *header = read_header(&file, &begin);
    check_offsets(header, &file, begin);
    assert_int_equal(json_object_size(header), 1 + 4);
    qkv_tensor t = QKV_TENSOR_INIT;
    assert_true(qkv_result_get_reduced(f.result, 0, QKV_REDUCTION_FIRST, 1, &t));
    assert_memory_equal(values_of(header, "v0/pattern.1.first", &file, begin), t.data,
                        T * sizeof(float));
    assert_true(qkv_result_get_reduced(f.result, 0, QKV_REDUCTION_MEAN, 1, &t));
    assert_memory_equal(values_of(header, "v0/pattern.1.mean", &file, begin), t.data,
                        tensor_count(&t) * sizeof(float));
    assert_string_equal(meta(header, "heads.pattern.1.first"), "h2");
    assert_null(meta(header, "heads.pattern.1"));
    assert_string_equal(meta(header, "side.pattern.1.mean"), "4");
    assert_string_equal(meta(header, "logits_tokens"), "[1,5]");
    assert_string_equal(meta(header, "captures"),
                        "[\"pattern@1\",\"pattern@1.h2:first\",\"pattern@1:mean=4\","
                        "\"logits[1]\",\"logits[-1]\"]");
    json_decref(header);
    free(file.data);
    stop(&f);
}

static void json_holds_the_same_numbers(void **state) {
    (void)state;
    fixture f;
    qkv_error err;
    start(&f, NULL, LIST("pattern@0", "resid_pre@2"));
    const char *path = scratch_path("result.json");
    expect_ok(qkv_store_write(f.result, f.plan, f.e.model, path, &err), &err, "write");
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    char *ids =
        json_dumps(json_object_get(json_object_get(root, "metadata"), "tokens"), JSON_COMPACT);
    assert_string_equal(ids, "[1,70,71,72,73,74]"); /* a list, not the text of one */
    free(ids);
    json_t *entry = json_object_get(json_object_get(root, "tensors"), "v0/pattern.0");
    const qkv_tensor t = engine_tensor(f.result, 0, QKV_SITE_PATTERN, 0);
    json_t *data = json_object_get(entry, "data");
    assert_int_equal(json_array_size(data), 4);
    for (size_t h = 0; h < 4; h++) {
        for (size_t i = 0; i < T * T; i++) {
            json_t *row = json_array_get(json_array_get(data, h), i / T);
            const float got = (float)json_number_value(json_array_get(row, i % T));
            assert_true(got == t.data[h * T * T + i]);
        }
    }
    json_t *flat = json_object_get(json_object_get(root, "tensors"), "v0/resid_pre.2");
    assert_int_equal(json_array_size(json_object_get(flat, "data")), T);
    assert_int_equal(json_array_size(json_array_get(json_object_get(flat, "data"), 0)), 32);
    json_decref(root);
    stop(&f);
}

static void npy_of_one_tensor(void **state) {
    (void)state;
    fixture f;
    qkv_error err;
    start(&f, NULL, LIST("pattern@0"));
    const char *path = scratch_path("result.npy");
    expect_ok(qkv_store_write(f.result, f.plan, f.e.model, path, &err), &err, "write");
    bytes file = slurp(path);
    assert_memory_equal(file.data, "\x93NUMPY\x01\x00", 8);
    const size_t begin = 10 + (size_t)file.data[8] + 256 * (size_t)file.data[9];
    assert_int_equal(begin % 64, 0);
    assert_int_equal(file.data[begin - 1], '\n');
    static const char dictionary[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 6, 6), }";
    assert_memory_equal(file.data + 10, dictionary, strlen(dictionary));
    const qkv_tensor t = engine_tensor(f.result, 0, QKV_SITE_PATTERN, 0);
    assert_int_equal(file.size, begin + tensor_count(&t) * sizeof(float));
    assert_memory_equal(file.data + begin, t.data, tensor_count(&t) * sizeof(float));
    free(file.data);
    stop(&f);
}

static void npy_of_several_is_refused(void **state) {
    (void)state;
    fixture f;
    qkv_error err;
    start(&f, "q@0=zero", LIST("pattern@0"));
    const char *path = scratch_path("several.npy");
    assert_int_equal(qkv_store_write(f.result, f.plan, f.e.model, path, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "2 were captured"));
    assert_int_equal(qkv_store_check(f.result, path, &err), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_store_check(f.result, scratch_path("x.txt"), &err), QKV_ERR_ARGUMENT);
    expect_ok(qkv_store_check(f.result, scratch_path("x.json"), &err), &err, "check");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(qkv_store_write(f.result, f.plan, f.e.model, scratch_path("x.txt"), &err),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "suffix"));
    stop(&f);
}

static void full_disk_is_an_error(void **state) {
    (void)state;
    fixture f;
    qkv_error err;
    start(&f, NULL, LIST("pattern@*"));
    const char *link = scratch_path("full.safetensors");
    assert_int_equal(symlink("/dev/full", link), 0);
    assert_int_equal(qkv_store_write(f.result, f.plan, f.e.model, link, &err), QKV_ERR_IO);
    stop(&f);
}

static void tensors_of_a_figure(void **state) {
    (void)state;
    const float a[] = {1, 2, 3}, b[] = {4, 5, 6, 7};
    const qkv_store_tensor tensors[] = {{sizeof *tensors, "a", a, 1, {3}},
                                        {sizeof *tensors, "b", b, 2, {2, 2}}};
    const char *const metadata[] = {"title", "One \xce\xb5", "bad", "\xff"};
    const char *path = scratch_path("figure.safetensors");
    qkv_error err;
    expect_ok(qkv_store_write_tensors(tensors, 2, metadata, 2, path, &err), &err, "write");
    bytes file = slurp(path);
    size_t begin;
    json_t *header = read_header(&file, &begin);
    check_offsets(header, &file, begin);
    assert_memory_equal(values_of(header, "b", &file, begin), b, sizeof b);
    assert_string_equal(meta(header, "title"), "One \xce\xb5");
    assert_string_equal(meta(header, "bad"), "\\xFF");
    json_decref(header);
    char *memory = NULL;
    size_t n = 0;
    expect_ok(qkv_store_render_tensors(tensors, 2, metadata, 2, &memory, &n, &err), &err, "memory");
    assert_int_equal(n, file.size);
    assert_memory_equal(memory, file.data, n);
    qkv_bytes_free(memory);
    free(file.data);

    const qkv_store_tensor shapeless = {sizeof shapeless, "c", a, 0, {0}};
    assert_int_equal(qkv_store_write_tensors(&shapeless, 1, NULL, 0, path, &err), QKV_ERR_ARGUMENT);
}

static void large_json_is_refused(void **state) {
    (void)state;
    fixture f;
    qkv_error err;
    const size_t n = 64; /* the tiny model's context: 4 * 64 * 64 values a pattern */
    int32_t many[64];
    for (size_t i = 0; i < n; i++) many[i] = 5 + (int32_t)i;
    start(&f, NULL, LIST("pattern@0"));
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    expect_ok(qkv_plan_new(&plan, f.e.model, many, n, &err), &err, "plan");
    for (int v = 0; v < 50; v++) {
        expect_ok(qkv_plan_add_variant(plan, "q@0=scale:0.5", NULL, &err), &err, "variant");
    }
    expect_ok(qkv_plan_add_capture(plan, "pattern@*", &err), &err, "capture");
    expect_ok(qkv_session_run(f.e.session, &result, plan, &err), &err, "run");
    const char *path = scratch_path("large.json");
    assert_int_equal(qkv_store_write(result, plan, f.e.model, path, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, ".safetensors"));
    assert_int_not_equal(access(path, F_OK), 0);
    qkv_result_free(result);
    qkv_plan_free(plan);
    stop(&f);
}

static void sinks_are_column_means(void **state) {
    (void)state;
    const float a[] = {1, 0, 0, 0.5f, 0.5f, 0, 0.25f, 0.5f, 0.25f};
    assert_float_equal(qkv_measure_first_column(a, 3), 0.375, 1e-12);
    assert_float_equal(qkv_measure_sink(a, 3, 0), 1.75 / 3, 1e-12);
    assert_float_equal(qkv_measure_sink(a, 3, 1), 0.5, 1e-12);
    assert_float_equal(qkv_measure_sink(a, 3, 2), 0.25, 1e-12);
    assert_float_equal(qkv_measure_first_column(a, 1), 1, 0);
}

static int clean_up(void **state) {
    (void)state;
    scratch_remove();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_and_rows),         cmocka_unit_test(safetensors_of_a_result),
        cmocka_unit_test(json_holds_the_same_numbers), cmocka_unit_test(npy_of_one_tensor),
        cmocka_unit_test(npy_of_several_is_refused),   cmocka_unit_test(full_disk_is_an_error),
        cmocka_unit_test(tensors_of_a_figure),         cmocka_unit_test(large_json_is_refused),
        cmocka_unit_test(sinks_are_column_means),
    };
    return cmocka_run_group_tests(tests, NULL, clean_up);
}
