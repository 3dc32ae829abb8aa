/*
 * Holds chats to what transformers makes of them: real_chat DIRECTORY CASES.json NAME, where the
 * directory is a model with the tokeniser's files of NAME (chat_directory.py).
 *
 * Every conversation must give the text and, with parse_special, the ids. Without it ids must be
 * the same where no message names a special token.
 */
#define QKV_UNSTABLE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qkv/qkv.h"

enum { MOST_MESSAGES = 16 };

static void give_up(const char *what, const char *why) {
    fprintf(stderr, "real_chat: %s: %s\n", what, why);
    exit(1);
}

static const char *member(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text) give_up(key, "is missing");
    return text;
}

static size_t take_messages(const json_t *list, qkv_chat_message out[MOST_MESSAGES]) {
    const size_t n = json_array_size(list);
    if (n == 0 || n > MOST_MESSAGES) give_up("messages", "none, or too many");
    for (size_t i = 0; i < n; i++) {
        const json_t *message = json_array_get(list, i);
        out[i] = (qkv_chat_message){member(message, "role"), member(message, "content")};
    }
    return n;
}

static int same_ids(const json_t *wanted, const int32_t *ids, size_t n) {
    if (json_array_size(wanted) != n) return 0;
    for (size_t i = 0; i < n; i++) {
        if (json_integer_value(json_array_get(wanted, i)) != ids[i]) return 0;
    }
    return 1;
}

static void check(const qkv_model *model, const char *name, const json_t *one, int parse_special) {
    qkv_chat_message messages[MOST_MESSAGES];
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    qkv_error err = {0};
    qkv_chat *chat = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    options.messages = messages;
    options.n_messages = take_messages(json_object_get(one, "messages"), messages);
    options.no_reply = !json_is_true(json_object_get(one, "add_generation_prompt"));
    options.parse_special = parse_special;
    if (qkv_chat_render(&chat, model, &options, &err) != QKV_OK) give_up(name, err.message);
    if (strcmp(qkv_chat_text(chat, NULL), member(one, "text")) != 0)
        give_up(name, "another text than transformers'");
    if (qkv_chat_tokenize(chat, model, &ids, &n, &err) != QKV_OK) give_up(name, err.message);
    if (!same_ids(json_object_get(one, "ids"), ids, n))
        give_up(name,
                parse_special ? "other ids than transformers'" : "other ids without parse_special");
    qkv_tokens_free(ids);
    qkv_chat_free(chat);
}

int main(int argc, char **argv) {
    if (argc != 4) give_up("usage", "real_chat DIRECTORY CASES.json NAME");
    qkv_error err = {0};
    qkv_model *model = NULL;
    json_t *all = json_load_file(argv[2], 0, NULL), *one;
    const json_t *entry = json_object_get(all, argv[3]);
    const char *name, *own;
    size_t n = 0;
    if (qkv_model_open(&model, argv[1], &err) != QKV_OK) give_up(argv[1], err.message);
    own = qkv_model_chat_template(model);
    if (!own || strcmp(own, member(entry, "template")) != 0)
        give_up(argv[1], "its template is not that of the cases");
    json_object_foreach(json_object_get(entry, "cases"), name, one) {
        check(model, name, one, 1);
        check(model, name, one, 0);
        n++;
    }
    if (n == 0) give_up(argv[3], "there are no cases");
    printf("%zu conversations of %s have transformers' text and ids\n", n, argv[3]);
    qkv_model_free(model);
    json_decref(all);
    return 0;
}
