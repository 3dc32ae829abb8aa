/*
 * Vocabularies made in memory: each rule of the metadata by itself, and every way in which metadata
 * can be wrong. A wrong vocabulary is refused with a message that names the file.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "gguf.h"
#include "qkv/model.h"
#include "tokenizer/vocab.h"

#define KEY(name) "tokenizer.ggml." name
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

/* ---- two small vocabularies ---- */

static const char *const bpe_tokens[] = {"<s>", "</s>", "a",   "b", "c",   "Ġ",
                                         "ab",  "Ġab",  "[x]", "",  "abc", "a"};
static const int32_t bpe_types[] = {CONTROL, CONTROL, NORMAL, NORMAL, NORMAL, NORMAL,
                                    NORMAL,  NORMAL,  USER,   NORMAL, NORMAL, NORMAL};
static const char *const bpe_merges[] = {"a b", "Ġ ab", "ab c"};

static struct gguf_context *new_bpe(void) {
    struct gguf_context *gguf = gguf_init_empty();
    gguf_set_val_str(gguf, KEY("model"), "gpt2");
    gguf_set_val_str(gguf, KEY("pre"), "gpt-2");
    gguf_set_arr_str(gguf, KEY("tokens"), (const char **)bpe_tokens, COUNT(bpe_tokens));
    gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, bpe_types, COUNT(bpe_types));
    gguf_set_arr_str(gguf, KEY("merges"), (const char **)bpe_merges, COUNT(bpe_merges));
    gguf_set_val_u32(gguf, KEY("bos_token_id"), 0);
    gguf_set_val_u32(gguf, KEY("eos_token_id"), 1);
    return gguf;
}

#define BLANK "\xe2\x96\x81"
static const char *const spm_tokens[] = {"<unk>",   "<s>", "</s>", BLANK,    "a",   "b",
                                         BLANK "a", "ab",  "aa",   "<0x63>", "[x]", "é"};
static const int32_t spm_types[] = {UNKNOWN, CONTROL, CONTROL, NORMAL, NORMAL, NORMAL,
                                    NORMAL,  NORMAL,  NORMAL,  BYTE,   USER,   NORMAL};
static const float spm_scores[] = {0, 0, 0, -1, -2, -3, -4, -5, -6, 0, 0, -7};

static struct gguf_context *new_spm(void) {
    struct gguf_context *gguf = gguf_init_empty();
    gguf_set_val_str(gguf, KEY("model"), "llama");
    gguf_set_arr_str(gguf, KEY("tokens"), (const char **)spm_tokens, COUNT(spm_tokens));
    gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, spm_types, COUNT(spm_types));
    gguf_set_arr_data(gguf, KEY("scores"), GGUF_TYPE_FLOAT32, spm_scores, COUNT(spm_scores));
    return gguf;
}

/* Takes the context over. */
static qkv_vocab *load(struct gguf_context *gguf) {
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    if (qkv_vocab_load(&vocab, gguf, "small.gguf", &err) != QKV_OK) fail_msg("%s", err.message);
    gguf_free(gguf);
    return vocab;
}

/* ---- what a vocabulary gives ---- */

static void expect_ids(const qkv_vocab *vocab, const char *text, unsigned flags,
                       const char *expected) {
    int32_t *ids = NULL;
    size_t n = 0;
    qkv_error err = {0};
    qkv_text got = {0};
    if (qkv_vocab_tokenize(vocab, &ids, &n, text, strlen(text), flags, &err) != QKV_OK)
        fail_msg("%s", err.message);
    qkv_text_puts(&got, "");
    for (size_t i = 0; i < n; i++) qkv_text_printf(&got, i ? " %d" : "%d", (int)ids[i]);
    assert_string_equal(got.data, expected);
    qkv_text_release(&got);
    free(ids);
}

static void expect_text(const qkv_vocab *vocab, const int32_t *ids, size_t n, int keep,
                        const char *expected) {
    char *text = NULL;
    size_t length = 0;
    assert_int_equal(qkv_vocab_detokenize(vocab, &text, &length, ids, n, keep, NULL), QKV_OK);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    free(text);
}

#define ADD QKV_TOKENIZE_ADD_SPECIAL
#define PARSE QKV_TOKENIZE_PARSE_SPECIAL

