/*
 * Directories as people publish them, and files of them that are changed, broken or hostile: numbers
 * of any size, all that is part of the hash, regular expressions that would not end, merges that
 * would all meet in one place of a table.
 */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "gguf.h"
#include "qkv/model.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tokenizer_file.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_ranks.h"

#define HF QKV_TEST_SOURCE_DIR "/vectors/llama/hf/"

/* ---- a directory that opens ---- */

static void write_text(const char *name, const char *text) {
    scratch_write(name, text, strlen(text));
}

/* One of its files, with a member before the others. */
static void write_with(const char *name, const char *member) {
    char from[512], *text = NULL;
    size_t size = 0;
    snprintf(from, sizeof from, HF "%s", name);
    assert_int_equal(qkv_read_file(&text, &size, from, (size_t)1 << 24, NULL), QKV_OK);
    const char *brace = strchr(text, '{');
    assert_non_null(brace);
    const size_t length = size + strlen(member) + 2;
    char *changed = calloc(1, length);
    snprintf(changed, length, "{%s%s%s", member, *member ? "," : "", brace + 1);
    write_text(name, changed);
    free(changed);
    free(text);
}

static void make_directory(void) {
    static const char *const small[] = {"config.json", "tokenizer.json", "tokenizer_config.json"};
    unlink(scratch_path("model.safetensors"));
    assert_int_equal(symlink(HF "model.safetensors", scratch_path("model.safetensors")), 0);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) write_with(small[i], "");
}

/* Its hash, and how many tokens a text becomes; `words` in place of success. */
static size_t open_directory(const char *words, char hash[33]) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    int32_t *tokens = NULL;
    size_t n = 0;
    const int status = qkv_model_open(&model, scratch_path(""), &err);
    if (words) {
        assert_int_not_equal(status, QKV_OK);
        if (!strstr(err.message, words)) fail_msg("'%s' does not say '%s'", err.message, words);
        return 0;
    }
    expect_ok(status, &err, "opening");
    if (hash) expect_ok(qkv_model_hash(model, hash, &err), &err, "its hash");
    expect_ok(qkv_tokenize(model, &tokens, &n, "a b", 3, QKV_TOKENIZE_ADD_SPECIAL, &err), &err,
              "a b");
    qkv_tokens_free(tokens);
    qkv_model_free(model);
    return n;
}

/* Whatever JSON allows as a number, and what Python writes, in every file that is read as a tree. */
static void numbers_of_any_size(void **state) {
    (void)state;
    static const char *const numbers[] = {
        "1000000000000000019884624838656",
        "-9223372036854775809",
        "18446744073709551616",
        "1e999",
        "-1e999",
        "1E+400",
        "1e-999",
        "Infinity",
        "-Infinity",
        "NaN",
        "-0",
        "0.00000000000000000000000000000000000000000001",
        "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"};
    static const char *const files[] = {"tokenizer_config.json", "tokenizer.json", "config.json"};
    char member[400];
    make_directory();
    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            snprintf(member, sizeof member, "\"model_max_length\":%s,\"top_p\":[\"1e999\",%s]",
                     numbers[i], numbers[i]);
            write_with(files[f], member);
            open_directory(NULL, NULL);
        }
        write_with(files[f], "");
    }
    /* What is not a number stays refused. */
    write_with("tokenizer_config.json", "\"a\":1e999,\"b\":01");
    open_directory("tokenizer_config.json", NULL);
    write_with("tokenizer_config.json", "\"a\":Infinite");
    open_directory("tokenizer_config.json", NULL);
    write_with("tokenizer_config.json", "");
    write_with("config.json", "\"rope_scaling\":{\"type\":\"linear\",\"factor\":NaN}");
    open_directory("factor is", NULL);
}

