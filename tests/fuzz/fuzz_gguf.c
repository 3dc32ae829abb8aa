/* Fuzzer: the bytes are a GGUF file. It is opened and, where that succeeds, used. */
#include "harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qkv_model *model = NULL;
    qkv_error err = {0};
    const char *path = fuzz_file(data, size);
    fuzz_watch_memory(size, FUZZ_TABLES);
    int status = qkv_model_open(&model, path, &err);
    fuzz_check_memory();
    fuzz_check_status(status, model, &err);
    if (model) fuzz_use_model(model);
    qkv_model_free(model);
    return 0;
}
