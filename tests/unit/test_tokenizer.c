/*
 * Tokenisers against other implementations' results, and round trips.
 *
 * The real_vocabs with .inp/.out pairs beside them are llama.cpp's; the ids were written by the
 * models' own tokenisers. Small real_vocabs with every rule in them are in
 * test_tokenizer_metadata.c.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>

#include "base/file.h"
#include "qkv/model.h"
#include "support/real_vocabs.h"
#include "support/vocab_pairs.h"
#include "tokenizer/vocab.h"

/* ---- against the models' own tokenisers ---- */

static void test_matches_other_implementations(void **state) {
    (void)state;
    size_t pairs = 0, texts = 0;
    for (size_t i = 0; i < N_REAL_VOCABS; i++) {
        if (!real_vocabs[i].has_pair) continue;
        const char *name = real_vocabs[i].name;
        size_t compared = vocab_compare_pair(get_vocab(name), QKV_TEST_VOCABS, name);
        assert_true(compared >= 40);
        texts += compared;
        pairs++;
    }
    assert_int_equal(pairs, N_VOCAB_PAIRS);
    assert_true(texts >= 40 * N_VOCAB_PAIRS);
}

/* A new vocabulary in the directory must not go untested. */
static void test_every_vocabulary_is_listed(void **state) {
    (void)state;
    size_t files = 0, pairs = 0;
    DIR *dir = opendir(QKV_TEST_VOCABS);
    if (!dir) fail_msg("cannot read %s", QKV_TEST_VOCABS);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, "ggml-vocab-", 11) != 0) continue;
        files += strcmp(qkv_path_suffix(entry->d_name), "gguf") == 0;
        pairs += strcmp(qkv_path_suffix(entry->d_name), "inp") == 0;
    }
    closedir(dir);
    assert_int_equal(files, N_REAL_VOCABS);
    assert_int_equal(pairs, N_VOCAB_PAIRS);
}

static void test_kinds(void **state) {
    (void)state;
    for (size_t i = 0; i < N_REAL_VOCABS; i++)
        assert_string_equal(qkv_vocab_kind(get_vocab(real_vocabs[i].name)), real_vocabs[i].kind);
    assert_int_equal(qkv_vocab_size(get_vocab("gpt-2")), 50257);
}

/* ---- rules of real real_vocabs ---- */

static void check_ids(const char *name, const char *text, unsigned flags, const int32_t *expected,
                      size_t n_expected) {
    int32_t *ids;
    size_t n = vocab_ids(get_vocab(name), &ids, text, strlen(text), flags);
    assert_int_equal(n, n_expected);
    assert_memory_equal(ids, expected, n * sizeof *ids);
    free(ids);
}

