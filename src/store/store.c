/*
 * Results and figures to files: gathers tensors and metadata, picks the format by the suffix, and
 * writes to a temporary name that is renamed when complete.
 */
#include "qkv/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/store_formats.h"

static const store_format *const formats[] = {&store_safetensors, &store_json, &store_npy};

int64_t store_tensor_size(const qkv_store_tensor *tensor) {
    int64_t size = 1;
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        const int64_t n = tensor->shape[d];
        if (n < 0 || (n > 0 && size > INT64_MAX / 16 / n)) return -1;
        size *= n;
    }
    return size;
}

json_t *store_json_string(const char *bytes) {
    const size_t length = strlen(bytes);
    if (qkv_utf8_valid(bytes, length)) return json_stringn(bytes, length);
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, bytes, length);
    json_t *string = visible.failed ? NULL : json_stringn(visible.data, visible.length);
    qkv_text_release(&visible);
    return string;
}

/* ---- one file ---- */

static const store_format *format_of(const char *path) {
    const char *suffix = qkv_path_suffix(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(suffix, formats[i]->suffix) == 0) return formats[i];
    }
    return NULL;
}

static int check_tensors(const store_content *content, qkv_error *err) {
    for (size_t i = 0; i < content->n_tensors; i++) {
        const qkv_store_tensor *tensor = &content->tensors[i];
        if (tensor->n_dims < 1 || tensor->n_dims > 3 || store_tensor_size(tensor) < 0) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "tensor %s has a shape that cannot be stored",
                            tensor->name);
        }
        if (!qkv_utf8_valid(tensor->name, strlen(tensor->name))) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "tensor name %s is not UTF-8", tensor->name);
        }
    }
    return QKV_OK;
}

static int write_content(const store_content *content, const store_format *format, qkv_error *err) {
    qkv_output out;
    int status = check_tensors(content, err);
    if (status == QKV_OK && format->check) status = format->check(content, err);
    if (status == QKV_OK) status = qkv_output_open(&out, content->path, err);
    if (status != QKV_OK) return status;
    status = format->write(content, out.stream, err);
    if (status == QKV_OK) return qkv_output_finish(&out, err);
    qkv_output_abandon(&out);
    return status;
}

/* ---- metadata ---- */

/* An object being filled; one check at the end tells whether memory ran short on the way. */
typedef struct metadata_draft {
    json_t *object;
    int failed;
} metadata_draft;

static void put_text(metadata_draft *draft, const char *key, const char *text) {
    if (json_object_set_new(draft->object, key, store_json_string(text)) != 0) draft->failed = 1;
}

/* Values of __metadata__ are strings: a list goes in as the JSON text of its array. */
static void put_list(metadata_draft *draft, const char *key, json_t *list) {
    char *text = json_dumps(list, JSON_COMPACT);
    if (text) {
        put_text(draft, key, text);
    } else {
        draft->failed = 1;
    }
    free(text);
    json_decref(list);
}

static json_t *int32_list(const int32_t *values, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(values[i]));
    return list;
}

static void put_variant(metadata_draft *draft, const qkv_result *result, const qkv_plan *plan,
                        size_t variant) {
    char key[64];
    snprintf(key, sizeof key, "variant.%zu", variant);
    put_text(draft, key, qkv_plan_variant_text(plan, variant));
    json_t *changed = json_array();
    json_t *selected = json_array();
    for (size_t e = 0; e < qkv_result_n_edits(result, variant); e++) {
        /* null: not computed, because nothing that was captured depends on it */
        const int ran = qkv_result_edit_ran(result, variant, e);
        const uint64_t n_changed = qkv_result_edit_changed(result, variant, e);
        const uint64_t n_selected = qkv_result_edit_selected(result, variant, e);
        json_array_append_new(changed, ran ? json_integer((json_int_t)n_changed) : json_null());
        json_array_append_new(selected, json_integer((json_int_t)n_selected));
    }
    snprintf(key, sizeof key, "edits_changed.%zu", variant);
    put_list(draft, key, changed);
    snprintf(key, sizeof key, "edits_selected.%zu", variant);
    put_list(draft, key, selected);
}

/* Is the tensor simply all the heads that the site has, counted its own way? */
static int is_whole_site(const qkv_tensor *tensor, const qkv_model_info *info, qkv_site site) {
    const int shared = site == QKV_SITE_K || site == QKV_SITE_V || site == QKV_SITE_K_ROT;
    const int32_t all = tensor->head_kind == 'g' ? info->n_kv_head : info->n_head;
    return tensor->n_heads == all && tensor->head_kind == (shared ? 'g' : 'h');
}

