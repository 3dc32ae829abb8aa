/*
 * Tokenisers against other implementations' results, and round trips.
 *
 * The vocabularies with .inp/.out pairs beside them are llama.cpp's; the ids were written by the
 * models' own tokenisers. Small vocabularies with every rule in them are in
 * test_tokenizer_metadata.c.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <dirent.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "gguf.h"
#include "qkv/model.h"
#include "support/vocab_pairs.h"
#include "tokenizer/vocab.h"

/* Every vocabulary, with or without a pair of test files. */
static const struct {
    const char *name, *kind;
    int has_pair;
    int simplifies; /* text does not come back as it was: lower case, one blank for several */
} vocabularies[] = {
    {"aquila", "bpe (default)", 0, 0},
    {"baichuan", "sentencepiece", 0, 0},
    {"bert-bge", "wordpiece", 1, 1},
    {"command-r", "bpe (command-r)", 1, 0},
    {"deepseek-coder", "bpe (deepseek-coder)", 1, 0},
    {"deepseek-llm", "bpe (deepseek-llm)", 1, 0},
    {"falcon", "bpe (falcon)", 1, 0},
    {"gemma-4", "bpe (gemma4)", 1, 0},
    {"gpt-2", "bpe (gpt-2)", 1, 0},
    {"gpt-neox", "bpe (default)", 0, 0},
    {"llama-bpe", "bpe (llama-bpe)", 1, 0},
    {"llama-spm", "sentencepiece", 1, 0},
    {"mpt", "bpe (mpt)", 1, 0},
    {"nomic-bert-moe", "unigram", 0, 1},
    {"phi-3", "sentencepiece", 1, 0},
    {"qwen2", "bpe (qwen2)", 1, 0},
    {"qwen35", "bpe (qwen35)", 1, 0},
    {"refact", "bpe (refact)", 1, 0},
    {"starcoder", "bpe (starcoder)", 1, 0},
};
enum { N_VOCABULARIES = sizeof vocabularies / sizeof *vocabularies, N_PAIRS = 15 };

static int load_file(qkv_vocab **vocab, const char *path, qkv_error *err) {
    struct gguf_context *gguf = vocab_metadata(path);
    int status = qkv_vocab_load(vocab, gguf, path, err);
    gguf_free(gguf);
    return status;
}

/* Loaded once and kept. */
static qkv_vocab *get_vocab(const char *name) {
    static qkv_vocab *loaded[N_VOCABULARIES];
    for (size_t i = 0; i < N_VOCABULARIES; i++) {
        if (!name) {
            qkv_vocab_free(loaded[i]);
            loaded[i] = NULL;
            continue;
        }
        if (strcmp(vocabularies[i].name, name) != 0) continue;
        qkv_error err = {0};
        if (!loaded[i] &&
            load_file(&loaded[i], vocab_path(QKV_TEST_VOCABS, name, ""), &err) != QKV_OK)
            fail_msg("%s", err.message);
        return loaded[i];
    }
    if (name) fail_msg("no vocabulary %s", name);
    return NULL;
}

static int free_vocabs(void **state) {
    (void)state;
    get_vocab(NULL);
    return 0;
}

static size_t tokenize(const qkv_vocab *vocab, int32_t **ids, const char *text, size_t length,
                       unsigned flags) {
    size_t n = 0;
    qkv_error err = {0};
    if (qkv_vocab_tokenize(vocab, ids, &n, text, length, flags, &err) != QKV_OK)
        fail_msg("%s", err.message);
    assert_non_null(*ids);
    return n;
}

/* ---- against the models' own tokenisers ---- */

static void test_matches_other_implementations(void **state) {
    (void)state;
    size_t pairs = 0, texts = 0;
    for (size_t i = 0; i < N_VOCABULARIES; i++) {
        if (!vocabularies[i].has_pair) continue;
        const char *name = vocabularies[i].name;
        size_t compared = vocab_compare_pair(get_vocab(name), QKV_TEST_VOCABS, name);
        assert_true(compared >= 40);
        texts += compared;
        pairs++;
    }
    assert_int_equal(pairs, N_PAIRS);
    assert_true(texts >= 40 * N_PAIRS);
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
    assert_int_equal(files, N_VOCABULARIES);
    assert_int_equal(pairs, N_PAIRS);
}

static void test_kinds(void **state) {
    (void)state;
    for (size_t i = 0; i < N_VOCABULARIES; i++)
        assert_string_equal(qkv_vocab_kind(get_vocab(vocabularies[i].name)), vocabularies[i].kind);
    assert_int_equal(qkv_vocab_size(get_vocab("gpt-2")), 50257);
}

