/* Checkpoints of llama2.c: every weight in its place, the tokenizer, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "format/gguf_file.h"
#include "model/llama2c.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "tokenizer/vocab.h"

enum { WIDTH = 8, FF = 12, LAYERS = 2, HEADS = 4, KV_HEADS = 2, VOCAB = 263, CONTEXT = 16 };
enum { HEAD = WIDTH / HEADS, KV = HEAD * KV_HEADS };

static const qkv_llama2c_facts facts = {
    .name = "small", .licence = "mit", .source = "npm:small@1.0.0"};

/* ---- the files ---- */

static size_t n_weights(int own_output) {
    const size_t layer = 2 * WIDTH + 2 * WIDTH * WIDTH + 2 * WIDTH * KV + 3 * WIDTH * FF;
    return VOCAB * WIDTH * (own_output ? 2 : 1) + LAYERS * layer + WIDTH + CONTEXT * HEAD;
}

/* Every weight is its own place. Returns the directory. */
static const char *write_checkpoint(int own_output) {
    const int32_t header[] = {WIDTH,  FF, LAYERS, HEADS, KV_HEADS, own_output ? -VOCAB : VOCAB,
                              CONTEXT};
    const size_t n = n_weights(own_output), size = sizeof header + n * sizeof(float);
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, header, sizeof header);
    for (size_t i = 0; i < n; i++) {
        const float value = (float)i;
        memcpy(bytes + sizeof header + i * sizeof value, &value, sizeof value);
    }
    scratch_write(QKV_LLAMA2C_CHECKPOINT, bytes, size);
    free(bytes);
    return scratch_path("");
}

static void append_token(qkv_text *out, float score, const char *text, int32_t length) {
    qkv_text_append(out, (const char *)&score, sizeof score);
    qkv_text_append(out, (const char *)&length, sizeof length);
    qkv_text_append(out, text, (size_t)length);
}

static void write_tokenizer(void) {
    static const char *const words[] = {" a", "b", " ab", " "};
    qkv_text out = {0};
    const int32_t longest = 7;
    qkv_text_append(&out, (const char *)&longest, sizeof longest);
    append_token(&out, 0, "<unk>", 5);
    append_token(&out, 0, "\n<s>\n", 5);
    append_token(&out, 0, "\n</s>\n", 6);
    for (int i = 0; i < 256; i++) append_token(&out, 0, "\0", 1);
    for (int i = 0; i < 4; i++) append_token(&out, (float)-i, words[i], (int32_t)strlen(words[i]));
    scratch_write(QKV_LLAMA2C_TOKENIZER, out.data, out.length);
    qkv_text_release(&out);
}

/* ---- what becomes of them ---- */

static size_t check_tensor(const qkv_gguf *file, const char *name, int64_t columns, int64_t rows,
                           size_t at) {
    qkv_gguf_tensor t;
    if (!qkv_gguf_find_tensor(file, name, &t)) fail_msg("there is no %s", name);
    assert_int_equal(t.type, GGML_TYPE_F32);
    assert_int_equal(t.ne[0], columns);
    assert_int_equal(t.ne[1], rows);
    const size_t n = (size_t)(columns * rows);
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, t.data + i * sizeof value, sizeof value);
        if (value != (float)(at + i)) fail_msg("%s: %zu is %g", name, i, (double)value);
    }
    return at + n;
}

static void check_tensors(const char *path, int own_output) {
    static const struct {
        const char *name;
        int64_t columns, rows;
    } kinds[] = {{"attn_norm", WIDTH, 1}, {"attn_q", WIDTH, WIDTH},      {"attn_k", WIDTH, KV},
                 {"attn_v", WIDTH, KV},   {"attn_output", WIDTH, WIDTH}, {"ffn_norm", WIDTH, 1},
                 {"ffn_gate", WIDTH, FF}, {"ffn_down", FF, WIDTH},       {"ffn_up", WIDTH, FF}};
    qkv_gguf *file = NULL;
    qkv_error err = {0};
    expect_ok(qkv_gguf_open(&file, path, &err), &err, path);
    size_t at = check_tensor(file, "token_embd.weight", WIDTH, VOCAB, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (int il = 0; il < LAYERS; il++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", il, kinds[i].name);
            at = check_tensor(file, name, kinds[i].columns, kinds[i].rows, at);
        }
    }
    at = check_tensor(file, "output_norm.weight", WIDTH, 1, at) + (size_t)CONTEXT * HEAD;
    if (own_output) at = check_tensor(file, "output.weight", WIDTH, VOCAB, at);
    assert_int_equal(at, n_weights(own_output));
    assert_int_equal(qkv_gguf_n_tensors(file), 9 * LAYERS + 2 + (own_output ? 1 : 0));

    const char *text = NULL;
    assert_int_equal(qkv_gguf_string(file, "general.license", &text, &err), 1);
    assert_string_equal(text, "mit");
    assert_int_equal(qkv_gguf_string(file, "general.source.url", &text, &err), 1);
    assert_string_equal(text, "npm:small@1.0.0");
    qkv_gguf_free(file);
}

