/* Calls that must refuse their arguments, in tests that have a global `err`. */
#ifndef QKV_TESTS_SUPPORT_REFUSED_H
#define QKV_TESTS_SUPPORT_REFUSED_H

#include "support/engine.h"

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        err = (qkv_error){0};                                                                      \
        assert_int_equal(call, QKV_ERR_ARGUMENT);                                                  \
        assert_int_equal(err.status, QKV_ERR_ARGUMENT);                                            \
        assert_true(err.message[0] != '\0');                                                       \
    } while (0)

#define OK(call) expect_ok(call, &err, #call)

#endif