/* Every file that decides an id or a number. */
static void hash_of_all(void **state) {
    (void)state;
    char before[33], after[33];
    make_directory();
    write_text("tokenizer_config.json", "{\"bos_token\":\"<s>\",\"add_bos_token\":false}");
    const size_t without = open_directory(NULL, before);
    write_text("tokenizer_config.json", "{\"bos_token\":\"<s>\",\"add_bos_token\":true}");
    assert_int_equal(open_directory(NULL, after), without + 1);
    assert_string_not_equal(before, after);
    static const char *const others[] = {"config.json", "tokenizer.json"};
    for (size_t i = 0; i < 2; i++) {
        write_with(others[i], "\"transformers_version\":\"0\"");
        open_directory(NULL, before);
        assert_string_not_equal(before, after);
        write_with(others[i], "");
    }
    /* The older lists of tokens too, where they say something; a token without a row is left out. */
    open_directory(NULL, before);
    write_text("special_tokens_map.json", "{\"bos_token\":\"<s>\"}");
    open_directory(NULL, after);
    assert_string_equal(before, after);
    write_text("added_tokens.json", "{\"<pad>\":1000000}");
    open_directory(NULL, after);
    assert_string_not_equal(before, after);
    unlink(scratch_path("special_tokens_map.json"));
    unlink(scratch_path("added_tokens.json"));
}

static int ends_texts(int32_t token) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    expect_ok(qkv_model_open(&model, scratch_path(""), &err), &err, "opening");
    const int ends = qkv_is_end_token(model, token);
    qkv_model_free(model);
    return ends;
}

/* One id or several; what is not an id is refused, and the hash is that of numbers, which stay. */
static void end_tokens(void **state) {
    (void)state;
    static const char name[] = "generation_config.json";
    char before[33], after[33];
    make_directory();
    open_directory(NULL, before);
    assert_false(ends_texts(7));
    write_text(name, "{\"eos_token_id\":[7,9,-1,7,99999999],\"top_p\":1e999}");
    assert_true(ends_texts(7) && ends_texts(9) && !ends_texts(8));
    open_directory(NULL, after);
    assert_string_equal(before, after);
    write_text(name, "{\"eos_token_id\":8}");
    assert_true(ends_texts(8) && !ends_texts(7));
    write_text(name, "{\"eos_token_id\":null}");
    assert_false(ends_texts(8));
    write_text(name, "{\"eos_token_id\":[7,\"8\"]}");
    open_directory("eos_token_id should be", NULL);
    write_text(name, "{\"eos_token_id\":4294967303}");
    open_directory("eos_token_id should be", NULL);
    write_text(name, "[]");
    open_directory("not a JSON object", NULL);
    char many[2048] = "{\"eos_token_id\":[1";
    for (int i = 0; i < QKV_MOST_END_TOKENS; i++) strcat(many, ",7");
    strcat(many, "]}");
    write_text(name, many);
    open_directory("at most 256", NULL);
    unlink(scratch_path(name));
}

/* config.json with other end tokens, in place of its own. */
static void write_config_end(const char *end) {
    char *text = NULL, *changed;
    size_t size = 0;
    assert_int_equal(qkv_read_file(&text, &size, HF "config.json", (size_t)1 << 24, NULL), QKV_OK);
    static const char key[] = "\"eos_token_id\": 2";
    char *at = strstr(text, key);
    assert_non_null(at);
    changed = calloc(1, size + strlen(end) + 32);
    snprintf(changed, size + strlen(end) + 32, "%.*s\"eos_token_id\": %s%s", (int)(at - text), text,
             end, at + strlen(key));
    write_text("config.json", changed);
    free(changed);
    free(text);
}

/* config.json says what ends a text where there is no generation_config.json. */
static void end_tokens_of_config(void **state) {
    (void)state;
    make_directory();
    write_config_end("[7, 9]");
    assert_true(ends_texts(7) && ends_texts(9) && !ends_texts(8));
    write_text("generation_config.json", "{\"eos_token_id\":8}");
    assert_true(ends_texts(8) && !ends_texts(7));
    unlink(scratch_path("generation_config.json"));
    write_config_end("\"seven\"");
    open_directory("config.json: eos_token_id should be", NULL);
}

/* A file that is there and cannot be read is an error, whatever the reason. */
static void unreadable(void **state) {
    (void)state;
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json"};
    make_directory();
    for (size_t i = 0; i < 3; i++) {
        const char *path = scratch_path(files[i]);
        unlink(path);
        assert_int_equal(symlink("/nonexistent/blob", path), 0);
        open_directory(files[i], NULL);
        unlink(path);
        assert_int_equal(mkdir(path, 0700), 0);
        open_directory(files[i], NULL);
        rmdir(path);
        write_text(files[i], "{\"a\":");
        open_directory(files[i], NULL);
        write_text(files[i], "");
        open_directory(files[i], NULL);
        write_with(files[i], "");
    }
    unlink(scratch_path("tokenizer_config.json"));
    open_directory(NULL, NULL);
}

