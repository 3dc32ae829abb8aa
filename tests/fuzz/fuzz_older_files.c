/*
 * Fuzzer: the first byte says which tokeniser a directory without tokenizer.json has, and the rest are
 * its files: tokenizer.model, vocab.txt, or vocab.json and, after a NUL, merges.txt.
 */
#include <string.h>

#include "gguf.h"
#include "harness.h"
#include "tokenizer/tokenizer_files.h"

static const char text[] = "The old  mill\n isn't [SEP] 12 \xc3\xa9</s>\xff";

/* The architecture, whose class of tokeniser then counts. */
static const char *put_files(uint8_t kind, const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    const size_t first = nul ? (size_t)(nul - data) : size;
    const int is_merged = kind % 4 < 2;
    fuzz_put("vocab.json", is_merged ? data : NULL, first);
    fuzz_put("merges.txt", is_merged && nul ? nul + 1 : NULL, nul ? size - first - 1 : 0);
    fuzz_put("vocab.txt", kind % 4 == 2 ? data : NULL, size);
    fuzz_put("tokenizer.model", kind % 4 == 3 ? data : NULL, size);
    static const char *const architectures[] = {"gpt2", "qwen2", "bert", "llama"};
    return architectures[kind % 4];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qkv_error err = {0};
    unsigned files = 0;
    if (size == 0) return 0;
    struct gguf_context *meta = gguf_init_empty();
    FUZZ_REQUIRE(meta);
    gguf_set_val_str(meta, "general.architecture", put_files(data[0], data + 1, size - 1));
    fuzz_watch_memory(size, FUZZ_JSON);
    int status = qkv_tokenizer_read(meta, fuzz_directory(), &files, &err);
    fuzz_check_memory();
    fuzz_check_status(status, status == QKV_OK ? meta : NULL, &err);
    if (status == QKV_OK) fuzz_use_vocab(meta, text, sizeof text - 1);
    gguf_free(meta);
    return 0;
}
