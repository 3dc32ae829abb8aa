/*
 * Fuzzer: the bytes are a tokenizer.json and, each after a NUL, a tokenizer_config.json and a text.
 * The vocabulary is loaded as that of a Hugging Face directory, and the text is tokenised with it.
 */
#include <string.h>

#include "gguf.h"
#include "harness.h"
#include "mutators.h"
#include "tokenizer/tokenizer_files.h"

/* The piece up to the next NUL; *data and *size become what is after it. */
static size_t take_piece(const uint8_t **data, size_t *size, const uint8_t **piece) {
    const uint8_t *end = *size ? memchr(*data, 0, *size) : NULL;
    const size_t length = end ? (size_t)(end - *data) : *size, used = length + (end != NULL);
    *piece = *data;
    *data += used;
    *size -= used;
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *json, *config;
    const size_t whole = size;
    size_t n_json = take_piece(&data, &size, &json), n_config = take_piece(&data, &size, &config);
    qkv_error err = {0};
    struct gguf_context *meta = gguf_init_empty();
    FUZZ_REQUIRE(meta);
    fuzz_put("tokenizer.json", json, n_json);
    fuzz_put("tokenizer_config.json", n_config ? config : NULL, n_config);
    fuzz_watch_memory(whole, FUZZ_JSON);
    unsigned files = 0;
    int status = qkv_tokenizer_read(meta, fuzz_directory(), &files, &err);
    fuzz_check_memory();
    fuzz_check_status(status, status == QKV_OK ? meta : NULL, &err);
    if (status == QKV_OK) fuzz_use_vocab(meta, (const char *)data, size);
    gguf_free(meta);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const uint8_t *rest = data, *piece;
    size_t left = size, length = take_piece(&rest, &left, &piece), before = 0;
    if (seed % 8 == 0) {
        before = (size_t)(rest - data);
        length = take_piece(&rest, &left, &piece);
    }
    if (seed % 4 == 1 || length == 0) return LLVMFuzzerMutate(data, size, max_size);
    const size_t n = fuzz_mutate_json(data, size, max_size, before, length, seed);
    return n ? size - length + n : LLVMFuzzerMutate(data, size, max_size);
}
