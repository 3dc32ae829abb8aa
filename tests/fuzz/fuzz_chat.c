/*
 * A template that somebody else wrote. It may take 0.25 s and 8 MiB for a text, whatever it
 * says, and never crashes; what it writes is all accounted for by its parts.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "qkv/chat.h"

static void look(const qkv_chat *chat) {
    size_t whole, start, length, at = 0;
    int from_message;
    qkv_chat_text(chat, &whole);
    for (size_t i = 0; qkv_chat_part(chat, i, &start, &length, &from_message); i++) {
        if (start != at) abort();
        at += length;
    }
    if (at != whole) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const qkv_chat_message messages[] = {
        {"system", "Answer in one sentence."},
        {"user", "<s> What is a mill? "},
        {"assistant", "A building.\n"},
        {"user", "Thank you</s>"},
    };
    qkv_chat *chat = NULL;
    qkv_error err = {0};
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    options.messages = messages;
    options.n_messages = 4;
    options.template_text = text;
    options.date = "2026-01-31";
    const int status = qkv_chat_render(&chat, NULL, &options, &err);
    if (status == QKV_OK)
        look(chat);
    else if (!err.message[0] || strchr(err.message, '\n'))
        abort();
    qkv_chat_free(chat);
    free(text);
    return 0;
}
