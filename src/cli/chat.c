/* Conversations: options to messages, messages to the text and the tokens of a prompt. */
#include "qkv/chat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/inputs.h"

#define LARGEST_TEMPLATE ((size_t)1 << 20)

static const char *const roles[] = {"user", "assistant"};

/* The role of ROLE=TEXT, or NULL. */
static const char *role_of(const char *turn) {
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const size_t n = strlen(roles[i]);
        if (strncmp(turn, roles[i], n) == 0 && turn[n] == '=') return roles[i];
    }
    return NULL;
}

int cli_chat_check(const cli_chat *chat, qkv_error *err) {
    const char *alone = chat->system          ? "--system"
                        : chat->turns.n       ? "--turn"
                        : chat->template_file ? "--template"
                        : chat->date          ? "--date"
                                              : NULL;
    if (!chat->on && alone) return cli_usage(err, "%s is for a chat: add --chat", alone);
    for (size_t i = 0; i < chat->turns.n; i++) {
        if (!role_of(chat->turns.items[i].value)) {
            return cli_usage(err, "a turn is written user=TEXT or assistant=TEXT, not '%s'",
                             chat->turns.items[i].value);
        }
    }
    return QKV_OK;
}

int cli_chat_check_prompt(const cli_chat *chat, const qkv_own_prompt *prompt, qkv_error *err) {
    if (!chat->on) return QKV_OK;
    if (!prompt->text) return cli_usage(err, "--chat takes text, not --tokens");
    if (strlen(prompt->text) == prompt->length) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "a message of a chat cannot hold NUL bytes");
}

/* The system's message, the turns, then the prompt. */
static qkv_chat_message *list_messages(const cli_chat *chat, const char *last, size_t *n) {
    qkv_chat_message *list = qkv_calloc(chat->turns.n + 2, sizeof *list);
    *n = 0;
    if (!list) return NULL;
    if (chat->system) list[(*n)++] = (qkv_chat_message){"system", chat->system};
    for (size_t i = 0; i < chat->turns.n; i++) {
        const char *turn = chat->turns.items[i].value;
        const char *role = role_of(turn);
        list[(*n)++] = (qkv_chat_message){role, turn + strlen(role) + 1};
    }
    list[(*n)++] = (qkv_chat_message){"user", last};
    return list;
}

/* The prompt's text becomes the whole conversation. */
static int take_chat(qkv_own_prompt *prompt, const qkv_chat *rendered, const qkv_model *model,
                     qkv_error *err) {
    size_t length;
    const char *text = qkv_chat_text(rendered, &length);
    char *copy = qkv_strndup(text, length);
    if (!copy) return qkv_fail_memory(err);
    free(prompt->text);
    prompt->text = copy;
    prompt->length = length;
    const int status = qkv_chat_tokenize(rendered, model, &prompt->tokens, &prompt->n_tokens, err);
    if (status != QKV_OK || prompt->n_tokens) return status;
    return qkv_fail(err, QKV_ERR_FORMAT, "the chat template writes nothing");
}

static int write_out(const cli_chat *chat, qkv_own_prompt *prompt, const qkv_model *model,
                     unsigned flags, qkv_error *err) {
    qkv_chat *rendered = NULL;
    char *file = NULL;
    size_t size;
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    int status = cli_chat_check_prompt(chat, prompt, err);
    if (status != QKV_OK) return status;
    qkv_chat_message *messages = list_messages(chat, prompt->text, &options.n_messages);
    if (!messages) status = qkv_fail_memory(err);
    if (status == QKV_OK && chat->template_file) {
        status = qkv_read_file(&file, &size, chat->template_file, LARGEST_TEMPLATE, err);
    }
    options.messages = messages;
    options.template_text = file;
    options.date = chat->date;
    options.parse_special = (flags & QKV_TOKENIZE_PARSE_SPECIAL) != 0;
    if (status == QKV_OK) {
        status = cli_name_fields(qkv_chat_render(&rendered, model, &options, err), err);
    }
    if (status == QKV_OK) status = take_chat(prompt, rendered, model, err);
    qkv_chat_free(rendered);
    free(messages);
    free(file);
    return status;
}

static void show(const qkv_own_prompt *prompt) {
    if (prompt->text) {
        fwrite(prompt->text, 1, prompt->length, stderr);
        fputc('\n', stderr);
    }
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        fprintf(stderr, "%s%" PRId32, i ? "," : "", prompt->tokens[i]);
    }
    fputc('\n', stderr);
}

int cli_chat_tokenize(const cli_chat *chat, qkv_own_prompt *prompt, const qkv_model *model,
                      unsigned flags, qkv_error *err) {
    int status = chat->on ? write_out(chat, prompt, model, flags, err) : QKV_OK;
    if (status == QKV_OK) status = cli_prompt_tokenize(prompt, model, flags, err);
    if (status == QKV_OK && chat->show) show(prompt);
    return status;
}
