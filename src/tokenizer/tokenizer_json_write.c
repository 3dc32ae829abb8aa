/*
 * What was understood of tokenizer.json, as metadata: GGUF's own keys wherever they can say it, so
 * that other programs understand a converted file, and ours for the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/regex.h"
#include "tokenizer/tokenizer_json_internal.h"
#include "tokenizer/tokenizer_spm.h"

#define KEY(name) "tokenizer.ggml." name
#define OUR_KEY(name) "qkv.tokenizer." name

/* Worse than any real score: for ids that no token has. */
#define NO_TOKEN_SCORE (-10000.0F)

/* ---- tokens ---- */

typedef struct token_arrays {
    const char **texts;
    int32_t *types;
    float *scores;
    qkv_text pool;
    size_t *starts;
} token_arrays;

/* A token's text as GGUF has it; WordPiece marks the start of words rather than their inside. */
static void append_text(const qkv_tokenizer_json *reader, const qkv_json_token *token,
                        qkv_text *out) {
    const char *text = reader->pool.data + token->start;
    size_t length = token->length, n = strlen(reader->continuing);
    if (reader->kind == QKV_JSON_WordPiece && token->type == QKV_TOKEN_NORMAL) {
        int inside = n > 0 && length >= n && memcmp(text, reader->continuing, n) == 0;
        if (!inside) qkv_text_puts(out, QKV_SPM_SPACE);
        text += inside ? n : 0;
        length -= inside ? n : 0;
    }
    /* Strings of metadata end at a NUL: it is spelled otherwise there. */
    for (const char *nul; length > 0 && (nul = memchr(text, 0, length));) {
        const size_t before = (size_t)(nul - text);
        qkv_text_append(out, text, before);
        qkv_text_puts(out, QKV_VOCAB_NUL);
        text += before + 1;
        length -= before + 1;
    }
    qkv_text_append(out, text, length);
}

static int fill_arrays(const qkv_tokenizer_json *reader, token_arrays *arrays, qkv_error *err) {
    size_t holes = 0;
    for (size_t i = 0; i < reader->n_tokens; i++) {
        const qkv_json_token *token = &reader->tokens[i];
        arrays->starts[i] = arrays->pool.length;
        arrays->types[i] = token->type;
        arrays->scores[i] = token->score;
        if (token->type == QKV_TOKEN_UNDEFINED) {
            qkv_text_printf(&arrays->pool, "[PAD%zu]", i);
            arrays->types[i] = QKV_TOKEN_UNUSED;
            arrays->scores[i] = NO_TOKEN_SCORE;
            holes++;
        } else {
            append_text(reader, token, &arrays->pool);
        }
        qkv_text_append(&arrays->pool, "", 1);
    }
    if (holes > QKV_JSON_MAX_HOLES)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %zu ids have no token", reader->path, holes);
    if (arrays->pool.failed) return qkv_fail_memory(err);
    for (size_t i = 0; i < reader->n_tokens; i++)
        arrays->texts[i] = arrays->pool.data + arrays->starts[i];
    return QKV_OK;
}

/* SentencePiece merges by score: the sooner a token can be made, the higher. */
static int score_by_rank(const qkv_tokenizer_json *reader, token_arrays *arrays, qkv_error *err) {
    qkv_string_map ids = {0};
    qkv_text joined = {0};
    if (!qkv_string_map_init(&ids, reader->n_tokens)) return qkv_fail_memory(err);
    for (size_t i = 0; i < reader->n_tokens; i++)
        qkv_string_map_add(&ids, arrays->texts[i], strlen(arrays->texts[i]), (int32_t)i);
    for (size_t rank = reader->merge_list.count; rank-- > 0;) {
        const char *merge = reader->merge_list.items[rank], *blank = strchr(merge, ' ');
        joined.length = 0;
        qkv_text_append(&joined, merge, (size_t)(blank - merge));
        qkv_text_puts(&joined, blank + 1);
        if (joined.failed) break;
        int32_t id = qkv_string_map_find(&ids, joined.data, joined.length);
        if (id != QKV_NO_TOKEN) arrays->scores[id] = -(float)rank;
    }
    qkv_string_map_release(&ids);
    int status = joined.failed ? qkv_fail_memory(err) : QKV_OK;
    qkv_text_release(&joined);
    return status;
}