static void test_bpe(void **state) {
    (void)state;
    qkv_vocab *vocab = load(new_bpe());
    assert_string_equal(qkv_vocab_kind(vocab), "bpe (gpt-2)");
    assert_int_equal(qkv_vocab_size(vocab), COUNT(bpe_tokens));
    expect_ids(vocab, "", 0, "");
    expect_ids(vocab, "abc", 0, "10");
    expect_ids(vocab, " abc", 0, "7 4"); /* "Ġ ab" comes before "ab c" */
    expect_ids(vocab, "a", 0, "2");      /* the first of two equal tokens */
    expect_ids(vocab, "ab", ADD, "6");   /* no BOS unless the file says so */
    expect_ids(vocab, "<s>ab</s>", PARSE, "0 6 1");
    expect_ids(vocab, "a[x]b", 0, "2 8 3");
    const int32_t ids[] = {0, 6, 8, 7, 9, 1};
    expect_text(vocab, ids, COUNT(ids), 0, "ab[x] ab");
    expect_text(vocab, ids, COUNT(ids), 1, "<s>ab[x] ab</s>");
    expect_text(vocab, NULL, 0, 1, "");
    qkv_vocab_free(vocab);
}

static void test_bpe_rules(void **state) {
    (void)state;
    struct gguf_context *gguf = new_bpe();
    gguf_set_val_bool(gguf, KEY("add_bos_token"), true);
    gguf_set_val_bool(gguf, KEY("add_eos_token"), true);
    qkv_vocab *vocab = load(gguf);
    expect_ids(vocab, "", ADD, "0 1");
    expect_ids(vocab, "ab", ADD, "0 6 1");
    expect_ids(vocab, "ab", 0, "6");
    qkv_vocab_free(vocab);

    /* llama-bpe adds BOS by default, and takes whole words whatever the merges say. */
    gguf = new_bpe();
    gguf_set_val_str(gguf, KEY("pre"), "llama-bpe");
    gguf_set_arr_str(gguf, KEY("merges"), (const char **)bpe_merges, 1);
    vocab = load(gguf);
    expect_ids(vocab, "abc", ADD, "0 10");
    expect_ids(vocab, "abcc", 0, "6 4 4");
    qkv_vocab_free(vocab);

    gguf = new_bpe();
    gguf_set_val_str(gguf, KEY("pre"), "llama-bpe");
    gguf_set_val_bool(gguf, KEY("add_bos_token"), false);
    vocab = load(gguf);
    expect_ids(vocab, "abc", ADD, "10");
    qkv_vocab_free(vocab);
}

/* Without .pre the pre-tokeniser is `default`; without types, the ids named are control tokens. */
static void test_bpe_defaults(void **state) {
    (void)state;
    struct gguf_context *gguf = new_bpe();
    gguf_remove_key(gguf, KEY("pre"));
    gguf_remove_key(gguf, KEY("token_type"));
    qkv_vocab *vocab = load(gguf);
    assert_string_equal(qkv_vocab_kind(vocab), "bpe (default)");
    expect_ids(vocab, "<s>ab", PARSE, "0 6");
    qkv_vocab_free(vocab);
}

static void test_longest_special_first(void **state) {
    (void)state;
    const char *tokens[] = {"a", "<", "<a", "<a>", "<a>>", "b", "<a>b"};
    const int32_t types[] = {NORMAL, NORMAL, USER, CONTROL, USER, NORMAL, CONTROL};
    struct gguf_context *gguf = new_bpe();
    gguf_set_arr_str(gguf, KEY("tokens"), tokens, COUNT(tokens));
    gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, types, COUNT(types));
    gguf_remove_key(gguf, KEY("merges"));
    gguf_set_arr_str(gguf, KEY("merges"), NULL, 0);
    qkv_vocab *vocab = load(gguf);
    expect_ids(vocab, "<a>b<a>><a", PARSE, "6 4 2");
    expect_ids(vocab, "<a><b", PARSE, "3 1 5");
    expect_ids(vocab, "<ab", 0, "2 5");
    expect_ids(vocab, "<a>><b", 0, "4 1 5");
    qkv_vocab_free(vocab);
}

/* Of equal merges the first counts; of equal special tokens the one that always counts. */
static void test_repeated_entries(void **state) {
    (void)state;
    const char *tokens[] = {"a", "b", "c", "ab", "bc", "[y]", "[y]", "[y]"};
    const int32_t types[] = {NORMAL, NORMAL, NORMAL, NORMAL, NORMAL, CONTROL, USER, USER};
    const char *merges[] = {"a b", "b c", "a b"};
    struct gguf_context *gguf = new_bpe();
    gguf_set_arr_str(gguf, KEY("tokens"), tokens, COUNT(tokens));
    gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, types, COUNT(types));
    gguf_set_arr_str(gguf, KEY("merges"), merges, COUNT(merges));
    qkv_vocab *vocab = load(gguf);
    expect_ids(vocab, "abc", 0, "3 2");
    expect_ids(vocab, "a[y]b", 0, "0 6 1");
    expect_ids(vocab, "a[y]b", PARSE, "0 6 1");
    qkv_vocab_free(vocab);
}

