/*
 * tokenizer.json: the same ids as the GGUF of the same vocabulary, whatever the kind.
 *
 * The vectors have both files of every family. llama.cpp's vocabularies are written out as
 * tokenizer.json and compared with the pairs beside them. Small files with one part each are in
 * test_tokenizer_parts.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dirent.h>

#include "base/text.h"
#include "gguf.h"
#include "qkv/model.h"
#include "support/scratch.h"
#include "support/time_limit.h"
#include "support/tokenizer_file.h"
#include "support/vocab_pairs.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/vocab.h"

static qkv_vocab *load_dir(const char *dir) {
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    struct gguf_context *meta = gguf_init_empty();
    unsigned files = 0;
    int status = qkv_tokenizer_read(meta, dir, &files, &err);
    if (status == QKV_OK) status = qkv_vocab_load(&vocab, meta, dir, &err);
    gguf_free(meta);
    if (status != QKV_OK) fail_msg("%s", err.message);
    assert_non_null(vocab);
    return vocab;
}

static qkv_vocab *load_gguf(const char *path) {
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    struct gguf_context *gguf = vocab_metadata(path);
    if (qkv_vocab_load(&vocab, gguf, path, &err) != QKV_OK) fail_msg("%s", err.message);
    gguf_free(gguf);
    return vocab;
}

/* ---- the families' vectors ---- */

static const char *const texts[] = {
    "",
    " ",
    "The river runs past the old mill.",
    "the three OF them and\n\nnothing else; it isn't 1234.5 (or is it?)",
    "  two blanks, a line\n and </s> spelled out <s> [MASK] [SEP]",
    "Fluß, où, 河 \xff\xfe and \xe2\x82",
};

/* llama.cpp's converter writes of every ModernBERT that tokens stand around a text; these tokenizers put none
 * there. */
static int says_ends_anyway(const char *name) {
    return strcmp(name, "modernbert") == 0;
}

static void compare_vocabs(const char *name, const qkv_vocab *a, const qkv_vocab *b) {
    assert_int_equal(qkv_vocab_size(a), qkv_vocab_size(b));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            int32_t *one = NULL, *two = NULL;
            size_t n_one = 0, n_two = 0, length = strlen(texts[i]);
            qkv_error err = {0};
            if ((flags & QKV_TOKENIZE_ADD_SPECIAL) && says_ends_anyway(name)) continue;
            if (qkv_vocab_tokenize(a, &one, &n_one, texts[i], length, flags, &err) != QKV_OK ||
                qkv_vocab_tokenize(b, &two, &n_two, texts[i], length, flags, &err) != QKV_OK)
                fail_msg("%s: %s", name, err.message);
            if (n_one != n_two || memcmp(one, two, n_one * sizeof *one) != 0)
                fail_msg("%s: '%s' (flags %u) gives other ids", name, texts[i], flags);
            free(one);
            free(two);
        }
    }
}

/* Every family that has both files. */
static void test_vectors(void **state) {
    (void)state;
    size_t families = 0;
    const char *base = QKV_TEST_SOURCE_DIR "/vectors";
    DIR *dir = opendir(base);
    if (!dir) fail_msg("cannot read %s", base);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[1024], hf[1024];
        if (entry->d_name[0] == '.') continue;
        snprintf(hf, sizeof hf, "%s/%s/hf/tokenizer.json", base, entry->d_name);
        FILE *file = fopen(hf, "rb");
        if (!file) continue;
        fclose(file);
        snprintf(hf, sizeof hf, "%s/%s/hf", base, entry->d_name);
        snprintf(path, sizeof path, "%s/%s/model.gguf", base, entry->d_name);
        if (access(path, F_OK) != 0) continue; /* llama.cpp has no such model */
        qkv_vocab *a = load_dir(hf), *b = load_gguf(path);
        compare_vocabs(entry->d_name, a, b);
        assert_string_equal(qkv_vocab_kind(a), qkv_vocab_kind(b));
        qkv_vocab_free(a);
        qkv_vocab_free(b);
        families++;
    }
    closedir(dir);
    assert_true(families >= 20);
}

/* ---- llama.cpp's vocabularies ---- */

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"
#define BYTES_ONLY "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define DIGITS "{\"type\":\"Digits\",\"individual_digits\":true}"
#define SEQUENCE(...) "{\"type\":\"Sequence\",\"pretokenizers\":[" __VA_ARGS__ "]}"
#define SPLIT(regex)                                                                               \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                                          \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}"
#define MODERN(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits                 \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define PREPEND                                                                                    \
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"▁\"},"          \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁\"}]}"
#define BLANKS "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁\"}"
#define METASPACE(scheme, split)                                                                   \
    "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"" scheme                   \
    "\",\"split\":" split "}"