/* ---- round trips ---- */

static uint32_t random_state;

static uint32_t next_random(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* Text comes back byte for byte. */
static void check_round_trip(const char *name, const qkv_vocab *vocab, const char *text,
                             size_t length, unsigned flags) {
    int32_t *ids;
    char *back;
    size_t back_length;
    qkv_error err = {0};
    size_t n = tokenize(vocab, &ids, text, length, flags);
    if (qkv_vocab_detokenize(vocab, &back, &back_length, ids, n, 0, &err) != QKV_OK)
        fail_msg("%s", err.message);
    if (back_length != length || memcmp(back, text, length) != 0)
        fail_msg("%s: \"%.*s\" came back as \"%s\"", name, (int)length, text, back);
    assert_int_equal(back[back_length], '\0');
    free(back);
    free(ids);
}

/* What comes back gives the same ids. */
static void check_stable(const char *name, const qkv_vocab *vocab, const char *text,
                         size_t length) {
    int32_t *ids, *again;
    char *back;
    size_t back_length;
    qkv_error err = {0};
    size_t n = tokenize(vocab, &ids, text, length, 0);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == 100 || ids[i] == 3) n = 0; /* unknown: what it stood for is lost */
    }
    if (qkv_vocab_detokenize(vocab, &back, &back_length, ids, n, 0, &err) != QKV_OK)
        fail_msg("%s", err.message);
    size_t n_again = tokenize(vocab, &again, back, back_length, 0);
    if (n_again != n || memcmp(ids, again, n * sizeof *ids) != 0)
        fail_msg("%s: \"%s\" becomes other tokens", name, back);
    free(back);
    free(ids);
    free(again);
}

/* The pieces of single tokens make up the text as well. */
static void check_pieces(const qkv_vocab *vocab, const char *text, size_t length) {
    int32_t *ids;
    qkv_text all = {0};
    size_t n = tokenize(vocab, &ids, text, length, 0);
    for (size_t i = 0; i < n; i++) {
        char *piece;
        size_t piece_length;
        assert_int_equal(qkv_vocab_token_text(vocab, &piece, &piece_length, ids[i], NULL), QKV_OK);
        qkv_text_append(&all, piece, piece_length);
        free(piece);
    }
    assert_int_equal(all.length, length);
    assert_memory_equal(all.data, text, length);
    qkv_text_release(&all);
    free(ids);
}

static const char *const scripts[] = {
    "The river runs past the old mill.",
    "Der Fluß fließt an der alten Mühle vorbei; où est-elle, señor?",
    "Река течёт мимо старой мельницы.",
    "Ο ποταμός κυλά δίπλα στον παλιό μύλο.",
    "הנהר זורם ליד הטחנה הישנה",
    "يجري النهر بجوار الطاحونة القديمة ١٢٣",
    "नदी पुरानी चक्की के पास बहती है। १२३",
    "แม่น้ำไหลผ่านโรงสีเก่า",
    "កាន់តែពិសេសអាច",
    "河は古い水車小屋のそばを流れる。カタカナ",
    "河流流过老磨坊，１２３４",
    "강은 오래된 방앗간을 지나 흐른다",
    "გადის მდინარე ძველ წისქვილთან Ⴀ",
    "ወንዙ በአሮጌው ወፍጮ አጠገብ ያልፋል",
    "ᠮᠣᠩᠭᠣᠯ\xe1\xa0\x8e ᠪᠢᠴᠢᠭ",
    "🦙🏽 👩‍👩‍👧‍👦 ✅ ½ Ⅷ ² ①",
    "e\xcc\x81"
    "a\xcc\x88 \xc2\xa0 \xe3\x80\x80 \xe2\x80\xa8 \xc2\x85",
    "tabs\tand\r\nlines\n\n\n  and   blanks   ",
    "   leading and trailing   ",
    "don't we'll I'M THEY'RE it'ſ x'd '' 'tis",
    "1234567890 3.14159 1e-10 0x7f",
    "for (int i = 0; i < n; i++) { a[i] = \"<b>\"; } // 100%",
    "",
    " ",
    "\n",
};

