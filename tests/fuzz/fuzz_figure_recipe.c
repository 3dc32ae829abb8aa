/*
 * Fuzzer: the bytes are a file that may carry the recipe of a figure. One that is accepted can be put
 * into a small figure and is read from there again, the same.
 */
#include <string.h>

#include "harness.h"
#include "mutators.h"
#include "qkv/bytes.h"
#include "qkv/reproduce.h"

static void check_round_trip(const qkv_reproduction *r) {
    static const char svg[] = "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>";
    qkv_reproduction_info info = QKV_REPRODUCTION_INFO_INIT, again = QKV_REPRODUCTION_INFO_INIT;
    qkv_reproduction *read = NULL;
    qkv_error err = {0};
    char *bytes = NULL;
    size_t n = 0;
    FUZZ_REQUIRE(qkv_reproduction_get_info(r, &info, &err) == QKV_OK);
    if (strlen(info.recipe) > 1 << 20) return;
    const int status =
        qkv_reproduction_insert(&bytes, &n, svg, sizeof svg - 1, "figure.svg", info.recipe, &err);
    fuzz_check_status(status, bytes, &err);
    if (!bytes) return;
    FUZZ_REQUIRE(qkv_reproduction_read(&read, bytes, n, "figure.svg", &err) == QKV_OK);
    FUZZ_REQUIRE(qkv_reproduction_get_info(read, &again, &err) == QKV_OK);
    FUZZ_REQUIRE(strcmp(info.id, again.id) == 0);
    qkv_reproduction_free(read);
    qkv_bytes_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qkv_reproduction *r = NULL;
    qkv_error err = {0};
    const int status = qkv_reproduction_read(&r, (const char *)data, size, "file", &err);
    fuzz_check_status(status, r, &err);
    if (r) check_round_trip(r);
    qkv_reproduction_free(r);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const size_t n = seed % 3 ? fuzz_mutate_json(data, size, max_size, 0, size, seed) : 0;
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
