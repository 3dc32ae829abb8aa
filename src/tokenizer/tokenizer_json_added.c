/*
 * Tokens that are added to the model's vocabulary: those of tokenizer.json, and then those of the
 * files beside it, as transformers adds them when it loads a tokenizer.json.
 *
 * A token that is there keeps its id and gets the properties that are stated last. One that is not
 * gets the id that is stated for it, also where the vocabulary has an ordinary token there (InternLM
 * 2 has placeholders for that purpose), or else the next one after the vocabulary.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "tokenizer/tokenizer_json_internal.h"

static int is_text(const qkv_tokenizer_json *reader, const qkv_json_token *token, const char *text,
                   size_t length) {
    return token->type != QKV_TOKEN_UNDEFINED && token->length == length &&
           memcmp(reader->pool.data + token->start, text, length) == 0;
}

/* What an object says about a token; where it is silent, a token of transformers' files that is not
 * special is normalised. */
static int set_properties(const qkv_tokenizer_json *reader, qkv_json_token *token,
                          const json_t *entry, int is_special, int of_transformers,
                          qkv_error *err) {
    int special = 0, left = 0, right = 0, single = 0, normalized = 0;
    int status = qkv_json_flag(reader, entry, "an added token", "special", 0, &special, err);
    special |= is_special;
    const struct {
        const char *key;
        int *value;
        int fallback;
    } flags[] = {{"lstrip", &left, 0},
                 {"rstrip", &right, 0},
                 {"single_word", &single, 0},
                 {"normalized", &normalized, of_transformers && !special}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags && status == QKV_OK; i++)
        status = qkv_json_flag(reader, entry, "an added token", flags[i].key, flags[i].fallback,
                               flags[i].value, err);
    if (status != QKV_OK) return status;
    token->type = special ? QKV_TOKEN_CONTROL : QKV_TOKEN_USER_DEFINED;
    token->strips_left = (uint8_t)left;
    token->strips_right = (uint8_t)right;
    token->single_word = (uint8_t)single;
    /* Without a normaliser there is no difference. */
    token->normalized = (uint8_t)(normalized && reader->normalizer.text);
    return QKV_OK;
}

/* ---- of tokenizer.json ---- */

static int add_token(qkv_tokenizer_json *reader, const json_t *entry, size_t expected,
                     qkv_error *err) {
    const char *text = json_string_value(json_object_get(entry, "content"));
    const json_t *id = json_object_get(entry, "id");
    if (!text || !json_is_integer(id))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: an added token has no content or no id",
                        reader->path);
    int status = qkv_json_reach(reader, (double)json_integer_value(id), expected, err);
    if (status != QKV_OK) return status;
    size_t index = (size_t)json_integer_value(id), start = reader->pool.length;
    if (reader->tokens[index].type == QKV_TOKEN_UNDEFINED) {
        qkv_text_puts(&reader->pool, text);
        status = qkv_json_set_token(reader, index, start, 0, err);
    } else if (!is_text(reader, &reader->tokens[index], text, strlen(text))) {
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          "%s: added token '%.80s' has id %zu, which another token has",
                          reader->path, text, index);
    }
    return status == QKV_OK ? set_properties(reader, &reader->tokens[index], entry, 0, 0, err)
                            : status;
}

static int read_list(qkv_tokenizer_json *reader, qkv_error *err) {
    json_t *list = NULL;
    if (!reader->added.text) return QKV_OK;
    int status = qkv_json_tree(reader, reader->added, "added_tokens", &list, err);
    if (status == QKV_OK && !json_is_array(list))
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s: added_tokens is not a list", reader->path);
    const size_t expected = reader->n_tokens + json_array_size(list);
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++)
        status = add_token(reader, json_array_get(list, i), expected, err);
    json_decref(list);
    return status;
}

/* ---- of the files beside it ---- */

/* A token that a file beside tokenizer.json names. */
typedef struct named_token {
    int64_t id;          /* stated for it, or QKV_NO_TOKEN */
    const json_t *entry; /* its properties; NULL or a string: special, and nothing else */
    size_t start, length;
} named_token;