/* ---- tokenizers ---- */

typedef struct tokenizer {
    struct gguf_context *meta;
    qkv_vocab *vocab;
} tokenizer;

static int open_tokenizer(tokenizer *t, const char *json, const char *config, qkv_error *err) {
    *t = (tokenizer){.meta = gguf_init_empty()};
    unsigned files = 0;
    int status = qkv_tokenizer_read(t->meta, tokenizer_dir(json, config), &files, err);
    return status == QKV_OK ? qkv_vocab_load(&t->vocab, t->meta, "tokenizer.json", err) : status;
}

static void close_tokenizer(tokenizer *t) {
    qkv_vocab_free(t->vocab);
    gguf_free(t->meta);
}

static const char characters[] = "{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,"
                                 "\"b\":2,\"\\u0000\":3,\"<0x00>\":4},\"merges\":[],"
                                 "\"byte_fallback\":true}";

static char *tokenizer_with(const char *pre, const char *post) {
    const size_t length = strlen(pre) + strlen(post) + sizeof characters + 100;
    char *json = calloc(1, length);
    snprintf(json, length, "{\"pre_tokenizer\":%s,\"post_processor\":%s,\"model\":%s}", pre, post,
             characters);
    return json;
}

static void expect_ids(const char *json, const char *config, const char *text, size_t length,
                       const int32_t *ids, size_t n_ids) {
    tokenizer t;
    qkv_error err = {0};
    int32_t *tokens = NULL;
    size_t n = 0;
    expect_ok(open_tokenizer(&t, json, config, &err), &err, "a tokenizer");
    expect_ok(
        qkv_vocab_tokenize(t.vocab, &tokens, &n, text, length, QKV_TOKENIZE_ADD_SPECIAL, &err),
        &err, "a text");
    assert_int_equal(n, n_ids);
    assert_memory_equal(tokens, ids, n * sizeof *ids);
    free(tokens);
    close_tokenizer(&t);
}

/* A token may be U+0000, which strings of GGUF cannot hold. */
static void token_of_zero(void **state) {
    (void)state;
    char *json = tokenizer_with("null", "null");
    expect_ids(json, NULL, "a\0b", 3, (const int32_t[]){1, 3, 2}, 3);
    free(json);
}

/* Two tokens after the text, where the configuration says what goes there. */
static void several_at_an_end(void **state) {
    (void)state;
    char *json = tokenizer_with(
        "null", "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"?\"}},"
                "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"a\"}},"
                "{\"SpecialToken\":{\"id\":\"b\"}}],\"special_tokens\":{\"?\":{\"ids\":[0]},"
                "\"a\":{\"ids\":[1]},\"b\":{\"ids\":[2]}}}");
    expect_ids(json, "{\"bos_token\":\"?\",\"eos_token\":\"b\",\"add_eos_token\":false}", "", 1,
               (const int32_t[]){0, 3}, 2);
    expect_ids(json, "{\"bos_token\":\"?\",\"eos_token\":\"a\",\"add_eos_token\":true}", "", 1,
               (const int32_t[]){0, 3, 1}, 3);
    tokenizer t;
    qkv_error err = {0};
    assert_int_equal(open_tokenizer(&t, json, "{\"eos_token\":\"a\"}", &err), QKV_ERR_UNSUPPORTED);
    close_tokenizer(&t);
    free(json);
}

/* ---- regular expressions ---- */

/* Patterns in turn, each the text repeated, on so many bytes of "a": refused in one line. */
static void refuse_text(const char *part, size_t times, size_t n_patterns, size_t length) {
    const size_t room = (strlen(part) * times + 100) * n_patterns + 100;
    char *pre = calloc(1, room), *text = malloc(length), *at = pre;
    at += sprintf(at, "{\"type\":\"Sequence\",\"pretokenizers\":[");
    for (size_t i = 0; i < n_patterns; i++) {
        at +=
            sprintf(at, "%s{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"",
                    i ? "," : "");
        for (size_t k = 0; k < times; k++) at += sprintf(at, "%s", part);
        at += sprintf(at, "\"}}");
    }
    sprintf(at, "]}");
    memset(text, 'a', length);
    char *json = tokenizer_with(pre, "null");
    tokenizer t;
    qkv_error err = {0};
    int32_t *tokens = NULL;
    size_t n = 0;
    expect_ok(open_tokenizer(&t, json, NULL, &err), &err, part);
    assert_int_not_equal(qkv_vocab_tokenize(t.vocab, &tokens, &n, text, length, 0, &err), QKV_OK);
    assert_non_null(strstr(err.message, "regular expression"));
    assert_null(strchr(err.message, '\n'));
    close_tokenizer(&t);
    free(json);
    free(text);
    free(pre);
}

