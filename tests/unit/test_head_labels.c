/* Labels of heads by their thresholds: the first that is reached, at it and not below. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "study/head_labels.h"

static double scores[HEAD_BEHAVIOURS], thresholds[HEAD_BEHAVIOURS];

static int start(void **state) {
    (void)state;
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) {
        scores[i] = 0;
        thresholds[i] = qkv_head_behaviours[i].threshold;
    }
    return 0;
}

static void none(void **state) {
    (void)state;
    assert_int_equal(qkv_head_label(scores, thresholds), -1);
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) scores[i] = (double)NAN;
    assert_int_equal(qkv_head_label(scores, thresholds), -1);
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) scores[i] = nextafter(thresholds[i], 0);
    assert_int_equal(qkv_head_label(scores, thresholds), -1);
}

static void each(void **state) {
    (void)state;
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) {
        scores[i] = thresholds[i];
        assert_int_equal(qkv_head_label(scores, thresholds), i);
        scores[i] = 0;
    }
}

/* An induction head that rests on the first token of texts is one. */
static void first_comes_first(void **state) {
    (void)state;
    scores[HEAD_SINK] = 1;
    scores[HEAD_INDUCTION] = 0.5;
    assert_int_equal(qkv_head_label(scores, thresholds), HEAD_INDUCTION);
    thresholds[HEAD_INDUCTION] = 0.6;
    assert_int_equal(qkv_head_label(scores, thresholds), HEAD_SINK);
}

/* Letters tell labels apart. */
static void letters(void **state) {
    (void)state;
    for (int i = 0; i < HEAD_BEHAVIOURS; i++) {
        for (int k = 0; k < i; k++)
            assert_string_not_equal(qkv_head_behaviours[i].letter, qkv_head_behaviours[k].letter);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(none, start),
        cmocka_unit_test_setup(each, start),
        cmocka_unit_test_setup(first_comes_first, start),
        cmocka_unit_test_setup(letters, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
