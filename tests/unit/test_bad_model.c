/*
 * Files that are not models, are not whole, or are damaged; and prompts that a model cannot take.
 * The library answers with one clear line and hands out nothing; it never crashes. Whole files with
 * wrong keys, and the parts of split files, are in test_bad_model_keys.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/refusals.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

typedef struct bytes {
    unsigned char *data;
    size_t size;
    size_t header; /* where the tensors' data begins */
} bytes;

static bytes read_model(const tiny_options *options) {
    bytes b = {0};
    char *data = NULL;
    tiny_file file;
    tiny_build(&file, options);
    const char *path = tiny_save(&file, "whole.gguf");
    b.header = gguf_get_meta_size(file.gguf);
    tiny_free(&file);
    assert_int_equal(qkv_read_file(&data, &b.size, path, (size_t)1 << 24, NULL), QKV_OK);
    b.data = (unsigned char *)data;
    return b;
}

/* ---- refusals ---- */

static void refuse_bytes(const void *data, size_t size, const char *word) {
    refuse_model(scratch_write("bad.gguf", data, size), word);
}

static void not_there_or_not_a_file(void **state) {
    (void)state;
    refuse_model("/nonexistent/model.gguf", "/nonexistent/model.gguf");
    refuse_model("/tmp", "/tmp");
    refuse_model("", NULL);
    refuse_bytes("", 0, "bad.gguf");
    refuse_bytes("GGUF", 4, "bad.gguf");
    refuse_bytes("hello, this is text and not a model\n", 36, "GGUF");
}

static void truncated_anywhere(void **state) {
    (void)state;
    bytes b = read_model(&smallest_model);
    dice d = {21};
    for (size_t n = 0; n < b.header; n += n < 400 ? 1 : 37) refuse_bytes(b.data, n, "bad.gguf");
    for (int i = 0; i < 100; i++)
        refuse_bytes(b.data, (size_t)dice_below(&d, b.size - 32), "bad.gguf");
    refuse_bytes(b.data, b.size - 40, "bad.gguf");
    free(b.data);
}

/* Offsets of a GGUF header: magic 0, version 4, number of tensors 8, number of keys 16. */
static void put_u32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static void put_u64(unsigned char *at, uint64_t value) {
    put_u32(at, (uint32_t)value);
    put_u32(at + 4, (uint32_t)(value >> 32));
}

static void broken_header(void **state) {
    (void)state;
    static const uint64_t counts[] = {0,         1,          7,          1u << 20,  UINT32_MAX,
                                      INT64_MAX, 1ull << 40, UINT64_MAX, 1ull << 63};
    bytes b = read_model(&smallest_model);
    unsigned char kept[24];
    memcpy(kept, b.data, sizeof kept);
    memcpy(b.data, "GGML", 4);
    refuse_bytes(b.data, b.size, "GGUF");
    memcpy(b.data, "FUGG", 4);
    refuse_bytes(b.data, b.size, "GGUF");
    memcpy(b.data, kept, sizeof kept);
    for (uint32_t version = 0; version < 8; version++) {
        put_u32(b.data + 4, version);
        if (version != 2 && version != 3) refuse_bytes(b.data, b.size, "version");
    }
    put_u32(b.data + 4, 999);
    refuse_bytes(b.data, b.size, "999");
    memcpy(b.data, kept, sizeof kept);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t at = 8; at <= 16; at += 8) {
            memcpy(b.data, kept, sizeof kept);
            put_u64(b.data + at, counts[i]);
            refuse_bytes(b.data, b.size, "bad.gguf");
        }
    free(b.data);
}

/* Where the description of a tensor begins, just after its name. */
static unsigned char *find_tensor(const bytes *b, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 8; i + length < b->header; i++)
        if (memcmp(b->data + i, name, length) == 0 && b->data[i - 8] == length)
            return b->data + i + length;
    fail_msg("no tensor %s", name);
    return NULL;
}

