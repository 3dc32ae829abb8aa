/* Structs of callers that are older or newer than the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sized.h"

typedef struct known {
    size_t size;
    int32_t a, b;
} known;

typedef struct newer {
    known old;
    int32_t c, d;
} newer;

static void defaults_hold_without_a_struct(void **state) {
    (void)state;
    known to = {sizeof to, 7, 8};
    assert_int_equal(qkv_sized_read(&to, sizeof to, NULL, "known", NULL), QKV_OK);
    assert_int_equal(to.a, 7);
    assert_int_equal(to.b, 8);
}

static void an_older_caller_sets_what_it_knows(void **state) {
    (void)state;
    known to = {sizeof to, 7, 8};
    const known from = {offsetof(known, b), 1, 2};
    assert_int_equal(qkv_sized_read(&to, sizeof to, &from, "known", NULL), QKV_OK);
    assert_int_equal(to.a, 1);
    assert_int_equal(to.b, 8);
    assert_int_equal(to.size, sizeof to);
}

static void a_newer_caller_must_not_ask_for_what_is_unknown(void **state) {
    (void)state;
    qkv_error err = {0};
    known to = {sizeof to, 7, 8};
    newer from = {{sizeof from, 1, 2}, 0, 0};
    assert_int_equal(qkv_sized_read(&to, sizeof to, &from, "known", &err), QKV_OK);
    assert_int_equal(to.b, 2);
    from.d = 1;
    assert_int_equal(qkv_sized_read(&to, sizeof to, &from, "known", &err), QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "known sets a field"));
}

/* A caller's array has the caller's stride. */
static void items_of_a_list_are_as_far_apart_as_the_caller_says(void **state) {
    (void)state;
    qkv_error err = {0};
    known to = {sizeof to, 7, 8};
    newer list[] = {{{sizeof(newer), 1, 2}, 0, 0}, {{sizeof(newer), 3, 4}, 0, 0}};
    assert_int_equal(qkv_sized_read_item(&to, sizeof to, list, 1, "known", &err), QKV_OK);
    assert_int_equal(to.a, 3);
    assert_int_equal(to.b, 4);
    list[1].old.size = sizeof(known);
    assert_int_equal(qkv_sized_read_item(&to, sizeof to, list, 1, "known", &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "known 1 of a list"));
    list[0].old.size = 0;
    assert_int_equal(qkv_sized_read_item(&to, sizeof to, list, 1, "known", &err), QKV_ERR_ARGUMENT);
}

static void a_whole_list_becomes_one_of_ours(void **state) {
    (void)state;
    qkv_error err = {0};
    void *read = NULL;
    newer list[] = {{{sizeof(newer), 1, 2}, 0, 0}, {{sizeof(newer), 3, 4}, 0, 0}};
    assert_int_equal(qkv_sized_read_items(&read, sizeof(known), list, 2, "known", &err), QKV_OK);
    const known *copies = read;
    assert_true(copies[0].b == 2 && copies[1].a == 3 && copies[1].size == sizeof(known));
    free(read);
    list[1].d = 1;
    assert_int_equal(qkv_sized_read_items(&read, sizeof(known), list, 2, "known", &err),
                     QKV_ERR_UNSUPPORTED);
    assert_null(read);
    assert_int_equal(qkv_sized_read_items(&read, sizeof(known), NULL, 2, "known", &err),
                     QKV_ERR_ARGUMENT);
}

static void a_struct_without_its_initialiser_is_an_error(void **state) {
    (void)state;
    known to = {sizeof to, 7, 8}, from = {0, 1, 2};
    assert_int_equal(qkv_sized_read(&to, sizeof to, &from, "known", NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(to.a, 7);
    assert_int_equal(qkv_sized_write(&from, &to, sizeof to, "known", NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(from.a, 1);
}

static void only_the_callers_bytes_are_written(void **state) {
    (void)state;
    const known from = {sizeof from, 7, 8};
    known old = {offsetof(known, b), 0, 5};
    assert_int_equal(qkv_sized_write(&old, &from, sizeof from, "known", NULL), QKV_OK);
    assert_int_equal(old.a, 7);
    assert_int_equal(old.b, 5);
    newer wide = {{sizeof wide, 1, 2}, 3, 4};
    assert_int_equal(qkv_sized_write(&wide, &from, sizeof from, "known", NULL), QKV_OK);
    assert_int_equal(wide.old.b, 8);
    assert_int_equal(wide.c, 0);
    assert_int_equal(wide.old.size, sizeof wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_without_a_struct),
        cmocka_unit_test(an_older_caller_sets_what_it_knows),
        cmocka_unit_test(a_newer_caller_must_not_ask_for_what_is_unknown),
        cmocka_unit_test(items_of_a_list_are_as_far_apart_as_the_caller_says),
        cmocka_unit_test(a_whole_list_becomes_one_of_ours),
        cmocka_unit_test(a_struct_without_its_initialiser_is_an_error),
        cmocka_unit_test(only_the_callers_bytes_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