/* Special tokens of some models swallow the spaces beside them. */
static void test_stripping(void **state) {
    (void)state;
    struct gguf_context *gguf = new_spm();
    gguf_set_val_str(gguf, "general.name", "A Phi-3 of sorts");
    qkv_vocab *vocab = load(gguf);
    expect_ids(vocab, "a</s> \n b", PARSE, "6 2 3 5");
    expect_ids(vocab, "<s>  a", PARSE, "1 3 3 6"); /* but not <s> */
    qkv_vocab_free(vocab);

    gguf = new_bpe();
    const char *tokens[] = {"[MASK]", "a", "Ġ"};
    const int32_t types[] = {CONTROL, NORMAL, NORMAL};
    gguf_set_val_str(gguf, "general.name", "modern-bert");
    gguf_set_arr_str(gguf, KEY("tokens"), tokens, 3);
    gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, types, 3);
    gguf_set_arr_str(gguf, KEY("merges"), NULL, 0);
    vocab = load(gguf);
    expect_ids(vocab, "a  [MASK] a", PARSE, "1 0 2 1");
    qkv_vocab_free(vocab);
}

static void test_spm(void **state) {
    (void)state;
    qkv_vocab *vocab = load(new_spm());
    assert_string_equal(qkv_vocab_kind(vocab), "sentencepiece");
    expect_ids(vocab, "", 0, "");
    expect_ids(vocab, "", ADD, "1"); /* the kind's default */
    expect_ids(vocab, "a", 0, "6");
    expect_ids(vocab, "ab", 0, "6 5"); /* "_a" scores more than "ab" */
    expect_ids(vocab, "b aab", 0, "3 5 6 7");
    expect_ids(vocab, "baaaa", 0, "3 5 8 8"); /* of equal scores the leftmost */
    expect_ids(vocab, "c", 0, "3 9");         /* byte fallback */
    expect_ids(vocab, "é", 0, "3 11");
    expect_ids(vocab, "d", 0, "3 0"); /* no byte token: unknown, once per character */
    expect_ids(vocab, "河", 0, "3 0");
    expect_ids(vocab, "<0x63>", PARSE, "3 0 0 0 0 0 0"); /* text does not spell byte tokens */
    expect_ids(vocab, "<unk>", PARSE, "0");
    expect_ids(vocab, "a</s>a[x]a", PARSE, "6 2 6 10 6"); /* a space after each */
    const int32_t ids[] = {1, 6, 2, 6, 10, 6, 3, 9};
    expect_text(vocab, ids, COUNT(ids), 0, "aa[x]a c");
    expect_text(vocab, ids, COUNT(ids), 1, "<s>a</s>a[x]a c");
    const int32_t blanks[] = {3, 3, 6};
    expect_text(vocab, blanks, 3, 0, "  a"); /* only one of three was added */
    qkv_vocab_free(vocab);

    struct gguf_context *gguf = new_spm();
    gguf_set_val_bool(gguf, KEY("add_space_prefix"), false);
    gguf_set_val_bool(gguf, KEY("add_bos_token"), false);
    vocab = load(gguf);
    expect_ids(vocab, "ab a", ADD, "7 6");
    expect_text(vocab, blanks, 3, 0, "   a");
    qkv_vocab_free(vocab);
}

static void test_no_tokenizer(void **state) {
    (void)state;
    struct gguf_context *gguf = gguf_init_empty();
    assert_null(load(gguf));
    gguf = gguf_init_empty();
    gguf_set_val_str(gguf, KEY("model"), "none");
    assert_null(load(gguf));
    qkv_vocab_free(NULL);
}

/* ---- metadata that are wrong ---- */

/* Takes the context over. The message must name the file and hold `part`. */
static void expect_refusal(struct gguf_context *gguf, int status, const char *part) {
    qkv_vocab *vocab = (qkv_vocab *)gguf; /* anything but NULL */
    qkv_error err = {0};
    assert_int_equal(qkv_vocab_load(&vocab, gguf, "small.gguf", &err), status);
    assert_null(vocab);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, part)) fail_msg("'%s' does not hold '%s'", err.message, part);
    if (!strstr(err.message, "small.gguf")) fail_msg("'%s' does not name the file", err.message);
    gguf_free(gguf);
}

