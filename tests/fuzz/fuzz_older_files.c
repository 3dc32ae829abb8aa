/*
 * Fuzzer: the first byte says which tokeniser a directory without tokenizer.json has, and the rest are
 * its files: tokenizer.model, vocab.txt, or vocab.json and, behind a NUL, merges.txt.
 */
#include <string.h>

#include "gguf.h"
#include "harness.h"
#include "model/model.h"
#include "tokenizer/tokenizer_files.h"

static const char text[] = "The old  mill\n isn't [SEP] 12 \xc3\xa9</s>\xff";

static void use(const struct gguf_context *meta) {
    qkv_model model = {0};
    qkv_error err = {0};
    int status = qkv_vocab_load(&model.vocab, meta, "older files", &err);
    if (status != QKV_OK) fuzz_check_status(status, model.vocab, &err);
    if (model.vocab) {
        model.info.n_vocab = qkv_vocab_size(model.vocab);
        fuzz_use_text(&model, text, sizeof text - 1);
        fuzz_show_tokens(&model);
    }
    qkv_vocab_free(model.vocab);
}

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
    if (status == QKV_OK) use(meta);
    gguf_free(meta);
    return 0;
}
