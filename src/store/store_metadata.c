/*
 * What a file of results says about itself: the prompt and its tokens, the model, what was captured,
 * the edits and what they did, and what every tensor is. docs/files.md lists the keys.
 *
 * Values are JSON. Formats that hold nothing but texts (safetensors) get the JSON texts of what is
 * none: qkv_store_metadata_texts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/json_tokens.h"
#include "base/text.h"
#include "qkv/edit_data.h"
#include "qkv/version.h"
#include "run/run.h"
#include "store/store_formats.h"

/* An object being filled; one check at the end tells whether memory ran short on the way. */
typedef struct metadata_draft {
    json_t *object;
    int failed;
} metadata_draft;

static void put_text(metadata_draft *draft, const char *key, const char *text) {
    if (qkv_json_put(draft->object, key, qkv_json_text(text)) != 0) draft->failed = 1;
}

/* Takes the value over. */
static void put(metadata_draft *draft, const char *key, json_t *value) {
    if (qkv_json_put(draft->object, key, value) != 0) draft->failed = 1;
}

/* What edits have taken that their texts do not tell: "edits_notes.1", null where there is nothing. */
static void put_notes(metadata_draft *draft, const qkv_result *result, size_t variant) {
    char key[64];
    json_t *notes = json_array();
    int any = 0;
    for (size_t e = 0; e < qkv_result_n_edits(result, variant); e++) {
        const char *note = qkv_result_edit_note(result, variant, e);
        qkv_json_push(notes, note ? qkv_json_text(note) : json_null());
        any |= note != NULL;
    }
    snprintf(key, sizeof key, "edits_notes.%zu", variant);
    if (any)
        put(draft, key, notes);
    else
        json_decref(notes);
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
        qkv_json_push(changed, ran ? json_integer((json_int_t)n_changed) : json_null());
        qkv_json_push(selected, json_integer((json_int_t)n_selected));
    }
    put_notes(draft, result, variant);
    snprintf(key, sizeof key, "edits_changed.%zu", variant);
    put(draft, key, changed);
    snprintf(key, sizeof key, "edits_selected.%zu", variant);
    put(draft, key, selected);
}

/* Is the tensor simply all the heads that the site has, counted its own way? */
static int is_whole_site(const qkv_tensor *tensor, const qkv_model_info *info, qkv_site site) {
    const int shared = strcmp(qkv_site_shape(site), "T,G,d") == 0;
    const int32_t all = tensor->head_kind == 'g' ? info->n_kv_head : info->n_head;
    return tensor->n_heads == all && tensor->head_kind == (shared ? 'g' : 'h');
}

/* Which heads a tensor holds, as `h0,h2` or `g1`; said where they are not simply all of them. */
static void put_heads(metadata_draft *draft, const qkv_tensor *tensor, const char *name) {
    char key[96];
    qkv_text list = {0};
    snprintf(key, sizeof key, "heads.%s", name);
    for (int32_t h = 0; h < tensor->n_heads; h++)
        qkv_text_printf(&list, "%s%c%" PRId32, h ? "," : "", tensor->head_kind, tensor->heads[h]);
    if (list.failed)
        draft->failed = 1;
    else
        put_text(draft, key, list.data);
    qkv_text_release(&list);
}

/* Which channels a tensor holds, where the capture named some. */
static json_t *list_channels(const qkv_tensor *tensor) {
    json_t *list = json_array();
    for (int64_t i = 0; i < tensor->n_channels; i++)
        qkv_json_push(list, json_integer(tensor->channels[i]));
    return list;
}

static void put_channels(metadata_draft *draft, const qkv_tensor *tensor, const char *name) {
    char key[96];
    snprintf(key, sizeof key, "channels.%s", name);
    put(draft, key, list_channels(tensor));
}

static void put_side(metadata_draft *draft, const qkv_tensor *tensor, const char *name) {
    char key[96];
    snprintf(key, sizeof key, "side.%s", name);
    put(draft, key, json_integer(tensor->shape[1]));
}

