/*
 * Fuzzer: the bytes are the config.json of a Hugging Face directory and, after a NUL, its
 * model.safetensors. The directory is opened and, where that succeeds, used.
 */
#include <string.h>

#include "harness.h"
#include "mutators.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    qkv_model *model = NULL;
    qkv_error err = {0};
    fuzz_put("config.json", data, length);
    fuzz_put("model.safetensors", end ? end + 1 : NULL, end ? size - length - 1 : 0);
    fuzz_watch_memory(size, FUZZ_JSON);
    int status = qkv_model_open(&model, fuzz_directory(), &err);
    fuzz_check_memory();
    fuzz_check_status(status, model, &err);
    if (model) fuzz_use_model(model);
    qkv_model_free(model);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    if (seed % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
    const size_t n = fuzz_mutate_json(data, size, max_size, 0, length, seed);
    return n ? size - length + n : LLVMFuzzerMutate(data, size, max_size);
}