static void refuse_groups(void) {
    char pattern[1000] = "(?:";
    for (int i = 0; i < 300; i++) strcat(pattern, "()");
    strcat(pattern, ".)+");
    refuse_text(pattern, 1, 1, 6000);
}

static void endless_patterns(void **state) {
    (void)state;
    refuse_text("(?:.|.){18}(?!)", 1, 1, 6000);
    refuse_text("(?:.|.){18}(?!)", 1, 30, 6000);
    refuse_text("(?:a+)+b|(?:a*)*c", 1, 1, 6000);
    refuse_text("(?:.|.){9}(?!)", 1, 30, 60000); /* little at each place, much in all */
    /* Few steps at each place, all of which look through the rest of the text. */
    refuse_text("[a-y]*0|", 60, 1, 4000);
    /* Three hundred groups to remember at each place: the memory is bounded. */
    refuse_groups();
}

/* Matches, and what they look at, may be of any length: the text is a word, a digit and spaces. */
static void far_matches(void **state) {
    (void)state;
    enum { WORD = 5000, BLANKS = 700, LENGTH = WORD + 1 + BLANKS };
    static const struct {
        const char *pattern;
        uint32_t start, end; /* of its only match */
    } cases[] = {{"[a-z]+\\d", 0, WORD + 1},        {"7 +\\z", WORD, LENGTH},
                 {"(?<=z{600})7", WORD, WORD + 1},  {"^z(?=z*7 +$)", 0, 1},
                 {"\\s+(?!\\S)", WORD + 1, LENGTH}, {"z{4999}\\b|z+(?=7)\\B", 0, WORD}};
    char text[LENGTH];
    memset(text, 'z', WORD);
    memset(text + WORD, ' ', BLANKS + 1);
    text[WORD] = '7';
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_regex *pattern = NULL;
        qkv_match_list list = {0};
        qkv_error err = {0};
        qkv_match_budget budget = qkv_match_budget_for(LENGTH);
        const char *what = cases[i].pattern;
        expect_ok(qkv_regex_new(&pattern, what, "a test", "", &err), &err, what);
        expect_ok(qkv_regex_find_all(pattern, text, LENGTH, &budget, &list, &err), &err, what);
        assert_int_equal(list.count, 1);
        assert_int_equal(list.spans[0].start, cases[i].start);
        assert_int_equal(list.spans[0].end, cases[i].end);
        qkv_regex_free(pattern);
        free(list.spans);
    }
}

/* Those that are known stay within the bounds on long texts, the worst for them too. */
static void known_patterns(void **state) {
    (void)state;
    enum { LENGTH = 1 << 17 };
    static const char *const units[] = {" ",  "a",   "A",   "7",           "!",
                                        "\n", " \t", "a1 ", "\xe4\xbd\xa0"};
    char *text = malloc(LENGTH);
    const char *name;
    const char *const *patterns;
    size_t n_patterns;
    int whole;
    for (size_t i = 0; (name = qkv_pretokenizer_known(i, &patterns, &n_patterns, &whole)); i++) {
        qkv_pretokenizer *pre = NULL;
        qkv_error err = {0};
        expect_ok(qkv_pretokenizer_new(&pre, name, "", &err), &err, name);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            const size_t n = strlen(units[u]), length = LENGTH / n * n;
            for (size_t k = 0; k < length; k++) text[k] = units[u][k % n];
            if (u == 0) /* runs that end */
                for (size_t k = 4999; k < length; k += 5000) text[k] = 'a';
            qkv_match_budget budget = qkv_match_budget_for(length);
            qkv_span *pieces = NULL;
            size_t count = 0;
            expect_ok(qkv_pretokenizer_split(pre, text, length, &budget, &pieces, &count, &err),
                      &err, name);
            assert_true(count > 0);
            free(pieces);
        }
        qkv_pretokenizer_free(pre);
    }
    free(text);
}