/* What a tensor's shape does not tell. Variants do not differ in it: the baseline's will do. */
static void put_shapes(metadata_draft *draft, const qkv_result *result,
                       const qkv_model_info *info) {
    qkv_site site;
    qkv_tensor tensor = QKV_TENSOR_INIT;
    size_t variant;
    int32_t layer;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &tensor); i++) {
        if (variant != 0) continue;
        char full[QKV_STORE_NAME_SIZE];
        qkv_store_name(full, variant, site, layer, tensor.reduction);
        const char *name = strchr(full, '/') + 1;
        if (tensor.heads && !is_whole_site(&tensor, info, site)) put_heads(draft, &tensor, name);
        if (tensor.channels) put_channels(draft, &tensor, name);
        if (tensor.reduction && tensor.n_dims == 3) put_side(draft, &tensor, name);
    }
}

/* Which tokens the rows of a site without a layer belong to; said only where some were left out. */
static void put_row_tokens(metadata_draft *draft, const qkv_plan *plan, qkv_site site,
                           size_t n_tokens) {
    char key[48];
    json_t *list = json_array();
    size_t n = 0;
    snprintf(key, sizeof key, "%s_tokens", qkv_site_name(site));
    for (size_t t = 0; t < n_tokens; t++) {
        if (!qkv_plan_wants_token(plan, site, t)) continue;
        qkv_json_push(list, json_integer((json_int_t)t));
        n++;
    }
    if (n > 0 && n < n_tokens)
        put(draft, key, list);
    else
        json_decref(list);
}

/* What was asked for, in the words it was asked in. */
static void put_plan(metadata_draft *draft, const qkv_plan *plan, const qkv_model *model) {
    size_t n_tokens = 0, length = 0;
    const int32_t *tokens = qkv_plan_tokens(plan, &n_tokens);
    const char *prompt = qkv_plan_prompt(plan, &length);
    if (prompt) put(draft, "prompt", qkv_json_string(prompt, length));
    put(draft, "tokens", qkv_json_token_ids(tokens, n_tokens));
    put(draft, "token_strings", qkv_json_token_strings(model, tokens, n_tokens));
    json_t *captures = json_array();
    const char *text;
    for (size_t i = 0; (text = qkv_plan_capture_text(plan, i)); i++) {
        qkv_json_push(captures, qkv_json_text(text));
    }
    put(draft, "captures", captures);
    for (size_t i = 0; (text = qkv_plan_source(plan, i, &tokens)); i++) {
        qkv_text key = {0};
        qkv_text_puts(&key, "source.");
        qkv_text_append_utf8(&key, text, strlen(text));
        if (key.failed)
            draft->failed = 1;
        else
            put(draft, key.data, qkv_json_token_ids(tokens, qkv_plan_source_length(plan, i)));
        qkv_text_release(&key);
    }
    put_row_tokens(draft, plan, QKV_SITE_LOGITS, n_tokens);
    put_row_tokens(draft, plan, QKV_SITE_FINAL_NORM, n_tokens);
}

/* ---- what every tensor is ---- */

/* The edits of every variant, a list of texts each; the baseline's is empty. */
static json_t *list_edits(const qkv_result *result) {
    json_t *variants = json_array();
    for (size_t v = 0; v < qkv_result_n_variants(result); v++) {
        json_t *edits = json_array();
        for (size_t e = 0; e < qkv_result_n_edits(result, v); e++)
            qkv_json_push(edits, qkv_json_text(qkv_result_edit_text(result, v, e)));
        qkv_json_push(variants, edits);
    }
    return variants;
}

/* What the indices of an axis count: `letter` is that of the site's shape. */
static const char *axis_name(char letter, int is_map, int32_t axis) {
    switch (letter) {
    case 'T':
        return !is_map ? "token" : axis == 1 ? "query" : "key";
    case 'H':
    case 'G':
        return "head";
    case 'V':
        return "vocabulary";
    default:
        return "channel";
    }
}