static void check_tokens(const qkv_model *model, const char *text, const int32_t *expected,
                         size_t n) {
    int32_t *tokens = NULL;
    size_t count = 0;
    qkv_error err = {0};
    expect_ok(
        qkv_tokenize(model, &tokens, &count, text, strlen(text), QKV_TOKENIZE_ADD_SPECIAL, &err),
        &err, text);
    assert_int_equal(count, n);
    assert_memory_equal(tokens, expected, n * sizeof *tokens);
    qkv_tokens_free(tokens);
}

static void check_model(const char *path, int own_output) {
    static const int32_t words[] = {1, 261, 260}, bytes[] = {1, 262, 3 + 'x'};
    qkv_model *model = NULL;
    qkv_error err = {0};
    expect_ok(qkv_model_open(&model, path, &err), &err, path);
    const qkv_model_info *info = qkv_model_get_info(model);
    assert_string_equal(info->name, "small");
    assert_int_equal(info->n_layer, LAYERS);
    assert_int_equal(info->n_head, HEADS);
    assert_int_equal(info->n_kv_head, KV_HEADS);
    assert_int_equal(info->n_ctx, CONTEXT);
    assert_int_equal(info->tied_output, !own_output);
    check_tokens(model, "abb", words, 3);
    check_tokens(model, "x", bytes, 3);
    qkv_model_free(model);
}

static void test_weights(void **state) {
    (void)state;
    for (int own_output = 0; own_output < 2; own_output++) {
        qkv_error err = {0};
        const char *dir = write_checkpoint(own_output), *path = scratch_path("out.gguf");
        write_tokenizer();
        expect_ok(qkv_llama2c_convert(dir, path, &facts, NULL, &err), &err, "convert");
        check_tensors(path, own_output);
        check_model(path, own_output);
    }
}

/* ---- what is refused ---- */

static void refuse(const char *part) {
    qkv_error err = {0};
    remove(scratch_path("bad.gguf"));
    assert_int_equal(
        qkv_llama2c_convert(scratch_path(""), scratch_path("bad.gguf"), &facts, NULL, &err),
        QKV_ERR_FORMAT);
    if (!strstr(err.message, part)) fail_msg("%s", err.message);
    assert_int_equal(remove(scratch_path("bad.gguf")), -1);
}

/* Changes the length of a file, or a number in it, and puts it back. */
static void refuse_changed(const char *name, size_t at, int32_t number, const char *part) {
    static char whole[1 << 20];
    FILE *file = fopen(scratch_path(name), "rb");
    assert_non_null(file);
    const size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    char *changed = malloc(size + 4);
    assert_non_null(changed);
    memcpy(changed, whole, size);
    memcpy(changed + (at < size ? at : 0), at < size ? (const void *)&number : whole, 4);
    scratch_write(name, changed, at == size ? size - 1 : at > size ? size + 4 : size);
    refuse(part);
    scratch_write(name, whole, size);
    free(changed);
}

static void test_bad_files(void **state) {
    (void)state;
    const size_t size = 28 + n_weights(0) * sizeof(float);
    static const int32_t bad[] = {0, -1, INT32_MAX};
    write_checkpoint(0);
    write_tokenizer();
    for (size_t field = 0; field < 7; field++) {
        for (size_t i = 0; i < 3; i++) {
            if (field == 5 && i) continue; /* the vocabulary may be negative */
            refuse_changed(QKV_LLAMA2C_CHECKPOINT, 4 * field, bad[i], "no model has");
        }
    }
    refuse_changed(QKV_LLAMA2C_CHECKPOINT, 4 * 3, 3, "no model has"); /* heads do not divide */
    refuse_changed(QKV_LLAMA2C_CHECKPOINT, 4 * 2, LAYERS + 1, "too short");
    refuse_changed(QKV_LLAMA2C_CHECKPOINT, 4 * 5, -VOCAB, "too short");
    refuse_changed(QKV_LLAMA2C_CHECKPOINT, 4 * 2, LAYERS - 1, "bytes too many");
    refuse_changed(QKV_LLAMA2C_CHECKPOINT, 4 * 5, INT32_MIN, "no model has");
    refuse_changed(QKV_LLAMA2C_CHECKPOINT, size, 0, "too short");
    refuse_changed(QKV_LLAMA2C_CHECKPOINT, size + 1, 0, "bytes too many");
    refuse_changed(QKV_LLAMA2C_TOKENIZER, 8, INT32_MAX, "not a tokenizer");
    refuse_changed(QKV_LLAMA2C_TOKENIZER, 8, 4, "not a tokenizer");
    refuse_changed(QKV_LLAMA2C_TOKENIZER, 8, -1, "not a tokenizer");
    scratch_write(QKV_LLAMA2C_TOKENIZER, "\7\0\0\0", 4);
    refuse("too short");
    scratch_write(QKV_LLAMA2C_CHECKPOINT, "abc", 3);
    refuse("too short");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_bad_files)};
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
