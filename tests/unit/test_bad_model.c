/*
 * Files that are not models, or not whole, or not sane; and prompts that a model cannot take. The
 * library answers with one clear line and hands out nothing; it never crashes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static const tiny_options smallest = {.family = "llama",
                                      .n_layer = 1,
                                      .n_embd = 16,
                                      .n_head = 2,
                                      .n_kv_head = 1,
                                      .head_dim = 8,
                                      .n_ff = 16,
                                      .n_ctx = 16,
                                      .seed = 9};

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

/* Opening must fail with one line that names the file and has the word (NULL: any). */
static void refuse_path(const char *path, const char *word) {
    qkv_error err = {0};
    qkv_model *model = (qkv_model *)&err; /* anything but NULL */
    const int status = qkv_model_open(&model, path, &err);
    if (status == QKV_OK) fail_msg("%s was opened, it should be refused (%s)", path, word);
    assert_null(model);
    assert_int_equal(err.status, status);
    if (err.message[0] == '\0' || strchr(err.message, '\n'))
        fail_msg("not one line: '%s'", err.message);
    if (word && !strstr(err.message, word))
        fail_msg("'%s' does not mention '%s'", err.message, word);
    assert_int_equal(qkv_model_open(&model, path, NULL), status);
}

static void refuse_bytes(const void *data, size_t size, const char *word) {
    refuse_path(scratch_write("bad.gguf", data, size), word);
}

static void not_there_or_not_a_file(void **state) {
    (void)state;
    refuse_path("/nonexistent/model.gguf", "/nonexistent/model.gguf");
    refuse_path("/tmp", "/tmp");
    refuse_path("", NULL);
    refuse_bytes("", 0, "bad.gguf");
    refuse_bytes("GGUF", 4, "bad.gguf");
    refuse_bytes("hello, this is text and not a model\n", 36, "GGUF");
}

static void truncated_anywhere(void **state) {
    (void)state;
    bytes b = read_model(&smallest);
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
    bytes b = read_model(&smallest);
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

/* Where the description of a tensor begins, just behind its name. */
static unsigned char *find_tensor(const bytes *b, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 8; i + length < b->header; i++)
        if (memcmp(b->data + i, name, length) == 0 && b->data[i - 8] == length)
            return b->data + i + length;
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Behind the name: dimensions (u32), sizes (u64 each), type (u32), offset (u64). */
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
    bytes b = read_model(&smallest);
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

/* Replaces a text by another one as long, wherever it stands in the file. */
static void rename_in(unsigned char *data, size_t size, const char *from, const char *to) {
    const size_t length = strlen(from);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(data + i, from, length) == 0) memcpy(data + i, to, length);
}

static void duplicate_names(void **state) {
    (void)state;
    bytes b = read_model(&smallest);
    rename_in(b.data, b.header, "blk.0.attn_k.weight", "blk.0.attn_q.weight");
    refuse_bytes(b.data, b.size, "blk.0.attn_q.weight");
    free(b.data);
    b = read_model(&smallest);
    rename_in(b.data, b.header, "llama.rope.freq_base", "llama.context_length");
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
        tiny_options o = smallest;
        o.omitted = names[i];
        refuse_path(tiny_model(&o, "bad.gguf"), names[i]);
        o.omitted = NULL;
        o.misshapen = names[i];
        if (i != 0) refuse_path(tiny_model(&o, "bad.gguf"), names[i]);
        o.misshapen = NULL;
        o.mistyped = names[i];
        refuse_path(tiny_model(&o, "bad.gguf"), names[i]);
    }
    static const char *const optional[] = {"blk.0.attn_q.bias", "blk.0.attn_output.bias",
                                           "output.weight", "rope_freqs.weight"};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        tiny_options o = smallest;
        o.qkv_bias = o.out_bias = o.untied = 1;
        o.rope = TINY_ROPE_LLAMA3;
        o.misshapen = optional[i];
        refuse_path(tiny_model(&o, "bad.gguf"), optional[i]);
    }
    static const char *const gpt2[] = {"position_embd.weight", "blk.0.attn_qkv.weight",
                                       "blk.0.attn_qkv.bias", "output_norm.bias"};
    for (size_t i = 0; i < sizeof gpt2 / sizeof *gpt2; i++) {
        const tiny_options o = {"gpt2", .omitted = gpt2[i]};
        refuse_path(tiny_model(&o, "bad.gguf"), gpt2[i]);
    }
}

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
    tiny_build(&file, &smallest);
    gguf_remove_key(file.gguf, key);
    if (c->type == U32) gguf_set_val_u32(file.gguf, key, (uint32_t)c->number);
    if (c->type == F32) gguf_set_val_f32(file.gguf, key, (float)c->number);
    if (c->type == STR) gguf_set_val_str(file.gguf, key, c->text);
    const char *path = tiny_save(&file, "bad.gguf");
    tiny_free(&file);
    if (!odd) return path;
    assert_int_equal(qkv_read_file(&data, &size, path, (size_t)1 << 24, NULL), QKV_OK);
    rename_in((unsigned char *)data, size, stand_in, alignment);
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
    tiny_build(&file, &smallest);
    gguf_set_arr_str(file.gguf, "tokenizer.ggml.tokens", tokens, 3);
    gguf_set_arr_data(file.gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, 3);
    refuse_path(tiny_save(&file, "bad.gguf"), "token");
    tiny_free(&file);
    tiny_build(&file, &smallest);
    gguf_set_arr_data(file.gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, 3);
    refuse_path(tiny_save(&file, "bad.gguf"), "token_type");
    tiny_free(&file);
}

