/* Writes the text as tokenizer.json, reads it as a converter would, and compares. */
#define _POSIX_C_SOURCE 200809L
#include "support/small_tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "gguf.h"
#include "support/scratch.h"
#include "support/tokenizer_file.h"
#include "tokenizer/tokenizer_files.h"

/* Single quotes stand for double ones, for the sake of reading. */
static char *quoted(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++) {
        if (*c == '\'') *c = '"';
    }
    return copy;
}

struct gguf_context *written_and_read(struct gguf_context *meta) {
    const char *path = scratch_path("converted.gguf");
    struct gguf_init_params params = {.no_alloc = true, .ctx = NULL};
    assert_true(gguf_write_to_file(meta, path, true));
    gguf_free(meta);
    meta = gguf_init_from_file(path, params);
    assert_non_null(meta);
    return meta;
}

int read_tokenizer(qkv_vocab **vocab, const char *json, const char *config, qkv_error *err) {
    char *text = quoted(json), *settings = config ? quoted(config) : NULL;
    const char *dir = tokenizer_dir(text, settings);
    struct gguf_context *meta = gguf_init_empty();
    *vocab = NULL;
    unsigned files = 0;
    int status = qkv_tokenizer_read(meta, dir, &files, err);
    if (status == QKV_OK) {
        meta = written_and_read(meta);
        status = qkv_vocab_load(vocab, meta, dir, err);
    }
    gguf_free(meta);
    free(text);
    free(settings);
    return status;
}

void check_tokens(const char *json, const char *config, const char *text, unsigned flags,
                  const char *expected) {
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    qkv_text got = {0};
    if (read_tokenizer(&vocab, json, config, &err) != QKV_OK) fail_msg("%s\n%s", err.message, json);
    if (qkv_vocab_tokenize(vocab, &ids, &n, text, strlen(text), flags, &err) != QKV_OK)
        fail_msg("%s\n%s", err.message, json);
    qkv_text_puts(&got, "");
    for (size_t i = 0; i < n; i++) {
        char *piece = NULL;
        size_t length = 0;
        assert_int_equal(qkv_vocab_token_text(vocab, &piece, &length, ids[i], &err), QKV_OK);
        qkv_text_printf(&got, i ? "|%s" : "%s", piece);
        free(piece);
    }
    if (strcmp(got.data, expected) != 0)
        fail_msg("'%s' became '%s', expected '%s'\n%s", text, got.data, expected, json);
    qkv_text_release(&got);
    free(ids);
    qkv_vocab_free(vocab);
}

void refuse_tokenizer(const char *json, const char *config, const char *part) {
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    int status = read_tokenizer(&vocab, json, config, &err);
    if (status == QKV_OK) fail_msg("was accepted: %s", json);
    assert_int_equal(status, err.status);
    assert_null(vocab);
    if (!strstr(err.message, part)) fail_msg("'%s' does not hold '%s'", err.message, part);
    if (strchr(err.message, '\n')) fail_msg("'%s' has several lines", err.message);
}
