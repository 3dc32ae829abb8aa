/*
 * Texts that go through a real vocabulary and come back: of many scripts, of random bytes, and long
 * ones, which must not take quadratic time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "support/real_vocabs.h"
#include "support/time_limit.h"

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
    size_t n = vocab_ids(vocab, &ids, text, length, flags);
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
    size_t n = vocab_ids(vocab, &ids, text, length, 0);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == 100 || ids[i] == 3) n = 0; /* unknown: what it stood for is lost */
    }
    if (qkv_vocab_detokenize(vocab, &back, &back_length, ids, n, 0, &err) != QKV_OK)
        fail_msg("%s", err.message);
    size_t n_again = vocab_ids(vocab, &again, back, back_length, 0);
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
    size_t n = vocab_ids(vocab, &ids, text, length, 0);
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
    ("e\xcc\x81"
     "a\xcc\x88 \xc2\xa0 \xe3\x80\x80 \xe2\x80\xa8 \xc2\x85"),
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
    for (size_t v = 0; v < N_REAL_VOCABS; v++) {
        const qkv_vocab *vocab = get_vocab(real_vocabs[v].name);
        for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
            if (real_vocabs[v].simplifies)
                check_stable(real_vocabs[v].name, vocab, scripts[i], strlen(scripts[i]));
            else
                check_round_trip(real_vocabs[v].name, vocab, scripts[i], strlen(scripts[i]),
                                 i % 2 ? QKV_TOKENIZE_ADD_SPECIAL : 0);
        }
    }
    check_pieces(get_vocab("gpt-2"), scripts[2], strlen(scripts[2]));
    check_pieces(get_vocab("llama-bpe"), scripts[15], strlen(scripts[15]));
}

/* Bytes that are not text at all: with every vocabulary that has a token for every byte. */
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
        n = vocab_ids(vocab, &replaced, "a \xef\xbf\xbd\xef\xbf\xbd", 8, 0);
        assert_int_equal(vocab_ids(vocab, &ids, "a \xff\xf5", 4, 0), n);
        assert_memory_equal(ids, replaced, n * sizeof *ids);
        free(ids);
        free(replaced);
    }
    ids = NULL;
    assert_int_equal(qkv_vocab_tokenize(get_vocab("falcon"), &ids, &n, "a\x03", 2, 0, &err),
                     QKV_ERR_UNSUPPORTED);
    assert_null(ids);
    assert_non_null(strstr(err.message, "0x03"));
    n = vocab_ids(get_vocab("starcoder"), &ids, "\xff", 1, 0);
    assert_int_equal(n, 1);
    assert_int_equal(ids[0], 0);
    free(ids);
}

/* Bytes that are not text at all, where text is simplified: no failure, and none of it lost but what
 * is not a character. */
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
            size_t n = vocab_ids(get_vocab(names[v]), &ids, bytes, length, 0);
            for (size_t i = 0; i < n; i++)
                assert_true(ids[i] >= 0 && ids[i] < qkv_vocab_size(get_vocab(names[v])));
            free(ids);
        }
    }
}

/* The model that comes with the project. */
static void test_default_model(void **state) {
    (void)state;
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    if (load_vocab(&vocab, QKV_TEST_MODELS "/default.gguf", &err) != QKV_OK)
        fail_msg("%s", err.message);
    assert_non_null(vocab);
    assert_string_equal(qkv_vocab_kind(vocab), "bpe (gpt-2)");
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        check_round_trip("default", vocab, scripts[i], strlen(scripts[i]),
                         QKV_TOKENIZE_ADD_SPECIAL);
    int32_t *ids, bos;
    assert_int_equal(vocab_ids(vocab, &ids, "", 0, QKV_TOKENIZE_ADD_SPECIAL), 1);
    bos = ids[0];
    free(ids);
    assert_int_equal(vocab_ids(vocab, &ids, "<|bos|>", 7, QKV_TOKENIZE_PARSE_SPECIAL), 1);
    assert_int_equal(ids[0], bos);
    free(ids);
    assert_true(vocab_ids(vocab, &ids, scripts[0], strlen(scripts[0]), 0) < 16);
    free(ids);
    qkv_vocab_free(vocab);
}

/* ---- long texts ---- */

/* Each takes a fraction of a second; quadratic time would take many minutes. */
enum { LONG_TEXT = 300000, LONG_SECONDS = 120 };

static int simplifies(const char *name) {
    for (size_t i = 0; i < N_REAL_VOCABS; i++) {
        if (strcmp(real_vocabs[i].name, name) == 0) return real_vocabs[i].simplifies;
    }
    return 0;
}

static void check_in_time(const char *name, const char *text, size_t length, const char *what) {
    char label[80];
    snprintf(label, sizeof label, "%s: a long run of \"%.30s\"", name, what);
    time_limit_begin(LONG_SECONDS, label);
    if (simplifies(name))
        check_stable(name, get_vocab(name), text, length);
    else
        check_round_trip(name, get_vocab(name), text, length, 0);
    time_limit_end();
}

static void check_long(const char *name, const char *unit) {
    size_t n = strlen(unit), length = LONG_TEXT - LONG_TEXT % n;
    char *text = malloc(length);
    assert_non_null(text);
    for (size_t i = 0; i < length; i++) text[i] = unit[i % n];
    check_in_time(name, text, length, unit);
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

/* A long run of spaces with something after it, which is where patterns backtrack. */
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
            check_in_time(names[v], text, LONG_TEXT + 1, ends[i]);
        }
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_of_scripts),
        cmocka_unit_test(test_round_trip_of_random_bytes),
        cmocka_unit_test(test_bytes_without_tokens),
        cmocka_unit_test(test_random_bytes_are_simplified),
        cmocka_unit_test(test_default_model),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_long_runs_that_end),
    };
    return cmocka_run_group_tests(tests, NULL, free_real_vocabs);
}
