/* Fuzzer: the bytes are a safetensors file. Every byte of the tensors it lists is read. */
#include "base/file.h"
#include "format/safetensors.h"
#include "harness.h"
#include "mutators.h"

static void read_all(const qkv_st_list *list, const qkv_mapping *map) {
    for (size_t i = 0; i < list->count; i++) {
        const qkv_st_tensor *t = &list->items[i];
        FUZZ_REQUIRE(qkv_st_find(list, t->name) == t);
        FUZZ_REQUIRE(t->data >= map->data && t->size <= map->size);
        for (size_t k = 0; k < t->size; k++) (void)*(const volatile unsigned char *)(t->data + k);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file(data, size);
    qkv_mapping map;
    qkv_st_list list = {0};
    qkv_error err = {0};
    if (qkv_mapping_open(&map, path, NULL) != QKV_OK) return 0; /* empty */
    fuzz_watch_memory(size, FUZZ_JSON);
    int status = qkv_safetensors_read(&list, &map, path, 0, &err);
    if (status == QKV_OK) status = qkv_st_sort(&list, path, &err);
    fuzz_check_memory();
    fuzz_check_status(status, status == QKV_OK ? &list : NULL, &err);
    if (status == QKV_OK) read_all(&list, &map);
    qkv_st_release(&list);
    qkv_mapping_close(&map);
    return 0;
}

enum { LENGTH = 8 }; /* bytes in front of the JSON that say how long it is */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint64_t length = 0;
    for (int i = LENGTH - 1; i >= 0 && size >= LENGTH; i--) length = length << 8 | data[i];
    if (seed % 4 == 0 || size < LENGTH || length > size - LENGTH)
        return LLVMFuzzerMutate(data, size, max_size);
    const size_t n = fuzz_mutate_json(data, size, max_size, LENGTH, (size_t)length, seed);
    if (n == 0) return LLVMFuzzerMutate(data, size, max_size);
    for (int i = 0; i < LENGTH; i++) data[i] = (uint8_t)((uint64_t)n >> 8 * i);
    return size - (size_t)length + n;
}
