/* See expectations.h. Strings belong to the JSON document, tensors to the tensor file. */
#include "support/expectations.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qkv/convert.h"
#include "support/scratch.h"

#define VECTORS QKV_TEST_SOURCE_DIR "/vectors/"

static const struct folder {
    const char *name;
    unsigned flags;
} folders[] = {
#define FOLDER(name, flags) {#name, flags},
    VECTOR_LIST(FOLDER)
#undef FOLDER
};

/* ---- the model ---- */

static unsigned flags_of(const char *name) {
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(folders[i].name, name) == 0) return folders[i].flags;
    fprintf(stderr, "%s is not in VECTOR_LIST\n", name);
    abort();
}

static const char *converted(const char *name) {
    char from[512], file[96];
    const qkv_convert_options options = {.size = sizeof(qkv_convert_options), .type = "f32"};
    qkv_error err = {0};
    snprintf(from, sizeof from, VECTORS "%s/hf", name);
    snprintf(file, sizeof file, "vectors-%s.gguf", name);
    const char *to = scratch_path(file);
    if (access(to, R_OK) == 0 || qkv_model_convert(from, to, &options, &err) == QKV_OK) return to;
    fprintf(stderr, "%s: %s\n", from, err.message);
    abort();
}

const char *vector_model(const char *name) {
    static char paths[16][512];
    static unsigned next;
    if (!(flags_of(name) & HAS_GGUF)) return converted(name);
    char *path = paths[next++ % 16];
    snprintf(path, sizeof *paths, VECTORS "%s/model.gguf", name);
    return path;
}

/* ---- the document ---- */

static int read_tokens(const json_t *list, expected_prompt *out) {
    out->n_tokens = json_array_size(list);
    if (out->n_tokens == 0 || out->n_tokens > EXPECT_MAX_TOKENS) return 0;
    for (size_t i = 0; i < out->n_tokens; i++)
        out->tokens[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return 1;
}

static int read_tensor(const expectations *e, const json_t *name, file_tensor *out) {
    const char *text = json_string_value(name);
    return text && tensor_file_get(e->tensors, text, out);
}

static int read_run(const expectations *e, const char *key, const json_t *json, expected_run *out) {
    const json_t *effect = json_object_get(json, "effect");
    out->edits = strcmp(key, "baseline") == 0 ? "" : key;
    for (int il = 0; il < e->n_layer; il++) {
        const size_t i = (size_t)il;
        const json_t *name = json_array_get(json_object_get(json, "attn"), i);
        const int has_attention = e->layers[il].has_attention;
        if (json_is_null(name) == has_attention) return 0;
        if (has_attention && !read_tensor(e, name, &out->pattern[il])) return 0;
        const json_t *change = json_array_get(json_object_get(effect, "attn"), i);
        out->same_pattern[il] = json_number_value(change) == 0;
    }
    out->same_logits = json_number_value(json_object_get(effect, "output")) == 0;
    return read_tensor(e, json_object_get(json, "output"), &out->logits);
}

static int read_prompt(const expectations *e, json_t *json, expected_prompt *out) {
    json_t *runs = json_object_get(json, "runs");
    const char *key = NULL;
    json_t *run = NULL;
    if (!read_tokens(json_object_get(json, "tokens"), out)) return 0;
    if (json_object_size(runs) > EXPECT_MAX_RUNS) return 0;
    json_object_foreach(runs, key, run) {
        if (!read_run(e, key, run, &out->runs[out->n_runs++])) return 0;
    }
    out->sites = json_object_get(json, "sites");
    return out->n_runs > 0 && out->runs[0].edits[0] == '\0';
}

/* Of one layer, where layers differ, or of all. */
static int layer_number(const json_t *json, const char *name, int il, int fallback) {
    const json_t *list = json_object_get(json_object_get(json, "per_layer"), name);
    const json_t *own = list ? list : json_object_get(json, name);
    if (json_is_array(own)) own = json_array_get(own, (size_t)il);
    return json_is_integer(own) ? (int)json_integer_value(own) : fallback;
}

static int has_attention(const json_t *json, int il) {
    const json_t *list = json_object_get(json, "attention_layers");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) == il) return 1;
    return list == NULL;
}

static void read_layers(expectations *e) {
    for (int il = 0; il < e->n_layer; il++) {
        expected_layer *l = &e->layers[il];
        if (!has_attention(e->json, il)) continue;
        l->has_attention = 1;
        l->n_head = layer_number(e->json, "n_head", il, 0);
        l->n_kv_head = layer_number(e->json, "n_kv_head", il, l->n_head);
        l->head_dim = layer_number(e->json, "head_dim", il, 0);
        l->v_head_dim = layer_number(e->json, "v_head_dim", il, l->head_dim);
        l->window = layer_number(e->json, "window", il, 0);
        l->chunk = layer_number(e->json, "chunk", il, 0);
    }
}

static int read_all(expectations *e, const char *folder) {
    const char *file = json_string_value(json_object_get(e->json, "tensors"));
    json_t *prompts = json_object_get(e->json, "prompts");
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file ? file : "");
    e->tensors = tensor_file_open(path);
    e->n_layer = (int)json_integer_value(json_object_get(e->json, "n_layer"));
    e->n_prompts = json_array_size(prompts);
    if (!e->tensors || e->n_layer > EXPECT_MAX_LAYERS || e->n_prompts > 2) return 0;
    read_layers(e);
    for (size_t i = 0; i < e->n_prompts; i++)
        if (!read_prompt(e, json_array_get(prompts, i), &e->prompts[i])) return 0;
    return 1;
}

int expectations_open(expectations *e, const char *vectors, const char *name, const char *model) {
    char folder[384], path[512];
    memset(e, 0, sizeof *e);
    snprintf(folder, sizeof folder, "%s/%s", vectors, name);
    const int is_file = strcmp(model, "model.gguf") == 0;
    snprintf(e->model, sizeof e->model, "%s/%s", folder, model);
    if (is_file) snprintf(e->model, sizeof e->model, "%s", vector_model(name));
    snprintf(path, sizeof path, "%s/expect_gguf.json", folder);
    if (!is_file || access(path, R_OK) != 0) snprintf(path, sizeof path, "%s/expect.json", folder);
    e->json = json_load_file(path, 0, NULL);
    if (e->json && read_all(e, folder)) return 1;
    fprintf(stderr, "%s: not the expectations of a family\n", path);
    expectations_close(e);
    return 0;
}

void expectations_close(expectations *e) {
    tensor_file_close(e->tensors);
    json_decref(e->json);
    e->tensors = NULL;
    e->json = NULL;
}

int expected_site(const expectations *e, const expected_prompt *prompt, const char *site, int layer,
                  file_tensor *out) {
    char key[64];
    snprintf(key, sizeof key, "%s%d", site, layer);
    return read_tensor(e, json_object_get(prompt->sites, key), out);
}
