/*
 * The pre-tokeniser of tokenizer.json: patterns that cut words, and what else it does to text
 * (spaces before it or spelled otherwise), which becomes steps of the normaliser.
 */
#include <string.h>

#include "tokenizer/regex.h"
#include "tokenizer/tokenizer_json_internal.h"
#include "tokenizer/tokenizer_spm.h"

enum { MAX_DEPTH = 8 };

#define WHITE "\\p{White_Space}"
#define PUNCTUATION "[\\p{P}!-\\/:-@\\[-`{-~]"
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}"

typedef int read_part(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err);

static int push(qkv_tokenizer_json *reader, const char *pattern, const char *behavior,
                qkv_error *err) {
    int status = qkv_word_list_push(&reader->patterns, pattern, err);
    return status == QKV_OK ? qkv_word_list_push(&reader->behaviors, behavior, err) : status;
}

static int push_step(qkv_tokenizer_json *reader, const char *name, const char *first,
                     const char *second, qkv_error *err) {
    int status = qkv_word_list_push(&reader->steps, name, err);
    if (status == QKV_OK && first) status = qkv_word_list_push(&reader->steps, first, err);
    if (status == QKV_OK && second) status = qkv_word_list_push(&reader->steps, second, err);
    return status;
}

static const struct {
    const char *name, *plain, *inverted; /* NULL: not supported */
} behaviors[] = {
    {"Isolated", "isolated", "isolated"},
    {"Removed", "removed", "removed_inverted"},
    {"Contiguous", "contiguous", "contiguous"},
    {"MergedWithPrevious", "merged_with_previous", NULL},
    {"MergedWithNext", "merged_with_next", NULL},
};

static int find_behavior(const qkv_tokenizer_json *reader, const json_t *tree, const char *fallback,
                         const char **behavior, qkv_error *err) {
    const char *name = json_string_value(json_object_get(tree, "behavior"));
    int invert = 0;
    int status = qkv_json_flag(reader, tree, qkv_json_type(tree), "invert", 0, &invert, err);
    if (status != QKV_OK) return status;
    if (!name) name = fallback;
    for (size_t i = 0; i < sizeof behaviors / sizeof *behaviors; i++) {
        if (strcmp(behaviors[i].name, name) != 0) continue;
        *behavior = invert ? behaviors[i].inverted : behaviors[i].plain;
        if (*behavior) return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %s with behavior '%.64s'%s is not supported",
                    reader->path, qkv_json_type(tree), name, invert ? ", inverted," : "");
}

static int read_split(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    const json_t *pattern = json_object_get(tree, "pattern");
    const char *literal = json_string_value(json_object_get(pattern, "String"));
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *behavior = NULL;
    int status = find_behavior(reader, tree, "", &behavior, err);
    if (status != QKV_OK) return status;
    if ((!literal || !literal[0]) && (!regex || !regex[0]))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: pre-tokenizer Split has no pattern",
                        reader->path);
    qkv_text text = {0};
    if (regex)
        status = qkv_regex_translate(&text, regex, reader->path, err);
    else
        qkv_regex_quote(&text, literal);
    if (status == QKV_OK && text.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = push(reader, text.data, behavior, err);
    qkv_text_release(&text);
    return status;
}

/* The words of GPT-2, unless it only spells bytes. */
static int read_byte_level(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    int prefix = 0, regex = 0, whole, status;
    const char *const *patterns = NULL, *name;
    size_t count = 0;
    reader->byte_level = 1;
    status = qkv_json_flag(reader, tree, "ByteLevel", "add_prefix_space", 1, &prefix, err);
    if (status == QKV_OK)
        status = qkv_json_flag(reader, tree, "ByteLevel", "use_regex", 1, &regex, err);
    if (status == QKV_OK && prefix && reader->patterns.count > 0)
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "%s: ByteLevel with add_prefix_space after another pre-tokenizer is not "
                          "supported",
                          reader->path);
    if (status == QKV_OK && prefix) status = push_step(reader, "prefix", " ", NULL, err);
    for (size_t i = 0; status == QKV_OK && regex; i++) {
        name = qkv_pretokenizer_known(i, &patterns, &count, &whole);
        if (!name) break;
        if (strcmp(name, "gpt-2") == 0) return push(reader, patterns[0], "isolated", err);
    }
    return status;
}

/* Where Metaspace puts its space: always, at the start of the whole text, or nowhere. */
static const char *metaspace_scheme(const json_t *tree) {
    const char *scheme = json_string_value(json_object_get(tree, "prepend_scheme"));
    if (scheme) return scheme;
    return json_is_false(json_object_get(tree, "add_prefix_space")) ? "never" : "always";
}

