/* The vocabulary of tokenizer.json's model, and its merges; tokenizer_json_added.c adds to them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/sentencepiece_file.h"
#include "tokenizer/tokenizer_json_internal.h"

/* Holes cost memory that the file's size does not account for: their number is limited in all, not
 * from one id to the next. */
int qkv_json_reach(qkv_tokenizer_json *reader, double id, size_t expected, qkv_error *err) {
    if (!(id >= 0 && id < (double)(expected + QKV_JSON_MAX_HOLES)) || floor(id) != id)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: token id %g is out of range", reader->path, id);
    while (reader->n_tokens <= (size_t)id) {
        const qkv_json_token none = {0};
        if (!QKV_PUSH(reader->tokens, reader->capacity, reader->n_tokens, none))
            return qkv_fail_memory(err);
    }
    return QKV_OK;
}

int qkv_json_set_token(qkv_tokenizer_json *reader, size_t id, size_t start, float score,
                       qkv_error *err) {
    size_t length = reader->pool.length - start;
    if (reader->pool.failed) return qkv_fail_memory(err);
    if (length > INT32_MAX)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: token %zu is too long", reader->path, id);
    if (reader->tokens[id].type != QKV_TOKEN_UNDEFINED)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: two tokens have the id %zu", reader->path, id);
    reader->tokens[id] = (qkv_json_token){
        .start = start, .length = (uint32_t)length, .type = QKV_TOKEN_NORMAL, .score = score};
    return QKV_OK;
}

static int fail_vocab(const qkv_tokenizer_json *reader, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: the vocabulary is malformed", reader->path);
}

/* {"text": id, ...} */
static int read_object(qkv_tokenizer_json *reader, qkv_json_scan *scan, qkv_error *err) {
    qkv_json_span key, value;
    double id;
    int more;
    /* An entry takes five bytes at least. */
    const size_t most = (size_t)(scan->end - scan->at) / 5 + 1;
    while ((more = qkv_json_next(scan, &key, &value)) > 0) {
        size_t start = reader->pool.length;
        if (!qkv_json_append_string(key, &reader->pool) || !qkv_json_number(value, &id))
            return fail_vocab(reader, err);
        int status = qkv_json_reach(reader, id, most, err);
        if (status == QKV_OK) status = qkv_json_set_token(reader, (size_t)id, start, 0, err);
        if (status != QKV_OK) return status;
    }
    return more < 0 ? fail_vocab(reader, err) : QKV_OK;
}

/* [["text", score], ...] */
static int read_array(qkv_tokenizer_json *reader, qkv_json_scan *scan, qkv_error *err) {
    qkv_json_span item, text, score;
    double number;
    int more;
    while ((more = qkv_json_next(scan, NULL, &item)) > 0) {
        qkv_json_scan pair;
        size_t start = reader->pool.length, id = reader->n_tokens;
        if (!qkv_json_open(&pair, item) || pair.is_object ||
            qkv_json_next(&pair, NULL, &text) <= 0 || qkv_json_next(&pair, NULL, &score) <= 0 ||
            !qkv_json_append_string(text, &reader->pool) || !qkv_json_number(score, &number))
            return fail_vocab(reader, err);
        int status = qkv_json_reach(reader, (double)id, id, err);
        if (status == QKV_OK) status = qkv_json_set_token(reader, id, start, (float)number, err);
        if (status != QKV_OK) return status;
    }
    return more < 0 ? fail_vocab(reader, err) : QKV_OK;
}

int32_t qkv_json_find_token(const qkv_tokenizer_json *reader, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < reader->n_tokens; i++) {
        const qkv_json_token *token = &reader->tokens[i];
        if (token->type != QKV_TOKEN_UNDEFINED && token->length == length &&
            memcmp(reader->pool.data + token->start, text, length) == 0)
            return (int32_t)i;
    }
    return QKV_NO_TOKEN;
}

/* As the model has it, an object or, of Unigram, an array. */
static int read_members(qkv_tokenizer_json *reader, qkv_error *err) {
    qkv_json_scan scan;
    if (!qkv_json_open(&scan, reader->vocab) ||
        scan.is_object == (reader->kind == QKV_JSON_Unigram))
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: the model has no vocabulary of its kind, or a malformed one",
                        reader->path);
    return scan.is_object ? read_object(reader, &scan, err) : read_array(reader, &scan, err);
}

int qkv_json_read_vocab(qkv_tokenizer_json *reader, qkv_error *err) {
    int status;
    qkv_text_puts(&reader->pool, "");
    if (reader->vocab_lines.text)
        status = qkv_lines_read_vocab(reader, err);
    else if (reader->pieces.text)
        status = qkv_pieces_read_vocab(reader, err);
    else
        status = read_members(reader, err);
    if (status != QKV_OK) return status;
    if (reader->n_tokens == 0 || reader->n_tokens > INT32_MAX)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the vocabulary has %zu tokens", reader->path,
                        reader->n_tokens);
    return QKV_OK;
}

/* ---- merges ---- */

static int fail_merge(const qkv_tokenizer_json *reader, size_t index, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: merge %zu is not two tokens without spaces",
                    reader->path, index);
}

/* Appends "LEFT RIGHT" with a NUL after it; either a string or a pair of them. 0 when it is
 * neither. */
static int append_merge(qkv_json_span value, qkv_text *pool) {
    qkv_json_scan pair;
    qkv_json_span left, right;
    size_t start = pool->length;
    if (qkv_json_open(&pair, value)) {
        if (pair.is_object || qkv_json_next(&pair, NULL, &left) <= 0 ||
            qkv_json_next(&pair, NULL, &right) <= 0 || !qkv_json_append_string(left, pool))
            return 0;
        qkv_text_puts(pool, " ");
        if (!qkv_json_append_string(right, pool)) return 0;
    } else if (!qkv_json_append_string(value, pool)) {
        return 0;
    }
    if (pool->failed) return 1; /* reported by the caller */
    size_t length = pool->length - start;
    const char *text = pool->data + start, *blank = memchr(text, ' ', length);
    int one = blank && !memchr(blank + 1, ' ', length - (size_t)(blank - text) - 1);
    int proper = one && blank > text && blank + 1 < text + length;
    qkv_text_append(pool, "", 1);
    return proper;
}

/* A merge that holds a NUL is dropped: strings of metadata end there. */
int qkv_json_read_merges(qkv_tokenizer_json *reader, qkv_error *err) {
    qkv_json_scan scan;
    qkv_json_span value;
    int more = 0;
    if (reader->kind != QKV_JSON_BPE || reader->by_score) return QKV_OK;
    if (reader->merge_lines.text) return qkv_lines_read_merges(reader, err);
    if (!qkv_json_open(&scan, reader->merges) || scan.is_object)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the model has no merges", reader->path);
    qkv_text pool = {0};
    size_t index = 0;
    int status = QKV_OK;
    qkv_text_puts(&pool, "");
    for (; status == QKV_OK && (more = qkv_json_next(&scan, NULL, &value)) > 0; index++) {
        pool.length = 0;
        int proper = append_merge(value, &pool);
        if (pool.failed)
            status = qkv_fail_memory(err);
        else if (!proper)
            status = fail_merge(reader, index, err);
        else if (strlen(pool.data) == pool.length - 1)
            status = qkv_word_list_push(&reader->merge_list, pool.data, err);
    }
    qkv_text_release(&pool);
    if (status == QKV_OK && more < 0) status = fail_merge(reader, index, err);
    return status;
}