static void test_unsupported_kinds(void **state) {
    (void)state;
    static const char *const models[] = {"rwkv", "plamo2", "nonsense", ""};
    for (size_t i = 0; i < COUNT(models); i++) {
        char quoted[32];
        struct gguf_context *gguf = new_bpe();
        gguf_set_val_str(gguf, KEY("model"), models[i]);
        snprintf(quoted, sizeof quoted, "'%s'", models[i]);
        expect_refusal(gguf, QKV_ERR_UNSUPPORTED, quoted);
    }
    struct gguf_context *gguf = new_bpe();
    gguf_set_val_str(gguf, KEY("pre"), "no-such-thing");
    expect_refusal(gguf, QKV_ERR_UNSUPPORTED, "'no-such-thing'");
    gguf = new_bpe();
    gguf_set_val_str(gguf, KEY("pre"), "no-such-thing");
    expect_refusal(gguf, QKV_ERR_UNSUPPORTED, "default, gpt-2, ");
    gguf = new_bpe();
    gguf_set_val_str(gguf, KEY("pre"), "no-such-thing");
    expect_refusal(gguf, QKV_ERR_UNSUPPORTED, "smollm, ");
}

/* Every key with a value of every wrong type. */
static void test_wrong_types(void **state) {
    (void)state;
    static const char *const keys[] = {
        KEY("model"),           KEY("pre"),           KEY("tokens"),           KEY("token_type"),
        KEY("scores"),          KEY("merges"),        KEY("bos_token_id"),     KEY("eos_token_id"),
        KEY("add_bos_token"),   KEY("add_eos_token"), KEY("unknown_token_id"), "general.name",
        KEY("add_space_prefix")};
    const double number = 1;
    const char *strings[] = {"x"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct gguf_context *gguf = new_bpe();
        gguf_set_val_f32(gguf, keys[i], 1.0f);
        expect_refusal(gguf, QKV_ERR_FORMAT, keys[i]);
        gguf = new_bpe();
        gguf_set_arr_data(gguf, keys[i], GGUF_TYPE_FLOAT64, &number, 1);
        expect_refusal(gguf, QKV_ERR_FORMAT, keys[i]);
        if (strcmp(keys[i], KEY("tokens")) == 0 || strcmp(keys[i], KEY("merges")) == 0) continue;
        gguf = new_bpe();
        gguf_set_arr_str(gguf, keys[i], strings, 1);
        expect_refusal(gguf, QKV_ERR_FORMAT, keys[i]);
    }
}

static void test_missing_keys(void **state) {
    (void)state;
    struct gguf_context *gguf = new_bpe();
    gguf_remove_key(gguf, KEY("tokens"));
    expect_refusal(gguf, QKV_ERR_FORMAT, KEY("tokens"));
    gguf = new_bpe();
    gguf_remove_key(gguf, KEY("model"));
    expect_refusal(gguf, QKV_ERR_FORMAT, KEY("model"));
    gguf = new_bpe();
    gguf_remove_key(gguf, KEY("merges"));
    expect_refusal(gguf, QKV_ERR_FORMAT, KEY("merges"));
    gguf = new_spm();
    gguf_remove_key(gguf, KEY("scores"));
    expect_refusal(gguf, QKV_ERR_FORMAT, KEY("scores"));
    gguf = new_bpe();
    gguf_remove_key(gguf, KEY("eos_token_id"));
    gguf_set_val_bool(gguf, KEY("add_eos_token"), true);
    expect_refusal(gguf, QKV_ERR_FORMAT, KEY("eos_token_id"));
    gguf = new_bpe();
    gguf_set_arr_str(gguf, KEY("tokens"), NULL, 0);
    expect_refusal(gguf, QKV_ERR_FORMAT, "empty");
}