/* Which heads a tensor holds, as `h0,h2` or `g1`; said only where they are not simply all of them. */
static void put_heads(metadata_draft *draft, const qkv_result *result, const qkv_model_info *info) {
    qkv_site site;
    qkv_tensor tensor;
    size_t variant;
    int32_t layer;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &tensor); i++) {
        if (variant != 0 || !tensor.heads || is_whole_site(&tensor, info, site)) continue;
        char key[64];
        snprintf(key, sizeof key, "heads.%s.%" PRId32, qkv_site_name(site), layer);
        qkv_text list = {0};
        for (int32_t h = 0; h < tensor.n_heads; h++)
            qkv_text_printf(&list, "%s%c%" PRId32, h ? "," : "", tensor.head_kind, tensor.heads[h]);
        if (list.failed)
            draft->failed = 1;
        else
            put_text(draft, key, list.data);
        qkv_text_release(&list);
    }
}

static int make_metadata(json_t **out, const qkv_result *result, const qkv_plan *plan,
                         const qkv_model *model, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(model, hash, err);
    if (status != QKV_OK) return status;
    const qkv_model_info *info = qkv_model_get_info(model);
    metadata_draft draft = {json_object(), 0};
    size_t n_tokens = 0;
    const int32_t *tokens = qkv_plan_tokens(plan, &n_tokens);
    put_text(&draft, "qkv_version", qkv_version());
    put_text(&draft, "model", info->path);
    put_text(&draft, "model_hash", hash);
    put_text(&draft, "architecture", info->architecture);
    put_list(&draft, "tokens", int32_list(tokens, n_tokens));
    for (size_t v = 0; v < qkv_result_n_variants(result); v++) {
        put_variant(&draft, result, plan, v);
    }
    put_heads(&draft, result, info);
    if (draft.failed) {
        json_decref(draft.object);
        return qkv_fail_memory(err);
    }
    *out = draft.object;
    return QKV_OK;
}

/* ---- tensors of a result ---- */

typedef struct named_tensors {
    qkv_store_tensor *items;
    char (*names)[64];
    size_t n;
} named_tensors;

static size_t count_items(const qkv_result *result) {
    size_t n = 0, variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor tensor;
    while (qkv_result_item(result, n, &variant, &site, &layer, &tensor)) n++;
    return n;
}

static int gather(named_tensors *all, const qkv_result *result, qkv_error *err) {
    const size_t n = count_items(result);
    all->items = qkv_calloc(n, sizeof *all->items);
    all->names = qkv_calloc(n, sizeof *all->names);
    if (!all->items || !all->names) return qkv_fail_memory(err);
    all->n = n;
    for (size_t i = 0; i < n; i++) {
        size_t variant;
        qkv_site site;
        int32_t layer;
        qkv_tensor tensor;
        qkv_result_item(result, i, &variant, &site, &layer, &tensor);
        const char *name = qkv_site_name(site);
        if (site == QKV_SITE_LOGITS) {
            snprintf(all->names[i], sizeof all->names[i], "v%zu/%s", variant, name);
        } else {
            snprintf(all->names[i], sizeof all->names[i], "v%zu/%s.%" PRId32, variant, name, layer);
        }
        all->items[i] = (qkv_store_tensor){all->names[i], tensor.data, tensor.n_dims, {0}};
        memcpy(all->items[i].shape, tensor.shape, sizeof tensor.shape);
    }
    return QKV_OK;
}

int qkv_store_write(const qkv_result *result, const qkv_plan *plan, const qkv_model *model,
                    const char *path, qkv_error *err) {
    const store_format *format = format_of(path);
    if (!format) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: the suffix must be .safetensors, .json or .npy",
                        path);
    }
    named_tensors all = {0};
    json_t *metadata = NULL;
    int status = gather(&all, result, err);
    if (status == QKV_OK) status = make_metadata(&metadata, result, plan, model, err);
    if (status == QKV_OK) {
        const store_content content = {all.items, all.n, metadata, path};
        status = write_content(&content, format, err);
    }
    json_decref(metadata);
    free(all.items);
    free(all.names);
    return status;
}

int qkv_store_write_tensors(const qkv_store_tensor *tensors, size_t n_tensors,
                            const char *const *metadata, size_t n_metadata, const char *path,
                            qkv_error *err) {
    metadata_draft draft = {json_object(), 0};
    for (size_t i = 0; i < n_metadata; i++) {
        put_text(&draft, metadata[2 * i], metadata[2 * i + 1]);
    }
    const store_content content = {tensors, n_tensors, draft.object, path};
    const int status =
        draft.failed ? qkv_fail_memory(err) : write_content(&content, &store_safetensors, err);
    json_decref(draft.object);
    return status;
}
