/* The normaliser of tokenizer.json, as steps of ours (normalizer.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/regex.h"
#include "tokenizer/tokenizer_json_internal.h"
#include "tokenizer/tokenizer_spm.h"

enum { MAX_DEPTH = 8 };

typedef int read_part(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err);

static int push(qkv_tokenizer_json *reader, const char *word, qkv_error *err) {
    return qkv_word_list_push(&reader->steps, word, err);
}

static int push_flag(qkv_tokenizer_json *reader, const json_t *tree, const char *what,
                     const char *key, int fallback, qkv_error *err) {
    int value = 0;
    int status = qkv_json_flag(reader, tree, what, key, fallback, &value, err);
    return status == QKV_OK ? push(reader, value ? "1" : "0", err) : status;
}

static const char *text_of(const json_t *tree, const char *key) {
    return json_string_value(json_object_get(tree, key));
}

static int fail_without(const qkv_tokenizer_json *reader, const json_t *tree, const char *key,
                        qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: normalizer %s has no %s", reader->path,
                    qkv_json_type(tree), key);
}

/* ---- those with nothing to say but their name ---- */

static const struct {
    const char *type, *step;
} plain[] = {
    {"NFC", "nfc"},
    {"NFD", "nfd"},
    {"NFKC", "nfkc"},
    {"NFKD", "nfkd"},
    {"Nmt", "nmt"},
    {"StripAccents", "strip_accents"},
    {"Lowercase", "lowercase"},
};

static int read_strip(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err) {
    (void)depth;
    int status = push(reader, "strip", err);
    if (status == QKV_OK) status = push_flag(reader, tree, "Strip", "strip_left", 1, err);
    if (status == QKV_OK) status = push_flag(reader, tree, "Strip", "strip_right", 1, err);
    return status;
}

static int read_prepend(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err) {
    (void)depth;
    const char *text = text_of(tree, "prepend");
    if (!text) return fail_without(reader, tree, "text", err);
    if (strcmp(text, QKV_SPM_SPACE) == 0) reader->space_prefix = 1;
    int status = push(reader, "prepend", err);
    return status == QKV_OK ? push(reader, text, err) : status;
}

