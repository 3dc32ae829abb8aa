/* vocab.txt and merges.txt: a token, or two that merge, on every line. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_json_internal.h"

/* Takes the next line off a text, without its end: 1, or 0 when there is none left. */
static int next_line(qkv_json_span *text, qkv_json_span *line) {
    if (text->length == 0) return 0;
    const char *end = memchr(text->text, '\n', text->length);
    const size_t length = end ? (size_t)(end - text->text) : text->length;
    *line = (qkv_json_span){text->text, length};
    if (length > 0 && line->text[length - 1] == '\r') line->length--;
    text->text += length + (end != NULL);
    text->length -= length + (end != NULL);
    return 1;
}

/* Of equal lines the last one counts; the ids of the others belong to no token. */
static int drop_repeated(qkv_tokenizer_json *reader, qkv_error *err) {
    qkv_string_map ids = {0};
    if (!qkv_string_map_init(&ids, reader->n_tokens)) return qkv_fail_memory(err);
    for (size_t i = reader->n_tokens; i-- > 0;) {
        qkv_json_token *token = &reader->tokens[i];
        const char *text = reader->pool.data + token->start;
        if (token->type == QKV_TOKEN_UNDEFINED) continue;
        if (qkv_string_map_add(&ids, text, token->length, (int32_t)i) != (int32_t)i)
            token->type = QKV_TOKEN_UNDEFINED;
    }
    qkv_string_map_release(&ids);
    return QKV_OK;
}

/* An empty line has an id and no token. */
int qkv_lines_read_vocab(qkv_tokenizer_json *reader, qkv_error *err) {
    qkv_json_span left = reader->vocab_lines, line;
    while (next_line(&left, &line)) {
        const size_t start = reader->pool.length, id = reader->n_tokens;
        if (id >= INT32_MAX)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: too many lines", reader->path);
        int status = qkv_json_reach(reader, (double)id, id, err);
        qkv_text_append(&reader->pool, line.text, line.length);
        if (status == QKV_OK && line.length > 0)
            status = qkv_json_set_token(reader, id, start, 0, err);
        if (status != QKV_OK) return status;
    }
    return drop_repeated(reader, err);
}

/* "LEFT RIGHT", and nothing else. */
static int is_merge(qkv_json_span line) {
    const char *blank = memchr(line.text, ' ', line.length);
    if (!blank || blank == line.text || memchr(line.text, 0, line.length)) return 0;
    const size_t rest = line.length - (size_t)(blank - line.text) - 1;
    return rest > 0 && !memchr(blank + 1, ' ', rest);
}

int qkv_lines_read_merges(qkv_tokenizer_json *reader, qkv_error *err) {
    static const char version[] = "#version";
    qkv_json_span left = reader->merge_lines, line;
    for (size_t number = 1; next_line(&left, &line); number++) {
        const int is_version = number == 1 && line.length >= sizeof version - 1 &&
                               memcmp(line.text, version, sizeof version - 1) == 0;
        if (line.length == 0 || is_version) continue;
        if (!is_merge(line))
            return qkv_fail(err, QKV_ERR_FORMAT,
                            "%s: line %zu of merges.txt is not two tokens with a space between",
                            reader->path, number);
        char *merge = qkv_strndup(line.text, line.length);
        qkv_word_list *list = &reader->merge_list;
        if (!merge || !QKV_PUSH(list->items, list->capacity, list->count, merge)) {
            free(merge);
            return qkv_fail_memory(err);
        }
    }
    return QKV_OK;
}
