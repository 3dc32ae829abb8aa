/*
 * Models with random weights: that the engine takes them in every type, that a seed gives the same
 * bytes again, that weights are distributed as promised, and that impossible ones are refused with
 * nothing left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf.h"
#include "model/family/family.h"
#include "model/synthetic.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"

#define SHAPE "2,4,2,256,512,300"

static const char *make(const char *name, const char *shape, const char *type, uint64_t seed) {
    qkv_error err = {0};
    const char *path = scratch_path(name);
    expect_ok(qkv_synthetic_write(path, shape, type, seed, &err), &err, "writing a model");
    return path;
}

static void check_runs(const char *path) {
    static const int32_t tokens[] = {1, 12, 15, 7};
    engine e;
    engine_open(&e, path, 1);
    const int has_logits = e.info->has_logits;
    const char *const captures[] = {has_logits ? "logits" : "resid_post", NULL};
    const engine_run run = {tokens, 4, NULL, captures, NULL};
    qkv_result *result = engine_execute(&e, &run); /* which refuses what is not finite */
    const qkv_tensor output =
        engine_tensor(result, 0, has_logits ? QKV_SITE_LOGITS : QKV_SITE_RESID_POST, 0);
    assert_int_equal(tensor_count(&output), 4 * (has_logits ? e.info->n_vocab : e.info->n_embd));
    qkv_result_free(result);
    engine_close(&e);
}

static void test_facts(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_model *model = NULL;
    const char *path = make("facts.gguf", "3,8,2,64,96,300,777", "f16", 1);
    expect_ok(qkv_model_open(&model, path, &err), &err, "opening it");
    const qkv_model_info *info = qkv_model_get_info(model);
    assert_string_equal(info->architecture, "llama");
    assert_int_equal(info->n_layer, 3);
    assert_int_equal(info->n_head, 8);
    assert_int_equal(info->n_kv_head, 2);
    assert_int_equal(info->n_embd, 64);
    assert_int_equal(info->n_ff, 96);
    assert_int_equal(info->n_vocab, 300);
    assert_int_equal(info->n_ctx, 777);
    assert_int_equal(info->tied_output, 1);
    assert_string_equal(info->tokenizer, "none");
    qkv_model_free(model);
}

/* Every type that ggml knows is either written and read, or refused. */
static void test_types(void **state) {
    (void)state;
    int written = 0;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const char *type = ggml_type_name((enum ggml_type)i);
        /* For these, ggml computes tables that take it many seconds. */
        if (!type || strncmp(type, "iq1", 3) == 0 || strncmp(type, "iq2_s", 5) == 0 ||
            strncmp(type, "iq3", 3) == 0) {
            continue;
        }
        qkv_error err = {0};
        const char *path = scratch_path("type.gguf");
        if (qkv_synthetic_write(path, "1,2,1,256,256,16", type, 1, &err) != QKV_OK) {
            assert_true(err.message[0] != '\0');
            continue;
        }
        check_runs(path);
        written++;
    }
    assert_true(written >= 18);
}

/* Shapes do not say which layers have a linear mixer. */
static void expect_no_mixers(const char *shape) {
    qkv_error err = {0};
    assert_int_equal(qkv_synthetic_write(scratch_path("mixer.gguf"), shape, "f32", 1, &err),
                     QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "without attention"));
}

static void test_families(void **state) {
    (void)state;
    char shape[64];
    int n = 0;
    for (const qkv_family *family; (family = qkv_family_get(n)) != NULL; n++) {
        snprintf(shape, sizeof shape, "%s:2,4,2,64,128,300", family->name);
        if (family->mixer != QKV_MIXER_NONE) {
            expect_no_mixers(shape);
            continue;
        }
        check_runs(make("family.gguf", shape, n % 2 ? "f32" : "Q8_0", 1));
    }
    assert_true(n >= 21);
}

