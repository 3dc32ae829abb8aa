#define _POSIX_C_SOURCE 200809L

#include "support/hf_directory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/scratch.h"

const char *hf_directory_path(void) {
    return scratch_path("");
}

json_t *hf_directory_config(const char *family) {
    char from[512];
    snprintf(from, sizeof from, VECTORS "%s/hf/config.json", family);
    json_t *config = json_load_file(from, 0, NULL);
    assert_non_null(config);
    return config;
}

void hf_directory_write_config(const json_t *config) {
    assert_int_equal(json_dump_file(config, scratch_path("config.json"), 0), 0);
}

void hf_directory_link_weights(const char *family) {
    char from[512];
    snprintf(from, sizeof from, VECTORS "%s/hf/model.safetensors", family);
    unlink(scratch_path("model.safetensors"));
    assert_int_equal(symlink(from, scratch_path("model.safetensors")), 0);
}

/* The header with other names; numbers that the other tensors share stand after the data. */
static json_t *rename_all(json_t *header, void (*rename)(char out[256], const char *name),
                          const char *const *others, size_t n_data) {
    json_t *renamed = json_object(), *entry;
    const char *name;
    json_object_foreach(header, name, entry) {
        char full[256];
        rename(full, name);
        json_object_set(renamed, strcmp(name, "__metadata__") == 0 ? name : full, entry);
    }
    for (size_t i = 0; others[i]; i++, n_data += 4)
        json_object_set_new(renamed, others[i],
                            json_pack("{s:s, s:[i], s:[I, I]}", "dtype", "F32", "shape", 1,
                                      "data_offsets", (json_int_t)n_data, (json_int_t)n_data + 4));
    return renamed;
}

void hf_directory_wrap_weights(const char *family, void (*rename)(char out[256], const char *name),
                               const char *const *others) {
    char from[512], *bytes = NULL;
    size_t size = 0, n_others = 0;
    uint64_t length = 0;
    snprintf(from, sizeof from, VECTORS "%s/hf/model.safetensors", family);
    assert_int_equal(qkv_read_file(&bytes, &size, from, (size_t)1 << 24, NULL), 0);
    for (int i = 7; i >= 0; i--) length = length << 8 | (unsigned char)bytes[i];
    json_t *header = json_loadb(bytes + 8, length, 0, NULL);
    assert_non_null(header);
    while (others[n_others]) n_others++;
    const size_t n_data = size - 8 - length;
    json_t *renamed = rename_all(header, rename, others, n_data);
    char *text = json_dumps(renamed, JSON_COMPACT);
    const size_t n_text = (strlen(text) + 7) / 8 * 8, total = 8 + n_text + n_data + 4 * n_others;
    char *out = calloc(1, total);
    assert_non_null(out);
    for (int i = 0; i < 8; i++) out[i] = (char)(n_text >> (8 * i));
    memset(out + 8, ' ', n_text);
    memcpy(out + 8, text, strlen(text));
    memcpy(out + 8 + n_text, bytes + 8 + length, n_data);
    unlink(scratch_path("model.safetensors"));
    scratch_write("model.safetensors", out, total);
    free(out);
    free(text);
    free(bytes);
    json_decref(renamed);
    json_decref(header);
}
