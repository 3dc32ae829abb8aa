/*
 * As test_arguments.c: NULL in place of each pointer, and what makes no sense. Here: models by name.
 */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "qkv/hub.h"
#include "support/refused.h"
#include "support/tree.h"

static qkv_error err;

static int enter(void **state) {
    setenv("HF_HUB_CACHE", "hub", 1);
    setenv("QKV_CACHE", "own", 1);
    return tree_enter(state);
}

static void test_find(void **state) {
    (void)state;
    qkv_model_place *place = NULL;
    REFUSED(qkv_model_find(NULL, "a/b", &err));
    REFUSED(qkv_model_find(&place, NULL, &err));
    REFUSED(qkv_model_find(&place, "", &err));
    assert_null(place);
    assert_int_equal(qkv_model_find(&place, "a/b", NULL), QKV_ERR_IO);
    assert_null(place);
    OK(qkv_model_find(&place, ".", &err));
    assert_string_equal(qkv_model_place_get_info(place)->path, ".");
    assert_string_equal(qkv_model_place_get_info(place)->commit, "");
    qkv_model_place_free(place);
    assert_null(qkv_model_place_get_info(NULL));
    qkv_model_place_free(NULL);
    assert_false(qkv_model_is_name(NULL));
    assert_false(qkv_model_is_name(""));
    assert_true(qkv_model_is_name("a/b@c:d"));
}

static void test_list(void **state) {
    (void)state;
    qkv_model_list *list = NULL;
    REFUSED(qkv_model_list_new(NULL, &err));
    tree_write("own/models/a/a.gguf", "a");
    OK(qkv_model_list_new(&list, &err));
    assert_int_equal(qkv_model_list_count(list), 1);
    assert_non_null(qkv_model_list_get(list, 0));
    assert_null(qkv_model_list_get(list, 1));
    assert_null(qkv_model_list_get(list, SIZE_MAX));
    assert_null(qkv_model_list_get(NULL, 0));
    assert_int_equal(qkv_model_list_count(NULL), 0);
    qkv_model_list_free(list);
    qkv_model_list_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), cmocka_unit_test(test_list)};
    return cmocka_run_group_tests(tests, enter, tree_leave);
}
