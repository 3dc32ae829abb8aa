/*
 * Converting Hugging Face directories: what comes out must be the GGUF file that llama.cpp's
 * converter made of the same weights, key by key and bit by bit.
 */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/model.h"
#include "model/synthetic.h"
#include "qkv/convert.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

#define VECTORS QKV_TEST_SOURCE_DIR "/vectors/"

/* Keys that say what the converter leaves to a default, or cannot say. */
static const char *const extra_keys[] = {".vocab_size",
                                         ".rope.dimension_count",
                                         ".rope.freq_base",
                                         "llama.attention.sliding_window",
                                         "exaone4.attention.sliding_window_used",
                                         "llama4.attention.chunk_size",
                                         "llama4.attention.temperature_scale",
                                         "llama4.attention.temperature_length",
                                         NULL};
/* Keys of heads that are not converted, and of a norm that the model does not have. */
static const char *const left_out[] = {".classifier.pooling_type", ".classifier.activation",
                                       "modern-bert.attention.layer_norm_rms_epsilon", NULL};
/* The converter writes 2048 whatever the config says; and the width of the model where it says nothing. */
static const char *const other_keys[] = {"falcon.context_length", "bloom.context_length", NULL};

static int ends_in(const char *name, const char *const *list) {
    for (; *list; list++) {
        const size_t n = strlen(*list), length = strlen(name);
        if (length >= n && strcmp(name + length - n, *list) == 0) return 1;
    }
    return 0;
}

/* Names, descriptions, sizes; the tokenizer has tests of its own. */
static int is_about_numbers(const char *key) {
    return strncmp(key, "general.", 8) != 0 && !strstr(key, "tokenizer.");
}

static void check_key(const struct gguf_context *a, int64_t i, const struct gguf_context *b) {
    const char *key = gguf_get_key(a, i);
    const int64_t k = gguf_find_key(b, key);
    if (k < 0) fail_msg("%s is missing", key);
    if (gguf_get_kv_type(a, i) != gguf_get_kv_type(b, k)) fail_msg("%s has another type", key);
    if (ends_in(key, other_keys)) return;
    if (gguf_get_kv_type(a, i) == GGUF_TYPE_STRING) {
        assert_string_equal(gguf_get_val_str(a, i), gguf_get_val_str(b, k));
        return;
    }
    const int is_list = gguf_get_kv_type(a, i) == GGUF_TYPE_ARRAY;
    const enum gguf_type type = is_list ? gguf_get_arr_type(a, i) : gguf_get_kv_type(a, i);
    const size_t n = is_list ? gguf_get_arr_n(a, i) : 1, size = type == GGUF_TYPE_BOOL ? 1 : 4;
    if (is_list && (gguf_get_arr_type(b, k) != type || gguf_get_arr_n(b, k) != n))
        fail_msg("%s is another list", key);
    const void *expected = is_list ? gguf_get_arr_data(a, i) : gguf_get_val_data(a, i);
    if (memcmp(expected, is_list ? gguf_get_arr_data(b, k) : gguf_get_val_data(b, k), n * size) !=
        0)
        fail_msg("%s has another value", key);
}

static void check_keys(const qkv_gguf *expected, const qkv_gguf *actual) {
    const struct gguf_context *a = expected->parts[0].header, *b = actual->parts[0].header;
    for (int64_t i = 0; i < gguf_get_n_kv(a); i++) {
        const char *key = gguf_get_key(a, i);
        if (is_about_numbers(key) && !ends_in(key, left_out)) check_key(a, i, b);
    }
    for (int64_t i = 0; i < gguf_get_n_kv(b); i++) {
        const char *key = gguf_get_key(b, i);
        if (is_about_numbers(key) && gguf_find_key(a, key) < 0 && !ends_in(key, extra_keys))
            fail_msg("%s should not be there", key);
    }
}

/* Of a tensor that is made when it is needed, what is made. */
static int has_numbers_of(const qkv_gguf_tensor *t, const qkv_gguf_tensor *u) {
    void *made = t->data ? NULL : malloc(t->size);
    if (!t->data) {
        assert_non_null(made);
        qkv_gguf_load(t, made);
    }
    const int same = memcmp(made ? made : t->data, u->data, t->size) == 0;
    free(made);
    return same;
}

