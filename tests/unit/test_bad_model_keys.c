/*
 * Well-formed files whose keys cannot be: absurd numbers, a vocabulary of another size, keys too
 * long, and split models with a part that is missing, wrong or wrongly named. Each is refused with
 * one line that names the key or the file. Damaged files are in test_bad_model.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/engine.h"
#include "support/refusals.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

/* ---- keys ---- */

typedef struct key_case {
    const char *key;
    enum gguf_type type; /* COUNT: the key is removed */
    double number;
    const char *text;
    const char *word;
} key_case;

#define U32 GGUF_TYPE_UINT32
#define F32 GGUF_TYPE_FLOAT32
#define GONE GGUF_TYPE_COUNT
#define STR GGUF_TYPE_STRING
static const key_case key_cases[] = {
    {"general.architecture", GONE, 0, NULL, "general.architecture"},
    {"general.architecture", STR, 0, "abacus", "abacus"},
    {"general.architecture", STR, 0, "", "architecture"},
    {"general.architecture", U32, 3, NULL, "general.architecture"},
    {"llama.block_count", GONE, 0, NULL, "llama.block_count"},
    {"llama.block_count", U32, 0, NULL, "llama.block_count"},
    {"llama.block_count", U32, 2, NULL, "blk.1"},
    {"llama.block_count", U32, 1e9, NULL, "llama.block_count"},
    {"llama.block_count", U32, 4294967295.0, NULL, "llama.block_count"},
    {"llama.block_count", STR, 0, "one", "llama.block_count"},
    {"llama.block_count", F32, 1.5, NULL, "llama.block_count"},
    {"llama.embedding_length", GONE, 0, NULL, "llama.embedding_length"},
    {"llama.embedding_length", U32, 0, NULL, "llama.embedding_length"},
    {"llama.embedding_length", U32, 17, NULL, NULL},
    {"llama.embedding_length", U32, 4e9, NULL, NULL},
    {"llama.feed_forward_length", GONE, 0, NULL, "llama.feed_forward_length"},
    {"llama.feed_forward_length", U32, 0, NULL, NULL},
    {"llama.feed_forward_length", U32, 15, NULL, NULL},
    {"llama.context_length", U32, 0, NULL, "llama.context_length"},
    {"llama.attention.head_count", GONE, 0, NULL, "llama.attention.head_count"},
    {"llama.attention.head_count", U32, 0, NULL, "llama.attention.head_count"},
    {"llama.attention.head_count", U32, 3, NULL, NULL},
    {"llama.attention.head_count", U32, 4e9, NULL, NULL},
    {"llama.attention.head_count_kv", U32, 0, NULL, "head_count_kv"},
    {"llama.attention.head_count_kv", U32, 3, NULL, NULL},
    {"llama.attention.head_count_kv", U32, 2, NULL, NULL},
    {"llama.attention.key_length", U32, 0, NULL, "key_length"},
    {"llama.attention.key_length", U32, 7, NULL, NULL},
    {"llama.attention.key_length", U32, 4e9, NULL, NULL},
    {"llama.attention.value_length", U32, 5, NULL, NULL},
    {"llama.attention.layer_norm_rms_epsilon", GONE, 0, NULL, "epsilon"},
    {"llama.attention.layer_norm_rms_epsilon", F32, NAN, NULL, "epsilon"},
    {"llama.attention.layer_norm_rms_epsilon", F32, INFINITY, NULL, "epsilon"},
    {"llama.attention.layer_norm_rms_epsilon", F32, -1, NULL, "epsilon"},
    {"llama.rope.freq_base", F32, NAN, NULL, "freq_base"},
    {"llama.rope.freq_base", F32, 0, NULL, "freq_base"},
    {"llama.rope.freq_base", F32, -10, NULL, "freq_base"},
    {"llama.rope.dimension_count", U32, 7, NULL, "dimension_count"},
    {"llama.rope.dimension_count", U32, 16, NULL, "dimension_count"},
    {"llama.rope.dimension_count", U32, 4e9, NULL, "dimension_count"},
    {"llama.rope.scaling.type", STR, 0, "spiral", "spiral"},
    {"llama.rope.scaling.factor", F32, NAN, NULL, "factor"},
    {"llama.rope.scaling.factor", F32, -2, NULL, "factor"},
    {"llama.expert_count", U32, 8, NULL, NULL},
    {"general.alignment", U32, 0, NULL, NULL},
    {"general.alignment", U32, 3, NULL, NULL},
    {"tokenizer.ggml.bos_token_id", U32, TINY_VOCAB, NULL, "bos_token_id"},
    {"tokenizer.ggml.eos_token_id", U32, 4e9, NULL, "eos_token_id"},
    {"tokenizer.ggml.tokens", U32, 4, NULL, "tokenizer.ggml.tokens"},
    {"tokenizer.ggml.model", STR, 0, "runes", "runes"},
    {"split.count", U32, 3, NULL, NULL},
};

/* The writer itself refuses an odd alignment: it is written under another name first. */
static const char alignment[] = "general.alignment", stand_in[] = "general.alignmenT";

static const char *save_with_key(const key_case *c) {
    const int odd = strcmp(c->key, alignment) == 0;
    const char *key = odd ? stand_in : c->key;
    tiny_file file;
    char *data = NULL;
    size_t size = 0;
    tiny_build(&file, &smallest_model);
    gguf_remove_key(file.gguf, key);
    if (c->type == U32) gguf_set_val_u32(file.gguf, key, (uint32_t)c->number);
    if (c->type == F32) gguf_set_val_f32(file.gguf, key, (float)c->number);
    if (c->type == STR) gguf_set_val_str(file.gguf, key, c->text);
    const char *path = tiny_save(&file, "bad.gguf");
    tiny_free(&file);
    if (!odd) return path;
    assert_int_equal(qkv_read_file(&data, &size, path, (size_t)1 << 24, NULL), QKV_OK);
    replace_bytes((unsigned char *)data, size, stand_in, alignment);
    path = scratch_write("bad.gguf", data, size);
    free(data);
    return path;
}

