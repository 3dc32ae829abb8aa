/*
 * Weights in every type of ggml: a quantised file gives, bit for bit, what an F32 file with the same
 * dequantised values gives. On every family's reference model, whose rows fit the types with small
 * blocks, and on a model with rows of 256 for all the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml.h"
#include "gguf.h"
#include "model/synthetic.h"
#include "qkv/convert.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

/* scratch_path's own text is used again after some calls, and there are many here. */
static void keep_path(char out[512], const char *name) {
    snprintf(out, 512, "%s", scratch_path(name));
}

static void convert(const char *from, const char *to, const char *type) {
    qkv_error err = {0};
    const qkv_convert_options options = {.size = sizeof(qkv_convert_options), .type = type};
    expect_ok(qkv_model_convert(from, to, &options, &err), &err, type);
}

static qkv_result *run(engine *e) {
    static const int32_t tokens[] = {1, 12, 15, 7, 12, 15};
    const char *const output = e->info->has_logits ? "logits" : "resid_post";
    return engine_execute(e, &(engine_run){tokens, 6, (const char *const[]){"q@1=scale:0.5", NULL},
                                           (const char *const[]){"pattern", output, NULL}, NULL});
}

static void check_tensor(const qkv_result *a, const qkv_result *b, qkv_site site, int layer,
                         const char *what) {
    for (size_t v = 0; v < 2; v++) {
        const qkv_tensor x = engine_tensor(a, v, site, layer), y = engine_tensor(b, v, site, layer);
        assert_int_equal(tensor_count(&x), tensor_count(&y));
        if (!same_bits(x.data, y.data, tensor_count(&x)))
            fail_msg("%s: %s of layer %d differs from the F32 file's", what, qkv_site_name(site),
                     layer);
    }
}

/* The file, against itself turned into F32. */
static void check_file(const char *path, const char *what) {
    engine e, plain;
    const char *dense = scratch_path("dense.gguf");
    convert(path, dense, "f32");
    engine_open(&e, path, 1);
    engine_open(&plain, dense, 1);
    assert_string_equal(plain.info->tensor_types, strchr(plain.info->tensor_types, 'f'));
    assert_null(strchr(plain.info->tensor_types, ',')); /* one type: F32 */
    qkv_result *a = run(&e), *b = run(&plain);
    const int last = e.info->n_layer - 1;
    check_tensor(a, b, QKV_SITE_PATTERN, last, what);
    if (e.info->has_logits)
        check_tensor(a, b, QKV_SITE_LOGITS, 0, what);
    else
        check_tensor(a, b, QKV_SITE_RESID_POST, last, what);
    qkv_result_free(a);
    qkv_result_free(b);
    engine_close(&e);
    engine_close(&plain);
}

/* Rows that do not fit a type's blocks get another one: every file has several. */
static void every_family(void **state) {
    (void)state;
    static const char *const types[] = {"f16", "bf16", "q8_0", "q4_0", "iq4_nl", "q4_K"};
    char path[512];
    keep_path(path, "family.gguf");
#define FAMILY_FOLDER(name, flags) #name,
    static const char *const models[] = {VECTOR_LIST(FAMILY_FOLDER)};
#undef FAMILY_FOLDER
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            convert(vector_model(models[m]), path, types[t]);
            check_file(path, models[m]);
        }
    }
}

/* Turns the matrices of an F32 file into a type, with every value equally important, which is what
 * the smallest types want to be told. */
static void quantise(const char *from, const char *to, enum ggml_type type) {
    struct ggml_context *ctx = NULL;
    struct gguf_context *file =
        gguf_init_from_file(from, (struct gguf_init_params){.no_alloc = false, .ctx = &ctx});
    struct gguf_context *made = gguf_init_empty();
    assert_non_null(file);
    gguf_set_kv(made, file);
    float importance[1024];
    for (int i = 0; i < 1024; i++) importance[i] = 1;
    for (int64_t i = 0; i < gguf_get_n_tensors(file); i++) {
        const char *name = gguf_get_tensor_name(file, i);
        struct ggml_tensor *t = ggml_get_tensor(ctx, name);
        gguf_add_tensor(made, t);
        if (t->ne[1] == 1 || strcmp(name, "token_embd.weight") == 0) continue;
        void *encoded = malloc(ggml_nbytes(t));
        assert_non_null(encoded);
        ggml_quantize_chunk(type, t->data, encoded, 0, t->ne[1], t->ne[0], importance);
        memcpy(t->data, encoded, ggml_row_size(type, t->ne[0]) * (size_t)t->ne[1]);
        free(encoded);
        gguf_set_tensor_type(made, name, type);
        gguf_set_tensor_data(made, name, t->data);
    }
    assert_true(gguf_write_to_file(made, to, false));
    gguf_free(made);
    gguf_free(file);
    ggml_free(ctx);
}

static void every_type(void **state) {
    (void)state;
    qkv_error err = {0};
    char plain[512], path[512];
    keep_path(plain, "plain.gguf");
    keep_path(path, "typed.gguf");
    expect_ok(qkv_synthetic_write(plain, "2,2,1,256,256,16", "f32", 1, &err), &err, "writing");
    int n = 0;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const enum ggml_type type = (enum ggml_type)i;
        const struct ggml_type_traits *traits = ggml_get_type_traits(type);
        if (!traits->type_name || !traits->to_float || type == GGML_TYPE_Q8_1) continue;
        quantise(plain, path, type);
        check_file(path, traits->type_name);
        n++;
    }
    ggml_quantize_free();
    print_message("%d types\n", n);
    assert_true(n >= 25);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_family),
                                       cmocka_unit_test(every_type)};
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