/* ---- split files ---- */

static void split_with_a_part_missing(void **state) {
    (void)state;
    tiny_file file;
    tiny_build(&file, &smallest);
    gguf_set_val_u16(file.gguf, "split.no", 0);
    gguf_set_val_u16(file.gguf, "split.count", 3);
    gguf_set_val_i32(file.gguf, "split.tensors.count", 36);
    const char *path = tiny_save(&file, "part-00001-of-00003.gguf");
    tiny_free(&file);
    refuse_path(path, "part-00002-of-00003.gguf");
}

/* The second part is another model's, then the first once more, then no model at all. */
static void split_with_a_wrong_part(void **state) {
    (void)state;
    tiny_options longer = smallest;
    tiny_file file;
    longer.n_layer = 2;
    tiny_build(&file, &longer);
    tiny_save_split(&file, "other");
    tiny_free(&file);
    tiny_build(&file, &smallest);
    const char *first = tiny_save_split(&file, "part");
    tiny_free(&file);
    const char *second = scratch_path("part-00002-of-00002.gguf");
    assert_int_equal(rename(scratch_path("other-00002-of-00002.gguf"), second), 0);
    refuse_path(first, NULL);
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(qkv_read_file(&data, &size, first, (size_t)1 << 24, NULL), QKV_OK);
    scratch_write("part-00002-of-00002.gguf", data, size);
    free(data);
    refuse_path(first, NULL);
    scratch_write("part-00002-of-00002.gguf", "GGUF", 4);
    refuse_path(first, "part-00002-of-00002.gguf");
}

/* Numbers that cannot be meant make an ordinary name; those that can be are believed only where the
 * file says the same. */
static void split_names(void **state) {
    (void)state;
    static const char *const plain[] = {"m-00001-of-00000.gguf", "m-00000-of-00002.gguf",
                                        "m-00003-of-00002.gguf", "m-00001-of-99999.gguf",
                                        "m-0001a-of-00002.gguf", "m-+0001-of-00002.gguf"};
    tiny_file file;
    tiny_build(&file, &smallest);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        qkv_model *model = NULL;
        qkv_error err = {0};
        expect_ok(qkv_model_open(&model, tiny_save(&file, plain[i]), &err), &err, plain[i]);
        assert_int_equal(qkv_model_get_info(model)->n_files, 1);
        qkv_model_free(model);
    }
    refuse_path(tiny_save(&file, "m-00001-of-00900.gguf"), "its name says 900");
    gguf_set_val_u16(file.gguf, "split.count", 900);
    gguf_set_val_u16(file.gguf, "split.no", 4);
    refuse_path(tiny_save(&file, "m-00001-of-00900.gguf"), "part 5 of its model, not 1");
    gguf_set_val_u16(file.gguf, "split.no", 0);
    refuse_path(tiny_save(&file, "m-00001-of-00900.gguf"), "m-00002-of-00900.gguf");
    tiny_free(&file);
}

/* ---- many and long keys ---- */

/* ggml compares each key with each other one: neither many nor long ones reach it. */
static void long_keys(void **state) {
    (void)state;
    char key[300];
    tiny_file file;
    tiny_build(&file, &smallest);
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
    refuse_path(tiny_save(&file, "keys.gguf"), "has 257 bytes");
    tiny_free(&file);
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
    bytes b = read_model(&smallest);
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
    engine_open(&e, tiny_model(&smallest, "good.gguf"), 1);
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
        cmocka_unit_test(not_there_or_not_a_file),
        cmocka_unit_test(truncated_anywhere),
        cmocka_unit_test(broken_header),
        cmocka_unit_test(broken_tensor_descriptions),
        cmocka_unit_test(duplicate_names),
        cmocka_unit_test(missing_or_wrong_tensors),
        cmocka_unit_test(absurd_keys),
        cmocka_unit_test(vocabulary_of_another_size),
        cmocka_unit_test(split_with_a_part_missing),
        cmocka_unit_test(split_with_a_wrong_part),
        cmocka_unit_test(split_names),
        cmocka_unit_test(long_keys),
        cmocka_unit_test(random_damage),
        cmocka_unit_test(prompts_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