typedef struct named_list {
    named_token *items;
    size_t count, capacity;
} named_list;

static int push_named(qkv_tokenizer_json *reader, named_list *list, const json_t *entry, int64_t id,
                      qkv_error *err) {
    const json_t *content = json_is_object(entry) ? json_object_get(entry, "content") : entry;
    const named_token token = {id, entry, reader->pool.length, json_string_length(content)};
    if (token.length == 0) return QKV_OK;
    qkv_text_append(&reader->pool, json_string_value(content), token.length);
    if (reader->pool.failed || !QKV_PUSH(list->items, list->capacity, list->count, token))
        return qkv_fail_memory(err);
    return QKV_OK;
}

static int compare_ids(const void *left, const void *right) {
    const named_token *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

/* Those with ids, {"ID": {"content": TEXT, ...}}, in the order of the ids. */
static int name_numbered(qkv_tokenizer_json *reader, named_list *list, qkv_error *err) {
    const char *key;
    json_t *entry;
    json_object_foreach(reader->numbered, key, entry) {
        int64_t id = 0;
        if (!qkv_parse_int(key, strlen(key), &id) || id < 0 || id > INT32_MAX ||
            !json_is_object(entry) || !json_is_string(json_object_get(entry, "content")))
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: beside it, added token %.64s has no number or no content",
                            reader->path, key);
        int status = push_named(reader, list, entry, id, err);
        if (status != QKV_OK) return status;
    }
    if (list->count > 1) qsort(list->items, list->count, sizeof *list->items, compare_ids);
    return QKV_OK;
}

/* Those that have a role, and those that are special without one. */
static int name_special(qkv_tokenizer_json *reader, named_list *list, qkv_error *err) {
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
    const char *key;
    int status = QKV_OK;
    for (size_t i = 0; (key = qkv_json_role(i)) && status == QKV_OK; i++)
        status = push_named(reader, list, json_object_get(reader->config, key), QKV_NO_TOKEN, err);
    for (size_t i = 0; i < sizeof lists / sizeof *lists && status == QKV_OK; i++) {
        json_t *all = json_object_get(reader->config, lists[i]), *entry;
        size_t index;
        json_array_foreach(all, index, entry) {
            if (status == QKV_OK) status = push_named(reader, list, entry, QKV_NO_TOKEN, err);
        }
        json_object_foreach(all, key, entry) {
            if (status == QKV_OK) status = push_named(reader, list, entry, QKV_NO_TOKEN, err);
        }
    }
    return status;
}

/* The id of a new token. */
static int place(qkv_tokenizer_json *reader, const named_token *named, size_t *id, qkv_error *err) {
    const int64_t end = (int64_t)reader->n_tokens, stated = named->id;
    *id = reader->n_tokens;
    if (stated != QKV_NO_TOKEN && stated < end + QKV_JSON_MAX_HOLES) {
        const int type = stated < end ? reader->tokens[stated].type : QKV_TOKEN_UNDEFINED;
        if (type == QKV_TOKEN_UNDEFINED || type == QKV_TOKEN_NORMAL) *id = (size_t)stated;
    }
    int status = qkv_json_reach(reader, (double)*id, reader->n_tokens, err);
    if (status == QKV_OK)
        reader->tokens[*id] = (qkv_json_token){
            .start = named->start, .length = (uint32_t)named->length, .type = QKV_TOKEN_NORMAL};
    return status;
}