static void test_round_trip_of_scripts(void **state) {
    (void)state;
    for (size_t v = 0; v < N_VOCABULARIES; v++) {
        const qkv_vocab *vocab = get_vocab(vocabularies[v].name);
        for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
            if (vocabularies[v].simplifies)
                check_stable(vocabularies[v].name, vocab, scripts[i], strlen(scripts[i]));
            else
                check_round_trip(vocabularies[v].name, vocab, scripts[i], strlen(scripts[i]),
                                 i % 2 ? QKV_TOKENIZE_ADD_SPECIAL : 0);
        }
    }
    check_pieces(get_vocab("gpt-2"), scripts[2], strlen(scripts[2]));
    check_pieces(get_vocab("llama-bpe"), scripts[15], strlen(scripts[15]));
}

/* Bytes that are no text at all: with every vocabulary that has a token for every byte. */
static void test_round_trip_of_random_bytes(void **state) {
    (void)state;
    static const char *const complete[] = {"aquila", "command-r", "gpt-2",     "llama-bpe",
                                           "qwen2",  "qwen35",    "llama-spm", "baichuan",
                                           "phi-3",  "gemma-4"};
    for (size_t v = 0; v < sizeof complete / sizeof *complete; v++) {
        const qkv_vocab *vocab = get_vocab(complete[v]);
        random_state = 7;
        for (size_t round = 0; round < 60; round++) {
            char bytes[400];
            size_t length = next_random() % sizeof bytes;
            for (size_t i = 0; i < length; i++)
                bytes[i] = round % 3 ? (char)next_random() : " a1\n\xe2\x80"[next_random() % 6];
            check_round_trip(complete[v], vocab, bytes, length, 0);
        }
        char every[256];
        for (int i = 0; i < 256; i++) every[i] = (char)i;
        check_round_trip(complete[v], vocab, every, sizeof every, 0);
    }
}

/* Where a byte has no token: the unknown token if there is one; else a malformed byte is taken for
 * U+FFFD, and a character is a clear error. */
static void test_bytes_without_tokens(void **state) {
    (void)state;
    static const char *const incomplete[] = {"falcon", "deepseek-coder", "deepseek-llm"};
    int32_t *ids = NULL, *replaced = NULL;
    size_t n;
    qkv_error err = {0};
    for (size_t v = 0; v < 3; v++) {
        const qkv_vocab *vocab = get_vocab(incomplete[v]);
        n = tokenize(vocab, &replaced, "a \xef\xbf\xbd\xef\xbf\xbd", 8, 0);
        assert_int_equal(tokenize(vocab, &ids, "a \xff\xf5", 4, 0), n);
        assert_memory_equal(ids, replaced, n * sizeof *ids);
        free(ids);
        free(replaced);
    }
    ids = NULL;
    assert_int_equal(qkv_vocab_tokenize(get_vocab("falcon"), &ids, &n, "a\x03", 2, 0, &err),
                     QKV_ERR_UNSUPPORTED);
    assert_null(ids);
    assert_non_null(strstr(err.message, "0x03"));
    n = tokenize(get_vocab("starcoder"), &ids, "\xff", 1, 0);
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], 0);
    free(ids);
}

/* Bytes that are no text at all, where text is simplified: no failure, and none of it lost but what
 * is no character. */
static void test_random_bytes_are_simplified(void **state) {
    (void)state;
    static const char *const names[] = {"bert-bge", "nomic-bert-moe"};
    for (size_t v = 0; v < 2; v++) {
        random_state = 11;
        for (size_t round = 0; round < 200; round++) {
            char bytes[300];
            size_t length = next_random() % sizeof bytes;
            for (size_t i = 0; i < length; i++)
                bytes[i] =
                    round % 3 ? (char)next_random() : " a\xcc\x81\n\xe2\x80"[next_random() % 7];
            int32_t *ids;
            size_t n = tokenize(get_vocab(names[v]), &ids, bytes, length, 0);
            for (size_t i = 0; i < n; i++)
                assert_true(ids[i] >= 0 && ids[i] < qkv_vocab_size(get_vocab(names[v])));
            free(ids);
        }
    }
}

/* ---- rules of real vocabularies ---- */