#define CHECK_IDS(name, text, flags, ...)                                                          \
    check_ids(name, text, flags, (const int32_t[]){__VA_ARGS__},                                   \
              sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void test_bos_and_special_tokens(void **state) {
    (void)state;
    const unsigned add = QKV_TOKENIZE_ADD_SPECIAL, parse = QKV_TOKENIZE_PARSE_SPECIAL;
    CHECK_IDS("llama-bpe", "Hello", 0, 9906);
    CHECK_IDS("llama-bpe", "Hello", add, 128000, 9906); /* by its pre-tokeniser's default */
    CHECK_IDS("llama-bpe", "", add, 128000);
    CHECK_IDS("gpt-2", "Hello", add, 15496); /* neither BOS nor EOS by default */
    CHECK_IDS("command-r", "Hello", add, 5, 28339);
    CHECK_IDS("llama-spm", "Hello", add, 1, 15043);
    CHECK_IDS("llama-spm", "", add, 1);
    CHECK_IDS("baichuan", "", add, 1); /* by the kind's default */
    CHECK_IDS("gpt-2", "<|endoftext|>", parse, 50256);
    CHECK_IDS("gpt-2", "<|endoftext|>", 0, 27, 91, 437, 1659, 5239, 91, 29);
    CHECK_IDS("llama-spm", "</s>", parse, 2);
    CHECK_IDS("llama-spm", "Hello</s>Hello", parse, 15043, 2, 15043);
    /* Text that spells a control token stays text. */
    CHECK_IDS("llama-spm", "</s>", 0, 1533, 29879, 29958);
    /* User-defined tokens count without being asked for: mpt's runs of spaces. */
    CHECK_IDS("mpt", "a    b", 0, 66, 50274, 67);
    /* phi-3's swallow the spaces after them. */
    CHECK_IDS("phi-3", "<|user|>\n  Hello", parse, 32010, 15043);
    int32_t *ids;
    assert_int_equal(vocab_ids(get_vocab("gpt-2"), &ids, "", 0, add), 0);
    free(ids);
}

/* After another text SentencePiece puts no space of its own before the first word. */
static void test_continuations(void **state) {
    (void)state;
    const unsigned more = QKV_TOKENIZE_CONTINUES;
    CHECK_IDS("llama-spm", "Hello", 0, 15043);
    CHECK_IDS("llama-spm", " Hello", 0, 29871, 15043);
    CHECK_IDS("llama-spm", " Hello", more, 15043);
    CHECK_IDS("llama-spm", "Hello", more, 10994);
    CHECK_IDS("llama-spm", "  Hello", more, 29871, 15043);
    CHECK_IDS("llama-spm", " ", more, 29871);
    CHECK_IDS("llama-spm", " Hello</s>Hello", more | QKV_TOKENIZE_PARSE_SPECIAL, 15043, 2, 15043);
    CHECK_IDS("nomic-bert-moe", " Hello World!", more, 35378, 6661, 38);
    CHECK_IDS("gpt-2", " Hello", more, 18435);
    CHECK_IDS("gpt-2", "Hello", more, 15496);
}

/* What transformers gives with bert-base-uncased's vocabulary, which bge's is. */
static void test_wordpiece(void **state) {
    (void)state;
    const unsigned add = QKV_TOKENIZE_ADD_SPECIAL, parse = QKV_TOKENIZE_PARSE_SPECIAL;
    CHECK_IDS("bert-bge", "Hello world!", add, 101, 7592, 2088, 999, 102);
    CHECK_IDS("bert-bge", "", add, 101, 102);
    CHECK_IDS("bert-bge", "hello[MASK]world", parse, 7592, 103, 2088);
    CHECK_IDS("bert-bge", "H\xc3\xa9llo", 0, 7592);      /* accents go */
    CHECK_IDS("bert-bge", "He\xcc\x81llo", 0, 7592);     /* combining ones, too */
    CHECK_IDS("bert-bge", "hel\xe2\x80\x8blo", 0, 7592); /* and what is invisible */
    CHECK_IDS("bert-bge", "hello\xff", 0, 7592);         /* and what is not text */
    /* Too many characters for a word. */
    char word[102];
    memset(word, 'a', 101);
    word[101] = '\0';
    CHECK_IDS("bert-bge", word, 0, 100);
    char *text;
    size_t length;
    const int32_t ids[] = {101, 7592, 2088, 999, 102};
    assert_int_equal(qkv_vocab_detokenize(get_vocab("bert-bge"), &text, &length, ids, 5, 0, NULL),
                     QKV_OK);
    assert_string_equal(text, "hello world !");
    free(text);
}

/* What fairseq gives with the vocabulary of XLM-R, which nomic-bert-moe's is. */
static void test_unigram(void **state) {
    (void)state;
    const unsigned add = QKV_TOKENIZE_ADD_SPECIAL, parse = QKV_TOKENIZE_PARSE_SPECIAL;
    const char *name = "nomic-bert-moe";
    CHECK_IDS(name, "Hello World!", add, 0, 35378, 6661, 38, 2);
    CHECK_IDS(name, "  Hello \t  World!\n", add, 0, 35378, 6661, 38, 2);
    CHECK_IDS(name, "\xef\xbc\xa8\xef\xbd\x85llo World!", 0, 35378, 6661, 38); /* full width */
    CHECK_IDS(
        name,
        "This is a very long text with a lot of weird characters, such as: . , ~ ? ( ) \" [ ] "
        "! : - . Also we will add words that should not exsist and be tokenized to <unk>, "
        "such as saoneuhaoesuth",
        add | parse, 0, 3293, 83, 10, 4552, 4989, 7986, 678, 10, 5915, 111, 179459, 124850, 4, 6044,
        237, 12, 6, 5, 6, 4, 6780, 705, 15, 1388, 44, 378, 10114, 711, 152, 20, 6, 5, 22376, 642,
        1221, 15190, 34153, 450, 5608, 959, 1119, 57702, 136, 186, 47, 1098, 29367, 47, 3, 6, 4,
        6044, 237, 6284, 50901, 528, 31, 90, 34, 927, 2);
    CHECK_IDS(name, "", add, 0, 2);
    CHECK_IDS(name, "   ", add, 0, 2);
}

static void test_detokenize_special(void **state) {
    (void)state;
    const int32_t ids[] = {1, 15043, 2, 15043};
    const struct {
        int keep;
        const char *text;
    } cases[] = {{0, "HelloHello"}, {1, "<s>Hello</s>Hello"}};
    for (size_t i = 0; i < 2; i++) {
        char *text;
        size_t length;
        assert_int_equal(qkv_vocab_detokenize(get_vocab("llama-spm"), &text, &length, ids, 4,
                                              cases[i].keep, NULL),
                         QKV_OK);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
    char *name;
    size_t length;
    assert_int_equal(qkv_vocab_token_text(get_vocab("llama-spm"), &name, &length, 1, NULL), QKV_OK);
    assert_string_equal(name, "<s>");
    free(name);
    assert_int_equal(qkv_vocab_token_text(get_vocab("llama-spm"), &name, &length, 13, NULL),
                     QKV_OK);
    assert_string_equal(name, "\n"); /* <0x0A> */
    free(name);
}

static void test_ids_out_of_range(void **state) {
    (void)state;
    const int32_t bad[] = {-1, 50257, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < 4; i++) {
        char *text = NULL;
        size_t length;
        qkv_error err = {0};
        assert_int_equal(qkv_vocab_token_text(get_vocab("gpt-2"), &text, &length, bad[i], &err),
                         QKV_ERR_ARGUMENT);
        assert_null(text);
        assert_non_null(strstr(err.message, "0 to 50256"));
        assert_int_equal(
            qkv_vocab_detokenize(get_vocab("gpt-2"), &text, &length, &bad[i], 1, 0, &err),
            QKV_ERR_ARGUMENT);
        assert_null(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches_other_implementations),
        cmocka_unit_test(test_every_vocabulary_is_listed),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_continuations),
        cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_bos_and_special_tokens),
        cmocka_unit_test(test_detokenize_special),
        cmocka_unit_test(test_ids_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, free_real_vocabs);
}
