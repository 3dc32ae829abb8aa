/*
 * Fuzzer: the bytes are a file of tensors in any format that qkv_store_reader knows (.npy, .npz, a
 * result as JSON, safetensors). Of one that is accepted, every value can be read, and the metadata is
 * a JSON object.
 */
#include <jansson.h>
#include <string.h>

#include "harness.h"
#include "mutators.h"
#include "qkv/store_reader.h"

enum { BLOCK = 64 };

/* In blocks, of which the last one is not full. */
static void read_values(const qkv_store_reader *file, size_t index, int64_t n) {
    double values[BLOCK];
    qkv_error err = {0};
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t part = n - first < BLOCK ? n - first : BLOCK;
        FUZZ_REQUIRE(qkv_store_reader_values(file, index, first, part, values, &err) == QKV_OK);
    }
    FUZZ_REQUIRE(qkv_store_reader_values(file, index, n, 1, values, &err) == QKV_ERR_ARGUMENT);
}

static void read_tensors(const qkv_store_reader *file, size_t size) {
    qkv_store_item item = QKV_STORE_ITEM_INIT;
    for (size_t i = 0; qkv_store_reader_item(file, i, &item); i++) {
        int64_t n = 1;
        FUZZ_REQUIRE(item.name && item.type);
        FUZZ_REQUIRE(item.n_dims >= 0 && item.n_dims <= QKV_STORE_MAX_DIMS);
        for (int32_t d = 0; d < item.n_dims; d++) {
            FUZZ_REQUIRE(item.shape[d] >= 0);
            FUZZ_REQUIRE(!__builtin_mul_overflow(n, item.shape[d], &n));
        }
        FUZZ_REQUIRE(n == item.n_values && (uint64_t)n <= size);
        read_values(file, i, n);
    }
}

static void check_metadata(const qkv_store_reader *file) {
    json_t *metadata = json_loads(qkv_store_reader_metadata(file), 0, NULL);
    FUZZ_REQUIRE(json_is_object(metadata));
    json_decref(metadata);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qkv_store_reader *file = NULL;
    qkv_error err = {0};
    const char *path = fuzz_file(data, size);
    fuzz_watch_memory(size, FUZZ_JSON);
    const int status = qkv_store_reader_open(&file, path, &err);
    fuzz_check_memory();
    fuzz_check_status(status, file, &err);
    FUZZ_REQUIRE(status != QKV_ERR_MEMORY);
    if (!file) return 0;
    read_tensors(file, size);
    check_metadata(file);
    qkv_store_reader_close(file);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const int is_json = size && data[0] == '{' && seed % 4;
    const size_t n = is_json ? fuzz_mutate_json(data, size, max_size, 0, size, seed) : 0;
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
