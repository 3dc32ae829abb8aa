/*
 * tokenizer.json, the file of the Hugging Face tokenizers library.
 *
 * The file is mapped and gone through in place; only its small parts become trees. What is not
 * understood, a type of part or an option that would change the ids, is refused by name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "format/json_read.h"
#include "tokenizer/tokenizer_json_internal.h"

/* Of a part other than the vocabulary and the merges, in bytes. */
enum { MAX_PART = 8 << 20 };

int qkv_word_list_push(qkv_word_list *list, const char *word, qkv_error *err) {
    char *copy = qkv_strdup(word);
    if (copy && QKV_PUSH(list->items, list->capacity, list->count, copy)) return QKV_OK;
    free(copy);
    return qkv_fail_memory(err);
}

void qkv_word_list_release(qkv_word_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->items[i]);
    free(list->items);
    *list = (qkv_word_list){0};
}

/* A tree takes far more memory than the text of many empty values: no real file has them. */
static int is_dense(qkv_json_span value) {
    size_t values = 0;
    for (size_t i = 0; i < value.length; i++)
        values += value.text[i] == '[' || value.text[i] == '{' || value.text[i] == ',';
    return values > value.length / 8 + 4096;
}

int qkv_json_tree(const qkv_tokenizer_json *reader, qkv_json_span value, const char *what,
                  json_t **tree, qkv_error *err) {
    json_error_t where;
    *tree = NULL;
    if (value.length > MAX_PART || is_dense(value))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %s is too big (%zu bytes)", reader->path,
                        what, value.length);
    *tree = qkv_json_load(value.text, value.length, JSON_DECODE_ANY, &where);
    if (*tree) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s: %s", reader->path, what, where.text);
}

const char *qkv_json_type(const json_t *tree) {
    const char *type = json_string_value(json_object_get(tree, "type"));
    return type ? type : "";
}

int qkv_json_flag(const qkv_tokenizer_json *reader, const json_t *tree, const char *what,
                  const char *key, int fallback, int *value, qkv_error *err) {
    const json_t *member = json_object_get(tree, key);
    *value = fallback;
    if (!member || json_is_null(member)) return QKV_OK;
    if (!json_is_boolean(member))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s of %s should be true or false", reader->path,
                        key, what);
    *value = json_is_true(member);
    return QKV_OK;
}

int qkv_json_fail_part(const qkv_tokenizer_json *reader, const char *part, const json_t *tree,
                       qkv_error *err) {
    if (!json_is_object(tree) || !json_is_string(json_object_get(tree, "type")))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: a %s without a type", reader->path, part);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %s '%.64s' is not supported", reader->path, part,
                    qkv_json_type(tree));
}

static int fail_malformed(const char *path, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: not well-formed JSON, or not an object", path);
}

int qkv_json_find_parts(qkv_tokenizer_json *reader, const qkv_mapping *map, qkv_error *err) {
    const struct {
        const char *name;
        qkv_json_span *span;
    } parts[] = {
        {"added_tokens", &reader->added}, {"normalizer", &reader->normalizer},
        {"pre_tokenizer", &reader->pre},  {"post_processor", &reader->post},
        {"model", &reader->model},
    };
    qkv_json_scan scan;
    qkv_json_span key, value;
    int more = -1;
    if (qkv_json_open(&scan, qkv_json_whole((const char *)map->data, map->size)) &&
        scan.is_object) {
        while ((more = qkv_json_next(&scan, &key, &value)) > 0) {
            for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
                if (!qkv_json_equals(key, parts[i].name)) continue;
                int is_null = value.length == 4 && memcmp(value.text, "null", 4) == 0;
                *parts[i].span = is_null ? (qkv_json_span){NULL, 0} : value;
            }
        }
    }
    if (more < 0) return fail_malformed(reader->path, err);
    if (!reader->model.text) return qkv_fail(err, QKV_ERR_FORMAT, "%s: has no model", reader->path);
    return QKV_OK;
}