static int write_tokens(const qkv_tokenizer_json *reader, struct gguf_context *meta,
                        const char *model, qkv_error *err) {
    const size_t n = reader->n_tokens;
    const int is_spm = strcmp(model, "llama") == 0;
    token_arrays arrays = {.texts = qkv_calloc(n, sizeof(char *)),
                           .types = qkv_calloc(n, sizeof(int32_t)),
                           .scores = qkv_calloc(n, sizeof(float)),
                           .starts = qkv_calloc(n, sizeof(size_t))};
    int status = QKV_OK;
    if (!arrays.texts || !arrays.types || !arrays.scores || !arrays.starts)
        status = qkv_fail_memory(err);
    if (status == QKV_OK) status = fill_arrays(reader, &arrays, err);
    if (status == QKV_OK && is_spm && !reader->by_score)
        status = score_by_rank(reader, &arrays, err);
    if (status == QKV_OK) {
        gguf_set_arr_str(meta, KEY("tokens"), arrays.texts, n);
        gguf_set_arr_data(meta, KEY("token_type"), GGUF_TYPE_INT32, arrays.types, n);
        if (is_spm || reader->kind == QKV_JSON_Unigram)
            gguf_set_arr_data(meta, KEY("scores"), GGUF_TYPE_FLOAT32, arrays.scores, n);
        if (reader->kind == QKV_JSON_BPE && !reader->by_score)
            gguf_set_arr_str(meta, KEY("merges"), (const char **)reader->merge_list.items,
                             reader->merge_list.count);
    }
    free(arrays.texts);
    free(arrays.types);
    free(arrays.scores);
    free(arrays.starts);
    qkv_text_release(&arrays.pool);
    return status;
}

/* ---- what is special about added tokens ---- */

static int write_property(const qkv_tokenizer_json *reader, struct gguf_context *meta,
                          const char *key, size_t offset, qkv_error *err) {
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < reader->n_tokens; i++) {
        const qkv_json_token *token = &reader->tokens[i];
        if (!((const uint8_t *)token)[offset] || token->length == 0 ||
            token->type == QKV_TOKEN_UNDEFINED)
            continue;
        if (!QKV_PUSH(ids, capacity, count, (int32_t)i)) {
            free(ids);
            return qkv_fail_memory(err);
        }
    }
    if (count > 0) gguf_set_arr_data(meta, key, GGUF_TYPE_INT32, ids, count);
    free(ids);
    return QKV_OK;
}

static int write_properties(const qkv_tokenizer_json *reader, struct gguf_context *meta,
                            qkv_error *err) {
    static const struct {
        const char *key;
        size_t offset;
    } properties[] = {
        {OUR_KEY("lstrip"), offsetof(qkv_json_token, strips_left)},
        {OUR_KEY("rstrip"), offsetof(qkv_json_token, strips_right)},
        {OUR_KEY("normalized"), offsetof(qkv_json_token, normalized)},
        {OUR_KEY("single_word"), offsetof(qkv_json_token, single_word)},
    };
    int status = QKV_OK;
    for (size_t i = 0; i < sizeof properties / sizeof *properties && status == QKV_OK; i++)
        status = write_property(reader, meta, properties[i].key, properties[i].offset, err);
    return status;
}

/* ---- words ---- */

#define ANY_WHITE "|\\p{White_Space}+"

static int ends_with(const qkv_text *text, const char *end) {
    size_t n = strlen(end);
    return text->length >= n && memcmp(text->data + text->length - n, end, n) == 0;
}

/* The same pattern, but for a last alternative that only takes what would be left over anyway. */
static int is_same_pattern(const char *ours, const char *known) {
    qkv_text a = {0}, b = {0};
    qkv_text_puts(&a, ours);
    int ok = qkv_regex_translate(&b, known, "", NULL) == QKV_OK && !a.failed && !b.failed;
    if (ok && a.length > b.length && ends_with(&a, ANY_WHITE)) a.length -= sizeof ANY_WHITE - 1;
    int same = ok && a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
    qkv_text_release(&a);
    qkv_text_release(&b);
    return same;
}

/* Isolated, or keeping nothing but the matches where those are everything. */
static int keeps_all(const qkv_tokenizer_json *reader, size_t i) {
    const char *behavior = reader->behaviors.items[i], *pattern = reader->patterns.items[i];
    size_t length = strlen(pattern), n = sizeof ANY_WHITE - 1;
    if (strcmp(behavior, "isolated") == 0) return 1;
    return strcmp(behavior, "removed_inverted") == 0 && length > n &&
           strcmp(pattern + length - n, ANY_WHITE) == 0;
}

static int is_known(const qkv_tokenizer_json *reader, const char *const *patterns, size_t count) {
    if (count != reader->patterns.count) return 0;
    for (size_t i = 0; i < count; i++) {
        if (!keeps_all(reader, i)) return 0;
        const char *ours = reader->patterns.items[i];
        if (strcmp(ours, patterns[i]) != 0 && !is_same_pattern(ours, patterns[i])) return 0;
    }
    return 1;
}

