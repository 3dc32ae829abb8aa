/*
 * What tokenizer.json puts before and after a text, and which ids have which role: its
 * post-processor, and tokenizer_config.json beside it.
 */
#include <string.h>

#include "tokenizer/tokenizer_json_internal.h"

enum { MAX_DEPTH = 8 };

#define KEY(name) "tokenizer.ggml." name

/* The id of a token that the configuration names, as a string or as an object. */
static int32_t named_token(const qkv_tokenizer_json *reader, const char *key) {
    const json_t *value = json_object_get(reader->config, key);
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_is_string(value) ? qkv_json_find_token(reader, json_string_value(value))
                                 : QKV_NO_TOKEN;
}

/* One more token at an end. Of several the one with the role counts (see is_added). */
static int set_end(const qkv_tokenizer_json *reader, qkv_json_end *end, json_int_t id,
                   qkv_error *err) {
    if (id < 0 || id >= (json_int_t)reader->n_tokens)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: the post-processor adds id %lld, which no token has", reader->path,
                        (long long)id);
    const char *role = end == &reader->first ? "bos_token" : "eos_token";
    if (end->count == 0 || id == named_token(reader, role)) end->id = (int32_t)id;
    end->count++;
    return QKV_OK;
}

/* "pair": one token, a text, one or more separators, the other text, a separator. How many stand between them; 0
 * where it is something else. */
static int64_t count_separators(const json_t *pair) {
    const char *separator = NULL;
    int64_t counts[3] = {0}; /* before, between and after the texts */
    size_t n_texts = 0;
    for (size_t i = 0; i < json_array_size(pair); i++) {
        const json_t *part = json_array_get(pair, i);
        const char *name =
            json_string_value(json_object_get(json_object_get(part, "SpecialToken"), "id"));
        if (!name && n_texts++ == 2) return 0;
        if (!name) continue;
        if (n_texts && separator && strcmp(name, separator) != 0) return 0;
        if (n_texts) separator = name;
        counts[n_texts]++;
    }
    return n_texts == 2 && counts[0] == 1 && counts[2] == 1 ? counts[1] : 0;
}

/* "single": [{"SpecialToken": {"id": NAME}}, {"Sequence": ...}, ...] */
static int read_template(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    const json_t *names = json_object_get(tree, "special_tokens");
    const json_t *single = json_object_get(tree, "single");
    qkv_json_end *end = &reader->first;
    int status = QKV_OK;
    reader->separators = count_separators(json_object_get(tree, "pair"));
    for (size_t i = 0; i < json_array_size(single) && status == QKV_OK; i++) {
        const json_t *part = json_array_get(single, i);
        if (json_object_get(part, "Sequence")) {
            end = &reader->last;
            continue;
        }
        const char *name =
            json_string_value(json_object_get(json_object_get(part, "SpecialToken"), "id"));
        const json_t *ids = name ? json_object_get(json_object_get(names, name), "ids") : NULL;
        if (json_array_size(ids) != 1 || !json_is_integer(json_array_get(ids, 0)))
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "%s: the post-processor's template has a part that is not one token",
                            reader->path);
        status = set_end(reader, end, json_integer_value(json_array_get(ids, 0)), err);
    }
    if (status == QKV_OK && end != &reader->last)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s: the post-processor's template has no text",
                          reader->path);
    return status;
}

/* "cls": [TEXT, ID], "sep": [TEXT, ID]. RoBERTa puts two separators between two texts, BERT one. */
static int read_pair(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    reader->separators = strcmp(qkv_json_type(tree), "RobertaProcessing") == 0 ? 2 : 1;
    const struct {
        const char *key;
        qkv_json_end *end;
    } ends[] = {{"cls", &reader->first}, {"sep", &reader->last}};
    int status = QKV_OK;
    for (size_t i = 0; i < 2 && status == QKV_OK; i++) {
        const json_t *id = json_array_get(json_object_get(tree, ends[i].key), 1);
        if (!json_is_integer(id))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: post-processor %s has no %s", reader->path,
                            qkv_json_type(tree), ends[i].key);
        status = set_end(reader, ends[i].end, json_integer_value(id), err);
    }
    return status;
}