/* ---- tables ---- */

enum { N_TOKENS = 1 << 18, N_RIGHT = 32, APART = 64, N_LEFT = N_TOKENS / APART };

/* Where a multiplication without a secret, over 2^18 places, would put a pair: it depends on the right
 * one and on the low six bits of the left one. */
static uint32_t guessed_place(uint32_t right) {
    return (uint32_t)((uint64_t)right * 0x9e3779b97f4a7c15u >> 20) & 0x3ffff;
}

/* Tokens that lie close together there. */
static void choose_right(uint32_t right[N_RIGHT]) {
    size_t n = 0;
    for (uint32_t i = 1; i < N_TOKENS && n < N_RIGHT; i++) {
        if (i % APART && guessed_place(i) < N_LEFT) right[n++] = i;
    }
    assert_int_equal(n, N_RIGHT);
}

/* How long it takes to load merges of every left token with every right one, in processor time. */
static double load_merges(const char (*texts)[16], size_t n_merges, const char **merges) {
    qkv_string_map ids = {0};
    qkv_merge_ranks ranks = {0};
    qkv_error err = {0};
    qkv_gguf_part part = {.header = gguf_init_empty()};
    const qkv_gguf file = {.parts = &part, .n_parts = 1, .path = "merges"};
    gguf_set_arr_str(part.header, "tokenizer.ggml.merges", merges, n_merges);
    assert_true(qkv_string_map_init(&ids, N_TOKENS));
    for (int32_t i = 0; i < N_TOKENS; i++) qkv_string_map_add(&ids, texts[i], strlen(texts[i]), i);
    const clock_t start = clock();
    expect_ok(qkv_merge_ranks_load(&ranks, &ids, &file, &err), &err, "merges");
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    qkv_merge_ranks_release(&ranks);
    qkv_string_map_release(&ids);
    gguf_free(part.header);
    return seconds;
}

/* Merges chosen so that they would all meet, against as many that are not: the same time, within a
 * factor that only lists gone through from end to end exceed. */
static void merges_that_meet(void **state) {
    (void)state;
    static char texts[N_TOKENS][16], pairs[N_LEFT * N_RIGHT][32];
    static const char *merges[N_LEFT * N_RIGHT];
    double seconds[2];
    for (int hostile = 0; hostile < 2; hostile++) {
        const size_t stride = hostile ? APART : 1, n_left = N_LEFT;
        uint32_t right[N_RIGHT];
        size_t n = 0, made = 0;
        for (size_t i = 0; i < N_TOKENS; i++) snprintf(texts[i], sizeof *texts, "t%zu", i);
        choose_right(right);
        if (!hostile)
            for (uint32_t r = 0; r < N_RIGHT; r++) right[r] = N_TOKENS - 1 - r;
        made = hostile ? 1 : n_left;
        for (size_t l = 0; l < n_left; l++) {
            for (size_t r = 0; r < N_RIGHT; r++) {
                int taken = 1;
                while (taken) { /* the next id that is neither left nor right */
                    taken = hostile && made % APART == 0;
                    for (size_t k = 0; k < N_RIGHT; k++) taken |= made == right[k];
                    made += (size_t)taken;
                }
                snprintf(texts[made++], sizeof *texts, "t%zut%u", l * stride, (unsigned)right[r]);
                snprintf(pairs[n], sizeof *pairs, "t%zu t%u", l * stride, (unsigned)right[r]);
                merges[n] = pairs[n];
                n++;
            }
        }
        seconds[hostile] = load_merges((const char(*)[16])texts, n, merges);
    }
    if (seconds[1] > 20 * seconds[0] + 0.1)
        fail_msg("merges that meet take %g s, others %g s", seconds[1], seconds[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_any_size), cmocka_unit_test(hash_of_all),
        cmocka_unit_test(end_tokens),          cmocka_unit_test(end_tokens_of_config),
        cmocka_unit_test(unreadable),          cmocka_unit_test(token_of_zero),
        cmocka_unit_test(several_at_an_end),   cmocka_unit_test(endless_patterns),
        cmocka_unit_test(far_matches),         cmocka_unit_test(known_patterns),
        cmocka_unit_test(merges_that_meet),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