static void test_wrong_lengths_and_values(void **state) {
    (void)state;
    struct gguf_context *gguf = new_bpe();
    gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, bpe_types, 3);
    expect_refusal(gguf, QKV_ERR_FORMAT, "3 entries for 12 tokens");
    gguf = new_spm();
    gguf_set_arr_data(gguf, KEY("scores"), GGUF_TYPE_FLOAT32, spm_scores, 11);
    expect_refusal(gguf, QKV_ERR_FORMAT, "11 entries for 12 tokens");

    float scores[COUNT(spm_scores)] = {0};
    scores[4] = NAN;
    gguf = new_spm();
    gguf_set_arr_data(gguf, KEY("scores"), GGUF_TYPE_FLOAT32, scores, COUNT(scores));
    expect_refusal(gguf, QKV_ERR_FORMAT, "token 4");

    int32_t types[COUNT(bpe_types)] = {0};
    for (int32_t wrong = -1; wrong <= 7; wrong += 8) {
        types[5] = wrong;
        gguf = new_bpe();
        gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, types, COUNT(types));
        expect_refusal(gguf, QKV_ERR_FORMAT, "token 5 has type");
    }
    static const char *const ids[] = {KEY("bos_token_id"), KEY("eos_token_id"),
                                      KEY("unknown_token_id")};
    for (size_t i = 0; i < COUNT(ids); i++) {
        gguf = new_bpe();
        gguf_set_val_u32(gguf, ids[i], COUNT(bpe_tokens));
        expect_refusal(gguf, QKV_ERR_FORMAT, ids[i]);
        gguf = new_spm();
        gguf_set_val_i32(gguf, ids[i], -1);
        expect_refusal(gguf, QKV_ERR_FORMAT, ids[i]);
        gguf = new_spm();
        gguf_set_val_u64(gguf, ids[i], UINT64_MAX);
        expect_refusal(gguf, QKV_ERR_FORMAT, ids[i]);
    }
}

static void test_malformed_merges(void **state) {
    (void)state;
    static const char *const merges[] = {"",    " ",   "ab",   "a ",  " b",   "a b c",
                                         "a q", "q b", "a  b", "b a", "\n \n"};
    for (size_t i = 0; i < COUNT(merges); i++) {
        const char *list[] = {"a b", merges[i]};
        struct gguf_context *gguf = new_bpe();
        gguf_set_arr_str(gguf, KEY("merges"), list, 2);
        expect_refusal(gguf, QKV_ERR_FORMAT, "merge 1,");
    }
}

/* ---- vocabularies made to hurt ---- */

/* Tokens that are malformed, nested, repeated, or look like something else: any result will do, as
 * long as there is one and it decodes. */
static void test_hostile_vocabulary(void **state) {
    (void)state;
    const char *tokens[] = {"",       "",     "\xff",    "\xc4",      "<0x",  "<0xZZ>",
                            "<0x41>", "a",    "aa",      "aaaa",      "a",    "<",
                            "<<",     "<<<<", BLANK,     " ",         "  ",   "\n",
                            "é",      "\xe2", "<0x410>", BLANK BLANK, "\x01", "\xf4\x90\x80\x80"};
    enum { N = COUNT(tokens) };
    static const char text[] = "aaaaaaa<<<<<  <0x41>\xff\xe2\x96 \x81\xc4\xa0é\n\n\xf4\x90";
    for (int seed = 0; seed < 60; seed++) {
        int32_t types[N];
        float scores[N];
        for (int i = 0; i < N; i++) {
            types[i] = (i * 5 + seed * (i + 1)) % 7;
            scores[i] = seed % 3 == 0 ? INFINITY : seed % 3 == 1 ? -INFINITY : (float)(i % 4);
        }
        struct gguf_context *gguf = seed % 2 ? new_spm() : new_bpe();
        const char *merges[] = {"a a", "aa aa", "< <", "<< <<", "a a"};
        gguf_set_arr_str(gguf, KEY("tokens"), tokens, N);
        gguf_set_arr_data(gguf, KEY("token_type"), GGUF_TYPE_INT32, types, N);
        gguf_set_arr_data(gguf, KEY("scores"), GGUF_TYPE_FLOAT32, scores, N);
        if (seed % 2 == 0) gguf_set_arr_str(gguf, KEY("merges"), merges, COUNT(merges));
        gguf_set_val_u32(gguf, KEY("unknown_token_id"), (uint32_t)(seed % N));
        qkv_vocab *vocab = load(gguf);
        int32_t *ids = NULL;
        size_t n = 0, length = 0;
        char *back = NULL;
        assert_int_equal(qkv_vocab_tokenize(vocab, &ids, &n, text, sizeof text, 3, NULL), QKV_OK);
        assert_true(n > 0);
        assert_int_equal(qkv_vocab_detokenize(vocab, &back, &length, ids, n, 1, NULL), QKV_OK);
        free(back);
        free(ids);
        qkv_vocab_free(vocab);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_bpe_rules),
        cmocka_unit_test(test_bpe_defaults),
        cmocka_unit_test(test_longest_special_first),
        cmocka_unit_test(test_repeated_entries),
        cmocka_unit_test(test_stripping),
        cmocka_unit_test(test_spm),
        cmocka_unit_test(test_no_tokenizer),
        cmocka_unit_test(test_unsupported_kinds),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_missing_keys),
        cmocka_unit_test(test_wrong_lengths_and_values),
        cmocka_unit_test(test_malformed_merges),
        cmocka_unit_test(test_hostile_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
