/* Which files there are, and what they become together. */
#define _POSIX_C_SOURCE 200809L
#include "tokenizer/tokenizer_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_json_internal.h"

const char *qkv_tokenizer_file_name(enum qkv_tokenizer_file file) {
    static const char *const names[] = {
#define QKV_TOKENIZER_FILE_NAME(identifier, name) name,
        QKV_TOKENIZER_FILE_LIST(QKV_TOKENIZER_FILE_NAME)
#undef QKV_TOKENIZER_FILE_NAME
    };
    return names[file];
}

int qkv_tokenizer_map_file(qkv_mapping *map, qkv_text *path, const char *dir,
                           enum qkv_tokenizer_file file, qkv_error *err) {
    return qkv_tokenizer_map_named(map, path, dir, qkv_tokenizer_file_name(file), err);
}

int qkv_tokenizer_map_named(qkv_mapping *map, qkv_text *path, const char *dir, const char *name,
                            qkv_error *err) {
    struct stat st;
    *map = (qkv_mapping){0};
    path->length = 0;
    qkv_text_printf(path, "%s/%s", dir, name);
    if (path->failed) return qkv_fail_memory(err);
    if (lstat(path->data, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) return QKV_OK;
    return qkv_mapping_open(map, path->data, err);
}

static void release(qkv_tokenizer_json *reader) {
    json_decref(reader->config);
    json_decref(reader->numbered);
    json_decref(reader->options);
    free(reader->tokens);
    qkv_text_release(&reader->pool);
    qkv_word_list_release(&reader->merge_list);
    qkv_word_list_release(&reader->steps);
    qkv_word_list_release(&reader->patterns);
    qkv_word_list_release(&reader->behaviors);
    free(reader->charsmap);
}

static const char *architecture(const struct gguf_context *meta) {
    const int64_t id = gguf_find_key(meta, "general.architecture");
    return id < 0 ? "" : gguf_get_val_str(meta, id);
}

/* The rows of embeddings that the architecture's key tells, or 0. */
static size_t count_rows(const struct gguf_context *meta) {
    qkv_text key = {0};
    qkv_text_printf(&key, "%s.vocab_size", architecture(meta));
    const int64_t id = key.failed ? -1 : gguf_find_key(meta, key.data);
    qkv_text_release(&key);
    return id >= 0 && gguf_get_kv_type(meta, id) == GGUF_TYPE_UINT32 ? gguf_get_val_u32(meta, id)
                                                                     : 0;
}

static int read_json(qkv_tokenizer_json *reader, const qkv_mapping *map, const char *dir,
                     qkv_error *err) {
    reader->files = 1U << QKV_TOKENIZER_FILE_JSON;
    int status = qkv_json_find_parts(reader, map, err);
    return status == QKV_OK ? qkv_json_read_config(reader, dir, err) : status;
}

/* The template called default, of those that the configuration has. */
static const char *configured_template(const json_t *config) {
    const json_t *all = json_object_get(config, "chat_template");
    if (json_is_string(all)) return json_string_value(all);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(one, "template"));
    }
    return NULL;
}

/* A file of its own goes before the configuration, as in transformers. */
static int write_chat_template(qkv_tokenizer_json *reader, struct gguf_context *meta,
                               const char *dir, qkv_error *err) {
    qkv_text path = {0};
    qkv_mapping map = {0};
    int status = qkv_tokenizer_map_file(&map, &path, dir, QKV_TOKENIZER_FILE_CHAT, err);
    char *own = map.data ? qkv_strndup((const char *)map.data, map.size) : NULL;
    const char *text = map.data ? own : configured_template(reader->config);
    if (map.data && !own) status = qkv_fail_memory(err);
    if (own && strlen(own) != map.size)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s holds NUL bytes: not a template", path.data);
    if (own) reader->files |= 1U << QKV_TOKENIZER_FILE_CHAT;
    if (status == QKV_OK && text) gguf_set_val_str(meta, "tokenizer.chat_template", text);
    free(own);
    qkv_mapping_close(&map);
    qkv_text_release(&path);
    return status;
}

int qkv_tokenizer_read(struct gguf_context *meta, const char *dir, unsigned *files,
                       qkv_error *err) {
    qkv_tokenizer_json reader = {.unknown = QKV_NO_TOKEN, .n_rows = count_rows(meta)};
    qkv_older_files older = {0};
    qkv_text path = {0};
    qkv_mapping map = {0};
    int status = qkv_tokenizer_map_file(&map, &path, dir, QKV_TOKENIZER_FILE_JSON, err);
    reader.path = path.data;
    if (map.data)
        status = read_json(&reader, &map, dir, err);
    else if (status == QKV_OK)
        status = qkv_older_files_open(&older, &reader, dir, architecture(meta), err);
    if (status == QKV_OK && reader.files) status = qkv_json_read_parts(&reader, err);
    if (status == QKV_OK && reader.files) status = qkv_json_write(&reader, meta, err);
    if (status == QKV_OK && reader.files) status = write_chat_template(&reader, meta, dir, err);
    if (status == QKV_OK && reader.files) status = qkv_json_write_end_tokens(meta, dir, err);
    *files = reader.files;
    qkv_older_files_close(&older);
    qkv_mapping_close(&map);
    release(&reader);
    qkv_text_release(&path);
    return status;
}
