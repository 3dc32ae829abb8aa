/*
 * Reads the part of the tokenizer metadata that all kinds share: token texts, types, scores, and
 * the ids and rules of BOS and EOS.
 *
 * A file may say anything, so every key's type, every array's length and every id is checked before
 * it is used. Empty and repeated tokens are tolerated (real files have them): an empty one matches
 * nothing, of equal ones the first counts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/vocab_internal.h"

#define KEY(name) "tokenizer.ggml." name

int qkv_vocab_string_array(const qkv_gguf *file, const char *key, int64_t *id, size_t *count,
                           qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    *id = gguf_find_key(header, key);
    if (*id < 0) return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is missing", file->path, key);
    if (gguf_get_kv_type(header, *id) != GGUF_TYPE_ARRAY ||
        gguf_get_arr_type(header, *id) != GGUF_TYPE_STRING)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be an array of strings", file->path,
                        key);
    *count = gguf_get_arr_n(header, *id);
    if (*count > INT32_MAX)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s has %zu entries, too many", file->path, key,
                        *count);
    return QKV_OK;
}

/* *data is NULL when the key is absent; otherwise one number per token, of a type that the bits of
 * `types` allow. */
static int number_array(const qkv_vocab *vocab, const qkv_gguf *file, const char *key,
                        unsigned types, const char *what, enum gguf_type *type, const void **data,
                        qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    int64_t id = gguf_find_key(header, key);
    *data = NULL;
    if (id < 0) return QKV_OK;
    if (gguf_get_kv_type(header, id) != GGUF_TYPE_ARRAY ||
        !(types >> gguf_get_arr_type(header, id) & 1))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be an array of %s", file->path, key,
                        what);
    size_t count = gguf_get_arr_n(header, id);
    if (count != (size_t)vocab->n_tokens)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s has %zu entries for %d tokens", file->path,
                        key, count, (int)vocab->n_tokens);
    *type = gguf_get_arr_type(header, id);
    *data = gguf_get_arr_data(header, id);
    return QKV_OK;
}

/* Copies a text, with NULs where they are spelled, and returns its length. */
static size_t copy_text(char *out, const char *text) {
    size_t length = 0;
    for (; *text; length++) {
        const int is_nul = strncmp(text, QKV_VOCAB_NUL, sizeof QKV_VOCAB_NUL - 1) == 0;
        out[length] = is_nul ? '\0' : *text;
        text += is_nul ? sizeof QKV_VOCAB_NUL - 1 : 1;
    }
    out[length] = '\0';
    return length;
}

static int read_texts(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    int64_t id;
    size_t count, total = 0;
    int status = qkv_vocab_string_array(file, KEY("tokens"), &id, &count, err);
    if (status != QKV_OK) return status;
    if (count == 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is empty", file->path, KEY("tokens"));
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(gguf_get_arr_str(header, id, i));
        if (length > INT32_MAX)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: token %zu has %zu bytes, too many",
                            file->path, i, length);
        total += length + 1;
    }
    vocab->tokens = qkv_calloc(count, sizeof *vocab->tokens);
    vocab->pool = malloc(total);
    if (!vocab->tokens || !vocab->pool) return qkv_fail_memory(err);
    char *end = vocab->pool;
    for (size_t i = 0; i < count; i++) {
        const size_t length = copy_text(end, gguf_get_arr_str(header, id, i));
        vocab->tokens[i] =
            (qkv_vocab_token){.text = end, .length = (uint32_t)length, .type = QKV_TOKEN_NORMAL};
        end += length + 1;
    }
    vocab->n_tokens = (int32_t)count;
    return QKV_OK;
}

static int read_types(qkv_vocab *vocab, const qkv_gguf *file, int *present, qkv_error *err) {
    enum gguf_type type;
    const void *data;
    int status =
        number_array(vocab, file, KEY("token_type"), 1u << GGUF_TYPE_INT32 | 1u << GGUF_TYPE_UINT32,
                     "32-bit integers", &type, &data, err);
    if (status != QKV_OK) return status;
    *present = data != NULL;
    for (int32_t i = 0; data && i < vocab->n_tokens; i++) {
        int32_t value = ((const int32_t *)data)[i];
        if (value < 0 || value >= QKV_TOKEN_TYPE_COUNT)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: token %d has type %d, not one of 0 to %d",
                            file->path, (int)i, (int)value, QKV_TOKEN_TYPE_COUNT - 1);
        vocab->tokens[i].type = (uint8_t)value;
    }
    return QKV_OK;
}