static const struct {
    const char *name, *kind;
    tokenizer_parts parts;
} vocabularies[] = {
    {"gpt-2", "bpe (gpt-2)", {"BPE", .pre_tokenizer = BYTE_LEVEL}},
    {"llama-bpe",
     "bpe (llama-bpe)",
     {"BPE", .pre_tokenizer = SEQUENCE(SPLIT(MODERN("\\\\p{N}{1,3}")) "," BYTES_ONLY),
      .ignore_merges = 1}},
    {"qwen2",
     "bpe (qwen2)",
     {"BPE", .normalizer = "{\"type\":\"NFC\"}",
      .pre_tokenizer = SEQUENCE(SPLIT(MODERN("\\\\p{N}")) "," BYTES_ONLY), .pairs = 1}},
    {"starcoder", "bpe (smollm)", {"BPE", .pre_tokenizer = SEQUENCE(DIGITS "," BYTE_LEVEL)}},
    {"falcon",
     "bpe (patterns)",
     {"BPE",
      .pre_tokenizer = SEQUENCE("{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}," BYTE_LEVEL
                                "," SPLIT("[0-9][0-9][0-9]"))}},
    {"llama-spm", "sentencepiece", {"BPE", .normalizer = PREPEND, .byte_fallback = 1}},
    {"llama-spm", "sentencepiece", {"BPE", .normalizer = PREPEND, .byte_fallback = 1, .pairs = 1}},
    {"gemma-4", "sentencepiece", {"BPE", .normalizer = BLANKS, .byte_fallback = 1, .pairs = 1}},
    {"bert-bge",
     "wordpiece",
     {"WordPiece",
      .normalizer = "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"
                    "true,\"strip_accents\":null,\"lowercase\":true}",
      .pre_tokenizer = "{\"type\":\"BertPreTokenizer\"}"}},
};
enum { N_VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };

/* Reading takes less than a second; what is quadratic in the merges would take many minutes. */
enum { READ_SECONDS = 120 };

static void append_base64(qkv_text *out, const unsigned char *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        if (i + 1 < size) bits |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < size) bits |= data[i + 2];
        const char four[] = {digits[bits >> 18], digits[bits >> 12 & 63],
                             i + 1 < size ? digits[bits >> 6 & 63] : '=',
                             i + 2 < size ? digits[bits & 63] : '='};
        qkv_text_append(out, four, 4);
    }
}

static void test_pairs(void **state) {
    (void)state;
    for (size_t i = 0; i < N_VOCABULARIES; i++) {
        const char *name = vocabularies[i].name;
        struct gguf_context *gguf = vocab_metadata(vocab_path(QKV_TEST_VOCABS, name, ""));
        const char *dir = tokenizer_dir_of(gguf, &vocabularies[i].parts);
        gguf_free(gguf);
        time_limit_begin(READ_SECONDS, name);
        qkv_vocab *vocab = load_dir(dir);
        time_limit_end();
        assert_string_equal(qkv_vocab_kind(vocab), vocabularies[i].kind);
        assert_true(vocab_compare_pair(vocab, QKV_TEST_VOCABS, name) >= 40);
        qkv_vocab_free(vocab);
    }
}

/* The vocabulary of XLM-R, as transformers writes it: what fairseq gives (test_tokenizer.c). */
static void test_unigram(void **state) {
    (void)state;
    const char *path = vocab_path(QKV_TEST_VOCABS, "nomic-bert-moe", "");
    struct gguf_context *gguf = vocab_metadata(path);
    int64_t map = gguf_find_key(gguf, "tokenizer.ggml.precompiled_charsmap");
    qkv_text normalizer = {0};
    qkv_text_puts(&normalizer, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    append_base64(&normalizer, gguf_get_arr_data(gguf, map), gguf_get_arr_n(gguf, map));
    qkv_text_puts(&normalizer, "\"}");
    const tokenizer_parts parts = {
        "Unigram", .normalizer = normalizer.data,
        .pre_tokenizer = SEQUENCE("{\"type\":\"WhitespaceSplit\"}," METASPACE("always", "true")),
        .post_processor = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
                          "\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
                          "{\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}}],\"special_tokens\":{"
                          "\"<s>\":{\"id\":\"<s>\",\"ids\":[0],\"tokens\":[\"<s>\"]},\"</s>\":{"
                          "\"id\":\"</s>\",\"ids\":[2],\"tokens\":[\"</s>\"]}}}"};
    const char *dir = tokenizer_dir_of(gguf, &parts);
    gguf_free(gguf);
    qkv_vocab *vocab = load_dir(dir), *same = load_gguf(path);
    compare_vocabs("nomic-bert-moe", vocab, same);
    assert_string_equal(qkv_vocab_kind(vocab), "unigram");
    const int32_t expected[] = {0, 35378, 6661, 38, 2};
    int32_t *ids = NULL;
    size_t n = 0;
    assert_int_equal(qkv_vocab_tokenize(vocab, &ids, &n, " Hello  World!", 14, 1, NULL), QKV_OK);
    assert_int_equal(n, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    free(ids);
    qkv_text_release(&normalizer);
    qkv_vocab_free(vocab);
    qkv_vocab_free(same);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_unigram),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