static int add_named(qkv_tokenizer_json *reader, qkv_string_map *ids, const named_token *named,
                     qkv_error *err) {
    const char *text = reader->pool.data + named->start;
    const int numbered = named->id != QKV_NO_TOKEN;
    const int there = numbered && named->id < (int64_t)reader->n_tokens &&
                      is_text(reader, &reader->tokens[named->id], text, named->length);
    int32_t found = there ? (int32_t)named->id : qkv_string_map_find(ids, text, named->length);
    if (found == QKV_NO_TOKEN) {
        size_t id = 0;
        int status = place(reader, named, &id, err);
        if (status != QKV_OK) return status;
        found = qkv_string_map_add(ids, text, named->length, (int32_t)id);
    }
    qkv_json_token *token = &reader->tokens[found];
    const int is_added = token->type != QKV_TOKEN_NORMAL;
    if (is_added && (!numbered || reader->numbered_is_legacy)) return QKV_OK;
    if (numbered && reader->numbered_is_legacy) reader->files |= 1U << QKV_TOKENIZER_FILE_ADDED;
    return set_properties(reader, token, named->entry, !numbered, 1, err);
}

/* Texts go into the pool first, since the map borrows them. */
static int add_all_named(qkv_tokenizer_json *reader, qkv_error *err) {
    named_list list = {0};
    qkv_string_map ids = {0};
    int status = name_numbered(reader, &list, err);
    if (status == QKV_OK) status = name_special(reader, &list, err);
    if (status == QKV_OK && !qkv_string_map_init(&ids, reader->n_tokens + list.count))
        status = qkv_fail_memory(err);
    for (size_t i = 0; i < reader->n_tokens && status == QKV_OK; i++) {
        const qkv_json_token *token = &reader->tokens[i];
        if (token->type != QKV_TOKEN_UNDEFINED)
            qkv_string_map_add(&ids, reader->pool.data + token->start, token->length, (int32_t)i);
    }
    for (size_t i = 0; i < list.count && status == QKV_OK; i++)
        status = add_named(reader, &ids, &list.items[i], err);
    qkv_string_map_release(&ids);
    free(list.items);
    return status;
}

/* ---- all of them ---- */

/* The token for what no other covers. */
static int find_unknown(qkv_tokenizer_json *reader, qkv_error *err) {
    const json_t *name = json_object_get(reader->options, "unk_token");
    const json_t *id = json_object_get(reader->options, "unk_id");
    if (json_is_integer(id)) {
        json_int_t value = json_integer_value(id);
        if (value < 0 || value >= (json_int_t)reader->n_tokens)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: unk_id is out of range", reader->path);
        reader->unknown = (int32_t)value;
    } else if (json_is_string(name)) {
        reader->unknown = qkv_json_find_token(reader, json_string_value(name));
        if (reader->unknown == QKV_NO_TOKEN)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: unk_token '%.64s' is not a token",
                            reader->path, json_string_value(name));
    }
    return QKV_OK;
}

/* Tokens that text becomes by other ways than its own characters. */
static void set_types(qkv_tokenizer_json *reader) {
    for (size_t i = 0; i < reader->n_tokens; i++) {
        qkv_json_token *token = &reader->tokens[i];
        const char *text = reader->pool.data + token->start;
        if (token->type == QKV_TOKEN_NORMAL && reader->byte_fallback && !reader->byte_level &&
            qkv_vocab_byte_of(text, token->length) >= 0)
            token->type = QKV_TOKEN_BYTE;
    }
    if (reader->unknown != QKV_NO_TOKEN && !reader->byte_level)
        reader->tokens[reader->unknown].type = QKV_TOKEN_UNKNOWN;
}

/* A token that was added without a row of embeddings for it (Gemma 3's <image_soft_token>, a [PAD])
 * cannot be used: text with its name stays text. */
static void drop_rowless(qkv_tokenizer_json *reader) {
    while (reader->n_rows > 0 && reader->n_tokens > reader->n_rows &&
           reader->tokens[reader->n_tokens - 1].type != QKV_TOKEN_NORMAL)
        reader->n_tokens--;
}

int qkv_json_read_added(qkv_tokenizer_json *reader, qkv_error *err) {
    int status = read_list(reader, err);
    if (status == QKV_OK) status = add_all_named(reader, err);
    if (status != QKV_OK) return status;
    drop_rowless(reader);
    status = find_unknown(reader, err);
    if (status == QKV_OK) set_types(reader);
    return status;
}