static int read_one(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err) {
    const char *type = qkv_json_type(tree);
    if (strcmp(type, "Sequence") == 0 && depth <= MAX_DEPTH) {
        const json_t *list = json_object_get(tree, "processors");
        int status = QKV_OK;
        for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++)
            status = read_one(reader, json_array_get(list, i), depth + 1, err);
        return status;
    }
    if (strcmp(type, "ByteLevel") == 0) return QKV_OK; /* about positions only */
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(reader, tree, err);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0)
        return read_pair(reader, tree, err);
    return qkv_json_fail_part(reader, "post-processor", tree, err);
}

/* ---- tokenizer_config.json ---- */

static const struct {
    const char *name, *key;
} roles[] = {
    {"bos_token", KEY("bos_token_id")},     {"eos_token", KEY("eos_token_id")},
    {"unk_token", KEY("unknown_token_id")}, {"sep_token", KEY("seperator_token_id")},
    {"pad_token", KEY("padding_token_id")}, {"cls_token", KEY("cls_token_id")},
    {"mask_token", KEY("mask_token_id")},
};

const char *qkv_json_role(size_t index) {
    return index < sizeof roles / sizeof *roles ? roles[index].name : NULL;
}

/* Those with the roles cls and sep. */
static void wrap(qkv_tokenizer_json *reader) {
    const int32_t first = named_token(reader, "cls_token"), last = named_token(reader, "sep_token");
    if (first != QKV_NO_TOKEN) reader->first = (qkv_json_end){first, 1};
    if (last != QKV_NO_TOKEN) reader->last = (qkv_json_end){last, 1};
}

int qkv_json_read_ends(qkv_tokenizer_json *reader, qkv_error *err) {
    int status = QKV_OK;
    if (reader->wraps) wrap(reader);
    if (reader->post.text) {
        json_t *tree = NULL;
        status = qkv_json_tree(reader, reader->post, "the post-processor", &tree, err);
        if (status == QKV_OK) status = read_one(reader, tree, 0, err);
        json_decref(tree);
    }
    return status;
}

static void set_id(struct gguf_context *meta, const char *key, int32_t id) {
    if (id != QKV_NO_TOKEN) gguf_set_val_u32(meta, key, (uint32_t)id);
}

/* The token of an end, and whether it is added: what the configuration says goes before the
 * post-processor, where both speak of the same token. GGUF can say no more than one token before and
 * one after. */
static int is_added(const qkv_tokenizer_json *reader, const char *key, const qkv_json_end *end,
                    int32_t named, int32_t *id, int *added, qkv_error *err) {
    const int speaks = json_is_boolean(json_object_get(reader->config, key));
    *added = end->count > 0;
    *id = end->count > 0 ? end->id : named;
    if (end->count > 1 && !(speaks && end->id == named))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: the post-processor adds several tokens at one end, which is not "
                        "supported",
                        reader->path);
    if (*id != named || named == QKV_NO_TOKEN) return QKV_OK;
    return qkv_json_flag(reader, reader->config, "tokenizer_config.json", key, *added, added, err);
}

int qkv_json_write_ends(const qkv_tokenizer_json *reader, struct gguf_context *meta,
                        qkv_error *err) {
    int32_t bos, eos;
    int add_bos = 0, add_eos = 0;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        set_id(meta, roles[i].key, named_token(reader, roles[i].name));
    int status = is_added(reader, "add_bos_token", &reader->first, named_token(reader, "bos_token"),
                          &bos, &add_bos, err);
    if (status == QKV_OK)
        status = is_added(reader, "add_eos_token", &reader->last, named_token(reader, "eos_token"),
                          &eos, &add_eos, err);
    if (status != QKV_OK) return status;
    set_id(meta, KEY("bos_token_id"), bos);
    set_id(meta, KEY("eos_token_id"), eos);
    set_id(meta, KEY("unknown_token_id"), reader->unknown);
    gguf_set_val_bool(meta, KEY("add_bos_token"), add_bos);
    gguf_set_val_bool(meta, KEY("add_eos_token"), add_eos);
    if (reader->kind == QKV_JSON_WordPiece) gguf_set_val_bool(meta, KEY("add_sep_token"), false);
    if (reader->separators > (reader->kind == QKV_JSON_WordPiece))
        gguf_set_val_u32(meta, QKV_VOCAB_PAIR_KEY, (uint32_t)reader->separators);
    return QKV_OK;
}
