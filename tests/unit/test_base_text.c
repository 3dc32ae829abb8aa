/*
 * The helpers of base/: growing text, UTF-8, strict numbers, memory, errors, and files that appear
 * whole or not at all.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/number_list.h"
#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- text ---- */

static void test_text_grows(void **state) {
    (void)state;
    qkv_text text = {0};
    for (int i = 0; i < 10000; i++) qkv_text_printf(&text, "%d,", i % 10);
    assert_false(text.failed);
    assert_int_equal(text.length, 20000);
    assert_int_equal(text.data[20000], '\0');
    assert_memory_equal(text.data + 19996, "8,9,", 4);
    qkv_text_release(&text);
    assert_null(text.data);
    qkv_text_append(&text, "", 0);
    assert_string_equal(text.data, "");
    qkv_text_append(&text, "a\0b", 3);
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.data, "a\0b", 4);
    qkv_text_release(&text);
}

static void test_text_visible(void **state) {
    (void)state;
    qkv_text text = {0};
    static const char bytes[] = "a\n\t\r\x01\x7f\xc2\x80é\xff河\0b";
    qkv_text_append_visible(&text, bytes, sizeof bytes - 1);
    assert_string_equal(text.data, "a\\n\\t\\r\\x01\\x7F\\x80é\\xFF河\\x00b");
    qkv_text_release(&text);
    /* No width, or a direction: a token of these would look empty. */
    static const char unseen[] = "\u200b\u200e\ufeff\u00ad\u2060";
    qkv_text_append_visible(&text, unseen, sizeof unseen - 1);
    assert_string_equal(text.data, "\\u200B\\u200E\\uFEFF\\u00AD\\u2060");
    qkv_text_release(&text);
}

/* ---- UTF-8 ---- */

static void test_utf8_round_trip(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code < 0xe000) continue;
        char bytes[4];
        uint32_t back = 0;
        size_t n = qkv_utf8_encode(code, bytes);
        if (qkv_utf8_decode(bytes, n, &back) != n || back != code || !qkv_utf8_valid(bytes, n))
            fail_msg("U+%04X became U+%04X", (unsigned)code, (unsigned)back);
        /* cut short it is malformed */
        if (n > 1 && (qkv_utf8_decode(bytes, n - 1, &back) != 1 || back != 0xfffd))
            fail_msg("U+%04X cut short was accepted", (unsigned)code);
    }
}