static int read_scores(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    enum gguf_type type = GGUF_TYPE_FLOAT32;
    const void *data;
    int status =
        number_array(vocab, file, KEY("scores"), 1u << GGUF_TYPE_FLOAT32 | 1u << GGUF_TYPE_INT32,
                     "32-bit floats or integers", &type, &data, err);
    if (status != QKV_OK || !data) return status;
    vocab->scores = qkv_calloc((size_t)vocab->n_tokens, sizeof *vocab->scores);
    if (!vocab->scores) return qkv_fail_memory(err);
    for (int32_t i = 0; i < vocab->n_tokens; i++) {
        float score =
            type == GGUF_TYPE_INT32 ? (float)((const int32_t *)data)[i] : ((const float *)data)[i];
        if (isnan(score))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: the score of token %d is not a number",
                            file->path, (int)i);
        vocab->scores[i] = score;
    }
    return QKV_OK;
}

/* An id from the metadata or the kind's default. A default beyond the vocabulary is not a token. */
static int read_id(const qkv_vocab *vocab, const qkv_gguf *file, const char *key, int32_t fallback,
                   int32_t *id, int *given, qkv_error *err) {
    int64_t value = fallback;
    int found = qkv_gguf_int(file, key, 0, vocab->n_tokens - 1, &value, err);
    if (found < 0) return found;
    *id = value < vocab->n_tokens ? (int32_t)value : QKV_NO_TOKEN;
    *given = found;
    return QKV_OK;
}

/* Whether BOS or EOS is added. To ask for a token that is not there is an error; a default that
 * names none is not. */
static int read_rule(const qkv_gguf *file, const char *key, const char *id_key, int32_t id,
                     int fallback, int *rule, qkv_error *err) {
    *rule = fallback;
    int found = qkv_gguf_bool(file, key, rule, err);
    if (found < 0) return found;
    if (found && *rule && id == QKV_NO_TOKEN)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is true but %s is missing", file->path, key,
                        id_key);
    if (id == QKV_NO_TOKEN) *rule = 0;
    return QKV_OK;
}

static int read_specials(qkv_vocab *vocab, const qkv_gguf *file, int typed, qkv_error *err) {
    const qkv_tokenizer *kind = vocab->kind;
    const struct {
        const char *key;
        int32_t fallback;
        int32_t *id;
    } ids[] = {
        {KEY("bos_token_id"), kind->default_bos, &vocab->bos},
        {KEY("eos_token_id"), kind->default_eos, &vocab->eos},
        {KEY("unknown_token_id"), kind->default_unknown, &vocab->unknown},
        {KEY("seperator_token_id"), kind->default_sep, &vocab->sep}, /* spelt so by GGUF */
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        int given = 0;
        int status = read_id(vocab, file, ids[i].key, ids[i].fallback, ids[i].id, &given, err);
        if (status != QKV_OK) return status;
        /* Without types in the file, the ids it names are the only sign of a control token. */
        if (given && !typed) vocab->tokens[*ids[i].id].type = QKV_TOKEN_CONTROL;
    }
    int status = read_rule(file, KEY("add_bos_token"), KEY("bos_token_id"), vocab->bos,
                           kind->add_bos, &vocab->add_bos, err);
    if (status == QKV_OK)
        status = read_rule(file, KEY("add_eos_token"), KEY("eos_token_id"), vocab->eos,
                           kind->add_eos, &vocab->add_eos, err);
    if (status == QKV_OK && kind->add_sep) /* others have it for pairs of texts */
        status = read_rule(file, KEY("add_sep_token"), KEY("seperator_token_id"), vocab->sep,
                           kind->add_sep, &vocab->add_sep, err);
    if (status != QKV_OK) return status;
    /* WordPiece's texts have one between them; others differ, and GGUF has no word for it. */
    int64_t separators = kind == &qkv_tokenizer_wordpiece;
    status = qkv_gguf_int(file, QKV_VOCAB_PAIR_KEY, 0, 8, &separators, err);
    if (status < 0) return status;
    vocab->pair_separators = (int32_t)separators;
    vocab->add_space_prefix = kind->add_space_prefix;
    int found = qkv_gguf_bool(file, KEY("add_space_prefix"), &vocab->add_space_prefix, err);
    return found < 0 ? found : QKV_OK;
}

int qkv_vocab_read_metadata(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    int typed = 0;
    int status = read_texts(vocab, file, err);
    if (status == QKV_OK) status = read_types(vocab, file, &typed, err);
    if (status == QKV_OK) status = read_scores(vocab, file, err);
    if (status == QKV_OK) status = read_specials(vocab, file, typed, err);
    if (status == QKV_OK) status = qkv_vocab_index_specials(vocab, file, err);
    return status;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

int qkv_vocab_byte_of(const char *text, size_t length) {
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int high = hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}
