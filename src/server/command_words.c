#include "server/command_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "qkv/hub.h"

void qkv_words_add(qkv_words *words, const char *word) {
    char *copy = qkv_strdup(word);
    if (copy && QKV_PUSH(words->items, words->capacity, words->n, copy)) return;
    free(copy);
    words->failed = 1;
}

void qkv_words_pair(qkv_words *words, const char *option, const char *value) {
    qkv_words_add(words, option);
    qkv_words_add(words, value);
}

/* Inside single quotes a shell takes everything as it is, but for the quote. */
static void quote(const char *word, qkv_text *line) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:,./-";
    if (word[0] && strspn(word, plain) == strlen(word)) {
        qkv_text_puts(line, word);
        return;
    }
    qkv_text_puts(line, "'");
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            qkv_text_puts(line, "'\\''");
        else
            qkv_text_append(line, at, 1);
    }
    qkv_text_puts(line, "'");
}

void qkv_words_quote(const qkv_words *words, qkv_text *line) {
    for (size_t i = 0; i < words->n; i++) {
        if (i) qkv_text_puts(line, " ");
        quote(words->items[i], line);
    }
}

json_t *qkv_words_json(const qkv_words *words) {
    qkv_text line = {0};
    json_t *list = json_array();
    qkv_words_quote(words, &line);
    for (size_t i = 0; i < words->n; i++) qkv_json_push(list, qkv_json_text(words->items[i]));
    json_t *command = line.failed ? NULL : qkv_json_text(line.data);
    qkv_text_release(&line);
    return json_pack("{s:o, s:o}", "command", command, "words", list);
}

const char *qkv_words_short_model(const char *model) {
    return model && !qkv_model_is_name(model) ? qkv_path_base(model) : model;
}

void qkv_words_release(qkv_words *words) {
    for (size_t i = 0; i < words->n; i++) free(words->items[i]);
    free(words->items);
    *words = (qkv_words){0};
}
