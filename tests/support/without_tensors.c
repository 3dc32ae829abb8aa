/* See without_tensors.h. */
#define _POSIX_C_SOURCE 200809L
#include "support/without_tensors.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "ggml.h"
#include "gguf.h"
#include "support/scratch.h"

static int is_left_out(const char *name, const char *part, const char *except) {
    return fnmatch(part, name, 0) == 0 && !(except && fnmatch(except, name, 0) == 0);
}

const char *model_without(const char *path, const char *part, const char *except, const char *key) {
    struct ggml_context *tensors = NULL;
    struct gguf_context *to = gguf_init_empty();
    struct gguf_context *from =
        gguf_init_from_file(path, (struct gguf_init_params){.ctx = &tensors});
    if (!from || !to) abort();
    char full[96];
    const int64_t family = gguf_find_key(from, "general.architecture");
    snprintf(full, sizeof full, "%s.%s", gguf_get_val_str(from, family), key);
    gguf_set_kv(to, from);
    gguf_set_val_bool(to, full, false);
    for (int64_t i = 0; i < gguf_get_n_tensors(from); i++) {
        const char *name = gguf_get_tensor_name(from, i);
        if (!is_left_out(name, part, except)) gguf_add_tensor(to, ggml_get_tensor(tensors, name));
    }
    const char *copy = scratch_path("without.gguf");
    if (!gguf_write_to_file(to, copy, false)) abort();
    gguf_free(from);
    gguf_free(to);
    ggml_free(tensors);
    return copy;
}