static void check_tensors(const qkv_gguf *expected, const qkv_gguf *actual) {
    assert_int_equal(expected->n_tensors, actual->n_tensors);
    for (size_t i = 0; i < expected->n_tensors; i++) {
        const qkv_gguf_tensor *t = &expected->tensors[i];
        qkv_gguf_tensor u;
        if (!qkv_gguf_find_tensor(actual, t->name, &u)) fail_msg("%s is missing", t->name);
        assert_int_equal(t->type, u.type);
        if (memcmp(t->ne, u.ne, sizeof u.ne) != 0) fail_msg("%s has another shape", t->name);
        assert_int_equal(t->size, u.size);
        if (!has_numbers_of(t, &u)) fail_msg("%s has other numbers", t->name);
    }
}

static qkv_gguf *open_gguf(const char *path) {
    qkv_error err;
    qkv_gguf *file = NULL;
    expect_ok(qkv_model_file_open(&file, path, &err), &err, path);
    return file;
}

static void convert(const char *from, const char *to, const qkv_convert_options *options) {
    qkv_error err;
    expect_ok(qkv_model_convert(from, to, options, &err), &err, from);
}

/* Where llama.cpp has no such model there is no file to compare with: then what is written must be what the
 * directory is opened as. */
static void check_family(const char *name, const char *directory, unsigned flags) {
    char from[512], made[512];
    const char *to = scratch_path("converted.gguf");
    const qkv_convert_options options = {.size = sizeof(qkv_convert_options), .type = "f32"};
    snprintf(from, sizeof from, VECTORS "%s/%s", name, directory);
    snprintf(made, sizeof made, VECTORS "%s/%s", name, flags & HAS_GGUF ? "model.gguf" : directory);
    convert(from, to, &options);
    qkv_gguf *expected = open_gguf(made), *actual = open_gguf(to);
    check_keys(expected, actual);
    check_tensors(expected, actual);
    qkv_gguf_free(expected);
    qkv_gguf_free(actual);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void convert_##name(void **state) {                                                     \
        (void)state;                                                                               \
        check_family(#name, "hf", flags);                                                          \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

static void convert_parts(void **state) {
    (void)state;
    check_family("llama_gqa", "hf-sharded", HAS_GGUF);
}

static void convert_bf16(void **state) {
    (void)state;
    check_family("qwen3", "hf-bf16", HAS_GGUF);
}

/* ---- types ---- */

typedef struct notes {
    int count;
    char last[256];
} notes;

static void take_note(void *user, const char *line) {
    notes *n = user;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", line);
}

/* Without a type, matrices stay as they are and the rest becomes F32. */
static void as_stored(void **state) {
    (void)state;
    const char *to = scratch_path("stored.gguf");
    convert(VECTORS "qwen3/hf-bf16", to, NULL);
    qkv_gguf *file = open_gguf(to);
    for (size_t i = 0; i < file->n_tensors; i++) {
        const qkv_gguf_tensor *t = &file->tensors[i];
        assert_int_equal(t->type, t->ne[1] > 1 ? GGML_TYPE_BF16 : GGML_TYPE_F32);
    }
    qkv_gguf_free(file);
}

/* Rows of 48 do not divide into blocks of 32, those of 64 do; neither into blocks of 256. */
static void falls_back(void **state) {
    (void)state;
    notes n = {0};
    const qkv_convert_options options = {
        .size = sizeof(qkv_convert_options), .type = "Q4_k", .note = take_note, .user = &n};
    const char *to = scratch_path("fallback.gguf");
    convert(VECTORS "llama/hf", to, &options);
    assert_int_equal(n.count, 23);
    assert_non_null(strstr(n.last, "q4_K's blocks of 256"));
    qkv_gguf *file = open_gguf(to);
    qkv_gguf_tensor t;
    assert_true(qkv_gguf_find_tensor(file, "blk.0.ffn_down.weight", &t));
    assert_int_equal(t.type, GGML_TYPE_Q5_0);
    assert_true(qkv_gguf_find_tensor(file, "blk.0.attn_q.weight", &t));
    assert_int_equal(t.type, GGML_TYPE_F16);
    assert_true(qkv_gguf_find_tensor(file, "blk.0.attn_norm.weight", &t));
    assert_int_equal(t.type, GGML_TYPE_F32);
    qkv_gguf_free(file);
}

/* A GGUF file in another type: every row as ggml quantises it. */
static void quantises_rows(void **state) {
    (void)state;
    qkv_error err;
    char from[512], to[512];
    snprintf(from, sizeof from, "%s", scratch_path("plain.gguf"));
    snprintf(to, sizeof to, "%s", scratch_path("q6.gguf"));
    expect_ok(qkv_synthetic_write(from, "1,4,2,256,512,300", "f32", 1, &err), &err, from);
    convert(from, to, &(qkv_convert_options){.size = sizeof(qkv_convert_options), .type = "q6_K"});
    qkv_gguf *a = open_gguf(from), *b = open_gguf(to);
    qkv_gguf_tensor t, u;
    assert_true(qkv_gguf_find_tensor(a, "blk.0.ffn_down.weight", &t));
    assert_true(qkv_gguf_find_tensor(b, "blk.0.ffn_down.weight", &u));
    assert_int_equal(u.type, GGML_TYPE_Q6_K);
    void *wanted = malloc(u.size);
    assert_non_null(wanted);
    ggml_quantize_chunk(GGML_TYPE_Q6_K, (const float *)(const void *)t.data, wanted, 0, t.ne[1],
                        t.ne[0], NULL);
    assert_memory_equal(wanted, u.data, u.size);
    free(wanted);
    qkv_gguf_free(a);
    qkv_gguf_free(b);
}

static void copy_json(const char *from, const char *name, const char *without) {
    json_t *json = json_load_file(from, 0, NULL);
    assert_non_null(json);
    json_t *tokens = json_object_get(json_object_get(json, "model"), "vocab");
    if (without) assert_int_equal(json_object_del(tokens, without), 0);
    json_t *merges = json_object_get(json_object_get(json, "model"), "merges");
    if (without) json_array_remove(merges, json_array_size(merges) - 1);
    assert_int_equal(json_dump_file(json, scratch_path(name), 0), 0);
    json_decref(json);
}

/* A row of the embedding that no token belongs to gets one: llama.cpp counts them. */
static void pads_tokens(void **state) {
    (void)state;
    const char *last = NULL;
    json_t *json = json_load_file(VECTORS "llama/hf/tokenizer.json", 0, NULL), *id;
    const char *name;
    json_object_foreach(json_object_get(json_object_get(json, "model"), "vocab"), name, id) {
        if (json_integer_value(id) == 139) last = name;
    }
    assert_non_null(last);
    copy_json(VECTORS "llama/hf/config.json", "config.json", NULL);
    copy_json(VECTORS "llama/hf/tokenizer.json", "tokenizer.json", last);
    json_decref(json);
    assert_int_equal(
        symlink(VECTORS "llama/hf/model.safetensors", scratch_path("model.safetensors")), 0);
    const char *to = scratch_path("padded.gguf");
    convert(scratch_path(""), to, NULL);
    qkv_gguf *file = open_gguf(to);
    const struct gguf_context *header = file->parts[0].header;
    const int64_t tokens = gguf_find_key(header, "tokenizer.ggml.tokens");
    assert_int_equal(gguf_get_arr_n(header, tokens), 140);
    assert_string_equal(gguf_get_arr_str(header, tokens, 139), "[PAD139]");
    qkv_gguf_free(file);
}

static void refuses_types(void **state) {
    (void)state;
    static const char *const bad[][2] = {{"iq2_xs", "importance matrix"}, {"q99", "not a type"}};
    for (size_t i = 0; i < 2; i++) {
        qkv_error err;
        const qkv_convert_options options = {.size = sizeof(qkv_convert_options),
                                             .type = bad[i][0]};
        const char *to = scratch_path("never.gguf");
        assert_true(qkv_model_convert(VECTORS "llama/hf", to, &options, &err) < 0);
        assert_non_null(strstr(err.message, bad[i][1]));
        FILE *file = fopen(to, "rb");
        assert_null(file);
    }
}

int main(void) {
#define FAMILY_ENTRY(name, flags) cmocka_unit_test(convert_##name),
    const struct CMUnitTest tests[] = {
        VECTOR_LIST(FAMILY_ENTRY) cmocka_unit_test(convert_parts),
        cmocka_unit_test(convert_bf16),
        cmocka_unit_test(as_stored),
        cmocka_unit_test(falls_back),
        cmocka_unit_test(quantises_rows),
        cmocka_unit_test(pads_tokens),
        cmocka_unit_test(refuses_types),
    };
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