/* The name of a known pre-tokeniser with these patterns, or NULL; rather one that takes whole words
 * in the same way. */
static const char *known_name(const qkv_tokenizer_json *reader) {
    const char *name, *second = NULL;
    const char *const *patterns = NULL;
    size_t count = 0;
    int whole = 0;
    for (size_t i = 0; (name = qkv_pretokenizer_known(i, &patterns, &count, &whole)); i++) {
        if (!is_known(reader, patterns, count)) continue;
        if (whole == reader->ignore_merges) return name;
        if (!second) second = name;
    }
    return second;
}

static void write_words(const qkv_tokenizer_json *reader, struct gguf_context *meta) {
    const char *name = reader->byte_level ? known_name(reader) : NULL;
    gguf_set_val_str(meta, KEY("pre"), name ? name : "default");
    int is_default = name != NULL;
    if (reader->kind == QKV_JSON_WordPiece)
        is_default = reader->bert_words && reader->patterns.count == 2;
    else if (!reader->byte_level)
        is_default = reader->patterns.count == 0;
    if (is_default) return;
    gguf_set_arr_str(meta, OUR_KEY("patterns"), (const char **)reader->patterns.items,
                     reader->patterns.count);
    gguf_set_arr_str(meta, OUR_KEY("behaviors"), (const char **)reader->behaviors.items,
                     reader->behaviors.count);
}

/* ---- the rest ---- */

/* BPE over characters is "gemma4" to llama.cpp where no space goes before the text, and BOS does;
 * otherwise the scores stand for the merges. */
static const char *model_name(const qkv_tokenizer_json *reader, const struct gguf_context *meta) {
    if (reader->kind == QKV_JSON_WordPiece) return "bert";
    if (reader->kind == QKV_JSON_Unigram) return "t5";
    if (reader->byte_level) return "gpt2";
    if (reader->by_score) return "llama";
    int64_t bos = gguf_find_key(meta, KEY("add_bos_token"));
    return !reader->space_prefix && bos >= 0 && gguf_get_val_bool(meta, bos) ? "gemma4" : "llama";
}

static void write_flags(const qkv_tokenizer_json *reader, struct gguf_context *meta) {
    gguf_set_val_bool(meta, KEY("add_space_prefix"), reader->space_prefix);
    if (reader->kind == QKV_JSON_BPE) {
        gguf_set_val_bool(meta, OUR_KEY("ignore_merges"), reader->ignore_merges);
        if (!reader->byte_level) {
            gguf_set_val_bool(meta, OUR_KEY("use_merges"), !reader->by_score);
            gguf_set_val_bool(meta, OUR_KEY("fuse_unknown"), reader->fuse_unknown);
            gguf_set_val_bool(meta, OUR_KEY("byte_fallback"), reader->byte_fallback);
        }
    } else if (reader->kind == QKV_JSON_Unigram) {
        gguf_set_val_bool(meta, KEY("remove_extra_whitespaces"), reader->joins_blanks);
        gguf_set_val_bool(meta, OUR_KEY("byte_fallback"), reader->byte_fallback);
        if (reader->charsmap)
            gguf_set_arr_data(meta, KEY("precompiled_charsmap"), GGUF_TYPE_UINT8, reader->charsmap,
                              reader->charsmap_size);
    } else {
        gguf_set_val_bool(meta, KEY("normalizer.lowercase"), reader->lowercase);
        gguf_set_val_bool(meta, KEY("normalizer.strip_accents"), reader->strip_accents);
        gguf_set_val_i64(meta, OUR_KEY("max_word_characters"), reader->max_characters);
    }
}

int qkv_json_write(const qkv_tokenizer_json *reader, struct gguf_context *meta, qkv_error *err) {
    if (reader->charsmap && reader->kind != QKV_JSON_Unigram)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: a precompiled character map with a model other than Unigram",
                        reader->path);
    if (reader->byte_level && reader->kind != QKV_JSON_BPE)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: ByteLevel with a model other than BPE",
                        reader->path);
    int status = qkv_json_write_ends(reader, meta, err);
    if (status != QKV_OK) return status;
    const char *model = model_name(reader, meta);
    gguf_set_val_str(meta, KEY("model"), model);
    write_flags(reader, meta);
    write_words(reader, meta);
    if (!reader->byte_level || reader->steps.count > 0)
        gguf_set_arr_str(meta, OUR_KEY("normalizer"), (const char **)reader->steps.items,
                         reader->steps.count);
    status = write_tokens(reader, meta, model, err);
    return status == QKV_OK ? write_properties(reader, meta, err) : status;
}
