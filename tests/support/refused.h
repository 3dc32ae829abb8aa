/* Calls that must refuse their arguments, in tests that have a global `err`. */
#ifndef QKV_TESTS_SUPPORT_REFUSED_H
#define QKV_TESTS_SUPPORT_REFUSED_H

#include <string.h>

#include "support/engine.h"

/* A message that names a function names the one that was called. */
static inline void expect_caller(const char *message, const char *call) {
    const size_t length = strcspn(call, "(");
    if (strncmp(message, "qkv_", 4) != 0 || !strstr(message, " was given")) return;
    if (strncmp(message, call, length) != 0 || message[length] != ':')
        fail_msg("%s: %s", call, message);
}

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        err = (qkv_error){0};                                                                      \
        assert_int_equal(call, QKV_ERR_ARGUMENT);                                                  \
        assert_int_equal(err.status, QKV_ERR_ARGUMENT);                                            \
        assert_true(err.message[0] != '\0');                                                       \
        expect_caller(err.message, #call);                                                         \
    } while (0)

#define OK(call) expect_ok(call, &err, #call)

#endif