static void test_utf8_malformed(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "\x80",             /* continuation alone */
        "\xc0\x80",         /* two bytes for U+0000 */
        "\xc1\xbf",         /* overlong */
        "\xe0\x9f\xbf",     /* overlong */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xed\xa0\x80",     /* surrogate */
        "\xf4\x90\x80\x80", /* above U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xe2\x28\xa1",
        "\xe2\x96",
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        uint32_t code = 0;
        assert_int_equal(qkv_utf8_decode(wrong[i], strlen(wrong[i]), &code), 1);
        assert_int_equal(code, 0xfffd);
        assert_false(qkv_utf8_valid(wrong[i], strlen(wrong[i])));
    }
    uint32_t code;
    assert_int_equal(qkv_utf8_decode("x", 0, &code), 0);
    assert_true(qkv_utf8_valid("", 0));
    assert_true(qkv_utf8_valid("Mühle 河 🦙", strlen("Mühle 河 🦙")));
}

/* ---- numbers ---- */

static void test_integers(void **state) {
    (void)state;
    const struct {
        const char *text;
        int64_t value;
    } right[] = {
        {"0", 0}, {"-12", -12}, {"+7", 7}, {"007", 7}, {"999999999999999999", 999999999999999999}};
    static const char *const wrong[] = {"",    " 1", "1 ",  "1x",  "-", "--1",
                                        "+-1", "1.", "0x1", "1e3", "a", "1234567890123456789"};
    int64_t value;
    for (size_t i = 0; i < COUNT(right); i++) {
        assert_true(qkv_parse_int(right[i].text, strlen(right[i].text), &value));
        assert_true(value == right[i].value);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (qkv_parse_int(wrong[i], strlen(wrong[i]), &value)) fail_msg("took '%s'", wrong[i]);
    }
    assert_true(qkv_parse_int("12345", 2, &value));
    assert_int_equal(value, 12);
    assert_false(qkv_parse_int("1\0002", 3, &value));
}

static void test_doubles(void **state) {
    (void)state;
    const struct {
        const char *text;
        double value;
    } right[] = {{"0.5", 0.5}, {"1e-10", 1e-10}, {"-3", -3.0}, {".25", 0.25}, {"1E3", 1000.0}};
    static const char *const wrong[] = {"", " 1", "1 ", "1x", "e3", "1e", "--1", "1,5", "."};
    double value;
    for (size_t i = 0; i < COUNT(right); i++) {
        assert_true(qkv_parse_double(right[i].text, strlen(right[i].text), &value));
        assert_true(value == right[i].value);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (qkv_parse_double(wrong[i], strlen(wrong[i]), &value)) fail_msg("took '%s'", wrong[i]);
    }
    assert_true(qkv_parse_double("1.25abc", 4, &value));
    assert_true(value == 1.25);
}

/* ---- memory and errors ---- */

static void test_memory(void **state) {
    (void)state;
    char *none = qkv_calloc(0, 8);
    assert_non_null(none);
    free(none);
    assert_null(qkv_strdup(NULL));
    char *copy = qkv_strndup("abcdef", 3);
    assert_string_equal(copy, "abc");
    free(copy);
    int *items = NULL;
    size_t capacity = 0, count = 0;
    for (int i = 0; i < 1000; i++) assert_true(QKV_PUSH(items, capacity, count, i));
    assert_int_equal(count, 1000);
    assert_true(capacity >= 1000);
    for (int i = 0; i < 1000; i++) assert_int_equal(items[i], i);
    free(items);
    void *huge = NULL;
    size_t wide = SIZE_MAX / 2;
    assert_false(qkv_grow(&huge, &wide, wide, 16)); /* the product overflows */
}

static void test_errors(void **state) {
    (void)state;
    qkv_error err = {0};
    assert_int_equal(qkv_fail(&err, QKV_ERR_FORMAT, "a%s\nb\t%d", "x", 3), QKV_ERR_FORMAT);
    assert_int_equal(err.status, QKV_ERR_FORMAT);
    assert_string_equal(err.message, "ax\\nb\\t3"); /* one line */
    qkv_fail(&err, QKV_ERR_IO, "outer: %s", err.message);
    assert_string_equal(err.message, "outer: ax\\nb\\t3");
    assert_int_equal(qkv_fail(NULL, QKV_ERR_IO, "nobody listens"), QKV_ERR_IO);
    assert_int_equal(qkv_fail_memory(&err), QKV_ERR_MEMORY);
    assert_string_equal(qkv_status_text(QKV_ERR_PLAN), "plan cannot be run");
    assert_string_equal(qkv_status_text(12345), "unknown status");
    char longer[4000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    qkv_fail(&err, QKV_ERR_IO, "%s", longer);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + sizeof err.message - 5, "x" QKV_ELLIPSIS);
}

/* What a hostile file calls itself neither commands a terminal nor breaks the line; a character
 * that is cut in half is left out. */
static void test_errors_hold_no_commands(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_fail(&err, QKV_ERR_FORMAT, "'%s' é", "\x1b[31m\xc2\x9b \xe2\x80\xae \xe2\x80\xa8 \xff\x7f");
    assert_string_equal(err.message, "'\\x1B[31m\\x9B \\u202E \\u2028 \\xFF\\x7F' é");
    char longer[4000];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(longer, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof longer; i += 3) memcpy(longer + i, "河", 4);
        qkv_fail(&err, QKV_ERR_FORMAT, "%s", longer);
        assert_true(qkv_utf8_valid(err.message, strlen(err.message)));
        assert_null(strchr(err.message, '\\'));
        assert_non_null(strstr(err.message, "河" QKV_ELLIPSIS));
    }
    memset(longer, '\n', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    qkv_fail(&err, QKV_ERR_FORMAT, "%s", longer);
    assert_null(strchr(err.message, '\n'));
    assert_non_null(strstr(err.message, "\\n" QKV_ELLIPSIS));
}

static void test_text_short(void **state) {
    (void)state;
    qkv_text text = {0};
    qkv_text_append_short(&text, "河\n河河", 10, 3);
    qkv_text_append_short(&text, "abc", 3, 3);
    assert_string_equal(text.data, "河\\n河" QKV_ELLIPSIS "abc");
    qkv_text_release(&text);
}

/* ---- files ---- */

static char directory[] = "/tmp/qkv-base-XXXXXX";

static const char *in_directory(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static size_t files_in_directory(void) {
    size_t n = 0;
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int make_directory(void **state) {
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
    (void)state;
    return rmdir(directory); /* fails when a test left something behind */
}

static void write_file(const char *name, const char *content) {
    qkv_output out;
    qkv_error err = {0};
    assert_int_equal(qkv_output_open(&out, in_directory(name), &err), QKV_OK);
    assert_int_equal(fwrite(content, 1, strlen(content), out.stream), strlen(content));
    assert_int_equal(qkv_output_finish(&out, &err), QKV_OK);
}

static void test_output_appears_whole(void **state) {
    (void)state;
    qkv_output out;
    char *data;
    size_t size;
    write_file("a", "old");
    assert_int_equal(qkv_output_open(&out, in_directory("a"), NULL), QKV_OK);
    fputs("new text", out.stream);
    fflush(out.stream);
    assert_int_equal(qkv_read_file(&data, &size, in_directory("a"), 100, NULL), QKV_OK);
    assert_string_equal(data, "old"); /* until it is finished */
    free(data);
    assert_int_equal(qkv_output_finish(&out, NULL), QKV_OK);
    assert_int_equal(qkv_read_file(&data, &size, in_directory("a"), 100, NULL), QKV_OK);
    assert_string_equal(data, "new text");
    assert_int_equal(size, 8);
    free(data);
    struct stat st;
    mode_t mask = umask(022);
    write_file("a", "");
    umask(mask);
    assert_int_equal(stat(in_directory("a"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(files_in_directory(), 1);
    unlink(in_directory("a"));
}

static void test_output_leaves_nothing(void **state) {
    (void)state;
    qkv_output out;
    qkv_error err = {0};
    assert_int_equal(qkv_output_open(&out, in_directory("b"), &err), QKV_OK);
    fputs("half", out.stream);
    qkv_output_abandon(&out);
    assert_int_equal(files_in_directory(), 0);
    assert_int_equal(qkv_output_check(in_directory("b"), &err), QKV_OK);
    assert_int_equal(files_in_directory(), 0);
    assert_int_equal(qkv_output_open(&out, directory, &err), QKV_ERR_IO);
    assert_int_equal(qkv_output_check(directory, &err), QKV_ERR_IO);
    assert_int_equal(qkv_output_check(in_directory("no/such"), &err), QKV_ERR_IO);
    assert_non_null(strstr(err.message, "no/such"));
    /* a full disk */
    assert_int_equal(qkv_output_open(&out, "/dev/full", &err), QKV_OK);
    fputs("text", out.stream);
    assert_int_equal(qkv_output_finish(&out, &err), QKV_ERR_IO);
    assert_non_null(strstr(err.message, "/dev/full"));
    struct stat st;
    assert_int_equal(stat("/dev/full", &st), 0); /* and the device is still there */
    assert_true(S_ISCHR(st.st_mode));
}

/* Writes through the link "link" and says whether it still is one. */
static int link_survives(void) {
    qkv_output out;
    char *data;
    size_t size;
    struct stat st;
    assert_int_equal(qkv_output_open(&out, in_directory("link"), NULL), QKV_OK);
    fputs("new text", out.stream);
    assert_int_equal(qkv_output_finish(&out, NULL), QKV_OK);
    assert_int_equal(qkv_read_file(&data, &size, in_directory("link"), 100, NULL), QKV_OK);
    assert_string_equal(data, "new text");
    free(data);
    assert_int_equal(lstat(in_directory("link"), &st), 0);
    return S_ISLNK(st.st_mode);
}

/* A link stays a link: the file that it leads to is replaced, or made. */
static void test_output_through_links(void **state) {
    (void)state;
    write_file("target", "old");
    assert_int_equal(symlink("target", in_directory("link")), 0);
    assert_true(link_survives());
    assert_int_equal(files_in_directory(), 2);
    assert_int_equal(unlink(in_directory("target")), 0);
    assert_true(link_survives());
    assert_int_equal(unlink(in_directory("target")), 0);
    assert_int_equal(unlink(in_directory("link")), 0);
}

/* Opening a pipe must not wait for a writer. */
static void test_mapping_of_a_pipe(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_mapping map;
    assert_int_equal(mkfifo(in_directory("pipe"), 0600), 0);
    assert_int_equal(qkv_mapping_open(&map, in_directory("pipe"), &err), QKV_ERR_IO);
    assert_non_null(strstr(err.message, "not a regular file"));
    assert_int_equal(unlink(in_directory("pipe")), 0);
}

static void test_reading(void **state) {
    (void)state;
    char *data = NULL;
    size_t size;
    qkv_mapping map;
    qkv_error err = {0};
    write_file("c", "0123456789");
    assert_int_equal(qkv_read_file(&data, &size, in_directory("c"), 10, &err), QKV_OK);
    assert_int_equal(size, 10);
    free(data);
    assert_int_equal(qkv_read_file(&data, &size, in_directory("c"), 9, &err), QKV_ERR_FORMAT);
    assert_null(data);
    assert_int_equal(qkv_read_file(&data, &size, in_directory("none"), 9, &err), QKV_ERR_IO);
    assert_int_equal(qkv_read_file(&data, &size, directory, 9, &err), QKV_ERR_IO);
    assert_int_equal(qkv_mapping_open(&map, in_directory("c"), &err), QKV_OK);
    assert_int_equal(map.size, 10);
    assert_memory_equal(map.data, "0123456789", 10);
    qkv_mapping_close(&map);
    qkv_mapping_close(&map); /* twice does no harm */
    write_file("c", "");
    assert_int_equal(qkv_mapping_open(&map, in_directory("c"), &err), QKV_ERR_FORMAT);
    assert_int_equal(qkv_read_file(&data, &size, in_directory("c"), 9, &err), QKV_OK);
    assert_string_equal(data, "");
    free(data);
    assert_int_equal(qkv_mapping_open(&map, in_directory("none"), &err), QKV_ERR_IO);
    assert_int_equal(qkv_mapping_open(&map, directory, &err), QKV_ERR_IO);
    unlink(in_directory("c"));
}

static void test_suffix(void **state) {
    (void)state;
    assert_string_equal(qkv_path_suffix("a/b.png"), "png");
    assert_string_equal(qkv_path_suffix("a.tar.gz"), "gz");
    assert_string_equal(qkv_path_suffix("a.b/c"), "");
    assert_string_equal(qkv_path_suffix("c"), "");
    assert_string_equal(qkv_path_suffix("c."), "");
}

static void test_model_in_small_print(void **state) {
    (void)state;
    static const char *const cases[][4] = {
        {"River", "a/river.gguf", "", "River (river.gguf)"},
        {"River", "a/river.gguf", "Q4_K", "River (river.gguf), Q4_K"},
        {"", "a/river.gguf", "F16", "river.gguf, F16"},
        {"river", "a/river.gguf", "IQ2_XXS", "river, IQ2_XXS"},
        {"river", "a/river", "", "river"},
        {"river", "a/river/", "", "river/"},
        {"river", "a/river-2", "", "river (river-2)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        qkv_text text = {0};
        qkv_text_append_model(&text, cases[i][0], cases[i][1], cases[i][2]);
        assert_string_equal(text.data, cases[i][3]);
        qkv_text_release(&text);
    }
}

static void test_pulled_models(void **state) {
    (void)state;
    size_t length = 0;
    const char *path = "/home/a/.cache/qkv/models/river/river.gguf";
    const char *name = qkv_path_pulled(path, &length);
    assert_non_null(name);
    assert_int_equal(length, 5);
    assert_memory_equal(name, "river", 5);
    assert_null(qkv_path_pulled("models/river/other.gguf", &length));
    assert_null(qkv_path_pulled("models/river/river-2.gguf", &length));
    assert_null(qkv_path_pulled("a/river/river.gguf", &length));
    assert_null(qkv_path_pulled("river.gguf", &length));
}

static void test_number_lists(void **state) {
    (void)state;
    static const char *const good[][2] = {
        {"5e-1,1e-3", "5e-1,1e-3"},
        {"linspace:0,1,5", "0,0.25,0.5,0.75,1"},
        {"logspace:1e-4,1,5", "0.0001,0.001,0.01,0.1,1"},
        {"0,logspace:1,100,3,7", "0,1,10,100,7"},
        {"linspace:1,-1,2", "1,-1"},
        {"linspace:-1e308,1e308,3", "-1e+308,0,1e+308"}, /* further apart than any double */
        {"", ""},
    };
    static const char *const bad[] = {"logspace:0,1,3",
                                      "logspace:1,2",
                                      "linspace:1,2,1",
                                      "linspace:1,2,10001",
                                      "linspace:inf,2,3",
                                      "linspace:",
                                      "linspace:0,1,9999,linspace:0,1,2"};
    qkv_error err;
    char *out = NULL;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(qkv_number_list_expand(&out, good[i][0], &err), QKV_OK);
        assert_string_equal(out, good[i][1]);
        free(out);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(qkv_number_list_expand(&out, bad[i], &err), QKV_ERR_SYNTAX);
        assert_null(out);
    }
    const char *at = "2,x", *text;
    size_t length;
    double value;
    assert_int_equal(qkv_number_list_next(&at, &text, &length, &value), 1);
    assert_true(value == 2);
    assert_int_equal(qkv_number_list_next(&at, &text, &length, &value), 1);
    assert_true(isnan(value) && length == 1);
    assert_int_equal(qkv_number_list_next(&at, &text, &length, &value), 0);
}

/* ---- names ---- */

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"q", "k", "q_rot", "pattern", "resid_pre", "--metrics"};
    static const struct {
        const char *word, *best;
    } cases[] = {
        {"Q", "q"},                 /* case */
        {"resid-pre", "resid_pre"}, /* a hyphen */
        {"patern", "pattern"},      /* a letter missing */
        {"patttern", "pattern"},    /* too many */
        {"pettern", "pattern"},     /* another */
        {"pattenr", "pattern"},     /* two swapped */
        {"res", "resid_pre"},       /* the beginning */
        {"--metric", "--metrics"},  /* */
        {"w", ""},                  /* one letter is as far from any other */
        {"qq", ""},                 /* */
        {"re", ""},                 /* too short a beginning */
        {"xyzzy", ""},              /* */
        {"", ""},                   /* */
        {"a-word-that-is-longer-than-any-name-could-ever-be-here", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        qkv_nearest near = qkv_nearest_of(cases[i].word, strlen(cases[i].word));
        for (size_t k = 0; k < COUNT(names); k++) qkv_nearest_try(&near, names[k]);
        assert_string_equal(near.best, cases[i].best);
        assert_int_equal(qkv_nearest_hint(&near)[0] != '\0', cases[i].best[0] != '\0');
    }
    qkv_nearest near = qkv_nearest_of("Qrot", 1); /* no more than the length says */
    qkv_nearest_try(&near, "q");
    assert_string_equal(qkv_nearest_hint(&near), " (did you mean 'q'?)");
}

/* The check value that every description of CRC-32 gives, whole and in two parts. */
static void test_crc32(void **state) {
    (void)state;
    assert_int_equal(qkv_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(qkv_crc32(qkv_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
    assert_int_equal(qkv_crc32(0, NULL, 0), 0);
}

static void test_plural(void **state) {
    (void)state;
    assert_string_equal(qkv_plural(0), "s");
    assert_string_equal(qkv_plural(1), "");
    assert_string_equal(qkv_plural(2), "s");
}

/* The cost is of values; what stands in strings is none. */
static void test_json_cost(void **state) {
    (void)state;
    static const char text[] = "{\"a\": \"{[,\\\"{[,\", \"b\": [1, 2]}";
    enum { N = 1000 };
    char many[3 * N];
    for (size_t i = 0; i < N; i++) memcpy(many + 3 * i, "{},", 3);
    /* Two tables, and a value after each of two commas. */
    assert_int_equal(qkv_json_cost(text, sizeof text - 1), sizeof text - 1 + 2 * 256 + 2 * 64);
    assert_int_equal(qkv_json_cost("", 0), 0);
    assert_int_equal(qkv_json_cost("\"\\", 2), 2);
    assert_true(qkv_json_cost(many, sizeof many) > 300 * N);
}

/* What could not be built whole cannot be rendered, copied or read, nor can what it is part of. */
static void test_spoiled_json(void **state) {
    (void)state;
    json_t *outer = json_object(), *list = json_array();
    assert_int_equal(qkv_json_push(list, json_integer(1)), 0);
    assert_int_equal(qkv_json_push(list, NULL), -1); /* no memory for the second item */
    assert_true(qkv_json_is_spoiled(list) && !json_is_array(list));
    assert_int_equal(qkv_json_push(list, json_integer(3)), -1);
    assert_null(qkv_json_dump(list, JSON_ENCODE_ANY));
    assert_int_equal(qkv_json_put(outer, "tokens", list), 0);
    assert_int_equal(qkv_json_put(outer, "model", json_string("m")), 0);
    assert_null(qkv_json_dump(outer, 0));
    qkv_text text = {0};
    qkv_json_append_value(&text, outer);
    assert_true(text.failed);
    qkv_text_release(&text);
    list->type = JSON_ARRAY; /* or jansson would not free it, nor what is spoiled below */
    json_decref(outer);
    json_t *object = json_object(), *missing = json_object();
    assert_int_equal(qkv_json_put(missing, "a", json_integer(1)), 0);
    assert_int_equal(qkv_json_put(object, "a", json_integer(2)), 0);
    assert_int_equal(qkv_json_put_missing(object, missing), 0);
    assert_int_equal(json_integer_value(json_object_get(object, "a")), 2);
    assert_int_equal(qkv_json_put_all(object, missing), 0);
    assert_int_equal(json_integer_value(json_object_get(object, "a")), 1);
    assert_int_equal(qkv_json_put_all(object, NULL), -1);
    assert_true(qkv_json_is_spoiled(object));
    assert_null(qkv_json_copy(object));
    object->type = JSON_OBJECT;
    json_decref(object);
    json_decref(missing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spoiled_json),
        cmocka_unit_test(test_text_grows),
        cmocka_unit_test(test_text_visible),
        cmocka_unit_test(test_utf8_round_trip),
        cmocka_unit_test(test_utf8_malformed),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_number_lists),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_errors_hold_no_commands),
        cmocka_unit_test(test_text_short),
        cmocka_unit_test(test_output_appears_whole),
        cmocka_unit_test(test_output_leaves_nothing),
        cmocka_unit_test(test_output_through_links),
        cmocka_unit_test(test_mapping_of_a_pipe),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_suffix),
        cmocka_unit_test(test_model_in_small_print),
        cmocka_unit_test(test_pulled_models),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_crc32),
        cmocka_unit_test(test_json_cost),
        cmocka_unit_test(test_plural),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
