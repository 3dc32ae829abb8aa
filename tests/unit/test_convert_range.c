/*
 * Values that a type cannot hold are not written as infinite: converting says which tensor has them,
 * and leaves no file behind.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "qkv/convert.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

#define TENSOR "blk.0.ffn_up.weight"

/* A model with one large weight. */
static const char *model_with(float value) {
    tiny_file file;
    tiny_build(&file, &(tiny_options){.family = "llama", .seed = 3});
    float *weights = ggml_get_tensor(file.tensors, TENSOR)->data;
    weights[5] = -value;
    const char *path = tiny_save(&file, "large.gguf");
    tiny_free(&file);
    return path;
}

static void converted(float value, const char *type, int fits) {
    const char *out = scratch_path("out.gguf");
    qkv_error err = {0};
    char written[64];
    snprintf(written, sizeof written, "%g", (double)value);
    const qkv_convert_options options = {.size = sizeof(qkv_convert_options), .type = type};
    const int status = qkv_model_convert(model_with(value), out, &options, &err);
    if (fits) {
        expect_ok(status, &err, type);
    } else {
        assert_int_equal(status, QKV_ERR_NUMERIC);
        if (!strstr(err.message, TENSOR) || !strstr(err.message, written) ||
            !strstr(err.message, type))
            fail_msg("'%s' does not say what is wrong", err.message);
    }
    assert_int_equal(access(out, F_OK) == 0, fits);
    unlink(out);
}

static void too_large(void **state) {
    (void)state;
    converted(65504, "f16", 1);
    converted(70000, "f16", 0);
    converted(70000, "bf16", 1);
    converted(70000, "f32", 1);
    converted(70000, "q8_0", 1); /* the scale of a block is a 127th */
    converted(1e8f, "q8_0", 0);
    converted(1e8f, "q4_0", 0);
    converted(1e8f, "iq4_nl", 0);
    converted(3.4e38f, "bf16", 0);
    converted(3.4e38f, "f32", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(too_large)};
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
