/*
 * What is done to text before a kind sees it, as far as the file says so itself: the compiled
 * character map, and in keys of our own the normaliser's steps and the patterns that cut words.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "tokenizer/vocab_internal.h"

#define CHARSMAP_KEY "tokenizer.ggml.precompiled_charsmap"
#define NORMALIZER_KEY "qkv.tokenizer.normalizer"
#define PATTERNS_KEY "qkv.tokenizer.patterns"
#define BEHAVIORS_KEY "qkv.tokenizer.behaviors"

static int read_charsmap(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    int64_t id = gguf_find_key(header, CHARSMAP_KEY);
    if (id < 0) return QKV_OK;
    if (gguf_get_kv_type(header, id) != GGUF_TYPE_ARRAY ||
        (gguf_get_arr_type(header, id) != GGUF_TYPE_UINT8 &&
         gguf_get_arr_type(header, id) != GGUF_TYPE_INT8))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be an array of bytes", file->path,
                        CHARSMAP_KEY);
    if (gguf_get_arr_n(header, id) == 0) return QKV_OK;
    return qkv_charsmap_init(&vocab->charsmap, gguf_get_arr_data(header, id),
                             gguf_get_arr_n(header, id), file->path, err);
}

/* The strings of an array, borrowed from the file; *words is NULL when there is no such key. */
static int read_words(const qkv_gguf *file, const char *key, const char ***words, size_t *count,
                      qkv_error *err) {
    int64_t id;
    *words = NULL;
    *count = 0;
    if (gguf_find_key(file->parts[0].header, key) < 0) return QKV_OK;
    int status = qkv_vocab_string_array(file, key, &id, count, err);
    if (status != QKV_OK) return status;
    *words = qkv_calloc(*count, sizeof **words);
    if (!*words) return qkv_fail_memory(err);
    for (size_t i = 0; i < *count; i++)
        (*words)[i] = gguf_get_arr_str(file->parts[0].header, id, i);
    return QKV_OK;
}

static int read_normalizer(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    const char **words = NULL;
    size_t count = 0;
    int status = read_words(file, NORMALIZER_KEY, &words, &count, err);
    if (status == QKV_OK && words)
        status =
            qkv_normalizer_new(&vocab->normalizer, words, count,
                               vocab->charsmap.trie ? &vocab->charsmap : NULL, file->path, err);
    free(words);
    return status;
}

static int read_patterns(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    const char **patterns = NULL, **behaviors = NULL;
    size_t n_patterns = 0, n_behaviors = 0;
    int status = read_words(file, PATTERNS_KEY, &patterns, &n_patterns, err);
    if (status == QKV_OK && patterns)
        status = read_words(file, BEHAVIORS_KEY, &behaviors, &n_behaviors, err);
    if (status == QKV_OK && n_patterns != n_behaviors)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s: %s has %zu entries, %s has %zu", file->path,
                          PATTERNS_KEY, n_patterns, BEHAVIORS_KEY, n_behaviors);
    if (status == QKV_OK && patterns)
        status = qkv_pretokenizer_new_from(&vocab->pre, patterns, behaviors, n_patterns, "patterns",
                                           file->path, err);
    free(patterns);
    free(behaviors);
    return status;
}

int qkv_vocab_read_pipeline(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    int status = read_charsmap(vocab, file, err);
    if (status == QKV_OK) status = read_normalizer(vocab, file, err);
    if (status == QKV_OK) status = read_patterns(vocab, file, err);
    return status;
}
