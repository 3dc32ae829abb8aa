/*
 * Fuzzer: the bytes are what a hub answers about a repository and, after a NUL, the
 * model.safetensors.index.json in it. Whatever they say, the files that would be fetched are inside the
 * repository, none of them is a pickle, and the names of their bytes are digests.
 */
#include <string.h>

#include "harness.h"
#include "hub/pull_cache.h"
#include "mutators.h"

#define INDEX "model.safetensors.index.json"

static void check_choice(const qkv_pull_choice *choice) {
    FUZZ_REQUIRE(choice->n > 0);
    for (size_t i = 0; i < choice->n; i++) {
        const qkv_listed_file *file = choice->files[i];
        const size_t digits = strspn(file->blob, "0123456789abcdef");
        FUZZ_REQUIRE(qkv_hub_path_is_safe(file->path) && !qkv_is_pickle(file->path));
        FUZZ_REQUIRE(!file->blob[digits] && (digits == 0 || digits == 40 || digits == 64));
    }
}

static void choose(qkv_listing *listing, qkv_hub *hub, const uint8_t *index, size_t size) {
    const qkv_pull_cache cache = {.listing = listing};
    qkv_pull_choice choice;
    qkv_error err = {0};
    qkv_listed_file *file = qkv_listing_find(listing, INDEX);
    /* A space in front, so that no hub is asked for it. */
    if (file) qkv_text_puts(&file->content, " ");
    if (file && size) qkv_text_append(&file->content, (const char *)index, size);
    const int status = qkv_pull_choose(&choice, listing, hub, &cache, &err);
    if (status == QKV_OK) check_choice(&choice);
    fuzz_check_status(status, status == QKV_OK ? &choice : NULL, &err);
    qkv_pull_choice_release(&choice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char repository[] = "org/name", endpoint[] = "https://hub.invalid", quant[] = "Q4_K_M";
    qkv_hub hub = {.name = {.repository = repository}, .endpoint = endpoint};
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    qkv_text body = {0};
    qkv_listing listing;
    qkv_error err = {0};
    qkv_text_append(&body, (const char *)data, length);
    fuzz_watch_memory(size, FUZZ_JSON);
    const int status = qkv_listing_parse(&listing, &hub, &body, &err);
    fuzz_check_status(status, status == QKV_OK ? &listing : NULL, &err);
    if (status == QKV_OK) {
        choose(&listing, &hub, end ? end + 1 : NULL, end ? size - length - 1 : 0);
        hub.name.file = quant;
        choose(&listing, &hub, NULL, 0);
    }
    fuzz_check_memory();
    qkv_listing_release(&listing);
    qkv_text_release(&body);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    if (seed % 2 == 0 || length == 0) return LLVMFuzzerMutate(data, size, max_size);
    const size_t n = fuzz_mutate_json(data, size, max_size, 0, length, seed);
    return n ? size - length + n : LLVMFuzzerMutate(data, size, max_size);
}
