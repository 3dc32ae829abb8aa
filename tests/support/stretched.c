/* See stretched.h. */
#include "support/stretched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "gguf.h"
#include "support/scratch.h"

static const char *key_of(const struct gguf_context *gguf, const char *rest) {
    static char key[96];
    const int64_t family = gguf_find_key(gguf, "general.architecture");
    if (family < 0) abort();
    snprintf(key, sizeof key, "%s.%s", gguf_get_val_str(gguf, family), rest);
    return key;
}

static void set_yarn(struct gguf_context *gguf) {
    gguf_set_val_str(gguf, key_of(gguf, "rope.scaling.type"), "yarn");
    gguf_set_val_f32(gguf, key_of(gguf, "rope.scaling.factor"), 4);
    gguf_set_val_u32(gguf, key_of(gguf, "rope.scaling.original_context_length"), 64);
}

/* The same rows over and over, n_ctx of them. */
static struct ggml_tensor *repeated(struct ggml_context *ctx, const struct ggml_tensor *table,
                                    int n_ctx) {
    struct ggml_tensor *out = ggml_new_tensor_2d(ctx, table->type, table->ne[0], n_ctx);
    for (int64_t i = 0; i < n_ctx; i++)
        memcpy((char *)out->data + (size_t)i * out->nb[1],
               (const char *)table->data + (size_t)(i % table->ne[1]) * table->nb[1], out->nb[1]);
    ggml_set_name(out, table->name);
    return out;
}

static void add_tensor(struct gguf_context *to, struct ggml_context *more, struct ggml_tensor *t,
                       int n_ctx) {
    const int positions = n_ctx && strcmp(t->name, "position_embd.weight") == 0;
    gguf_add_tensor(to, positions ? repeated(more, t, n_ctx) : t);
}

static void set_keys(struct gguf_context *gguf, const model_key *keys, size_t n_keys) {
    for (size_t i = 0; i < n_keys; i++) {
        const char *key = key_of(gguf, keys[i].name);
        if (keys[i].kind == MODEL_KEY_INT)
            gguf_set_val_u32(gguf, key, (uint32_t)keys[i].value);
        else if (keys[i].kind == MODEL_KEY_FLAG)
            gguf_set_val_bool(gguf, key, keys[i].value != 0);
        else
            gguf_set_val_f32(gguf, key, (float)keys[i].value);
    }
}

/* n_ctx 0: as long as before, with other keys, or with YaRN where there are none. */
static const char *changed_model(const char *path, int n_ctx, const model_key *keys,
                                 size_t n_keys) {
    struct ggml_context *tensors = NULL;
    struct ggml_context *more = ggml_init((struct ggml_init_params){.mem_size = (size_t)1 << 20});
    struct gguf_context *to = gguf_init_empty();
    struct gguf_context *from =
        gguf_init_from_file(path, (struct gguf_init_params){.ctx = &tensors});
    if (!more || !to || !from) abort();
    gguf_set_kv(to, from);
    if (n_ctx)
        gguf_set_val_u32(to, key_of(to, "context_length"), (uint32_t)n_ctx);
    else if (n_keys)
        set_keys(to, keys, n_keys);
    else
        set_yarn(to);
    for (int64_t i = 0; i < gguf_get_n_tensors(from); i++)
        add_tensor(to, more, ggml_get_tensor(tensors, gguf_get_tensor_name(from, i)), n_ctx);
    const char *copy = scratch_path("stretched.gguf");
    if (!gguf_write_to_file(to, copy, false)) abort();
    gguf_free(from);
    gguf_free(to);
    ggml_free(tensors);
    ggml_free(more);
    return copy;
}

const char *stretched_model(const char *path, int n_ctx) {
    return changed_model(path, n_ctx, NULL, 0);
}

const char *yarn_model(const char *path) {
    return changed_model(path, 0, NULL, 0);
}

const char *keyed_model(const char *path, const model_key *keys, size_t n_keys) {
    return changed_model(path, 0, keys, n_keys);
}
