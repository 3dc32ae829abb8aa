/* What a program that cannot read macros sees: the lists, complete and in order; and the version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "draw/draw.h"
#include "model/synthetic.h"
#include "qkv/qkv.h"
#include "run/run.h"
#include "store/store_formats.h"
#include "study/figure.h"

static void test_version(void **state) {
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", QKV_VERSION_MAJOR, QKV_VERSION_MINOR,
             QKV_VERSION_PATCH);
    assert_string_equal(QKV_VERSION, text);
    assert_string_equal(qkv_version(), QKV_VERSION);
    assert_string_equal(QKV_TEST_PROJECT_VERSION, QKV_VERSION);
}

#define SITE_CHECK(id, name, shape, what)                                                          \
    assert_string_equal(qkv_site_name(QKV_SITE_##id), name);                                       \
    assert_string_equal(qkv_site_shape(QKV_SITE_##id), shape);                                     \
    assert_string_equal(qkv_site_description(QKV_SITE_##id), what);                                \
    assert_int_equal(qkv_site_by_name(name), QKV_SITE_##id);

static void test_sites(void **state) {
    (void)state;
    QKV_SITE_LIST(SITE_CHECK)
}

#define REDUCTION_CHECK(id, name, what)                                                            \
    assert_string_equal(qkv_reduction_name(QKV_REDUCTION_##id), name);                             \
    assert_string_equal(qkv_reduction_description(QKV_REDUCTION_##id), what);

static void test_reductions(void **state) {
    (void)state;
    QKV_REDUCTION_LIST(REDUCTION_CHECK)
}

#define STATUS_CHECK(name, value, text)                                                            \
    assert_string_equal(qkv_status_name(index, &status), "QKV_" #name);                            \
    assert_int_equal(status, value);                                                               \
    assert_string_equal(qkv_status_text(status), text);                                            \
    index++;

static void test_statuses(void **state) {
    (void)state;
    size_t index = 0;
    int status = 1;
    QKV_STATUS_LIST(STATUS_CHECK)
    assert_null(qkv_status_name(index, &status));
}

/* Names in order, then the end. */
static void expect_names(const char *(*name)(size_t), const char *const *names) {
    size_t i = 0;
    for (; names[i]; i++) assert_string_equal(name(i), names[i]);
    assert_null(name(i));
}
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *scale_name(size_t index) {
    return qkv_scale_name((qkv_scale)index);
}

static const char *kind_name(size_t index) {
    return qkv_figure_kind_name((qkv_figure_kind)index);
}

static const char *scope_name(size_t index) {
    return qkv_metric_scope_name((qkv_metric_scope)index);
}

static void test_names(void **state) {
    (void)state;
    expect_names(qkv_op_name, NAMES("scale", "set", "zero", "add", "remove", "mean", "noise",
                                    "clamp", "patch", "mask", "keep", "quant", "freeze", "custom"));
    expect_names(scale_name, NAMES("linear", "log", "power"));
    expect_names(kind_name, NAMES("modify", "mean", "grid", "heads", "rows", "pattern"));
    expect_names(scope_name, NAMES("head", "layer", "variant", "prompt set"));
    expect_names(qkv_grid_format, NAMES("png", "svg", "pdf"));
    expect_names(qkv_store_format, NAMES("safetensors", "json", "npz", "npy"));
    expect_names(qkv_figure_format,
                 NAMES("png", "svg", "pdf", "md", "html", "json", "safetensors", "npz", "csv"));
    expect_names(qkv_synthetic_shape_name, NAMES("gpt2-124m", "smollm-135m", "llama-1b"));
}

static void test_texts(void **state) {
    (void)state;
    size_t n = 0;
    for (; qkv_op_name(n); n++) {
        assert_true(qkv_op_arguments(n)[0] != '\0' && qkv_op_description(n)[0] != '\0');
    }
    assert_null(qkv_op_arguments(n));
    assert_null(qkv_op_description(n));
    assert_string_equal(qkv_family_name(0), "llama");
    for (n = 0; qkv_family_name(n); n++) {
        for (size_t k = 0; k < n; k++)
            assert_string_not_equal(qkv_family_name(k), qkv_family_name(n));
    }
    assert_true(n > 20);
    for (n = 0; qkv_metric_get(n); n++)
        assert_ptr_equal(qkv_metric_find(qkv_metric_get(n)->name), qkv_metric_get(n));
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),    cmocka_unit_test(test_sites),
        cmocka_unit_test(test_reductions), cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
