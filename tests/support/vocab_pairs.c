/* Reads a pair of files in step: texts between separators, and a line of ids for each. */
#include "support/vocab_pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"

#define SEPARATOR "\n__ggml_vocab_test__\n"

const char *vocab_path(const char *dir, const char *name, const char *suffix) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf%s", dir, name, suffix);
    return path;
}

struct gguf_context *vocab_metadata(const char *path) {
    struct gguf_init_params params = {.no_alloc = true, .ctx = NULL};
    struct gguf_context *gguf = gguf_init_from_file(path, params);
    if (!gguf) fail_msg("cannot read %s", path);
    return gguf;
}

static void compare_ids(const char *name, size_t number, const char *expected, const int32_t *ids,
                        size_t n) {
    qkv_text got = {0};
    for (size_t i = 0; i < n; i++) qkv_text_printf(&got, i ? " %d" : "%d", (int)ids[i]);
    qkv_text_puts(&got, "");
    expected += strspn(expected, " ");
    size_t length = strcspn(expected, "\n");
    while (length > 0 && expected[length - 1] == ' ') length--;
    if (got.length != length || memcmp(got.data, expected, length) != 0)
        fail_msg("%s, text %zu: expected %.*s, got %s", name, number, (int)length, expected,
                 got.data);
    qkv_text_release(&got);
}

size_t vocab_compare_pair(const qkv_vocab *vocab, const char *dir, const char *name) {
    char *inputs = NULL, *outputs = NULL;
    size_t in_size, out_size, count = 0;
    qkv_error err = {0};
    int status = qkv_read_file(&inputs, &in_size, vocab_path(dir, name, ".inp"), 1 << 20, &err);
    if (status == QKV_OK)
        status = qkv_read_file(&outputs, &out_size, vocab_path(dir, name, ".out"), 1 << 20, &err);
    if (status != QKV_OK) fail_msg("%s", err.message);
    const char *text = inputs, *expected = outputs;
    while (text) {
        const char *next = strstr(text, SEPARATOR);
        size_t length = next ? (size_t)(next - text) : strlen(text), n = 0;
        if (*expected == '\0') fail_msg("%s.out is too short", name);
        int32_t *ids = NULL;
        if (qkv_vocab_tokenize(vocab, &ids, &n, text, length, 0, &err) != QKV_OK)
            fail_msg("%s", err.message);
        compare_ids(name, count++, expected, ids, n);
        free(ids);
        text = next ? next + strlen(SEPARATOR) : NULL;
        if (text == inputs + in_size) text = NULL; /* the last text ends with a separator, too */
        expected += strcspn(expected, "\n");
        expected += *expected == '\n';
    }
    if (*expected != '\0') fail_msg("%s.out has lines left over", name);
    free(inputs);
    free(outputs);
    return count;
}