/* After the name: dimensions (u32), sizes (u64 each), type (u32), offset (u64). */
static void broken_tensor_descriptions(void **state) {
    (void)state;
    static const char *const name = "blk.0.attn_q.weight";
    static const struct {
        size_t at;
        uint64_t value;
        int width;
    } wrong[] = {
        {0, 0, 4},           {0, 5, 4},          {0, UINT32_MAX, 4},  {4, 0, 8},
        {4, UINT64_MAX, 8},  {4, 1ull << 62, 8}, {12, 1ull << 40, 8}, {12, INT64_MAX, 8},
        {20, 9999, 4},       {20, 4, 4},         {20, 24, 4},         {24, UINT64_MAX - 31, 8},
        {24, 1ull << 40, 8}, {24, 7, 8},         {20, UINT32_MAX, 4}, {12, (uint64_t)-16, 8},
    };
    bytes b = read_model(&smallest_model);
    unsigned char *at = find_tensor(&b, name), kept[32];
    memcpy(kept, at, sizeof kept);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(at, kept, sizeof kept);
        if (wrong[i].width == 4)
            put_u32(at + wrong[i].at, (uint32_t)wrong[i].value);
        else
            put_u64(at + wrong[i].at, wrong[i].value);
        refuse_bytes(b.data, b.size, "bad.gguf");
    }
    free(b.data);
}

static void duplicate_names(void **state) {
    (void)state;
    bytes b = read_model(&smallest_model);
    replace_bytes(b.data, b.header, "blk.0.attn_k.weight", "blk.0.attn_q.weight");
    refuse_bytes(b.data, b.size, "blk.0.attn_q.weight");
    free(b.data);
    b = read_model(&smallest_model);
    replace_bytes(b.data, b.header, "llama.rope.freq_base", "llama.context_length");
    refuse_bytes(b.data, b.size, "llama.context_length");
    free(b.data);
}

static void missing_or_wrong_tensors(void **state) {
    (void)state;
    static const char *const names[] = {
        "token_embd.weight",        "output_norm.weight",   "blk.0.attn_norm.weight",
        "blk.0.attn_q.weight",      "blk.0.attn_k.weight",  "blk.0.attn_v.weight",
        "blk.0.attn_output.weight", "blk.0.ffn_up.weight",  "blk.0.ffn_gate.weight",
        "blk.0.ffn_down.weight",    "blk.0.ffn_norm.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tiny_options o = smallest_model;
        o.omitted = names[i];
        refuse_model(tiny_model(&o, "bad.gguf"), names[i]);
        o.omitted = NULL;
        o.misshapen = names[i];
        if (i != 0) refuse_model(tiny_model(&o, "bad.gguf"), names[i]);
        o.misshapen = NULL;
        o.mistyped = names[i];
        refuse_model(tiny_model(&o, "bad.gguf"), names[i]);
    }
    static const char *const optional[] = {"blk.0.attn_q.bias", "blk.0.attn_output.bias",
                                           "output.weight", "rope_freqs.weight"};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        tiny_options o = smallest_model;
        o.qkv_bias = o.out_bias = o.untied = 1;
        o.rope = TINY_ROPE_LLAMA3;
        o.misshapen = optional[i];
        refuse_model(tiny_model(&o, "bad.gguf"), optional[i]);
    }
    static const char *const gpt2[] = {"position_embd.weight", "blk.0.attn_qkv.weight",
                                       "blk.0.attn_qkv.bias", "output_norm.bias"};
    for (size_t i = 0; i < sizeof gpt2 / sizeof *gpt2; i++) {
        const tiny_options o = {"gpt2", .omitted = gpt2[i]};
        refuse_model(tiny_model(&o, "bad.gguf"), gpt2[i]);
    }
}

/* ---- random damage ---- */

static const int32_t some_tokens[] = {1, 5, 9};

