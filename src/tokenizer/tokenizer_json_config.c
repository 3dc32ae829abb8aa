/*
 * What stands beside tokenizer.json: tokenizer_config.json, and where that lists no added tokens,
 * the two files that did so before, special_tokens_map.json and added_tokens.json.
 *
 * None of them need be there. One that cannot be read is an error, since it may say that BOS goes
 * before the text.
 */
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "tokenizer/tokenizer_json_internal.h"

/* *tree stays NULL where there is no such file. */
static int read_named(const char *dir, const char *name, json_t **tree, qkv_error *err) {
    qkv_text path = {0};
    qkv_mapping map = {0};
    int status = qkv_tokenizer_map_named(&map, &path, dir, name, err);
    if (map.data) {
        const qkv_tokenizer_json named = {.path = path.data};
        const qkv_json_span all = {(const char *)map.data, map.size};
        status = qkv_json_tree(&named, all, "the file", tree, err);
        if (status == QKV_OK && !json_is_object(*tree))
            status = qkv_fail(err, QKV_ERR_FORMAT, "%s: not a JSON object", path.data);
        qkv_mapping_close(&map);
    }
    qkv_text_release(&path);
    return status;
}

static int read_object(const char *dir, enum qkv_tokenizer_file file, json_t **tree,
                       qkv_error *err) {
    return read_named(dir, qkv_tokenizer_file_name(file), tree, err);
}

/* special_tokens_map.json goes before the configuration. */
static int merge_roles(qkv_tokenizer_json *reader, const char *dir, qkv_error *err) {
    json_t *map = NULL, *value;
    const char *key;
    int status = read_object(dir, QKV_TOKENIZER_FILE_ROLES, &map, err);
    json_object_foreach(map, key, value) {
        json_t *before = json_object_get(reader->config, key);
        if (status != QKV_OK || json_equal(value, before)) continue;
        const int failed = json_is_array(before) && json_is_array(value)
                               ? json_array_extend(before, value)
                               : qkv_json_put(reader->config, key, json_incref(value));
        if (failed) status = qkv_fail_memory(err);
        reader->files |= 1U << QKV_TOKENIZER_FILE_ROLES;
    }
    json_decref(map);
    return status;
}

static int add_name(json_t *names, const json_t *value) {
    if (json_is_object(value)) value = json_object_get(value, "content");
    return !json_is_string(value) ||
           qkv_json_put(names, json_string_value(value), json_true()) == 0;
}

/* The texts that the configuration calls special, as keys; NULL when memory is short. */
static json_t *special_names(const json_t *config) {
    const json_t *others = json_object_get(config, "additional_special_tokens");
    json_t *names = json_object();
    const char *role;
    int ok = names != NULL;
    for (size_t i = 0; ok && (role = qkv_json_role(i)); i++)
        ok = add_name(names, json_object_get(config, role));
    for (size_t i = 0; ok && i < json_array_size(others); i++)
        ok = add_name(names, json_array_get(others, i));
    if (ok) return names;
    json_decref(names);
    return NULL;
}

static int add_number(qkv_tokenizer_json *reader, const json_t *names, const char *text,
                      const json_t *id, const char *dir, qkv_error *err) {
    char key[32];
    if (!json_is_integer(id))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s/added_tokens.json: '%.64s' has no id", dir, text);
    qkv_format(key, sizeof key, "%lld", (long long)json_integer_value(id));
    json_t *entry =
        json_pack("{s:s, s:b}", "content", text, "special", json_object_get(names, text) != NULL);
    return qkv_json_put(reader->numbered, key, entry) ? qkv_fail_memory(err) : QKV_OK;
}

/* {"TEXT": ID, ...} */
static int read_numbers(qkv_tokenizer_json *reader, const char *dir, qkv_error *err) {
    json_t *map = NULL, *id;
    const char *text;
    int status = read_object(dir, QKV_TOKENIZER_FILE_ADDED, &map, err);
    if (status == QKV_OK && map) {
        json_t *names = special_names(reader->config);
        reader->numbered = json_object();
        reader->numbered_is_legacy = 1;
        if (!names || !reader->numbered) status = qkv_fail_memory(err);
        json_object_foreach(map, text, id) {
            if (status == QKV_OK) status = add_number(reader, names, text, id, dir, err);
        }
        json_decref(names);
    }
    json_decref(map);
    return status;
}

int qkv_json_read_config(qkv_tokenizer_json *reader, const char *dir, qkv_error *err) {
    int status = read_object(dir, QKV_TOKENIZER_FILE_CONFIG, &reader->config, err);
    if (status != QKV_OK) return status;
    if (reader->config) reader->files |= 1U << QKV_TOKENIZER_FILE_CONFIG;
    reader->numbered = json_object_get(reader->config, "added_tokens_decoder");
    if (json_is_object(reader->numbered)) {
        json_incref(reader->numbered);
        return QKV_OK;
    }
    reader->numbered = NULL;
    if (!reader->config && !(reader->config = json_object())) return qkv_fail_memory(err);
    status = merge_roles(reader, dir, err);
    return status == QKV_OK ? read_numbers(reader, dir, err) : status;
}

/* ---- generation_config.json, or config.json where it is not there ---- */

/* One id, or a list of them; *n stays 0 where there is none. */
static int read_ids(const json_t *value, const char *dir, const char *file,
                    int32_t ids[QKV_MOST_END_TOKENS], size_t *n, qkv_error *err) {
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;
    *n = 0;
    if (!value || json_is_null(value)) return QKV_OK;
    if (count > QKV_MOST_END_TOKENS)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s/%s: eos_token_id has %zu ids; at most %d can end a text", dir, file,
                        count, QKV_MOST_END_TOKENS);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        const json_int_t number = json_integer_value(id);
        if (!json_is_integer(id) || number < -1 || number > INT32_MAX)
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s/%s: eos_token_id should be a token id or a list of them", dir,
                            file);
        ids[(*n)++] = (int32_t)number;
    }
    return QKV_OK;
}

/* Of a model inside a larger one, the settings of the language model. */
static const json_t *end_of_config(const json_t *config) {
    const json_t *own = json_object_get(config, "eos_token_id");
    return own ? own : json_object_get(json_object_get(config, "text_config"), "eos_token_id");
}

int qkv_json_write_end_tokens(struct gguf_context *meta, const char *dir, qkv_error *err) {
    static const char config[] = "config.json";
    const char *file = qkv_tokenizer_file_name(QKV_TOKENIZER_FILE_GENERATION);
    json_t *tree = NULL;
    int32_t ids[QKV_MOST_END_TOKENS];
    size_t n = 0;
    int status = read_named(dir, file, &tree, err);
    if (status == QKV_OK && !tree) {
        file = config;
        status = read_named(dir, file, &tree, err);
    }
    const json_t *end =
        file == config ? end_of_config(tree) : json_object_get(tree, "eos_token_id");
    if (status == QKV_OK) status = read_ids(end, dir, file, ids, &n, err);
    if (status == QKV_OK && n) gguf_set_arr_data(meta, QKV_END_TOKENS_KEY, GGUF_TYPE_INT32, ids, n);
    json_decref(tree);
    return status;
}