static void check_ids(const char *name, const char *text, unsigned flags, const int32_t *expected,
                      size_t n_expected) {
    int32_t *ids;
    size_t n = tokenize(get_vocab(name), &ids, text, strlen(text), flags);
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
    /* User-defined tokens count without being asked for: mpt's runs of blanks. */
    CHECK_IDS("mpt", "a    b", 0, 66, 50274, 67);
    /* phi-3's swallow the blanks behind them. */
    CHECK_IDS("phi-3", "<|user|>\n  Hello", parse, 32010, 15043);
    int32_t *ids;
    assert_int_equal(tokenize(get_vocab("gpt-2"), &ids, "", 0, add), 0);
    free(ids);
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
    CHECK_IDS("bert-bge", "hello\xff", 0, 7592);         /* and what is no text */
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

/* The model that comes with the project. */
static void test_default_model(void **state) {
    (void)state;
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    if (load_file(&vocab, QKV_TEST_MODELS "/default.gguf", &err) != QKV_OK)
        fail_msg("%s", err.message);
    assert_non_null(vocab);
    assert_string_equal(qkv_vocab_kind(vocab), "bpe (gpt-2)");
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        check_round_trip("default", vocab, scripts[i], strlen(scripts[i]),
                         QKV_TOKENIZE_ADD_SPECIAL);
    int32_t *ids, bos;
    assert_int_equal(tokenize(vocab, &ids, "", 0, QKV_TOKENIZE_ADD_SPECIAL), 1);
    bos = ids[0];
    free(ids);
    assert_int_equal(tokenize(vocab, &ids, "<|bos|>", 7, QKV_TOKENIZE_PARSE_SPECIAL), 1);
    assert_int_equal(ids[0], bos);
    free(ids);
    assert_true(tokenize(vocab, &ids, scripts[0], strlen(scripts[0]), 0) < 16);
    free(ids);
    qkv_vocab_free(vocab);
}

/* ---- long texts ---- */

/* Quadratic time would take minutes on these; the limit leaves room for sanitizers and load. */
enum { LONG_TEXT = 200000, LONG_SECONDS = 10 };

static int simplifies(const char *name) {
    for (size_t i = 0; i < N_VOCABULARIES; i++) {
        if (strcmp(vocabularies[i].name, name) == 0) return vocabularies[i].simplifies;
    }
    return 0;
}

static void check_quick(const char *name, const char *text, size_t length, const char *what) {
    const clock_t begin = clock();
    if (simplifies(name))
        check_stable(name, get_vocab(name), text, length);
    else
        check_round_trip(name, get_vocab(name), text, length, 0);
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > LONG_SECONDS) fail_msg("%s: long run of \"%s\" took %.1f s", name, what, seconds);
}

static void check_long(const char *name, const char *unit) {
    size_t n = strlen(unit), length = LONG_TEXT - LONG_TEXT % n;
    char *text = malloc(length);
    assert_non_null(text);
    for (size_t i = 0; i < length; i++) text[i] = unit[i % n];
    check_quick(name, text, length, unit);
    free(text);
}

static void test_long_texts(void **state) {
    (void)state;
    static const char *const units[] = {
        "The river runs past the old mill, and 365 days later it's dry.\n",
        "a",
        " ",
        "\n",
        "ab",
        "7",
        "!",
        " \n",
        "é",
        "河",
        "\xff",
        "<",
        "'",
        "A",
        "\xcc\x81\xcc\xa3", /* marks that normalising puts into order */
    };
    static const char *const names[] = {"gpt-2", "llama-bpe", "command-r",      "llama-spm",
                                        "mpt",   "gemma-4",   "nomic-bert-moe", "bert-bge"};
    for (size_t v = 0; v < sizeof names / sizeof *names; v++) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            int lacks_byte = strcmp(units[i], "\xff") == 0 && strcmp(names[v], "mpt") == 0;
            if (!lacks_byte) check_long(names[v], units[i]);
        }
    }
}

/* A long run of blanks with something behind it, which is where patterns backtrack. */
static void test_long_runs_that_end(void **state) {
    (void)state;
    static const char *const names[] = {"gpt-2",          "llama-bpe", "deepseek-llm",
                                        "deepseek-coder", "qwen35",    "falcon"};
    static const char *const ends[] = {"1", "x", "\n", "!"};
    char *text = malloc(LONG_TEXT + 1);
    assert_non_null(text);
    memset(text, ' ', LONG_TEXT);
    for (size_t v = 0; v < sizeof names / sizeof *names; v++) {
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            text[LONG_TEXT] = ends[i][0];
            check_quick(names[v], text, LONG_TEXT + 1, ends[i]);
        }
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches_other_implementations),
        cmocka_unit_test(test_every_vocabulary_is_listed),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_round_trip_of_scripts),
        cmocka_unit_test(test_round_trip_of_random_bytes),
        cmocka_unit_test(test_bytes_without_tokens),
        cmocka_unit_test(test_random_bytes_are_simplified),
        cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_bos_and_special_tokens),
        cmocka_unit_test(test_detokenize_special),
        cmocka_unit_test(test_ids_out_of_range),
        cmocka_unit_test(test_default_model),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_long_runs_that_end),
    };
    return cmocka_run_group_tests(tests, NULL, free_vocabs);
}