static json_t *list_axes(qkv_site site, const qkv_tensor *tensor) {
    static const char *const reduced[QKV_REDUCTION_COUNT][3] = {
        [QKV_REDUCTION_FIRST] = {"head", "query"},
        [QKV_REDUCTION_COLUMNS] = {"head", "key"},
        [QKV_REDUCTION_DIAGONALS] = {"head", "distance"},
        [QKV_REDUCTION_MEAN] = {"head", "query block", "key block"},
        [QKV_REDUCTION_MAX] = {"head", "query block", "key block"},
        [QKV_REDUCTION_SINK] = {"head", "query"},
    };
    const char *letters = qkv_site_shape(site);
    const int is_map = strcmp(letters, "H,T,T") == 0;
    json_t *list = json_array();
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        qkv_json_push(list, json_string(tensor->reduction
                                            ? reduced[tensor->reduction][d]
                                            : axis_name(letters[2 * (size_t)d], is_map, d)));
    }
    return list;
}

static json_t *list_heads(const qkv_tensor *tensor) {
    json_t *list = json_array();
    for (int32_t h = 0; h < tensor->n_heads; h++)
        qkv_json_push(list, json_sprintf("%c%d", tensor->head_kind, (int)tensor->heads[h]));
    return list;
}

static json_t *describe_tensor(size_t variant, qkv_site site, int32_t layer,
                               const qkv_tensor *tensor) {
    json_t *shape = json_array();
    for (int32_t d = 0; d < tensor->n_dims; d++)
        qkv_json_push(shape, json_integer(tensor->shape[d]));
    json_t *entry = json_pack("{s:I, s:s, s:o, s:o}", "variant", (json_int_t)variant, "site",
                              qkv_site_name(site), "shape", shape, "axes", list_axes(site, tensor));
    int failed = !entry;
    if (qkv_site_has_layer(site)) failed |= qkv_json_put(entry, "layer", json_integer(layer)) != 0;
    if (tensor->heads) failed |= qkv_json_put(entry, "heads", list_heads(tensor)) != 0;
    if (tensor->channels) failed |= qkv_json_put(entry, "channels", list_channels(tensor)) != 0;
    if (tensor->reduction)
        failed |= qkv_json_put(entry, "reduction",
                               json_string(qkv_reduction_name(tensor->reduction))) != 0;
    if (!failed) return entry;
    json_decref(entry);
    return NULL;
}

static json_t *describe_tensors(const qkv_result *result) {
    json_t *all = json_object();
    qkv_site site;
    qkv_tensor tensor = QKV_TENSOR_INIT;
    size_t variant;
    int32_t layer;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &tensor); i++) {
        char name[QKV_STORE_NAME_SIZE];
        qkv_store_name(name, variant, site, layer, tensor.reduction);
        if (qkv_json_put(all, name, describe_tensor(variant, site, layer, &tensor)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* ---- all of it ---- */

json_t *qkv_store_metadata_texts(const json_t *metadata) {
    json_t *texts = json_object(), *value;
    const char *key;
    int failed = !texts;
    json_object_foreach((json_t *)metadata, key, value) {
        char *dump =
            json_is_string(value) ? NULL : qkv_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);
        failed |= qkv_json_put(texts, key, dump ? json_string(dump) : json_incref(value)) != 0;
        failed |= !dump && !json_is_string(value);
        free(dump);
    }
    if (!failed) return texts;
    json_decref(texts);
    return NULL;
}

int qkv_store_metadata(json_t **out, const qkv_result *result, const qkv_plan *plan,
                       const qkv_model *model, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(model, hash, err);
    if (status != QKV_OK) return status;
    const qkv_model_info *info = qkv_model_get_info(model);
    metadata_draft draft = {json_object(), 0};
    put_text(&draft, "qkv_version", qkv_version());
    put_text(&draft, "model", qkv_path_model(info->path));
    put_text(&draft, "model_hash", hash);
    if (info->notices[0]) put_text(&draft, "model_notices", info->notices);
    put_text(&draft, "architecture", info->architecture);
    put_plan(&draft, plan, model);
    for (size_t v = 0; v < qkv_result_n_variants(result); v++) {
        put_variant(&draft, result, plan, v);
    }
    put_shapes(&draft, result, info);
    put(&draft, "edits", list_edits(result));
    put(&draft, "tensors", describe_tensors(result));
    if (draft.failed) {
        json_decref(draft.object);
        return qkv_fail_memory(err);
    }
    *out = draft.object;
    return QKV_OK;
}
