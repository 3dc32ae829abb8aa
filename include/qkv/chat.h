/*
 * Unstable: may change in every version.
 *
 * Conversations: messages written out as a model's chat template says, and turned into tokens.
 *
 *     qkv_chat *chat = NULL;
 *     const qkv_chat_message messages[] = {{"user", "What is a mill?"}};
 *     qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
 *     options.messages = messages;
 *     options.n_messages = 1;
 *     options.template_text = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}";
 *     if (qkv_chat_render(&chat, NULL, &options, &err) == QKV_OK) {
 *         printf("%s\n", qkv_chat_text(chat, NULL));
 *     }
 *     qkv_chat_free(chat);
 *
 * A template is a program that came with somebody's file. It reaches no files, and what it may use
 * is bounded: 0.25 s, 500000 steps, texts of 8 MiB. One that goes beyond, or that refuses the
 * conversation, is an error of one line.
 *
 * A chat depends on no model once it is made, and may be read by several threads.
 */
#ifndef QKV_CHAT_H
#define QKV_CHAT_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Will never grow. */
typedef struct qkv_chat_message {
    const char *role; /* "system", "user", "assistant": letters, digits, - and _ */
    const char *text;
} qkv_chat_message;

typedef struct qkv_chat_options {
    size_t size;
    const qkv_chat_message *messages;
    size_t n_messages;
    const char *template_text; /* NULL: the model's own */
    const char *date;          /* "2026-01-31" for templates that ask for it; NULL: today */
    int32_t no_reply;          /* 1: ends with the last message, not where the model is to reply */
    int32_t parse_special;     /* 1: names of special tokens in messages become those tokens */
} qkv_chat_options;

#define QKV_CHAT_OPTIONS_INIT                                                                      \
    { .size = sizeof(qkv_chat_options) }

typedef struct qkv_chat qkv_chat;

/* The template that came with the model, which owns it; NULL: there is none. */
QKV_API const char *qkv_model_chat_template(const qkv_model *model);

/* Writes the messages out, as transformers' apply_chat_template does. The model gives the template
 * and the names of its special tokens; it may be NULL where a template is given, which then has no
 * such names. */
QKV_API int qkv_chat_render(qkv_chat **out, const qkv_model *model, const qkv_chat_options *options,
                            qkv_error *err);
/* The whole text, NUL-terminated; *length, unless NULL, gets its bytes. NULL for NULL. */
QKV_API const char *qkv_chat_text(const qkv_chat *chat, size_t *length);
/* The text's parts, alternately the template's own and from messages: where one starts, how long it is,
 * and whether it is from a message. 0 past the end. */
QKV_API int qkv_chat_part(const qkv_chat *chat, size_t index, size_t *start, size_t *length,
                          int *from_message);
/* The text's tokens; freed with qkv_tokens_free. No token is added: a template writes BOS itself.
 * Names of special tokens count in the template's parts, in messages with parse_special only. */
QKV_API int qkv_chat_tokenize(const qkv_chat *chat, const qkv_model *model, int32_t **tokens,
                              size_t *n_tokens, qkv_error *err);
QKV_API void qkv_chat_free(qkv_chat *chat);

#ifdef __cplusplus
}
#endif

#endif
