/*
 * Fuzzer: the bytes are the model.safetensors.index.json of a directory and, after a NUL, the end of
 * the name of a GGUF file. Both say which other files belong to a model; neither may lead out of the
 * directory, nor to more work than what is there.
 */
#include <stdio.h>
#include <string.h>

#include "gguf.h"
#include "harness.h"
#include "mutators.h"

#define INDEX "model.safetensors.index.json"

enum { MAX_NAME = 31 };

static const char config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":8,\"num_attention_heads\":1,"
    "\"num_hidden_layers\":1,\"intermediate_size\":8,\"max_position_embeddings\":8,"
    "\"rms_norm_eps\":1e-5,\"rope_theta\":1e4,\"hidden_act\":\"silu\"}";

/* A safetensors file of one tensor of four bytes. */
static void put_weights(const char *file, const char *tensor) {
    static const char form[] = "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    char bytes[8 + 128] = {0};
    const int length = snprintf(bytes + 8, 100, form, tensor);
    bytes[0] = (char)length;
    fuzz_put(file, bytes, 8 + (size_t)length + 4);
}

static void open_path(const char *path, size_t size) {
    qkv_model *model = NULL;
    qkv_error err = {0};
    fuzz_watch_memory(size, FUZZ_JSON);
    const int status = qkv_model_open(&model, path, &err);
    fuzz_check_memory();
    fuzz_check_status(status, model, &err);
    qkv_model_free(model);
}

static void open_directory(const uint8_t *index, size_t size) {
    fuzz_put("config.json", config, sizeof config - 1);
    put_weights("one.safetensors", "a");
    put_weights("two.safetensors", "b");
    fuzz_put(INDEX, index, size);
    open_path(fuzz_directory(), size);
}

/* Part 1 of 2, so it says, whatever its name says. */
static size_t part_bytes(unsigned char out[128]) {
    static const struct {
        const char *key;
        unsigned char value;
    } keys[] = {{"split.no", 0}, {"split.count", 2}};
    size_t n = 24;
    memset(out, 0, 128);
    memcpy(out, "GGUF", 4);
    out[4] = 3;
    out[16] = sizeof keys / sizeof *keys;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const size_t length = strlen(keys[i].key);
        out[n] = (unsigned char)length;
        memcpy(out + n + 8, keys[i].key, length);
        out[n + 8 + length] = GGUF_TYPE_UINT16;
        out[n + 12 + length] = keys[i].value;
        n += 14 + length;
    }
    return n;
}

static void open_part(const uint8_t *end, size_t size) {
    unsigned char bytes[128];
    char name[MAX_NAME + 1] = "m", path[512];
    for (size_t i = 0; i < size && i + 1 < MAX_NAME && end[i]; i++)
        name[i + 1] = end[i] == '/' ? '_' : (char)end[i];
    fuzz_put(name, bytes, part_bytes(bytes));
    snprintf(path, sizeof path, "%s/%s", fuzz_directory(), name);
    open_path(path, sizeof bytes);
    fuzz_put(name, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    if (length > 0) open_directory(data, length);
    if (end) open_part(end + 1, size - length - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    if (seed % 2 == 0 || length == 0) return LLVMFuzzerMutate(data, size, max_size);
    const size_t n = fuzz_mutate_json(data, size, max_size, 0, length, seed);
    return n ? size - length + n : LLVMFuzzerMutate(data, size, max_size);
}