static int read_replace(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err) {
    (void)depth;
    const json_t *pattern = json_object_get(tree, "pattern");
    const char *literal = text_of(pattern, "String"), *regex = text_of(pattern, "Regex");
    const char *content = text_of(tree, "content");
    if (!content || (!literal && !regex)) return fail_without(reader, tree, "pattern", err);
    if (regex && strcmp(regex, " {2,}") == 0) reader->joins_blanks = 1;
    qkv_text translated = {0};
    int status = push(reader, literal ? "replace" : "replace_pattern", err);
    if (status == QKV_OK && regex)
        status = qkv_regex_translate(&translated, regex, reader->path, err);
    if (status == QKV_OK && translated.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = push(reader, literal ? literal : translated.data, err);
    if (status == QKV_OK) status = push(reader, content, err);
    qkv_text_release(&translated);
    return status;
}

/* transformers gives its class for BERT the settings of tokenizer_config.json, also where the normaliser
 * of tokenizer.json has others. */
static const json_t *bert_setting(const qkv_tokenizer_json *reader, const char *key) {
    const char *class = text_of(reader->config, "tokenizer_class");
    const json_t *value = json_object_get(reader->config, key);
    const int is_bert =
        class && (strcmp(class, "BertTokenizer") == 0 || strcmp(class, "BertTokenizerFast") == 0);
    return is_bert && json_is_boolean(value) ? value : NULL;
}

static int read_bert_flag(const qkv_tokenizer_json *reader, const json_t *tree, const char *key,
                          const char *setting, int fallback, int *value, qkv_error *err) {
    const json_t *stated = bert_setting(reader, setting);
    int status = qkv_json_flag(reader, tree, "BertNormalizer", key, fallback, value, err);
    if (status == QKV_OK && stated) *value = json_is_true(stated);
    return status;
}

static int read_bert(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err) {
    (void)depth;
    int chinese = 1;
    int status =
        read_bert_flag(reader, tree, "lowercase", "do_lower_case", 1, &reader->lowercase, err);
    if (status == QKV_OK) /* null: as lowercase says */
        status = read_bert_flag(reader, tree, "strip_accents", "strip_accents", reader->lowercase,
                                &reader->strip_accents, err);
    if (status == QKV_OK)
        status = read_bert_flag(reader, tree, "handle_chinese_chars", "tokenize_chinese_chars", 1,
                                &chinese, err);
    if (status == QKV_OK) status = push(reader, "bert", err);
    if (status == QKV_OK) status = push_flag(reader, tree, "BertNormalizer", "clean_text", 1, err);
    if (status == QKV_OK) status = push(reader, chinese ? "1" : "0", err);
    if (status == QKV_OK) status = push(reader, reader->strip_accents ? "1" : "0", err);
    if (status == QKV_OK) status = push(reader, reader->lowercase ? "1" : "0", err);
    return status;
}

/* ---- the compiled character map ---- */

static int base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* How many bytes, or SIZE_MAX when a character is not base64's. */
static size_t decode_base64(const char *text, unsigned char *out) {
    uint32_t bits = 0;
    size_t n = 0, n_bits = 0;
    for (; *text && *text != '='; text++) {
        int digit = base64_digit(*text);
        if (digit < 0) return SIZE_MAX;
        bits = (bits << 6 | (uint32_t)digit) & 0xffffff;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        out[n++] = (unsigned char)(bits >> n_bits);
    }
    return n;
}

static int read_precompiled(qkv_tokenizer_json *reader, const json_t *tree, int depth,
                            qkv_error *err) {
    (void)depth;
    const char *text = text_of(tree, "precompiled_charsmap");
    if (!text || !text[0]) return fail_without(reader, tree, "precompiled_charsmap", err);
    if (reader->charsmap)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: two precompiled character maps",
                        reader->path);
    reader->charsmap = malloc(strlen(text));
    if (!reader->charsmap) return qkv_fail_memory(err);
    reader->charsmap_size = decode_base64(text, reader->charsmap);
    if (reader->charsmap_size == SIZE_MAX)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: precompiled_charsmap is not base64",
                        reader->path);
    return push(reader, "precompiled", err);
}

/* ---- sequences ---- */

static int read_one(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err);

static int read_sequence(qkv_tokenizer_json *reader, const json_t *tree, int depth,
                         qkv_error *err) {
    const json_t *list = json_object_get(tree, "normalizers");
    int status = json_is_array(list) ? QKV_OK : fail_without(reader, tree, "normalizers", err);
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++)
        status = read_one(reader, json_array_get(list, i), depth + 1, err);
    return status;
}

static const struct {
    const char *type;
    read_part *read;
} parts[] = {
    {"Sequence", read_sequence}, {"Strip", read_strip},         {"Prepend", read_prepend},
    {"Replace", read_replace},   {"BertNormalizer", read_bert}, {"Precompiled", read_precompiled},
};

static int read_one(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err) {
    const char *type = qkv_json_type(tree);
    if (depth > MAX_DEPTH)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: normalizers within normalizers",
                        reader->path);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(plain[i].type, type) == 0) return push(reader, plain[i].step, err);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(parts[i].type, type) == 0) return parts[i].read(reader, tree, depth, err);
    }
    return qkv_json_fail_part(reader, "normalizer", tree, err);
}

int qkv_json_read_normalizer(qkv_tokenizer_json *reader, qkv_error *err) {
    json_t *tree = NULL;
    if (!reader->normalizer.text) return QKV_OK;
    int status = qkv_json_tree(reader, reader->normalizer, "the normalizer", &tree, err);
    if (status == QKV_OK) status = read_one(reader, tree, 0, err);
    json_decref(tree);
    return status;
}