/* The model's settings, all but its two long lists, as a tree of their own. */
static int gather_options(qkv_tokenizer_json *reader, qkv_error *err) {
    qkv_json_scan scan;
    qkv_json_span key, value;
    int more = -1;
    reader->options = json_object();
    if (!reader->options) return qkv_fail_memory(err);
    if (!qkv_json_open(&scan, reader->model) || !scan.is_object)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the model is not an object", reader->path);
    while ((more = qkv_json_next(&scan, &key, &value)) > 0) {
        if (qkv_json_equals(key, "vocab")) {
            reader->vocab = value;
        } else if (qkv_json_equals(key, "merges")) {
            reader->merges = value;
        } else {
            char name[64];
            /* A name that no option has. */
            if (key.length - 2 >= sizeof name || !qkv_utf8_valid(key.text + 1, key.length - 2))
                continue;
            memcpy(name, key.text + 1, key.length - 2);
            name[key.length - 2] = '\0';
            json_t *tree = NULL;
            int status = qkv_json_tree(reader, value, "an option of the model", &tree, err);
            if (status != QKV_OK) return status;
            if (qkv_json_put(reader->options, name, tree)) return qkv_fail_memory(err);
        }
    }
    return more < 0 ? fail_malformed(reader->path, err) : QKV_OK;
}

/* Options that are not for inference, and that would change the ids. */
static int refuse_options(const qkv_tokenizer_json *reader, qkv_error *err) {
    const json_t *dropout = json_object_get(reader->options, "dropout");
    if (json_is_number(dropout) && json_number_value(dropout) != 0)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: dropout is not supported", reader->path);
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < 2 && reader->kind == QKV_JSON_BPE; i++) {
        const char *affix = json_string_value(json_object_get(reader->options, affixes[i]));
        if (affix && affix[0])
            return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %s '%.64s' is not supported",
                            reader->path, affixes[i], affix);
    }
    return QKV_OK;
}

static int find_model(qkv_tokenizer_json *reader, qkv_error *err) {
    static const char *const names[] = {
#define QKV_JSON_MODEL_NAME(name) #name,
        QKV_JSON_MODEL_LIST(QKV_JSON_MODEL_NAME)
#undef QKV_JSON_MODEL_NAME
    };
    const char *type = json_string_value(json_object_get(reader->options, "type"));
    if (!type) { /* old files leave it out */
        qkv_json_scan scan;
        int is_list = qkv_json_open(&scan, reader->vocab) && !scan.is_object;
        type = reader->merges.text ? "BPE" : is_list ? "Unigram" : "WordPiece";
    }
    for (int i = 0; i < QKV_JSON_N_MODELS; i++) {
        if (strcmp(names[i], type) != 0) continue;
        reader->kind = (enum qkv_json_model)i;
        return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: model '%.64s' is not supported (supported: BPE, Unigram, WordPiece)",
                    reader->path, type);
}

static int read_options(qkv_tokenizer_json *reader, qkv_error *err) {
    const struct {
        const char *key;
        int *value;
    } flags[] = {{"byte_fallback", &reader->byte_fallback},
                 {"ignore_merges", &reader->ignore_merges},
                 {"fuse_unk", &reader->fuse_unknown}};
    int status = gather_options(reader, err);
    if (status == QKV_OK) status = find_model(reader, err);
    if (status == QKV_OK) status = refuse_options(reader, err);
    for (size_t i = 0; i < sizeof flags / sizeof *flags && status == QKV_OK; i++)
        status = qkv_json_flag(reader, reader->options, "the model", flags[i].key, 0,
                               flags[i].value, err);
    if (status != QKV_OK) return status;
    const json_t *most = json_object_get(reader->options, "max_input_chars_per_word");
    reader->max_characters = json_is_integer(most) ? json_integer_value(most) : 100;
    const json_t *mark = json_object_get(reader->options, "continuing_subword_prefix");
    reader->continuing = json_is_string(mark) ? json_string_value(mark) : "##";
    return QKV_OK;
}

/* Before the rest, since a mistake there says more than one in a long list. */
int qkv_json_read_parts(qkv_tokenizer_json *reader, qkv_error *err) {
    int status = read_options(reader, err);
    if (status == QKV_OK) status = qkv_json_read_normalizer(reader, err);
    if (status == QKV_OK) status = qkv_json_read_words(reader, err);
    if (status == QKV_OK) status = qkv_json_read_vocab(reader, err);
    if (status == QKV_OK) status = qkv_json_read_added(reader, err);
    if (status == QKV_OK) status = qkv_json_read_merges(reader, err);
    if (status == QKV_OK) status = qkv_json_read_ends(reader, err);
    return status;
}