/* Opens, and runs where that succeeds; everything may fail, nothing may crash. */
static int survive(const char *path) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    const qkv_session_options options = {.size = sizeof(qkv_session_options), .n_threads = 1};
    int status = qkv_model_open(&model, path, &err);
    if (status == QKV_OK) status = qkv_plan_new(&plan, model, some_tokens, 3, &err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "pattern@*", &err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "logits", &err);
    if (status == QKV_OK) status = qkv_plan_add_variant(plan, "k@0.h0=mean:head", NULL, &err);
    if (status == QKV_OK) status = qkv_session_new(&session, model, &options, &err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, &err);
    if (status != QKV_OK) assert_true(err.status == status && err.message[0] != '\0');
    qkv_result_free(result);
    qkv_session_free(session);
    qkv_plan_free(plan);
    qkv_model_free(model);
    return status;
}

static void random_damage(void **state) {
    (void)state;
    enum { ROUNDS = 3000 };
    bytes b = read_model(&smallest_model);
    dice d = {33};
    int survived = 0;
    unsigned char *copy = malloc(b.size);
    assert_non_null(copy);
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(copy, b.data, b.size);
        const uint64_t reach = i % 8 == 0 ? b.size : b.header;
        for (uint64_t n = 1 + dice_below(&d, 3); n > 0; n--) {
            unsigned char *at = copy + dice_below(&d, reach);
            *at = dice_below(&d, 2) ? (unsigned char)(*at ^ 1u << dice_below(&d, 8))
                                    : (unsigned char)dice_u64(&d);
        }
        survived += survive(scratch_write("damaged.gguf", copy, b.size)) == QKV_OK;
    }
    print_message("%d of %d damaged files still gave a result\n", survived, ROUNDS);
    assert_true(survived > 0 && survived < ROUNDS);
    free(copy);
    free(b.data);
}

/* ---- prompts ---- */

static void refuse_tokens(const engine *e, const int32_t *tokens, size_t n, const char *word) {
    qkv_error err = {0};
    qkv_plan *plan = (qkv_plan *)&err;
    const int status = qkv_plan_new(&plan, e->model, tokens, n, &err);
    assert_int_not_equal(status, QKV_OK);
    assert_null(plan);
    if (!strstr(err.message, word)) fail_msg("'%s' does not mention '%s'", err.message, word);
}

static void prompts_that_do_not_fit(void **state) {
    (void)state;
    engine e;
    engine_open(&e, tiny_model(&smallest_model, "good.gguf"), 1);
    int32_t tokens[17] = {1};
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    refuse_tokens(&e, tokens, 0, "empty");
    refuse_tokens(&e, NULL, 0, "empty");
    refuse_tokens(&e, tokens, 17, "16");
    expect_ok(qkv_plan_new(&plan, e.model, tokens, 16, &err), &err, "16 tokens");
    qkv_plan_free(plan);
    tokens[2] = TINY_VOCAB;
    refuse_tokens(&e, tokens, 5, "262");
    tokens[2] = -1;
    refuse_tokens(&e, tokens, 5, "-1");
    tokens[2] = INT32_MIN;
    refuse_tokens(&e, tokens, 5, "-2147483648");
    tokens[2] = TINY_VOCAB - 1;
    expect_ok(qkv_plan_new(&plan, e.model, tokens, 5, &err), &err, "the last token");
    qkv_plan_free(plan);
    engine_close(&e);
    qkv_model_free(NULL);
    qkv_session_free(NULL);
    qkv_plan_free(NULL);
    qkv_result_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_there_or_not_a_file), cmocka_unit_test(truncated_anywhere),
        cmocka_unit_test(broken_header),           cmocka_unit_test(broken_tensor_descriptions),
        cmocka_unit_test(duplicate_names),         cmocka_unit_test(missing_or_wrong_tensors),
        cmocka_unit_test(random_damage),           cmocka_unit_test(prompts_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