static int read_metaspace(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    const char *mark = json_string_value(json_object_get(tree, "replacement"));
    const char *scheme = metaspace_scheme(tree);
    int split = 1;
    if (!mark || strcmp(mark, QKV_SPM_SPACE) != 0)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: Metaspace with another replacement than U+2581 is not supported",
                        reader->path);
    /* After WhitespaceSplit, each word gets its space; the same as one space between words. */
    int by_word = reader->patterns.count == 1 && strcmp(reader->patterns.items[0], WHITE) == 0;
    if (reader->patterns.count > (size_t)by_word || (by_word && strcmp(scheme, "always") != 0))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: Metaspace after this pre-tokenizer is not supported", reader->path);
    int status = qkv_json_flag(reader, tree, "Metaspace", "split", 1, &split, err);
    if (status == QKV_OK && by_word) {
        qkv_word_list_release(&reader->patterns);
        qkv_word_list_release(&reader->behaviors);
        reader->joins_blanks = 1;
        split = 1;
        status = push_step(reader, "join_white", NULL, NULL, err);
        /* A word that starts with the mark gets no other. */
        if (status == QKV_OK) status = push_step(reader, "replace", " " QKV_SPM_SPACE, " ", err);
    }
    if (status == QKV_OK) status = push_step(reader, "replace", " ", QKV_SPM_SPACE, err);
    if (status != QKV_OK) return status;
    if (strcmp(scheme, "always") == 0)
        status = push_step(reader, "prefix", QKV_SPM_SPACE, NULL, err);
    else if (strcmp(scheme, "first") == 0)
        status = push_step(reader, "prefix_first", QKV_SPM_SPACE, NULL, err);
    else if (strcmp(scheme, "never") != 0)
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: prepend_scheme '%.64s' is not supported",
                          reader->path, scheme);
    reader->space_prefix = strcmp(scheme, "never") != 0;
    if (status == QKV_OK && split) status = push(reader, QKV_SPM_SPACE, "merged_with_next", err);
    return status;
}

static int read_digits(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    int single = 0;
    int status = qkv_json_flag(reader, tree, "Digits", "individual_digits", 0, &single, err);
    return status == QKV_OK ? push(reader, single ? "\\p{N}" : "\\p{N}+", "isolated", err) : status;
}

static int read_punctuation(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    const char *behavior = NULL;
    int status = find_behavior(reader, tree, "Isolated", &behavior, err);
    return status == QKV_OK ? push(reader, PUNCTUATION, behavior, err) : status;
}

static int read_white(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    (void)tree;
    return push(reader, WHITE, "removed", err);
}

static int read_whitespace(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    (void)tree;
    return push(reader, "[" WORD "]+|[^" WORD WHITE "]+", "removed_inverted", err);
}

static int read_bert(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    (void)tree;
    reader->bert_words = reader->patterns.count == 0;
    int status = push(reader, WHITE, "removed", err);
    return status == QKV_OK ? push(reader, PUNCTUATION, "isolated", err) : status;
}

static int read_delimiter(qkv_tokenizer_json *reader, const json_t *tree, qkv_error *err) {
    const char *mark = json_string_value(json_object_get(tree, "delimiter"));
    qkv_text text = {0};
    if (!mark || !mark[0])
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: CharDelimiterSplit has no delimiter",
                        reader->path);
    qkv_regex_quote(&text, mark);
    int status = text.failed ? qkv_fail_memory(err) : push(reader, text.data, "removed", err);
    qkv_text_release(&text);
    return status;
}

static const struct {
    const char *type;
    read_part *read;
} parts[] = {
    {"Split", read_split},
    {"ByteLevel", read_byte_level},
    {"Metaspace", read_metaspace},
    {"Digits", read_digits},
    {"Punctuation", read_punctuation},
    {"WhitespaceSplit", read_white},
    {"Whitespace", read_whitespace},
    {"BertPreTokenizer", read_bert},
    {"CharDelimiterSplit", read_delimiter},
};

static int read_one(qkv_tokenizer_json *reader, const json_t *tree, int depth, qkv_error *err) {
    const char *type = qkv_json_type(tree);
    if (depth > MAX_DEPTH)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: pre-tokenizers within pre-tokenizers",
                        reader->path);
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(tree, "pretokenizers");
        int status = QKV_OK;
        if (!json_is_array(list))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: a Sequence has no pretokenizers",
                            reader->path);
        for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++)
            status = read_one(reader, json_array_get(list, i), depth + 1, err);
        return status;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(parts[i].type, type) == 0) return parts[i].read(reader, tree, err);
    }
    return qkv_json_fail_part(reader, "pre-tokenizer", tree, err);
}

int qkv_json_read_words(qkv_tokenizer_json *reader, qkv_error *err) {
    json_t *tree = NULL;
    if (!reader->pre.text) return QKV_OK;
    int status = qkv_json_tree(reader, reader->pre, "the pre-tokenizer", &tree, err);
    if (status == QKV_OK) status = read_one(reader, tree, 0, err);
    json_decref(tree);
    return status;
}