static void absurd_keys(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof key_cases / sizeof *key_cases; i++) {
        const key_case *c = &key_cases[i];
        qkv_error err = {0};
        qkv_model *model = NULL;
        const int status = qkv_model_open(&model, save_with_key(c), &err);
        if (status == QKV_OK || model || (c->word && !strstr(err.message, c->word))) {
            print_error("%s = %g '%s': status %d, '%s' should mention '%s'\n", c->key, c->number,
                        c->text ? c->text : "", status, err.message, c->word ? c->word : "");
            wrong++;
        }
        qkv_model_free(model);
    }
    assert_int_equal(wrong, 0);
}

static void vocabulary_of_another_size(void **state) {
    (void)state;
    static const char *tokens[] = {"a", "b", "c"};
    static const int32_t types[] = {1, 1, 1};
    tiny_file file;
    tiny_build(&file, &smallest_model);
    gguf_set_arr_str(file.gguf, "tokenizer.ggml.tokens", tokens, 3);
    gguf_set_arr_data(file.gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, 3);
    refuse_model(tiny_save(&file, "bad.gguf"), "token");
    tiny_free(&file);
    tiny_build(&file, &smallest_model);
    gguf_set_arr_data(file.gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, 3);
    refuse_model(tiny_save(&file, "bad.gguf"), "token_type");
    tiny_free(&file);
}

/* ---- split files ---- */

static void split_with_a_part_missing(void **state) {
    (void)state;
    tiny_file file;
    tiny_build(&file, &smallest_model);
    gguf_set_val_u16(file.gguf, "split.no", 0);
    gguf_set_val_u16(file.gguf, "split.count", 3);
    gguf_set_val_i32(file.gguf, "split.tensors.count", 36);
    const char *path = tiny_save(&file, "part-00001-of-00003.gguf");
    tiny_free(&file);
    refuse_model(path, "part-00002-of-00003.gguf");
}

/* The second part is another model's, then the first once more, then no model at all. */
static void split_with_a_wrong_part(void **state) {
    (void)state;
    tiny_options longer = smallest_model;
    tiny_file file;
    longer.n_layer = 2;
    tiny_build(&file, &longer);
    tiny_save_split(&file, "other");
    tiny_free(&file);
    tiny_build(&file, &smallest_model);
    const char *first = tiny_save_split(&file, "part");
    tiny_free(&file);
    const char *second = scratch_path("part-00002-of-00002.gguf");
    assert_int_equal(rename(scratch_path("other-00002-of-00002.gguf"), second), 0);
    refuse_model(first, NULL);
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(qkv_read_file(&data, &size, first, (size_t)1 << 24, NULL), QKV_OK);
    scratch_write("part-00002-of-00002.gguf", data, size);
    free(data);
    refuse_model(first, NULL);
    scratch_write("part-00002-of-00002.gguf", "GGUF", 4);
    refuse_model(first, "part-00002-of-00002.gguf");
}

/* Numbers that cannot be meant make an ordinary name; those that can be are believed only where the
 * file says the same. */
static void split_names(void **state) {
    (void)state;
    static const char *const plain[] = {"m-00001-of-00000.gguf", "m-00000-of-00002.gguf",
                                        "m-00003-of-00002.gguf", "m-00001-of-99999.gguf",
                                        "m-0001a-of-00002.gguf", "m-+0001-of-00002.gguf"};
    tiny_file file;
    tiny_build(&file, &smallest_model);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        qkv_model *model = NULL;
        qkv_error err = {0};
        expect_ok(qkv_model_open(&model, tiny_save(&file, plain[i]), &err), &err, plain[i]);
        assert_int_equal(qkv_model_get_info(model)->n_files, 1);
        qkv_model_free(model);
    }
    refuse_model(tiny_save(&file, "m-00001-of-00900.gguf"), "its name says 900");
    gguf_set_val_u16(file.gguf, "split.count", 900);
    gguf_set_val_u16(file.gguf, "split.no", 4);
    refuse_model(tiny_save(&file, "m-00001-of-00900.gguf"), "part 5 of its model, not 1");
    gguf_set_val_u16(file.gguf, "split.no", 0);
    refuse_model(tiny_save(&file, "m-00001-of-00900.gguf"), "m-00002-of-00900.gguf");
    tiny_free(&file);
}

/* ---- many and long keys ---- */

/* ggml compares each key with each other one: neither many nor long ones reach it. */
static void long_keys(void **state) {
    (void)state;
    char key[300];
    tiny_file file;
    tiny_build(&file, &smallest_model);
    memset(key, 'k', sizeof key);
    key[256] = '\0';
    gguf_set_val_u32(file.gguf, key, 1);
    qkv_model *model = NULL;
    qkv_error err = {0};
    expect_ok(qkv_model_open(&model, tiny_save(&file, "keys.gguf"), &err), &err, "256 bytes");
    qkv_model_free(model);
    key[256] = 'k';
    key[257] = '\0';
    gguf_set_val_u32(file.gguf, key, 1);
    refuse_model(tiny_save(&file, "keys.gguf"), "has 257 bytes");
    tiny_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absurd_keys),
        cmocka_unit_test(vocabulary_of_another_size),
        cmocka_unit_test(split_with_a_part_missing),
        cmocka_unit_test(split_with_a_wrong_part),
        cmocka_unit_test(split_names),
        cmocka_unit_test(long_keys),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