static int same_files(const char *a, const char *b) {
    size_t n, m;
    char *x = slurp(a, &n), *y = slurp(b, &m);
    const int same = n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

static void test_seed(void **state) {
    (void)state;
    const char *one = make("one.gguf", SHAPE, "q4_0", 1);
    assert_true(same_files(one, make("again.gguf", SHAPE, "q4_0", 1)));
    assert_false(same_files(one, make("other.gguf", SHAPE, "q4_0", 2)));
}

static void check_moments(const float *x, int64_t n, double mean, double deviation) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    for (int64_t i = 0; i < n; i++) squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    assert_true(fabs(sum / (double)n - mean) < 3e-4);
    assert_true(fabs(sqrt(squares / (double)n) - deviation) < 2e-4);
}

static void test_distribution(void **state) {
    (void)state;
    const char *path = make("moments.gguf", SHAPE, "f32", 1);
    struct ggml_context *tensors = NULL;
    struct gguf_context *gguf =
        gguf_init_from_file(path, (struct gguf_init_params){false, &tensors});
    assert_non_null(gguf);
    const struct ggml_tensor *q = ggml_get_tensor(tensors, "blk.0.attn_q.weight");
    const struct ggml_tensor *o = ggml_get_tensor(tensors, "blk.0.attn_output.weight");
    const struct ggml_tensor *norm = ggml_get_tensor(tensors, "blk.1.ffn_norm.weight");
    check_moments(q->data, ggml_nelements(q), 0, 0.02);
    check_moments(norm->data, ggml_nelements(norm), 1, 0);
    assert_memory_not_equal(q->data, o->data, 1024); /* tensors differ */
    gguf_free(gguf);
    ggml_free(tensors);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *shape, *type, *message;
    } cases[] = {
        {"no-such-shape", "f32", "is not a shape"},
        {"2,4,2,64,128", "f32", "is not a shape"},
        {"2,4,2,64,128,300,64,1", "f32", "is not a shape"},
        {"2,4,2,64,,300", "f32", "is not a shape"},
        {"", "f32", "is not a shape"},
        {"0,4,2,64,128,300", "f32", "layers must be 1 to"},
        {"2,4,3,64,128,300", "f32", "share 3 key/value heads evenly"},
        {"2,4,2,36,128,300", "f32", "even number of channels"},
        {"mamba:2,4,2,64,128,300", "f32", "no family 'mamba'"},
        {"lama:2,4,2,64,128,300", "f32", "did you mean 'llama'"},
        {"2,4,2,64,128,300", "f33", "is not a type"},
        {"2,4,2,64,128,300", "q8_1", "is not a type"},
        {"2,4,2,64,128,300", "q4_k", "blocks of 256"},
        {"2,4,2,256,512,300", "iq2_xs", "importance matrix"},
    };
    const char *path = scratch_path("refused.gguf");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_error err = {0};
        assert_int_not_equal(qkv_synthetic_write(path, cases[i].shape, cases[i].type, 1, &err), 0);
        if (!strstr(err.message, cases[i].message))
            fail_msg("'%s' should say '%s'", err.message, cases[i].message);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

static void test_full_disk(void **state) {
    (void)state;
    qkv_error err = {0};
    assert_int_equal(qkv_synthetic_write("/dev/full", SHAPE, "f32", 1, &err), QKV_ERR_IO);
    assert_non_null(strstr(err.message, "cannot write /dev/full"));
    assert_int_equal(qkv_synthetic_write("/no/such/place.gguf", SHAPE, "f32", 1, &err), QKV_ERR_IO);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(qkv_synthetic_shape_name(0), "gpt2-124m");
    assert_string_equal(qkv_synthetic_shape_name(1), "smollm-135m");
    assert_string_equal(qkv_synthetic_shape_name(2), "llama-1b");
    assert_null(qkv_synthetic_shape_name(3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),        cmocka_unit_test(test_types),
        cmocka_unit_test(test_families),     cmocka_unit_test(test_seed),
        cmocka_unit_test(test_distribution), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_full_disk),    cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
